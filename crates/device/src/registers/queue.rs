//! WQCFG as stored.

use dray_spec::OpCap;
use dray_spec::registers::{
    WorkQueueInterrupt, WorkQueueLimits, WorkQueueOccupancy, WorkQueuePolicy, WorkQueueRegister,
    WorkQueueState, WorkQueueStatus,
};

use super::Hardware;
use super::bits::Bits;

/// One work queue's registers (spec 9.2.24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueRegisters {
    pub(crate) size: u16,
    pub(crate) threshold: u16,
    pub(crate) policy: WorkQueuePolicy,
    pub(crate) limits: WorkQueueLimits,
    pub(crate) interrupt: WorkQueueInterrupt,
    pub(crate) occupancy: WorkQueueOccupancy,
    pub(crate) interrupt_generated: bool,
    pub(crate) operations: [u64; 4],
    pub(crate) state: WorkQueueState,
    /// On a device that is not configurable: mode, PASID and thresholds are all the same.
    pub(crate) mode_support: bool,
}

impl QueueRegisters {
    /// Power-on values (spec Table 9-3).
    pub(crate) fn new(hardware: &Hardware) -> QueueRegisters {
        QueueRegisters {
            size: 0,
            threshold: 0,
            policy: WorkQueuePolicy::new(),
            limits: WorkQueueLimits::new(),
            interrupt: WorkQueueInterrupt::new(),
            occupancy: WorkQueueOccupancy::new(),
            interrupt_generated: false,
            operations: hardware.capabilities.op_cap,
            state: WorkQueueState::Disabled,
            mode_support: false,
        }
    }

    pub(crate) fn status(&self, occupancy: u16) -> WorkQueueStatus {
        WorkQueueStatus::new()
            .with_occupancy(occupancy)
            .with_interrupt_generated(self.interrupt_generated)
            .with_mode_support(self.mode_support)
            .with_state(self.state)
    }

    /// The qword at an offset. `occupancy` is what the queue holds.
    pub(crate) fn read(&self, at: u64, occupancy: u16, hardware: &Hardware) -> u64 {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        match at {
            WorkQueueRegister::SIZE => pair(self.size.into(), self.threshold.into()),
            WorkQueueRegister::POLICY => pair(self.policy.into_bits(), self.limits.into_bits()),
            WorkQueueRegister::INTERRUPT => {
                pair(self.interrupt.into_bits(), self.occupancy.into_bits())
            }
            WorkQueueRegister::STATUS => {
                let occupancy = match hardware.wq_cap.occupancy() {
                    true => occupancy,
                    false => 0,
                };
                pair(self.status(occupancy).into_bits(), 0)
            }
            WorkQueueRegister::OPERATIONS.. if hardware.wq_cap.operation_config() => {
                let word = (at - WorkQueueRegister::OPERATIONS) / 8;
                self.operations.get(word as usize).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Writes what can be written now (spec Table 9-7).
    pub(crate) fn write(&mut self, at: u64, bits: Bits, device_disabled: bool, hw: &Hardware) {
        let configurable = hw.gen_cap.configurable();
        // On a device that is not, the mode support of the queue decides about some fields.
        let some = configurable || self.mode_support;
        let disabled = self.state == WorkQueueState::Disabled;
        let if_so = |condition: bool, mask: u32| if condition { mask } else { 0 };
        match at {
            WorkQueueRegister::SIZE => {
                let mut size = self.size.into();
                bits.store32(&mut size, 0, if_so(configurable && device_disabled, 0xffff));
                self.size = size as u16;
                let mut threshold = self.threshold.into();
                bits.store32(&mut threshold, 4, if_so(some, 0xffff));
                self.threshold = threshold as u16;
            }
            WorkQueueRegister::POLICY => {
                let mut policy = self.policy.into_bits();
                let who = WorkQueuePolicy::new()
                    .with_dedicated(true)
                    .with_pasid(0xf_ffff)
                    .with_pasid_enable(true)
                    .with_privileged(true);
                let writable = if_so(some, who.into_bits()) | if_so(configurable, 0xfe);
                bits.store32(&mut policy, 0, if_so(disabled, writable));
                self.policy = WorkQueuePolicy::from_bits(policy);
                let mut limits = self.limits.into_bits();
                let writable = match hw.capabilities.version >= 0x300 {
                    true => 0x1fff,
                    false => 0x1ff,
                };
                bits.store32(&mut limits, 4, if_so(disabled && configurable, writable));
                self.limits = WorkQueueLimits::from_bits(limits);
            }
            WorkQueueRegister::INTERRUPT if hw.wq_cap.occupancy_interrupt() => {
                let mut interrupt = self.interrupt.into_bits();
                bits.store32(&mut interrupt, 0, if_so(disabled && some, 0x1_ffff));
                self.interrupt = WorkQueueInterrupt::from_bits(interrupt);
                let mut occupancy = self.occupancy.into_bits();
                let limit = if_so(!self.occupancy.interrupt_enable(), 0xffff);
                bits.store32(&mut occupancy, 4, if_so(some, 0x1_0000 | limit));
                self.occupancy = WorkQueueOccupancy::from_bits(occupancy);
            }
            WorkQueueRegister::STATUS => {
                let mut status = u64::from(self.status(0).into_bits());
                bits.clear(&mut status, 1 << 16);
                self.interrupt_generated = status >> 16 & 1 == 1;
            }
            WorkQueueRegister::OPERATIONS.. if hw.wq_cap.operation_config() => {
                let word = (at - WorkQueueRegister::OPERATIONS) / 8;
                let defined = OpCap::defined(hw.capabilities.version).0;
                let words = self.operations.iter_mut().zip(defined);
                if let Some((word, defined)) = words.into_iter().nth(word as usize)
                    && disabled
                    && configurable
                {
                    bits.store(word, defined);
                }
            }
            _ => {}
        }
    }

    /// Reset WQ: initial values, but for the size (spec 3.15).
    pub(crate) fn reset(&mut self, initial: QueueRegisters) {
        *self = QueueRegisters {
            size: self.size,
            state: self.state,
            ..initial
        };
    }
}
