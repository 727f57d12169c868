//! Carries a descriptor out on memory.

use dray_ops::{CrcOptions, Pattern};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::extent::{Buffer, Extent, destination, destination2, source, source2};
use crate::{Memory, Outcome};

/// Bytes moved through the device at a time.
const CHUNK: usize = 4096;

/// Whether payload bytes are moved. Sweeps that only ask for time leave them where they are;
/// page faults happen all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Payload {
    /// Bytes move and results are computed.
    #[default]
    Moved,
    /// Bytes stay; comparisons report equal, checksums 0.
    Skipped,
}

/// Executes a descriptor that passed the device's checks; how it ends is the outcome.
///
/// A page fault ends it after the bytes before the fault: status, address and bytes completed as
/// in spec 8.2 and 8.3; the partial result can be resumed from there. A descriptor that blocks on
/// faults, on memory that still cannot be accessed, ends as if the page request had been refused.
pub fn execute(
    opcode: Opcode,
    d: &Descriptor,
    memory: &mut impl Memory,
    payload: Payload,
) -> Outcome {
    let mut run = Run {
        d,
        memory,
        moved: payload == Payload::Moved,
    };
    match opcode {
        Opcode::Memmove => run.memmove(),
        Opcode::Fill => run.fill(),
        Opcode::Compare => run.compare(),
        Opcode::ComparePattern => run.compare_pattern(),
        Opcode::Dualcast => run.dualcast(),
        Opcode::CrcGenerate => run.crc(&[source(d.address1)], None),
        Opcode::CopyCrc => {
            let dst = d.address2;
            run.crc(&[source(d.address1), destination(dst)], Some(dst))
        }
        _ => Outcome::status(Status::SUCCESS),
    }
}

struct Run<'a, M> {
    d: &'a Descriptor,
    memory: &'a mut M,
    moved: bool,
}

impl<M: Memory> Run<'_, M> {
    fn extent(&self, buffers: &[Buffer]) -> Extent {
        Extent::of(self.memory, buffers, u64::from(self.d.size))
    }

    fn end(&self, extent: &Extent, record: CompletionRecord) -> Outcome {
        extent.outcome(record, self.d.flags().contains(Flags::BLOCK_ON_FAULT))
    }

    fn memmove(&mut self) -> Outcome {
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

    fn fill(&mut self) -> Outcome {
        let dst = self.d.address2;
        let extent = self.extent(&[destination(dst)]);
        if self.moved {
            let low = self.d.address1.to_le_bytes();
            let pattern = match self.d.flags().contains(Flags::FILL_PATTERN_16) {
                false => Pattern::Eight(low),
                true => {
                    let mut both = [0; 16];
                    both[..8].copy_from_slice(&low);
                    both[8..].copy_from_slice(&self.d.pattern_high().to_le_bytes());
                    Pattern::Sixteen(both)
                }
            };
            let mut buffer = [0; CHUNK];
            let used = extent.bytes.min(CHUNK as u64) as usize;
            dray_ops::fill(&mut buffer[..used], pattern);
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.write(dst + offset, &buffer[..n]);
            });
        }
        self.end(&extent, success())
    }

    fn compare(&mut self) -> Outcome {
        let (a, b) = (self.d.address1, self.d.address2);
        let extent = self.extent(&[source(a), source2(b)]);
        if !self.moved {
            return self.compared(&extent, None);
        }
        let (mut left, mut right) = ([0; CHUNK], [0; CHUNK]);
        let difference = self.find_chunk(extent.bytes, |memory, offset, n| {
            memory.read(a + offset, &mut left[..n]);
            memory.read(b + offset, &mut right[..n]);
            dray_ops::compare(&left[..n], &right[..n])
        });
        self.compared(&extent, difference)
    }

    fn compare_pattern(&mut self) -> Outcome {
        let (src, pattern) = (self.d.address1, self.d.address2.to_le_bytes());
        let extent = self.extent(&[source(src)]);
        if !self.moved {
            return self.compared(&extent, None);
        }
        let mut buffer = [0; CHUNK];
        let difference = self.find_chunk(extent.bytes, |memory, offset, n| {
            memory.read(src + offset, &mut buffer[..n]);
            dray_ops::compare_pattern(&buffer[..n], pattern)
        });
        self.compared(&extent, difference)
    }

    /// A difference that was found counts more than a fault behind it (spec 8.3.6).
    fn compared(&self, extent: &Extent, difference: Option<u64>) -> Outcome {
        let mut record = success();
        if let Some(offset) = difference {
            record.result = 1;
            record.bytes_completed = offset as u32;
        } else if extent.is_faulted() {
            return self.end(extent, record);
        }
        let as_expected = record.result == self.d.expected_result() & 1;
        if self.d.flags().contains(Flags::CHECK_RESULT) && !as_expected {
            record.status = Status::SUCCESS_PREDICATE.0;
        }
        Outcome { record }
    }

    fn dualcast(&mut self) -> Outcome {
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

    fn crc(&mut self, buffers: &[Buffer], copy_to: Option<u64>) -> Outcome {
        let flags = self.d.flags();
        let mut crc = self.d.crc_seed();
        if flags.contains(Flags::CRC_READ_SEED) {
            let mut seed = [0; 4];
            let at = self.d.crc_seed_address();
            let extent = Extent::of(self.memory, &[source2(at)], 4);
            if extent.is_faulted() {
                return self.end(&extent.nothing(), success());
            }
            self.memory.read(at, &mut seed);
            crc = u32::from_le_bytes(seed);
        }
        let extent = self.extent(buffers);
        let mut record = success();
        if self.moved {
            let options = CrcOptions {
                bypass_inversion_reflection: flags.contains(Flags::CRC_BYPASS_INVERSION),
                bypass_data_reflection: flags.contains(Flags::CRC_BYPASS_DATA_REFLECTION),
            };
            let src = self.d.address1;
            let mut buffer = [0; CHUNK];
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.read(src + offset, &mut buffer[..n]);
                crc = dray_ops::crc32c(crc, &buffer[..n], options);
                if let Some(dst) = copy_to {
                    memory.write(dst + offset, &buffer[..n]);
                }
            });
            record.set_crc32(crc);
        }
        self.end(&extent, record)
    }

    fn each_chunk(&mut self, bytes: u64, mut visit: impl FnMut(&mut M, u64, usize)) {
        let mut offset = 0;
        while offset < bytes {
            let n = (bytes - offset).min(CHUNK as u64);
            visit(self.memory, offset, n as usize);
            offset += n;
        }
    }

    /// Offset of the first difference that `visit` finds in a chunk.
    fn find_chunk(
        &mut self,
        bytes: u64,
        mut visit: impl FnMut(&mut M, u64, usize) -> Option<usize>,
    ) -> Option<u64> {
        let mut offset = 0;
        while offset < bytes {
            let n = (bytes - offset).min(CHUNK as u64);
            if let Some(at) = visit(self.memory, offset, n as usize) {
                return Some(offset + at as u64);
            }
            offset += n;
        }
        None
    }
}

fn success() -> CompletionRecord {
    CompletionRecord::with_status(Status::SUCCESS)
}
