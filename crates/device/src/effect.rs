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

    /// Discarded: the completion record cannot be written (spec 5.4, 0x1a).
    pub fn unrecorded() -> Outcome {
        Outcome::status(Status::COMPLETION_ADDRESS_FAULT.with_write_fault())
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
        /// PASID of the descriptor, whose address space it is; 0 where PASIDs are not in use.
        pasid: u32,
    },
    /// Send the interrupt of an entry of the MSI-X table.
    Interrupt {
        /// Entry of the table; the handle of the descriptor is that.
        handle: u16,
    },
    /// Send an interrupt of the interrupt message storage (spec 9.2.28).
    Message {
        /// Where the message is written.
        address: u64,
        /// What is written, 4 bytes.
        data: u32,
    },
    /// Write half of an event log entry: its first 32 bytes, or the completion record behind them
    /// (spec 5.9.1). The address is one of EVLCFG's address space.
    Log {
        /// 32-byte aligned address.
        address: u64,
        /// What to write, little-endian.
        words: [u64; 4],
    },
    /// An error that no completion record can carry (spec 5.8.1): SWERROR or event log.
    SoftwareError {
        /// Status code.
        status: Status,
        /// Work queue of the descriptor.
        wq: u16,
        /// Completion address or fault address, if the status has one.
        address: u64,
        /// The descriptor that is in error, if there is one.
        origin: Option<Origin>,
    },
    /// An abort has given a descriptor up, and it has ended (spec 3.15): software is not told.
    /// Whoever keeps books on descriptors may be: each that was accepted has one end, this one or
    /// the usual one. After a [`reset`](crate::Function::reset) from outside, engines may still be
    /// at it.
    Abandoned {
        /// Work queue of the descriptor.
        wq: u16,
        /// Its completion address, if it has one.
        completion: Option<u64>,
        /// A member of a batch.
        member: bool,
    },
}

/// Of a descriptor in error, what SWERROR and the event log say of it (spec 9.2.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Operation code.
    pub operation: u8,
    /// 20 bits.
    pub pasid: u32,
    /// Whether it ran with privilege.
    pub privileged: bool,
    /// Number in its batch, for a member.
    pub member: Option<u16>,
    /// Ties what the event log says of members of a batch, and of the batch, together.
    pub batch_id: u8,
    /// Its interrupt is one of the interrupt message storage.
    pub message_storage: bool,
    /// Error information: flags at fault, interrupt handle, operand.
    pub information: u32,
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
    pub(crate) pasid: u32,
    pub(crate) interrupt_handle: u16,
    /// The record cannot be written, whatever its address (spec 5.4, traffic class).
    pub(crate) unwritable: bool,
}

/// Error information of an error that a record would have told (spec 9.2.15).
fn information(notice: &Notice, record: &CompletionRecord) -> u32 {
    match record.status().code() {
        0x11 => record.invalid_flags().bits(),
        0x19 => notice.interrupt_handle.into(),
        // Operand in bits 63:61 of its qword.
        0x03 | 0x04 | 0x06 | 0x1f => u32::from(record.fault_info >> 1 & 7) << 29,
        0x29..=0x2c => record.idpt_handle().into(),
        _ => 0,
    }
}

/// Appends what the end of one descriptor causes: a record, or a software error. True if an
/// interrupt is due after it. `origin` is what an error says of the descriptor.
#[inline]
pub(crate) fn emit(
    effects: &mut Vec<Effect>,
    notice: &Notice,
    record: &CompletionRecord,
    origin: impl FnOnce() -> Origin,
) -> bool {
    const RECORD: Flags = Flags::COMPLETION_ADDRESS_VALID.union(Flags::REQUEST_COMPLETION_RECORD);
    let ordinary = matches!(
        record.status(),
        Status::SUCCESS | Status::SUCCESS_PREDICATE | Status::BATCH_FAIL
    );
    if !ordinary {
        return emit_error(effects, notice, record, origin);
    }
    if notice.flags.contains(RECORD) {
        effects.push(Effect::Record {
            address: notice.completion_addr,
            record: *record,
            pasid: notice.pasid,
        });
    }
    notice.flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT)
}

/// What must be told also if no record is asked for (spec 8.1.3, request completion record).
#[cold]
fn emit_error(
    effects: &mut Vec<Effect>,
    notice: &Notice,
    record: &CompletionRecord,
    origin: impl FnOnce() -> Origin,
) -> bool {
    let status = record.status();
    let unusable = notice.unwritable
        || matches!(
            status.code(),
            0x1a | 0x1b | 0x1d // Completion address fault, alignment; privilege (spec 5.8.1).
        );
    let recorded = notice.flags.contains(Flags::COMPLETION_ADDRESS_VALID) && !unusable;
    if recorded {
        effects.push(Effect::Record {
            address: notice.completion_addr,
            record: *record,
            pasid: notice.pasid,
        });
    }
    // One about an interrupt is told twice (spec Table 5-1).
    if !recorded || status == Status::INTERRUPT_HANDLE {
        effects.push(Effect::SoftwareError {
            status,
            wq: notice.wq,
            address: match status.code() {
                0x1a | 0x1b => notice.completion_addr,
                // Page faults (spec 8.2.5).
                0x03 | 0x04 | 0x06 | 0x1f => record.fault_address,
                _ => 0,
            },
            origin: Some(Origin {
                information: information(notice, record),
                ..origin()
            }),
        });
    }
    // Sent also after a failed check, unless that was about the interrupt itself (spec 5.4).
    let told = !unusable && status != Status::INTERRUPT_HANDLE;
    notice.flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) && told
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRAV: Flags = Flags::COMPLETION_ADDRESS_VALID;
    const RCR: Flags = Flags::REQUEST_COMPLETION_RECORD;

    const ORIGIN: Origin = Origin {
        operation: 3,
        pasid: 0xabcde,
        privileged: true,
        member: Some(5),
        batch_id: 2,
        message_storage: true,
        information: 0,
    };

    /// Record, software error, interrupt: what a descriptor with an interrupt has of each.
    fn told(flags: Flags, status: Status) -> (bool, Option<u64>, bool) {
        let mut record = CompletionRecord::with_status(status);
        record.fault_address = 0x5000;
        let notice = Notice {
            wq: 3,
            flags: flags | Flags::REQUEST_COMPLETION_INTERRUPT,
            completion_addr: 0x40,
            pasid: 9,
            interrupt_handle: 7,
            unwritable: false,
        };
        let mut effects = Vec::new();
        let interrupt = emit(&mut effects, &notice, &record, || ORIGIN);
        let (mut written, mut error) = (false, None);
        for effect in effects {
            match effect {
                Effect::Record {
                    address,
                    record: of,
                    pasid,
                } => {
                    assert_eq!((address, of, error, pasid), (0x40, record, None, 9));
                    written = true;
                }
                Effect::SoftwareError {
                    status: of,
                    wq,
                    address,
                    origin,
                } => {
                    let information = information(&notice, &record);
                    let expected = Origin {
                        information,
                        ..ORIGIN
                    };
                    assert_eq!((of, wq, origin), (status, 3, Some(expected)));
                    error = Some(address);
                }
                other => panic!("{other:?}"),
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
            (true, Some(0), false)
        );
    }
}
