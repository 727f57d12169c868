//! Fill (spec 8.3.5).

use dray_ops::Pattern;
use dray_spec::{Descriptor, Flags};

use super::{CHUNK, Run, success};
use crate::extent::destination;
use crate::{DescriptorResult, Memory};

/// What a fill writes over and over.
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
    pub(super) fn fill(&mut self) -> DescriptorResult {
        let dst = self.d.address2;
        let extent = self.extent(&[destination(dst)]);
        if self.moved {
            let mut buffer = [0; CHUNK];
            let used = extent.bytes.min(CHUNK as u64) as usize;
            dray_ops::fill(&mut buffer[..used], pattern(self.d));
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.write(dst + offset, &buffer[..n]);
            });
        }
        self.end(&extent, success())
    }
}
