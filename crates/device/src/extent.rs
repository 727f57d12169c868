//! How far the operands of a descriptor can be accessed, and what stops it.

use dray_spec::{CompletionRecord, Status};

use crate::effect::{Operand, fault_info};
use crate::{Access, DescriptorResult, Memory};

/// Where an operand starts, what is done to it, and which one it is.
pub(crate) type Buffer = (u64, Access, Operand);

pub(crate) fn source(address: u64) -> Buffer {
    (address, Access::Read, Operand::First)
}

pub(crate) fn source2(address: u64) -> Buffer {
    (address, Access::Read, Operand::Second)
}

pub(crate) fn destination(address: u64) -> Buffer {
    (address, Access::Write, Operand::Destination)
}

pub(crate) fn destination2(address: u64) -> Buffer {
    (address, Access::Write, Operand::Destination2)
}

/// How far all operands can be accessed, and the first of them that cannot be accessed further.
pub(crate) struct Extent {
    pub(crate) bytes: u64,
    fault: Option<Buffer>,
}

impl Extent {
    /// The extent of `size` bytes of each of `buffers`.
    #[inline]
    pub(crate) fn of(memory: &impl Memory, buffers: &[Buffer], size: u64) -> Extent {
        let mut extent = Extent {
            bytes: size,
            fault: None,
        };
        for &(address, access, operand) in buffers {
            let bytes = accessible(memory, address, size, access);
            if bytes < extent.bytes {
                let fault = (address.wrapping_add(bytes), access, operand);
                extent = Extent {
                    bytes,
                    fault: Some(fault),
                };
            }
        }
        extent
    }

    /// The extent of the `size` bytes at `offset` in a buffer.
    pub(crate) fn part(memory: &impl Memory, buffer: Buffer, offset: u64, size: u64) -> Extent {
        let (address, access, operand) = buffer;
        let place = (address.wrapping_add(offset), access, operand);
        match address.checked_add(offset) {
            Some(_) => Extent::of(memory, &[place], size),
            None => Extent {
                bytes: 0,
                fault: Some(place),
            },
        }
    }

    /// The extent of `size` bytes of both `buffers` from their ends, page by page.
    pub(crate) fn from_end(memory: &impl Memory, buffers: &[Buffer; 2], size: u64) -> Extent {
        const PAGE: u64 = 4096;
        let whole = Extent::of(memory, buffers, size);
        if whole.fault.is_none() {
            return whole;
        }
        let mut done = 0;
        while done < size {
            let end = size - done;
            // The largest step that stays within one page of each operand.
            let step = buffers.iter().fold(end, |step, (address, ..)| {
                step.min(address.wrapping_add(end - 1) % PAGE + 1)
            });
            for &(base, access, operand) in buffers {
                let offset = end - step;
                let bytes = match base.checked_add(offset) {
                    Some(address) => accessible(memory, address, step, access),
                    None => 0,
                };
                if bytes < step {
                    let address = base.wrapping_add(offset + bytes);
                    return Extent {
                        bytes: done,
                        fault: Some((address, access, operand)),
                    };
                }
            }
            done += step;
        }
        whole
    }

    /// The same fault before the first byte.
    pub(crate) fn nothing(self) -> Extent {
        self.after(0)
    }

    /// The same fault, after as many bytes as count for the descriptor.
    pub(crate) fn after(self, bytes: u64) -> Extent {
        Extent { bytes, ..self }
    }

    #[inline]
    pub(crate) fn is_faulted(&self) -> bool {
        self.fault.is_some()
    }

    /// `record`, unless a fault ended the descriptor. A descriptor that would have `blocked` on it has had no
    /// help from the page request service (spec 5.8.1, 0x04).
    #[inline]
    pub(crate) fn outcome(&self, record: CompletionRecord, blocked: bool) -> DescriptorResult {
        match self.fault {
            None => DescriptorResult::of(record),
            Some(fault) => faulted(fault, self.bytes, record, blocked),
        }
    }
}

#[cold]
fn faulted(
    (address, access, operand): Buffer,
    bytes: u64,
    mut record: CompletionRecord,
    blocked: bool,
) -> DescriptorResult {
    let status = match blocked {
        true => Status::PAGE_FAULT_INVALID_RESPONSE,
        false => Status::PAGE_FAULT,
    };
    record.status = match access {
        Access::Write => status.with_write_fault().0,
        Access::Read => status.0,
    };
    record.fault_address = address;
    record.fault_info = fault_info(operand);
    record.bytes_completed = bytes as u32;
    DescriptorResult::of(record)
}

/// As the memory says, but never past the last address: nothing wraps.
#[inline]
pub(crate) fn accessible(
    memory: &(impl Memory + ?Sized),
    address: u64,
    size: u64,
    access: Access,
) -> u64 {
    let room = (u64::MAX - address).saturating_add(1);
    memory.accessible(address, size.min(room), access)
}
