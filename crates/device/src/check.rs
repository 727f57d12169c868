//! Which descriptors the device refuses, and with which status (spec 5.4 to 5.6).
//!
//! Hardware may report any check that fails; here the order is fixed: completion address, opcode,
//! context, flags, reserved fields, size, alignment, overlap.

use dray_spec::{Descriptor, Flags, GenCap, Opcode, Status};

use crate::rule::{Rule, Rules};
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

/// What a queue of the device lets through, worked out once.
#[derive(Debug, Clone)]
pub(crate) struct Checker {
    rules: Rules,
    max_transfer: u64,
    min_batch: u32,
    max_batch: u32,
    overlapping_copy: bool,
}

impl Checker {
    pub(crate) fn new(capabilities: &Capabilities, queue: &WorkQueueConfig) -> Checker {
        let gen_cap = GenCap::from(capabilities.gen_cap);
        Checker {
            rules: Rules::new(capabilities, queue),
            max_transfer: queue.max_transfer_size.min(capabilities.max_transfer_size),
            min_batch: match gen_cap.batch_of_one() {
                true => 1,
                false => 2,
            },
            max_batch: queue.max_batch_size.min(capabilities.max_batch_size),
            overlapping_copy: gen_cap.overlapping_copy(),
        }
    }

    /// The operation of a descriptor that may run, or why it may not.
    #[inline]
    pub(crate) fn check(&self, d: &Descriptor, member: bool) -> Result<Opcode, Rejection> {
        let flags = d.flags();
        let addressed = flags.contains(Flags::COMPLETION_ADDRESS_VALID);
        refuse_if(
            addressed && !d.completion_addr.is_multiple_of(32),
            Status::COMPLETION_ADDRESS_ALIGNMENT,
        )?;
        let rule = self.rules.get(d.opcode_byte(), member);
        let rule = rule.ok_or(Status::BAD_OPCODE)?;
        let invalid = rule.invalid_flags(flags, member);
        if !invalid.is_empty() {
            return Err(Rejection {
                status: Status::INVALID_FLAGS,
                flags: invalid,
            });
        }
        refuse_if(rule.has_reserved_bytes(d, flags), Status::NONZERO_RESERVED)?;
        self.check_operands(rule, d)?;
        Ok(rule.opcode)
    }

    #[inline]
    fn check_operands(&self, rule: &Rule, d: &Descriptor) -> Result<(), Rejection> {
        let size = u64::from(d.size);
        match rule.opcode {
            Opcode::Noop | Opcode::Drain => return Ok(()),
            Opcode::Batch => {
                let count = self.min_batch..=self.max_batch;
                refuse_if(!count.contains(&d.size), Status::DESCRIPTOR_COUNT)?;
                let aligned = d.address1.is_multiple_of(64);
                return refuse_if(!aligned, Status::DESCRIPTOR_LIST_ALIGNMENT);
            }
            _ => refuse_if(size == 0 || size > self.max_transfer, Status::TRANSFER_SIZE)?,
        }
        // Addresses do not wrap: what lies beyond the last one faults.
        let overlap = |a: u64, b: u64| a.abs_diff(b) < size;
        match rule.opcode {
            Opcode::Memmove => {
                let any = !self.overlapping_copy && overlap(d.address1, d.address2);
                refuse_if(any, Status::OVERLAP)
            }
            Opcode::CrcGenerate => check_seed(d),
            Opcode::CopyCrc => {
                check_seed(d)?;
                refuse_if(overlap(d.address1, d.address2), Status::OVERLAP)
            }
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

/// A seed in memory is aligned to its size (spec 8.3.12).
fn check_seed(d: &Descriptor) -> Result<(), Rejection> {
    let unaligned = d.flags().contains(Flags::CRC_READ_SEED) && d.crc_seed_address() & 3 != 0;
    refuse_if(unaligned, Status::ADDRESS_ALIGNMENT)
}

#[inline]
fn refuse_if(refuse: bool, status: Status) -> Result<(), Rejection> {
    match refuse {
        true => Err(status.into()),
        false => Ok(()),
    }
}
