//! What comes out of the device, and what its runner tells it.

use dray_spec::{CompletionRecord, Flags, Status};

/// How a descriptor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// What the completion record will say.
    pub record: CompletionRecord,
}

impl Outcome {
    /// Ended with `status` and no further result.
    #[inline]
    pub fn status(status: Status) -> Outcome {
        Outcome {
            record: CompletionRecord::with_status(status),
        }
    }

    /// Ended by a page fault at `address`, after `bytes_completed` bytes.
    pub fn page_fault(address: u64, bytes_completed: u32, write: bool) -> Outcome {
        let status = match write {
            true => Status::PAGE_FAULT.with_write_fault(),
            false => Status::PAGE_FAULT,
        };
        let mut outcome = Outcome::status(status);
        outcome.record.fault_address = address;
        outcome.record.bytes_completed = bytes_completed;
        outcome
    }
}

/// Something the runner has to carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Write a completion record: bytes 1 to 31, then, released, byte 0 (spec 3.9).
    Record {
        /// 32-byte aligned address.
        address: u64,
        /// What to write.
        record: CompletionRecord,
    },
    /// Send a completion interrupt.
    Interrupt {
        /// Handle of the descriptor.
        handle: u16,
    },
    /// An error that no completion record can carry (spec 5.8.1): SWERROR or event log.
    SoftwareError {
        /// Status code.
        status: Status,
        /// Work queue of the descriptor.
        wq: u16,
        /// Completion address or fault address, if the status has one.
        address: u64,
    },
}

/// Operand identifiers of the fault info field (spec Table 8-13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Source, source 1, descriptor list.
    First = 1,
    /// Source 2, seed of a CRC.
    Second = 2,
    /// Destination, destination 1.
    Destination = 3,
    /// Destination 2.
    Destination2 = 4,
}

/// The fault info field: operand in bits 3:1; bit 0 is clear, the fault address is not masked.
pub(crate) fn fault_info(operand: Operand) -> u8 {
    (operand as u8) << 1
}

/// Of a descriptor, what decides how its end is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notice {
    pub(crate) wq: u16,
    pub(crate) flags: Flags,
    pub(crate) completion_addr: u64,
    pub(crate) interrupt_handle: u16,
    /// The record cannot be written, whatever its address (spec 5.4, traffic class).
    pub(crate) unwritable: bool,
}

/// Appends what the end of one descriptor causes: record and interrupt, or a software error.
#[inline]
pub(crate) fn emit(effects: &mut Vec<Effect>, notice: &Notice, record: &CompletionRecord) {
    let status = record.status();
    // Asked for, or an error that must be told (spec 8.1.3, request completion record).
    let ordinary = matches!(
        status,
        Status::SUCCESS | Status::SUCCESS_PREDICATE | Status::BATCH_FAIL
    );
    let unusable = notice.unwritable
        || matches!(
            status.code(),
            0x1a | 0x1b | 0x1d // Completion address fault, alignment; privilege (spec 5.8.1).
        );
    if notice.flags.contains(Flags::COMPLETION_ADDRESS_VALID) && !unusable {
        if notice.flags.contains(Flags::REQUEST_COMPLETION_RECORD) || !ordinary {
            effects.push(Effect::Record {
                address: notice.completion_addr,
                record: *record,
            });
        }
    } else if !ordinary {
        effects.push(Effect::SoftwareError {
            status,
            wq: notice.wq,
            address: match status.code() {
                0x1a | 0x1b => notice.completion_addr,
                // Page faults (spec 8.2.5).
                0x03 | 0x04 | 0x06 | 0x1f => record.fault_address,
                _ => 0,
            },
        });
    }
    // Sent also after a failed check, unless that was about the interrupt itself (spec 5.4).
    let told = !unusable && status != Status::INTERRUPT_HANDLE;
    if notice.flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) && told {
        effects.push(Effect::Interrupt {
            handle: notice.interrupt_handle,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRAV: Flags = Flags::COMPLETION_ADDRESS_VALID;
    const RCR: Flags = Flags::REQUEST_COMPLETION_RECORD;

    /// Record, software error, interrupt: what a descriptor with an interrupt has of each.
    fn told(flags: Flags, status: Status) -> (bool, Option<u64>, bool) {
        let mut record = CompletionRecord::with_status(status);
        record.fault_address = 0x5000;
        let notice = Notice {
            wq: 3,
            flags: flags | Flags::REQUEST_COMPLETION_INTERRUPT,
            completion_addr: 0x40,
            interrupt_handle: 7,
            unwritable: false,
        };
        let mut effects = Vec::new();
        emit(&mut effects, &notice, &record);
        let (mut written, mut error, mut interrupt) = (false, None, false);
        for effect in effects {
            match effect {
                Effect::Record {
                    address,
                    record: of,
                } => {
                    assert_eq!((address, of, interrupt), (0x40, record, false));
                    written = true;
                }
                Effect::SoftwareError {
                    status: of,
                    wq,
                    address,
                } => {
                    assert_eq!((of, wq, interrupt), (status, 3, false));
                    error = Some(address);
                }
                Effect::Interrupt { handle } => {
                    assert_eq!(handle, 7);
                    interrupt = true;
                }
            }
        }
        (written, error, interrupt)
    }

    // Spec 5.8.1 and Table 5-1.
    #[test]
    fn an_end_is_told_where_the_specification_says() {
        for status in [
            Status::SUCCESS,
            Status::SUCCESS_PREDICATE,
            Status::BATCH_FAIL,
        ] {
            assert_eq!(told(CRAV | RCR, status), (true, None, true));
            assert_eq!(told(CRAV, status), (false, None, true));
            assert_eq!(told(Flags::EMPTY, status), (false, None, true));
        }
        for status in [
            Status::BAD_OPCODE,
            Status::OVERLAP,
            Status::HARDWARE_ERROR_READ,
        ] {
            assert_eq!(told(CRAV | RCR, status), (true, None, true));
            assert_eq!(told(CRAV, status), (true, None, true));
            assert_eq!(told(Flags::EMPTY, status), (false, Some(0), true));
        }
    }

    #[test]
    fn a_page_fault_that_has_no_record_is_told_with_its_address() {
        for status in [
            Status::PAGE_FAULT,
            Status::PAGE_FAULT.with_write_fault(),
            Status::PAGE_FAULT_INVALID_RESPONSE.with_write_fault(),
            Status::BATCH_PAGE_FAULT,
            Status::READBACK_PAGE_FAULT,
        ] {
            assert_eq!(told(CRAV, status), (true, None, true));
            assert_eq!(told(Flags::EMPTY, status), (false, Some(0x5000), true));
        }
    }

    #[test]
    fn a_record_that_cannot_be_written_is_an_error_and_nothing_else() {
        for status in [
            Status::COMPLETION_ADDRESS_FAULT,
            Status::COMPLETION_ADDRESS_FAULT.with_write_fault(),
            Status::COMPLETION_ADDRESS_ALIGNMENT,
        ] {
            assert_eq!(told(CRAV | RCR, status), (false, Some(0x40), false));
        }
        assert_eq!(told(CRAV | RCR, Status::PRIVILEGE), (false, Some(0), false));
        // An interrupt that is itself at fault is not sent.
        assert_eq!(
            told(CRAV | RCR, Status::INTERRUPT_HANDLE),
            (true, None, false)
        );
    }
}
