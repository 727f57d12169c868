//! Halts and resets from outside (spec 5.7).

use dray_spec::Status;
use dray_spec::registers::{CommandError, DeviceState, ResetType, WorkQueueState};

use super::Function;
use crate::Effect;
use crate::registers::{Backlog, File, Interrupts, PciControls, Report};

impl Function {
    /// Software has written PCI configuration space. While the device is not disabled, a change of
    /// bus mastering, ATS, PASID or PRS halts it (spec 9.1.3, Table 5-1).
    pub fn set_pci(&mut self, pci: PciControls, effects: &mut Vec<Effect>) {
        let old = std::mem::replace(&mut self.pci, pci);
        let of = |pci: &PciControls| {
            let config = &pci.config;
            let address_translation = (config.ats, config.privileged_mode, pci.pasid);
            (pci.bus_master, address_translation, pci.page_requests)
        };
        if of(&old) == of(&self.pci) {
            return;
        }
        if matches!(
            self.file.state,
            DeviceState::Enabled | DeviceState::Draining
        ) {
            self.report(&Report::of(Status::PCI_CONFIGURATION), effects);
            self.halt(ResetType::Command, effects);
        }
    }

    /// Something that the device does not get over: it halts until the reset that it needs. What was
    /// in it is given up; a command in progress ends with an error.
    pub fn halt(&mut self, reset_type: ResetType, effects: &mut Vec<Effect>) {
        let worse = self.file.state != DeviceState::Halted || reset_type > self.file.reset_type;
        if !worse {
            return;
        }
        self.file.state = DeviceState::Halted;
        self.file.reset_type = reset_type;
        for wq in 0..self.file.queues.len() {
            if self.file.queues[wq].state != WorkQueueState::Disabled {
                self.device.stop(wq as u16);
            }
        }
        self.device.abandon_work(crate::device::Scope::All, effects);
        if let Some(pending) = self.pending.take() {
            self.complete(
                pending.request_interrupt,
                Err(CommandError::HARDWARE),
                effects,
            );
        }
        if self.file.gen_ctrl.halt_interrupt() {
            self.file.cause.set_halt(true);
            self.raise(0, effects);
        }
    }

    /// Function level reset, or a stronger one: all is as after power-on, but PCI's controls are off
    /// until software writes them. What engines still do must not reach memory any more: that is up
    /// to whoever runs them; what they say of it means nothing.
    pub fn reset(&mut self, effects: &mut Vec<Effect>) {
        let fixed = !self.file.hardware.gen_cap.configurable();
        let hardware = self.file.hardware.clone();
        self.device.forget_all(effects);
        self.device.set_interrupts(Interrupts::new(&hardware));
        let old = std::mem::replace(&mut self.file, File::new(hardware));
        if fixed {
            self.file.keep_fixed(old);
        }
        self.pci = self.pci.off();
        self.pending = None;
        self.backlog = Backlog::default();
    }
}
