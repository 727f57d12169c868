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

/// Appends what the end of one descriptor causes: record and interrupt, or a software error.
pub(crate) fn emit(
    effects: &mut Vec<Effect>,
    wq: u16,
    flags: Flags,
    completion_addr: u64,
    interrupt_handle: u16,
    record: &CompletionRecord,
) {
    let status = record.status();
    // Asked for, or an error that must be told (spec 8.1.3, request completion record).
    let ordinary = matches!(
        status,
        Status::SUCCESS | Status::SUCCESS_PREDICATE | Status::BATCH_FAIL
    );
    let unusable = matches!(
        status,
        Status::COMPLETION_ADDRESS_FAULT | Status::COMPLETION_ADDRESS_ALIGNMENT | Status::PRIVILEGE
    );
    if flags.contains(Flags::COMPLETION_ADDRESS_VALID) && !unusable {
        if flags.contains(Flags::REQUEST_COMPLETION_RECORD) || !ordinary {
            effects.push(Effect::Record {
                address: completion_addr,
                record: *record,
            });
        }
    } else if !ordinary {
        effects.push(Effect::SoftwareError {
            status,
            wq,
            address: completion_addr,
        });
    }
    if flags.contains(Flags::REQUEST_COMPLETION_INTERRUPT) && !unusable {
        effects.push(Effect::Interrupt {
            handle: interrupt_handle,
        });
    }
}
