//! The device as a driver sees it: BAR0, BAR2, and what PCI does to it.

mod command;
mod halt;
mod kept;
mod mmio;
mod submit;
mod work;

use dray_spec::registers::{DeviceState, ResetType, WorkQueueState};

use super::configure::{part, refused};
use super::errors::{Backlog, Report};
use super::{File, Hardware, Interrupts, Layout, PciControls, Source};
use crate::idpt::Handles;
use crate::{ConfigError, Device, DeviceConfig, Effect, WorkQueueConfig};
use command::Pending;

pub use kept::Configuration;
pub use mmio::Bar;

/// A PCI function with an accelerator behind it: registers, portals, state machines, and the
/// [`Device`] whose work they govern.
///
/// Nothing happens by itself. Its runner reads and writes registers and portals for software,
/// lets engines [`take`](Function::take) work and says what became of it, and carries out the
/// effects, in the order in which they come.
#[derive(Debug, Clone)]
pub struct Function {
    device: Device,
    file: File,
    pci: PciControls,
    pending: Option<Pending>,
    backlog: Backlog,
}

impl Function {
    /// A device after power-on: disabled, with nothing configured.
    pub fn new(hardware: Hardware, pci: PciControls) -> Function {
        let mut device = Device::disabled(DeviceConfig {
            capabilities: hardware.capabilities.clone(),
            pci: pci.config.clone(),
            ..DeviceConfig::default()
        });
        device.set_interrupts(Interrupts::new(&hardware));
        if hardware.uses_domain_handles() {
            *device.idpt_handles() = Handles::Requested(Vec::new());
        }
        Function {
            device,
            file: File::new(hardware),
            pci,
            pending: None,
            backlog: Backlog::default(),
        }
    }

    /// A device whose configuration is fixed (GENCAP bit 31 is 0): software can enable it, but not
    /// change it. Queues that software may change the mode and the PASID of have `mode_support`; a
    /// reset undoes such changes.
    ///
    /// # Errors
    /// What the registers cannot hold.
    pub fn fixed(
        hardware: Hardware,
        pci: PciControls,
        config: &DeviceConfig,
        mode_support: bool,
    ) -> Result<Function, ConfigError> {
        let mut function = Function::new(hardware, pci);
        function.file.hardware.gen_cap.set_configurable(true);
        let writes = config.register_writes(&function.file.hardware)?;
        function.file.apply(&writes);
        function.file.fix(mode_support);
        Ok(function)
    }

    /// A device that is enabled with this configuration, for who brings no driver:
    /// [`without_driver`](Hardware::without_driver). Commands and registers work all the same.
    ///
    /// # Errors
    /// What the registers cannot hold, and what the Enable Device and Enable WQ commands refuse
    /// (spec 5.1, 5.2).
    pub fn enabled(config: &DeviceConfig) -> Result<Function, ConfigError> {
        let (hardware, pci) = part(config);
        let mut function = Function::new(hardware, pci);
        let writes = config.register_writes(&function.file.hardware)?;
        function.file.apply(&writes);
        function.file.bitmap = config.idpt.bitmaps.into_bits();
        for (index, entry) in (0..).zip(&config.idpt.entries) {
            function.device.set_idpt_entry(index, *entry);
        }
        function
            .enable_device()
            .map_err(|error| config.explain(error))?;
        for queue in &config.work_queues {
            function
                .enable_queue(queue.id, &mut Vec::new())
                .map_err(|error| refused(queue.id, error))?;
        }
        Ok(function)
    }

    /// What the part is.
    pub fn hardware(&self) -> &Hardware {
        &self.file.hardware
    }

    /// Where the tables of BAR0 are, and how large it is.
    pub fn layout(&self) -> &Layout {
        &self.file.layout
    }

    /// The queues and engines behind the registers: what is in them.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What PCI configuration space says.
    pub fn pci(&self) -> &PciControls {
        &self.pci
    }

    /// State of the device.
    pub fn state(&self) -> DeviceState {
        self.file.state
    }

    /// The reset that brings a halted device back.
    pub fn reset_type(&self) -> ResetType {
        self.file.reset_type
    }

    /// State of a work queue; `None` for one that there is not.
    pub fn queue_state(&self, wq: u16) -> Option<WorkQueueState> {
        self.file.queues.get(usize::from(wq)).map(|q| q.state)
    }

    /// What the device is enabled with, and the queues that are: from the last Enable Device on.
    pub fn config(&self) -> &DeviceConfig {
        self.device.config()
    }

    /// The configuration of a queue that is enabled, or draining.
    pub fn queue(&self, wq: u16) -> Option<&WorkQueueConfig> {
        self.config().work_queues.iter().find(|q| q.id == wq)
    }

    /// Address and data of an MSI-X vector, as software has written them to the table in BAR0.
    pub fn message(&self, vector: u16) -> Option<(u64, u32)> {
        self.device.interrupts_ref()?.message(vector)
    }

    /// Makes all interrupt handles worthless, as a move to another host does, and informs software
    /// (spec 3.7).
    pub fn revoke_handles(&mut self, effects: &mut Vec<Effect>) {
        let revoked = self.device.interrupts().is_some_and(Interrupts::revoke);
        if revoked {
            self.file.cause.set_handles_revoked(true);
            self.raise(0, effects);
        }
    }

    /// An event of the device interrupts, through the MSI-X table.
    fn raise(&mut self, vector: u16, effects: &mut Vec<Effect>) {
        if let Some(interrupts) = self.device.interrupts() {
            effects.extend(interrupts.raise(Source::Msix, vector));
        }
    }

    fn report(&mut self, report: &Report, effects: &mut Vec<Effect>) {
        if let Some(interrupts) = self.device.interrupts() {
            self.file
                .report(report, &mut self.backlog, interrupts, effects);
        }
    }
}
