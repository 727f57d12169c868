//! Which descriptors the device refuses, and with which status (spec 5.4 to 5.6).
//!
//! Hardware may report any check that fails; here the order is fixed: completion address, opcode,
//! context, flags, reserved fields, privilege, size, alignment, overlap, inter-domain, traffic class.

mod operands;
mod passed;
mod software;
mod traffic;

use dray_spec::{Descriptor, Flags, Opcode, Status};

use crate::job::Submitter;
use crate::rule::{Rule, Rules};
use crate::{DescriptorResult, DeviceConfig, WorkQueueConfig, WorkQueueMode};
use operands::Limits;
pub use operands::check_operands;
pub(crate) use operands::fits;
use passed::Passed;
pub use software::{PLAIN_FLAGS, SOFTWARE_OPERATIONS, check_software};
use traffic::TrafficClasses;

/// Why a descriptor is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// Status of the completion record or software error.
    pub status: Status,
    /// Flags at fault, for [`Status::INVALID_FLAGS`].
    pub flags: Flags,
}

impl Rejection {
    /// The outcome that reports it.
    pub fn outcome(self) -> DescriptorResult {
        let mut outcome = DescriptorResult::status(self.status);
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
    /// A descriptor that claims privilege is refused: the queue is shared, and PCI has privileged
    /// mode off.
    unprivileged: bool,
    has_pasid: bool,
    traffic_classes: TrafficClasses,
    operands: Limits,
    /// Forgotten where anything of the above changes.
    passed: Option<Passed>,
}

impl Checker {
    pub(crate) fn new(device: &DeviceConfig, queue: &WorkQueueConfig) -> Checker {
        let shared = queue.mode == WorkQueueMode::Shared;
        Checker {
            rules: Rules::new(device, queue),
            unprivileged: shared && !device.pci.privileged_mode,
            has_pasid: queue.pasid.is_some(),
            traffic_classes: TrafficClasses::new(device, queue),
            operands: Limits::new(device, queue),
            passed: None,
        }
    }

    /// The operation of a descriptor that may run, or why it may not.
    #[inline]
    pub(crate) fn check(
        &mut self,
        d: &Descriptor,
        submitter: Submitter,
        member: bool,
    ) -> Result<Opcode, Rejection> {
        if let Some(passed) = &self.passed
            && passed.has(d, submitter.privileged, member)
        {
            return Ok(passed.opcode);
        }
        let rule = self.check_in_full(d, submitter, member)?;
        let opcode = rule.opcode;
        if !self.operands.counts_addresses(opcode) {
            self.passed = Some(Passed::like(d, rule, submitter.privileged, member));
        }
        Ok(opcode)
    }

    /// The rule of a descriptor that may run.
    fn check_in_full(
        &self,
        d: &Descriptor,
        submitter: Submitter,
        member: bool,
    ) -> Result<&Rule, Rejection> {
        let flags = d.flags();
        let addressed = flags.contains(Flags::COMPLETION_ADDRESS_VALID);
        refuse_if(
            addressed && !d.completion_addr.is_multiple_of(32),
            Status::COMPLETION_ADDRESS_ALIGNMENT,
        )?;
        let rule = self.rules.get(d.opcode_byte(), member);
        let rule = rule.ok_or(Status::BAD_OPCODE)?;
        let invalid = rule.invalid_flags(flags, submitter.privileged, member);
        if !invalid.is_empty() {
            return Err(Rejection {
                status: Status::INVALID_FLAGS,
                flags: invalid,
            });
        }
        refuse_if(rule.has_reserved_bytes(d, flags), Status::NONZERO_RESERVED)?;
        refuse_if(self.unprivileged && submitter.privileged, Status::PRIVILEGE)?;
        self.operands.check(rule.opcode, d)?;
        if is_inter_domain(rule.opcode) {
            refuse_if(!self.has_pasid, Status::INTER_DOMAIN_PASID)?;
        }
        refuse_if(
            self.traffic_classes.refuse(rule.opcode, flags),
            Status::TRAFFIC_CLASS,
        )?;
        Ok(rule)
    }

    /// PCI's TC/VC map has changed.
    pub(crate) fn set_traffic_classes(&mut self, device: &DeviceConfig, queue: &WorkQueueConfig) {
        self.traffic_classes = TrafficClasses::new(device, queue);
        self.passed = None;
    }

    /// Whether a record can be written with the traffic class that the flags select for it.
    pub(crate) fn completion_class_enabled(&self, flags: Flags) -> bool {
        !self.traffic_classes.refuse_completion(flags)
    }
}

/// Whether the operation works on another address space, which is looked up when it starts.
#[inline]
pub(crate) fn goes_between(opcode: Opcode) -> bool {
    is_inter_domain(opcode) && opcode != Opcode::UpdateWindow
}

/// Whether the operation goes through the inter-domain permissions table.
#[inline]
pub fn is_inter_domain(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::UpdateWindow
            | Opcode::InterDomainCopy
            | Opcode::InterDomainFill
            | Opcode::InterDomainCompare
            | Opcode::InterDomainComparePattern
    )
}

#[inline]
pub(crate) fn refuse_if(refuse: bool, status: Status) -> Result<(), Rejection> {
    match refuse {
        true => Err(status.into()),
        false => Ok(()),
    }
}
