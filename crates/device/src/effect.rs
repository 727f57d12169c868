//! What comes out of the device, and what its runner hands in.

use dray_spec::{CompletionRecord, Status};

/// How a descriptor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DescriptorResult {
    /// What the completion record will say.
    pub record: CompletionRecord,
    /// The page of the record could not be written when the descriptor began, and the event log
    /// takes the record (spec 3.13.3).
    pub record_in_log: bool,
}

impl DescriptorResult {
    /// Ended with this record.
    #[inline]
    pub fn of(record: CompletionRecord) -> DescriptorResult {
        DescriptorResult {
            record,
            record_in_log: false,
        }
    }

    /// Ended with `status` and no further result.
    #[inline]
    pub fn status(status: Status) -> DescriptorResult {
        DescriptorResult::of(CompletionRecord::with_status(status))
    }

    /// Discarded: the completion record cannot be written (spec 5.4, 0x1a). Where the event log is on
    /// nothing need be discarded for that: see `record_in_log`.
    pub fn unrecorded() -> DescriptorResult {
        DescriptorResult::status(Status::COMPLETION_ADDRESS_FAULT.with_write_fault())
    }

    /// Ended by a page fault at `address`, after `bytes_completed` bytes.
    pub fn page_fault(address: u64, bytes_completed: u32, write: bool) -> DescriptorResult {
        let status = match write {
            true => Status::PAGE_FAULT.with_write_fault(),
            false => Status::PAGE_FAULT,
        };
        let mut outcome = DescriptorResult::status(status);
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
    /// An error that no completion record can carry (spec 5.8.1), or an end that goes to the event
    /// log instead of a record (spec 5.9): SWERROR or event log.
    SoftwareError {
        /// Status code.
        status: Status,
        /// Work queue of the descriptor.
        wq: u16,
        /// Completion address or fault address, if the status has one.
        address: u64,
        /// The descriptor that is in error, if there is one.
        origin: Option<Origin>,
        /// The record that the entry of the event log has; all 0 if it has none.
        record: CompletionRecord,
    },
    /// An abort has given a descriptor up, and it has ended (spec 3.15): software gets no report.
    /// A runner that counts descriptors does: each that was accepted has one end, this one or
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
    /// Error information, of codes that have some: flags at fault, interrupt handle, operand,
    /// handle of an inter-domain entry, what software still has to do.
    pub information: Option<u32>,
}

// One half line of cache each for the record and the rest: most effects are records.
const _: () = assert!(size_of::<Effect>() == 64);

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
    /// Completion record.
    CompletionRecord = 5,
}

/// The fault info field: operand in bits 3:1; bit 0 is clear, the fault address is not masked.
pub(crate) const fn fault_info(operand: Operand) -> u8 {
    (operand as u8) << 1
}
