//! A configuration that outlives a reset.

use dray_spec::registers::{CommandError, DeviceState, WorkQueueState};

use super::Function;
use crate::Effect;
use crate::idpt::Idpt;
use crate::registers::{File, Interrupts};

/// What software has configured, and which queues it has enabled: as a driver keeps it to reset a device that has halted.
#[derive(Debug, Clone)]
pub struct Configuration {
    file: File,
    interrupts: Option<Interrupts>,
    idpt: Idpt,
}

impl Function {
    /// What it is configured as now.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            file: self.file.clone(),
            interrupts: self.device.interrupts_ref().cloned(),
            idpt: self.device.idpt().clone(),
        }
    }

    /// Configures a device that is disabled as it was, enables it, and the queues that were.
    ///
    /// # Errors
    /// The first command that fails: the device is not disabled, or PCI's controls are others.
    pub fn configure_again(
        &mut self,
        kept: &Configuration,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        if self.file.state != DeviceState::Disabled {
            return Err(CommandError::DEVICE_NOT_DISABLED);
        }
        let old = &kept.file;
        let file = &mut self.file;
        file.gen_cfg = old.gen_cfg;
        file.gen_ctrl = old.gen_ctrl;
        file.event_log = old.event_log;
        file.bitmap = old.bitmap;
        file.groups.clone_from(&old.groups);
        file.queues.clone_from(&old.queues);
        for queue in &mut file.queues {
            queue.state = WorkQueueState::Disabled;
        }
        file.watch_occupancy();
        if let Some(interrupts) = &kept.interrupts {
            self.device.set_interrupts(interrupts.clone());
        }
        self.device.set_idpt(kept.idpt.clone());
        self.enable_device()?;
        for (wq, queue) in (0..).zip(&old.queues) {
            if queue.state == WorkQueueState::Enabled {
                self.enable_queue(wq, effects)?;
            }
        }
        Ok(())
    }
}
