//! Memory move and dualcast (spec 8.3.4, 8.3.10).

use super::{CHUNK, Run, success};
use crate::extent::{Extent, destination, destination2, source};
use crate::{Memory, Outcome};

impl<M: Memory> Run<'_, M> {
    pub(super) fn memmove(&mut self) -> Outcome {
        let (src, dst, size) = (self.d.address1, self.d.address2, u64::from(self.d.size));
        let buffers = [source(src), destination(dst)];
        // A destination that starts inside the source must be filled from its end.
        let backward = dst > src && dst - src < size;
        let extent = match backward {
            false => self.extent(&buffers),
            true => Extent::from_end(self.memory, &buffers, size),
        };
        if self.moved && backward {
            self.move_end(extent.bytes);
        } else if self.moved {
            let mut buffer = [0; CHUNK];
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.read(src + offset, &mut buffer[..n]);
                memory.write(dst + offset, &buffer[..n]);
            });
        }
        let mut record = success();
        record.result = u8::from(backward && extent.is_faulted());
        self.end(&extent, record)
    }

    /// Moves the last `bytes` bytes, last ones first.
    fn move_end(&mut self, bytes: u64) {
        let (src, dst) = (self.d.address1, self.d.address2);
        let mut buffer = [0; CHUNK];
        let mut end = u64::from(self.d.size);
        let start = end - bytes;
        while end > start {
            let n = (end - start).min(CHUNK as u64);
            end -= n;
            let chunk = &mut buffer[..n as usize];
            self.memory.read(src + end, chunk);
            self.memory.write(dst + end, chunk);
        }
    }

    pub(super) fn dualcast(&mut self) -> Outcome {
        let (src, first, second) = (self.d.address1, self.d.address2, self.d.destination2());
        let extent = self.extent(&[source(src), destination(first), destination2(second)]);
        if self.moved {
            let mut buffer = [0; CHUNK];
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.read(src + offset, &mut buffer[..n]);
                memory.write(first + offset, &buffer[..n]);
                memory.write(second + offset, &buffer[..n]);
            });
        }
        self.end(&extent, success())
    }
}
