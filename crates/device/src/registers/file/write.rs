//! Writes: what they may change, and what they set going.

use dray_spec::registers::{
    self as at, DeviceState, EvlCfg, EvlStatus, GenCfg, GenCtrl, IdCap, IntCause, WorkQueueRegister,
};

use super::File;
use crate::registers::bits::Bits;
use crate::registers::layout::Spot;

/// What a write has set going.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Nothing more than the register.
    Register,
    /// A command was issued.
    Command(u32),
    /// The threshold of a queue.
    Threshold(usize),
    /// The occupancy interrupt of a queue may be due.
    Occupancy(usize),
    /// The head of the event log.
    EventLogHead,
}

impl File {
    /// Writes part of an aligned qword. Fields that are read only, or are so now, keep their value.
    pub(crate) fn write(&mut self, address: u64, bits: Bits) -> Written {
        let disabled = self.state == DeviceState::Disabled;
        match self.layout.find(address) {
            Spot::Group(index, at) => {
                if disabled && self.hardware.gen_cap.configurable() {
                    self.groups[index].write(at, bits, &self.hardware);
                }
                Written::Register
            }
            Spot::Queue(index, at) => {
                self.queues[index].write(at, bits, disabled, &self.hardware);
                self.watch_occupancy();
                match at {
                    WorkQueueRegister::SIZE => Written::Threshold(index),
                    WorkQueueRegister::INTERRUPT | WorkQueueRegister::STATUS => {
                        Written::Occupancy(index)
                    }
                    _ => Written::Register,
                }
            }
            _ => self.write_fixed(address, bits, disabled),
        }
    }

    fn write_fixed(&mut self, address: u64, bits: Bits, disabled: bool) -> Written {
        let has_log = self.hardware.has_event_log();
        match address {
            at::GENCFG if disabled => {
                let mut value = self.gen_cfg.into_bits();
                bits.store32(&mut value, 0, self.writable_configuration().into_bits());
                self.gen_cfg = GenCfg::from_bits(value);
            }
            at::GENCTRL => {
                let mut value = self.gen_ctrl.into_bits();
                bits.store32(&mut value, 0, if has_log { 7 } else { 3 });
                self.gen_ctrl = GenCtrl::from_bits(value);
            }
            at::INTCAUSE => {
                let mut value = self.cause.into_bits().into();
                bits.clear(&mut value, 0x8000_003f);
                self.cause = IntCause::from_bits(value as u32);
            }
            // A command is issued as a whole or not at all.
            at::CMD if bits.covers(u32::MAX.into()) => return Written::Command(bits.value as u32),
            at::SWERROR => bits.clear(&mut self.software_error.head, 3),
            at::EVLCFG if disabled && has_log => self.write_event_log(bits, 0, !0xffc),
            0xe8 if disabled && has_log => self.write_event_log(bits, 64, 0xf_ffff_ffff),
            at::EVLSTATUS if has_log => {
                let mut value = self.event_status.into_bits();
                bits.clear(&mut value, 1 << 62);
                bits.store(&mut value, 0xffff);
                self.event_status = EvlStatus::from_bits(value);
                return Written::EventLogHead;
            }
            at::IDBR if disabled && self.has_bitmaps() => {
                bits.store32(&mut self.bitmap, 0, 0x0fff_ff1f);
            }
            at::CMDPARAM => bits.store(&mut self.command_parameter, u64::MAX),
            _ => {}
        }
        Written::Register
    }

    fn writable_configuration(&self) -> GenCfg {
        let configurable = self.hardware.gen_cap.configurable();
        let limit = configurable && self.hardware.group_cap.global_read_buffer_limit();
        GenCfg::new()
            .with_event_log_enable(self.hardware.has_event_log())
            .with_user_interrupt_enable(configurable)
            .with_global_read_buffer_limit(if limit { u8::MAX } else { 0 })
    }

    fn write_event_log(&mut self, bits: Bits, shift: u32, writable: u64) {
        let all = self.event_log.into_bits();
        let mut half = (all >> shift) as u64;
        bits.store(&mut half, writable);
        let all = all & !(u128::from(u64::MAX) << shift) | u128::from(half) << shift;
        self.event_log = EvlCfg::from_bits(all);
    }

    /// Whether submitters can be in a bitmap, and there is a register that says how to read it.
    fn has_bitmaps(&self) -> bool {
        let types = IdCap::from(self.hardware.capabilities.id_cap).types();
        self.hardware.gen_cap.inter_domain() && types & 2 != 0
    }
}
