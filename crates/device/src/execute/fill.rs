//! Fill (spec 8.3.5).

use dray_ops::Pattern;
use dray_spec::{Descriptor, Flags};

use super::{CHUNK, Run, success};
use crate::extent::destination;
use crate::{DescriptorResult, Memory};

/// What a fill writes over and over.
#[inline]
pub(super) fn pattern(d: &Descriptor) -> Pattern {
    let low = d.address1.to_le_bytes();
    if !d.flags().contains(Flags::FILL_PATTERN_16) {
        return Pattern::Eight(low);
    }
    let mut both = [0; 16];
    both[..8].copy_from_slice(&low);
    both[8..].copy_from_slice(&d.pattern_high().to_le_bytes());
    Pattern::Sixteen(both)
}

impl<M: Memory> Run<'_, M> {
    #[inline]
    pub(super) fn fill(&mut self) -> DescriptorResult {
        let dst = self.d.address2;
        let extent = self.extent(&[destination(dst)]);
        if self.moved {
            match self.memory.in_place_into([], (dst, extent.bytes)) {
                Some(([], bytes)) => dray_ops::fill(bytes, pattern(self.d)),
                None => self.fill_by_chunks(dst, extent.bytes),
            }
        }
        self.end(&extent, success())
    }

    #[inline(never)]
    fn fill_by_chunks(&mut self, dst: u64, bytes: u64) {
        let mut buffer = [0; CHUNK];
        let used = bytes.min(CHUNK as u64) as usize;
        dray_ops::fill(&mut buffer[..used], pattern(self.d));
        self.each_chunk(bytes, |memory, offset, n| {
            memory.write(dst + offset, &buffer[..n]);
        });
    }
}
