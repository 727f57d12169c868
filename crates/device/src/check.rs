//! Which descriptors the device refuses, and with which status (spec 5.4 to 5.6).
//!
//! Hardware may report any check that fails; here the order is fixed: completion address, opcode,
//! context, flags, reserved fields, size, alignment, overlap.

use dray_spec::{
    Descriptor, Flags, GenCap, OpCap, Opcode, Status, invalid_flags, required_flags, reserved_bytes,
};
use zerocopy::IntoBytes;

use crate::{Capabilities, Outcome, WorkQueueConfig};

/// Why a descriptor is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// Status of the completion record or software error.
    pub status: Status,
    /// Flags at fault, for [`Status::INVALID_FLAGS`].
    pub flags: Flags,
}

impl Rejection {
    /// The outcome that tells it.
    pub fn outcome(self) -> Outcome {
        let mut outcome = Outcome::status(self.status);
        if self.status == Status::INVALID_FLAGS {
            outcome.record.set_invalid_flags(self.flags);
        }
        outcome
    }
}

impl From<Status> for Rejection {
    fn from(status: Status) -> Rejection {
        Rejection {
            status,
            flags: Flags::EMPTY,
        }
    }
}

/// Operations that this device executes. What is not in the list is refused even if the profile's
/// OPCAP has it: a wrong answer would be worse.
const EXECUTED: &[Opcode] = &[
    Opcode::Noop,
    Opcode::Batch,
    Opcode::Drain,
    Opcode::Memmove,
    Opcode::Fill,
    Opcode::Compare,
    Opcode::ComparePattern,
    Opcode::Dualcast,
    Opcode::CrcGenerate,
    Opcode::CopyCrc,
];

/// What a queue of the device lets through, worked out once.
#[derive(Debug, Clone)]
pub(crate) struct Checker {
    gen_cap: GenCap,
    op_cap: OpCap,
    max_transfer: u64,
    max_batch: u32,
    block_on_fault: bool,
}

impl Checker {
    pub(crate) fn new(capabilities: &Capabilities, queue: &WorkQueueConfig) -> Checker {
        Checker {
            gen_cap: GenCap::from(capabilities.gen_cap),
            op_cap: OpCap(capabilities.op_cap),
            max_transfer: queue.max_transfer_size.min(capabilities.max_transfer_size),
            max_batch: queue.max_batch_size.min(capabilities.max_batch_size),
            block_on_fault: queue.block_on_fault,
        }
    }

    /// The operation of a descriptor that may run, or why it may not.
    pub(crate) fn check(&self, d: &Descriptor, member: bool) -> Result<Opcode, Rejection> {
        let flags = d.flags();
        if flags.contains(Flags::COMPLETION_ADDRESS_VALID) && !d.completion_addr.is_multiple_of(32)
        {
            return Err(Status::COMPLETION_ADDRESS_ALIGNMENT.into());
        }
        let opcode = d.opcode().map_err(|_| Status::BAD_OPCODE)?;
        let outside_only = matches!(opcode, Opcode::Batch | Opcode::Drain | Opcode::UpdateWindow);
        if !self.op_cap.supports(opcode as u8)
            || !EXECUTED.contains(&opcode)
            || (member && outside_only)
        {
            return Err(Status::BAD_OPCODE.into());
        }
        self.check_flags(opcode, flags, member)?;
        if has_nonzero_bytes(d, reserved_bytes(opcode, flags)) {
            return Err(Status::NONZERO_RESERVED.into());
        }
        self.check_operands(opcode, d)?;
        Ok(opcode)
    }

    fn check_flags(&self, opcode: Opcode, flags: Flags, member: bool) -> Result<(), Rejection> {
        let mut reserved = Flags::EMPTY;
        let mut needs = |capable: bool, flag: Flags| {
            if !capable {
                reserved = reserved.union(flag);
            }
        };
        let cap = &self.gen_cap;
        needs(member, Flags::FENCE);
        needs(self.block_on_fault, Flags::BLOCK_ON_FAULT);
        needs(cap.cache_control_memory(), Flags::CACHE_CONTROL);
        needs(cap.destination_readback(), Flags::DESTINATION_READBACK);
        match opcode {
            Opcode::Batch => needs(cap.batch_continuation(), Flags::BATCH_ERROR),
            Opcode::Drain => needs(
                cap.drain_readback(),
                Flags::DRAIN_READBACK1_VALID.union(Flags::DRAIN_READBACK2_VALID),
            ),
            Opcode::Fill => needs(cap.fill_pattern_16(), Flags::FILL_PATTERN_16),
            Opcode::CrcGenerate | Opcode::CopyCrc => {
                // The 64-bit CRC and a seed in memory are not executed by this device.
                needs(false, Flags::CRC_64.union(Flags::CRC_READ_SEED));
            }
            _ => {}
        }
        let invalid = invalid_flags(opcode, flags).union(flags.intersection(reserved));
        let required = required_flags(opcode);
        match (invalid.is_empty(), required.met_by(flags)) {
            (true, true) => Ok(()),
            (false, _) => Err(Rejection {
                status: Status::INVALID_FLAGS,
                flags: invalid,
            }),
            (true, false) => Err(Rejection {
                status: Status::INVALID_FLAGS,
                flags: required.all.union(required.any).without(flags),
            }),
        }
    }

    fn check_operands(&self, opcode: Opcode, d: &Descriptor) -> Result<(), Rejection> {
        if opcode == Opcode::Batch {
            let least = match self.gen_cap.batch_of_one() {
                true => 1,
                false => 2,
            };
            if d.size < least || d.size > self.max_batch {
                return Err(Status::DESCRIPTOR_COUNT.into());
            }
            if !d.address1.is_multiple_of(64) {
                return Err(Status::DESCRIPTOR_LIST_ALIGNMENT.into());
            }
            return Ok(());
        }
        if matches!(opcode, Opcode::Noop | Opcode::Drain) {
            return Ok(());
        }
        let size = u64::from(d.size);
        if size == 0 || size > self.max_transfer {
            return Err(Status::TRANSFER_SIZE.into());
        }
        let overlap = |a: u64, b: u64| a.abs_diff(b) < size;
        match opcode {
            Opcode::Memmove if !self.gen_cap.overlapping_copy() => {
                refuse_if(overlap(d.address1, d.address2), Status::OVERLAP)
            }
            Opcode::CopyCrc => refuse_if(overlap(d.address1, d.address2), Status::OVERLAP),
            Opcode::Dualcast => {
                let (dst1, dst2) = (d.address2, d.destination2());
                refuse_if((dst1 ^ dst2) & 0xfff != 0, Status::DUALCAST_ALIGNMENT)?;
                let any = overlap(d.address1, dst1) || overlap(d.address1, dst2);
                refuse_if(any || overlap(dst1, dst2), Status::OVERLAP)
            }
            _ => Ok(()),
        }
    }
}

fn refuse_if(refuse: bool, status: Status) -> Result<(), Rejection> {
    match refuse {
        true => Err(status.into()),
        false => Ok(()),
    }
}

/// Whether one of the bytes in `mask` (bit n: byte n of the descriptor) is not 0.
fn has_nonzero_bytes(d: &Descriptor, mask: u64) -> bool {
    let words = d.as_bytes().chunks_exact(8).zip(mask.to_le_bytes());
    let mut found = 0;
    for (word, bits) in words {
        if bits != 0 {
            let word = word.iter().rev().fold(0, |w, b| (w << 8) | u64::from(*b));
            found |= word & spread_bits(bits);
        }
    }
    found != 0
}

/// Bit n of `bits` becomes byte n, all ones.
fn spread_bits(bits: u8) -> u64 {
    let mut mask = 0;
    for n in 0..8 {
        mask |= u64::from(bits >> n & 1) * (0xff << (8 * n));
    }
    mask
}
