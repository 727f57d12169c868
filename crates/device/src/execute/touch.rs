//! Operations that move nothing: cache flush, translation fetch, the readback of a drain.

use dray_spec::{Flags, Status};

use super::{Run, success};
use crate::effect::Operand;
use crate::extent::{Extent, source, source2};
use crate::{Access, DescriptorResult, Memory};

/// Distance between translation requests where the descriptor names none.
const STRIDE: u64 = 4096;

impl<M: Memory> Run<'_, M> {
    /// A flush changes no byte: the page need not be writable (spec 8.3.26).
    pub(super) fn flush(&mut self) -> DescriptorResult {
        let region = (self.d.address2, Access::Read, Operand::Destination);
        let extent = self.extent(&[region]);
        if self.moved {
            self.memory.flush(self.d.address2, extent.bytes);
        }
        self.end(&extent, success())
    }

    /// One request for each stride of the region (spec 8.3.11).
    pub(super) fn fetch_translations(&mut self) -> DescriptorResult {
        let (start, size) = (self.d.address1, u64::from(self.d.region_size()));
        let stride = match self.d.flags().contains(Flags::TRANSLATION_FETCH_USE_STRIDE) {
            true => u64::from(self.d.region_stride()).max(STRIDE),
            false => STRIDE,
        };
        let whole = Extent::of(self.memory, &[source(start)], size);
        if !whole.is_faulted() {
            return DescriptorResult::status(Status::SUCCESS);
        }
        let mut offset = 0;
        while offset < size {
            let one = Extent::of(self.memory, &[source(start.wrapping_add(offset))], 1);
            if one.is_faulted() {
                return self.end(&one, success());
            }
            offset += stride;
        }
        DescriptorResult::status(Status::SUCCESS)
    }

    /// Reads nothing at the addresses that are valid; they must be there (spec 3.12).
    pub(super) fn read_back(&mut self) -> DescriptorResult {
        let flags = self.d.flags();
        for (flag, address) in [
            (Flags::DRAIN_READBACK1_VALID, source(self.d.address1)),
            (Flags::DRAIN_READBACK2_VALID, source2(self.d.address2)),
        ] {
            let extent = Extent::of(self.memory, &[address], 1);
            if flags.contains(flag) && extent.is_faulted() {
                let mut outcome = extent.outcome(success(), false);
                outcome.record.status = Status::READBACK_PAGE_FAULT.0;
                return outcome;
            }
        }
        DescriptorResult::status(Status::SUCCESS)
    }
}
