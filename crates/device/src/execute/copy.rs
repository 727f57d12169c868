//! Memory move and dualcast (spec 8.3.4, 8.3.10).

use dray_ops::DUALCAST_BLOCK;

use super::{Run, success};
use crate::extent::{Extent, destination, destination2, source};
use crate::{DescriptorResult, Memory};

impl<M: Memory> Run<'_, M> {
    #[inline]
    pub(super) fn memmove(&mut self) -> DescriptorResult {
        let (src, dst, size) = (self.d.address1, self.d.address2, u64::from(self.d.size));
        let buffers = [source(src), destination(dst)];
        // A destination that starts inside the source must be filled from its end.
        let backward = dst > src && dst - src < size;
        let extent = match backward {
            false => self.extent(&buffers),
            true => Extent::from_end(self.memory, &buffers, size),
        };
        if self.moved && extent.bytes > 0 {
            let first = if backward { size - extent.bytes } else { 0 };
            self.memory.copy(src + first, dst + first, extent.bytes);
        }
        let mut record = success();
        record.result = u8::from(backward && extent.is_faulted());
        self.end(&extent, record)
    }

    #[inline]
    pub(super) fn dualcast(&mut self) -> DescriptorResult {
        let (src, first, second) = (self.d.address1, self.d.address2, self.d.destination2());
        let extent = self.extent(&[source(src), destination(first), destination2(second)]);
        if self.moved {
            let mut offset = 0;
            while offset < extent.bytes {
                let n = (extent.bytes - offset).min(DUALCAST_BLOCK as u64);
                self.memory.copy(src + offset, first + offset, n);
                self.memory.copy(src + offset, second + offset, n);
                offset += n;
            }
        }
        self.end(&extent, success())
    }
}
