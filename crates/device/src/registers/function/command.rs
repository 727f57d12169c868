//! Administrative commands (spec 3.15, 9.2.12).

use dray_spec::Status;
use dray_spec::registers::{
    Command, CommandError, CommandRegister, CommandStatus, DeviceState, EvlStatus, IdCap,
    ResetType, WorkQueueState,
};

use super::Function;
use crate::Effect;
use crate::device::{EventLog, Scope};
use crate::registers::enable::{check_device, check_queue};
use crate::registers::{Report, Source};

/// A command that waits for descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    command: Command,
    /// Descriptors that it is about.
    scope: Scope,
    /// Queues that it is about, `first` and following.
    first: u16,
    mask: u16,
    pub(super) request_interrupt: bool,
}

/// How far a command has come at once: its result, or it waits.
pub(super) enum Progress {
    Done(u16),
    Waits,
}

pub(super) type Started = Result<Progress, CommandError>;

impl Function {
    /// The command register was written.
    pub(super) fn issue(&mut self, register: CommandRegister, effects: &mut Vec<Effect>) {
        if self.file.command_status.active() {
            self.report(&Report::of(Status::COMMAND_ACTIVE), effects);
            return;
        }
        self.file.command_status = CommandStatus::new().with_active(true);
        let request_interrupt = register.request_interrupt();
        match self.start_command(register, effects) {
            Ok(Progress::Done(result)) => self.complete(request_interrupt, Ok(result), effects),
            Err(error) => self.complete(request_interrupt, Err(error), effects),
            Ok(Progress::Waits) => self.settle(effects),
        }
    }

    /// Whether a command is in progress: CMDSTATUS says so too.
    pub fn is_command_active(&self) -> bool {
        self.file.command_status.active()
    }

    /// The end of a command.
    pub(super) fn complete(
        &mut self,
        request_interrupt: bool,
        result: Result<u16, CommandError>,
        effects: &mut Vec<Effect>,
    ) {
        self.file.command_status = match result {
            Ok(result) => CommandStatus::new().with_result(result),
            Err(error) => CommandStatus::new().with_error(error.0),
        };
        if request_interrupt {
            self.file.cause.set_command(true);
            self.raise(0, effects);
        }
    }

    /// Ends the command that waits, once nothing is left to wait for: neither descriptors nor what the
    /// event log has no room for them. After it nothing is written any more for them
    /// (spec 3.15).
    pub(super) fn settle(&mut self, effects: &mut Vec<Effect>) {
        let Some(pending) = self.pending.filter(|_| self.device.awaited() == 0) else {
            return;
        };
        let config = self.device.config();
        if aborts(pending.command) {
            self.backlog.abandon(pending.scope, config);
        }
        if self.backlog.concerns(pending.scope, config) {
            return;
        }
        self.pending = None;
        self.finish(&pending);
        self.complete(pending.request_interrupt, Ok(0), effects);
    }

    fn start_command(&mut self, register: CommandRegister, effects: &mut Vec<Effect>) -> Started {
        let command = self.hardware().command(register);
        let command = command.ok_or(CommandError::UNSUPPORTED_COMMAND)?;
        let resets = command == Command::ResetDevice && self.file.reset_type == ResetType::Command;
        if self.file.state == DeviceState::Halted && !resets {
            return Err(CommandError::HALTED);
        }
        let operand = register.operand();
        if register.reserved() != 0 || operand & reserved_operand(command) != 0 {
            return Err(CommandError::NONZERO_RESERVED);
        }
        let (first, mask) = ((operand >> 16) as u16 * 16, operand as u16);
        let queues = Scope::Queues { first, mask };
        let pasid = Scope::Pasid(operand);
        let index = operand as u16;
        let source = Source::of(operand >> 16 & 1 == 1);
        let scope = match command {
            Command::EnableDevice => return self.enable_device(),
            Command::EnableWq => return self.enable_queue(index, effects),
            Command::RequestInterruptHandle => return self.request_handle(source, index),
            Command::ReleaseInterruptHandle => return self.release_handle(source, index),
            Command::RequestIdptHandle => {
                let handle = self.check_domain(index)?;
                self.device.idpt_handles().request(handle);
                return Ok(Progress::Done(handle));
            }
            Command::ReleaseIdptHandle => {
                let handle = self.check_domain(index)?;
                let released = self.device.idpt_handles().release(handle);
                return match released {
                    true => Ok(Progress::Done(0)),
                    false => Err(CommandError::IDPT_INDEX),
                };
            }
            // No bitmap is cached here.
            Command::InvalidateBitmapCache => return Ok(Progress::Done(0)),
            Command::DisableDevice => {
                if self.file.state != DeviceState::Enabled {
                    return Err(CommandError::DISABLE_NOT_ENABLED);
                }
                self.stop_device();
                Scope::All
            }
            Command::ResetDevice => {
                self.stop_device();
                Scope::All
            }
            Command::DrainAll | Command::AbortAll => Scope::All,
            Command::DisableWq | Command::DrainWq | Command::AbortWq | Command::ResetWq => {
                let wqs = self.queues(first, mask)?;
                let all_enabled =
                    |wq: &usize| self.file.queues[*wq].state == WorkQueueState::Enabled;
                if command != Command::ResetWq && !wqs.iter().all(all_enabled) {
                    return Err(CommandError::WQ_NOT_ENABLED);
                }
                if matches!(command, Command::DisableWq | Command::ResetWq) {
                    wqs.into_iter().for_each(|wq| self.stop_queue(wq));
                }
                queues
            }
            Command::DrainPasid | Command::AbortPasid => pasid,
        };
        if aborts(command) {
            self.device.abandon_work(scope, effects);
        }
        self.device.await_work(scope);
        self.pending = Some(Pending {
            command,
            scope,
            first,
            mask,
            request_interrupt: register.request_interrupt(),
        });
        Ok(Progress::Waits)
    }

    /// What a command does when the descriptors that it has waited for are gone.
    fn finish(&mut self, pending: &Pending) {
        match pending.command {
            Command::DisableDevice => {
                self.close_queues();
                self.file.state = DeviceState::Disabled;
            }
            Command::ResetDevice => {
                self.close_queues();
                self.file.reset();
                self.device.clear_domains();
                let hardware = self.file.hardware.clone();
                if let Some(interrupts) = self.device.interrupts() {
                    interrupts.reset(&hardware);
                }
            }
            Command::DisableWq | Command::ResetWq => {
                for wq in self.queues(pending.first, pending.mask).unwrap_or_default() {
                    self.close_queue(wq);
                    if pending.command == Command::ResetWq {
                        self.file.reset_queue(wq);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn enable_device(&mut self) -> Started {
        check_device(&self.file, &self.pci)?;
        let event_log = EventLog {
            on: self.file.gen_cfg.event_log_enable(),
            page_requests: self.pci.page_requests,
        };
        let config = self.file.device_config(&self.pci);
        self.device.reconfigure(config, event_log);
        self.file.state = DeviceState::Enabled;
        if self.file.gen_cfg.event_log_enable() {
            self.file.event_status = EvlStatus::new();
        }
        Ok(Progress::Done(0))
    }

    pub(super) fn enable_queue(&mut self, wq: u16, effects: &mut Vec<Effect>) -> Started {
        let index = usize::from(wq);
        if let Some(interrupts) = self.device.interrupts_ref() {
            check_queue(&self.file, interrupts, &self.pci, index)?;
        }
        self.device.open(self.file.queue_config(index));
        self.file.queues[index].state = WorkQueueState::Enabled;
        self.check_occupancy(index, effects);
        Ok(Progress::Done(0))
    }

    fn request_handle(&mut self, source: Source, index: u16) -> Started {
        let interrupts = self.device.interrupts();
        let interrupts = interrupts.ok_or(CommandError::INTERRUPT_INDEX)?;
        match interrupts.request(source, index) {
            Ok(Some(handle)) => Ok(Progress::Done(handle)),
            Ok(None) => Err(CommandError::NO_INTERRUPT_HANDLE),
            Err(_) => Err(CommandError::INTERRUPT_INDEX),
        }
    }

    fn release_handle(&mut self, source: Source, index: u16) -> Started {
        let interrupts = self.device.interrupts();
        let interrupts = interrupts.ok_or(CommandError::INTERRUPT_INDEX)?;
        let released = interrupts.release(source, index);
        released.map_err(|_| CommandError::INTERRUPT_INDEX)?;
        Ok(Progress::Done(0))
    }

    /// The handle of an entry of the inter-domain permissions table is its index.
    fn check_domain(&self, index: u16) -> Result<u16, CommandError> {
        let entries = match self.hardware().gen_cap.inter_domain() {
            true => IdCap::from(self.hardware().capabilities.id_cap).entries(),
            false => 0,
        };
        match index < entries {
            true => Ok(index),
            false => Err(CommandError::IDPT_INDEX),
        }
    }

    /// The queues that an operand names, which must all be there.
    fn queues(&self, first: u16, mask: u16) -> Result<Vec<usize>, CommandError> {
        let bits = (0..16).filter(|bit| mask >> bit & 1 == 1);
        let queues: Vec<usize> = bits.map(|bit| usize::from(first + bit)).collect();
        match queues.iter().all(|wq| *wq < self.file.queues.len()) {
            true => Ok(queues),
            false => Err(CommandError::WQ_INDEX),
        }
    }

    fn stop_device(&mut self) {
        if self.file.state == DeviceState::Disabled {
            return;
        }
        self.file.state = DeviceState::Draining;
        (0..self.file.queues.len()).for_each(|wq| self.stop_queue(wq));
    }

    fn stop_queue(&mut self, wq: usize) {
        let state = &mut self.file.queues[wq].state;
        if *state == WorkQueueState::Enabled {
            *state = WorkQueueState::Draining;
            self.device.stop(wq as u16);
        }
    }

    fn close_queues(&mut self) {
        (0..self.file.queues.len()).for_each(|wq| self.close_queue(wq));
    }

    fn close_queue(&mut self, wq: usize) {
        self.file.queues[wq].state = WorkQueueState::Disabled;
        self.device.close(wq as u16);
    }
}

fn aborts(command: Command) -> bool {
    matches!(
        command,
        Command::AbortAll
            | Command::ResetDevice
            | Command::AbortWq
            | Command::ResetWq
            | Command::AbortPasid
    )
}

/// Bits of the operand that are 0 (spec Table 9-5).
fn reserved_operand(command: Command) -> u32 {
    match command {
        Command::EnableDevice
        | Command::DisableDevice
        | Command::DrainAll
        | Command::AbortAll
        | Command::ResetDevice => 0xf_ffff,
        Command::EnableWq => 0xf_ff00,
        Command::DisableWq
        | Command::DrainWq
        | Command::AbortWq
        | Command::ResetWq
        | Command::DrainPasid
        | Command::AbortPasid => 0,
        Command::RequestInterruptHandle
        | Command::ReleaseInterruptHandle
        | Command::InvalidateBitmapCache => 0xe_0000,
        Command::RequestIdptHandle | Command::ReleaseIdptHandle => 0xf_0000,
    }
}
