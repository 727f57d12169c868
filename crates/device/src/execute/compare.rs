//! Compare and compare pattern (spec 8.3.6, 8.3.7).

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::{CHUNK, Run, success};
use crate::extent::{Extent, source, source2};
use crate::{DescriptorResult, Memory};

/// How a comparison of which all bytes were there ended (spec Table 8-17).
#[inline]
pub(super) fn found(d: &Descriptor, difference: Option<u64>) -> CompletionRecord {
    let mut record = success();
    if let Some(offset) = difference {
        record.result = 1;
        record.bytes_completed = offset as u32;
    }
    let as_expected = record.result == d.expected_result() & 1;
    if d.flags().contains(Flags::CHECK_RESULT) && !as_expected {
        record.status = Status::SUCCESS_PREDICATE.0;
    }
    record
}

impl<M: Memory> Run<'_, M> {
    #[inline]
    pub(super) fn compare(&mut self) -> DescriptorResult {
        let (a, b) = (self.d.address1, self.d.address2);
        let extent = self.extent(&[source(a), source2(b)]);
        if !self.moved {
            return self.compared(&extent, None);
        }
        let both = (
            self.memory.in_place(a, extent.bytes),
            self.memory.in_place(b, extent.bytes),
        );
        if let (Some(left), Some(right)) = both {
            let difference = dray_ops::compare(left, right).map(|at| at as u64);
            return self.compared(&extent, difference);
        }
        let difference = self.compare_by_chunks(a, b, extent.bytes);
        self.compared(&extent, difference)
    }

    #[inline(never)]
    fn compare_by_chunks(&mut self, a: u64, b: u64, bytes: u64) -> Option<u64> {
        let (mut left, mut right) = ([0; CHUNK], [0; CHUNK]);
        self.find_chunk(bytes, |memory, offset, n| {
            memory.read(a + offset, &mut left[..n]);
            memory.read(b + offset, &mut right[..n]);
            dray_ops::compare(&left[..n], &right[..n])
        })
    }

    #[inline]
    pub(super) fn compare_pattern(&mut self) -> DescriptorResult {
        let (src, pattern) = (self.d.address1, self.d.address2.to_le_bytes());
        let extent = self.extent(&[source(src)]);
        if !self.moved {
            return self.compared(&extent, None);
        }
        if let Some(bytes) = self.memory.in_place(src, extent.bytes) {
            let difference = dray_ops::compare_pattern(bytes, pattern).map(|at| at as u64);
            return self.compared(&extent, difference);
        }
        let difference = self.compare_pattern_by_chunks(src, pattern, extent.bytes);
        self.compared(&extent, difference)
    }

    #[inline(never)]
    fn compare_pattern_by_chunks(&mut self, src: u64, pattern: [u8; 8], bytes: u64) -> Option<u64> {
        let mut buffer = [0; CHUNK];
        self.find_chunk(bytes, |memory, offset, n| {
            memory.read(src + offset, &mut buffer[..n]);
            dray_ops::compare_pattern(&buffer[..n], pattern)
        })
    }

    /// A difference that was found counts more than a fault behind it (spec 8.3.6).
    #[inline]
    fn compared(&self, extent: &Extent, difference: Option<u64>) -> DescriptorResult {
        match difference.is_none() && extent.is_faulted() {
            true => self.end(extent, success()),
            false => DescriptorResult::of(found(self.d, difference)),
        }
    }
}
