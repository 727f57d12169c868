//! Halts and resets from outside (spec 5.7).

use dray_spec::Status;
use dray_spec::registers::{CommandError, DeviceState, ResetType, WorkQueueState};

use super::Function;
use crate::Effect;
use crate::registers::{Backlog, Interrupts, PciControls, Report};

impl Function {
    /// Software has written PCI configuration space. While the device is not disabled, a change of
    /// bus mastering, ATS, PASID or PRS halts it (spec 9.1.3, Table 5-1); one of the TC/VC map counts
    /// for every descriptor that an engine takes from now on (spec 5.4).
    pub fn set_pci(&mut self, pci: PciControls, effects: &mut Vec<Effect>) {
        let old = std::mem::replace(&mut self.pci, pci);
        let of = |pci: &PciControls| {
            let config = &pci.config;
            let address_translation = (config.ats, config.privileged_mode, pci.pasid);
            (pci.bus_master, address_translation, pci.page_requests)
        };
        let classes = self.pci.config.traffic_classes;
        if old.config.traffic_classes != classes {
            self.device.set_traffic_classes(classes);
        }
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
        let request_interrupt = self
            .pending
            .is_some_and(|pending| pending.request_interrupt);
        self.stop_all(reset_type, request_interrupt, effects);
        if self.file.gen_ctrl.halt_interrupt() {
            self.file.cause.set_halt(true);
            self.raise(0, effects);
        }
    }

    /// A [`reset`](Function::reset) from outside is to come as soon as no engine touches memory any
    /// more: what is in the device is given up. Software asked for it and gets no report about
    /// this device: it is no transition to the halt state that interrupts (spec 5.7, 9.2.9).
    pub fn begin_reset(&mut self, effects: &mut Vec<Effect>) {
        self.stop_all(ResetType::FunctionLevel, false, effects);
    }

    fn stop_all(
        &mut self,
        reset_type: ResetType,
        request_interrupt: bool,
        effects: &mut Vec<Effect>,
    ) {
        self.file.state = DeviceState::Halted;
        self.file.reset_type = reset_type;
        for wq in 0..self.file.queues.len() {
            if self.file.queues[wq].state != WorkQueueState::Disabled {
                self.device.stop(wq as u16);
            }
        }
        self.device.abandon_work(crate::device::Scope::All, effects);
        self.backlog = Backlog::default();
        if self.pending.take().is_some() {
            self.complete(request_interrupt, Err(CommandError::HARDWARE), effects);
        }
    }

    /// Function level reset, or a stronger one: all is as after power-on, but PCI's controls are off
    /// until software writes them. What engines still do must not reach memory any more: that is up
    /// to their runner; what they say of it means nothing.
    pub fn reset(&mut self, effects: &mut Vec<Effect>) {
        self.device.forget_all(effects);
        let interrupts = Interrupts::new(&self.file.hardware);
        self.device.set_interrupts(interrupts);
        self.file = self.file.initial();
        self.pci = self.pci.off();
        self.pending = None;
        self.backlog = Backlog::default();
    }
}
