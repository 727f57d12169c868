//! Carries a descriptor out on memory.

use dray_ops::{CrcOptions, Pattern};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::{Access, Memory, Outcome};

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
/// in spec 8.2 and 8.3; the partial result can be resumed from there.
pub fn execute(
    opcode: Opcode,
    d: &Descriptor,
    memory: &mut impl Memory,
    payload: Payload,
) -> Outcome {
    let mut run = Run { d, memory, payload };
    match opcode {
        Opcode::Memmove => run.memmove(),
        Opcode::Fill => run.fill(),
        Opcode::Compare => run.compare(),
        Opcode::ComparePattern => run.compare_pattern(),
        Opcode::Dualcast => run.dualcast(),
        Opcode::CrcGenerate => run.crc(false),
        Opcode::CopyCrc => run.crc(true),
        _ => Outcome::status(Status::SUCCESS),
    }
}

struct Run<'a, M> {
    d: &'a Descriptor,
    memory: &'a mut M,
    payload: Payload,
}

/// The first operand to fault, and where.
struct Extent {
    bytes: u64,
    fault: Option<(u64, Access)>,
}

impl Extent {
    fn outcome(&self, mut record: CompletionRecord) -> Outcome {
        match self.fault {
            None => Outcome { record },
            Some((address, access)) => {
                let write = access == Access::Write;
                let fault = Outcome::page_fault(address, self.bytes as u32, write);
                record.status = fault.record.status;
                record.fault_address = address;
                record.bytes_completed = self.bytes as u32;
                Outcome { record }
            }
        }
    }
}

impl<M: Memory> Run<'_, M> {
    /// How far all `operands` can be accessed.
    fn extent(&self, operands: &[(u64, Access)]) -> Extent {
        let size = u64::from(self.d.size);
        let mut extent = Extent {
            bytes: size,
            fault: None,
        };
        for (address, access) in operands {
            let bytes = self.memory.accessible(*address, size, *access);
            if bytes < extent.bytes {
                extent = Extent {
                    bytes,
                    fault: Some((address.wrapping_add(bytes), *access)),
                };
            }
        }
        extent
    }

    fn memmove(&mut self) -> Outcome {
        let (src, dst) = (self.d.address1, self.d.address2);
        let mut success = CompletionRecord::with_status(Status::SUCCESS);
        // A destination that starts inside the source must be filled from its end.
        let backward = dst.wrapping_sub(src) < u64::from(self.d.size) && dst != src;
        let extent = match backward {
            false => self.extent(&[(src, Access::Read), (dst, Access::Write)]),
            true => self.extent_from_end(src, dst),
        };
        if extent.fault.is_some() {
            success.result = u8::from(backward);
        }
        if self.payload == Payload::Moved {
            let start = match backward {
                true => u64::from(self.d.size) - extent.bytes,
                false => 0,
            };
            let mut buffer = [0; CHUNK];
            let mut done = 0;
            while done < extent.bytes {
                let n = (extent.bytes - done).min(CHUNK as u64);
                let offset = match backward {
                    true => start + extent.bytes - done - n,
                    false => done,
                };
                let chunk = &mut buffer[..n as usize];
                self.memory.read(src + offset, chunk);
                self.memory.write(dst + offset, chunk);
                done += n;
            }
        }
        extent.outcome(success)
    }

    /// How far both operands of an overlapping move can be accessed from their ends, page by page.
    fn extent_from_end(&self, src: u64, dst: u64) -> Extent {
        const PAGE: u64 = 4096;
        let size = u64::from(self.d.size);
        let mut done = 0;
        while done < size {
            let end = size - done;
            // The largest step that stays within one page of each operand.
            let within = |base: u64| (base.wrapping_add(end - 1) % PAGE) + 1;
            let step = within(src).min(within(dst)).min(end);
            let offset = end - step;
            for (base, access) in [(src, Access::Read), (dst, Access::Write)] {
                let address = base.wrapping_add(offset);
                if self.memory.accessible(address, step, access) < step {
                    return Extent {
                        bytes: done,
                        fault: Some((address, access)),
                    };
                }
            }
            done += step;
        }
        Extent {
            bytes: size,
            fault: None,
        }
    }

    fn fill(&mut self) -> Outcome {
        let dst = self.d.address2;
        let extent = self.extent(&[(dst, Access::Write)]);
        if self.payload == Payload::Moved {
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
            dray_ops::fill(&mut buffer, pattern);
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.write(dst + offset, &buffer[..n]);
            });
        }
        extent.outcome(CompletionRecord::with_status(Status::SUCCESS))
    }

    fn compare(&mut self) -> Outcome {
        let (a, b) = (self.d.address1, self.d.address2);
        let extent = self.extent(&[(a, Access::Read), (b, Access::Read)]);
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
        let extent = self.extent(&[(src, Access::Read)]);
        let mut buffer = [0; CHUNK];
        let difference = self.find_chunk(extent.bytes, |memory, offset, n| {
            memory.read(src + offset, &mut buffer[..n]);
            dray_ops::compare_pattern(&buffer[..n], pattern)
        });
        self.compared(&extent, difference)
    }

    /// A difference that was found counts more than a fault behind it (spec 8.3.6).
    fn compared(&self, extent: &Extent, difference: Option<u64>) -> Outcome {
        let mut record = CompletionRecord::with_status(Status::SUCCESS);
        if let Some(offset) = difference {
            record.result = 1;
            record.bytes_completed = offset as u32;
        } else if extent.fault.is_some() {
            return extent.outcome(record);
        }
        let as_expected = record.result == self.d.expected_result() & 1;
        if self.d.flags().contains(Flags::CHECK_RESULT) && !as_expected {
            record.status = Status::SUCCESS_PREDICATE.0;
        }
        Outcome { record }
    }

    fn dualcast(&mut self) -> Outcome {
        let (src, first, second) = (self.d.address1, self.d.address2, self.d.destination2());
        let extent = self.extent(&[
            (src, Access::Read),
            (first, Access::Write),
            (second, Access::Write),
        ]);
        let mut buffer = [0; CHUNK];
        if self.payload == Payload::Moved {
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.read(src + offset, &mut buffer[..n]);
                memory.write(first + offset, &buffer[..n]);
                memory.write(second + offset, &buffer[..n]);
            });
        }
        extent.outcome(CompletionRecord::with_status(Status::SUCCESS))
    }

    fn crc(&mut self, copy: bool) -> Outcome {
        let (src, dst) = (self.d.address1, self.d.address2);
        let extent = match copy {
            true => self.extent(&[(src, Access::Read), (dst, Access::Write)]),
            false => self.extent(&[(src, Access::Read)]),
        };
        let flags = self.d.flags();
        let options = CrcOptions {
            bypass_inversion_reflection: flags.contains(Flags::CRC_BYPASS_INVERSION),
            bypass_data_reflection: flags.contains(Flags::CRC_BYPASS_DATA_REFLECTION),
        };
        let mut crc = self.d.crc_seed();
        let mut buffer = [0; CHUNK];
        if self.payload == Payload::Moved {
            self.each_chunk(extent.bytes, |memory, offset, n| {
                memory.read(src + offset, &mut buffer[..n]);
                crc = dray_ops::crc32c(crc, &buffer[..n], options);
                if copy {
                    memory.write(dst + offset, &buffer[..n]);
                }
            });
        }
        let mut record = CompletionRecord::with_status(Status::SUCCESS);
        record.set_crc32(crc);
        extent.outcome(record)
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
        while offset < bytes && self.payload == Payload::Moved {
            let n = (bytes - offset).min(CHUNK as u64);
            if let Some(at) = visit(self.memory, offset, n as usize) {
                return Some(offset + at as u64);
            }
            offset += n;
        }
        None
    }
}
