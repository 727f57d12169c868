//! What is known of a machine: everything that the checks judge, read once.

pub(crate) mod cpu;
pub(crate) mod device;
pub(crate) mod host;
pub(crate) mod iommu;
pub(crate) mod kernel;
pub(crate) mod look;
pub(crate) mod module;
pub(crate) mod pci;
pub(crate) mod process;

use crate::machine::{MESSAGES, Machine, Reading, SESSION, TREE, VIRTUAL};
use cpu::Cpu;
use device::Devices;
use host::Host;
use iommu::Iommu;
use kernel::Kernel;
use look::Look;
use module::Module;
use pci::Pci;
use process::Process;

/// What is known of a machine.
pub(crate) struct Survey {
    pub(crate) cpu: Cpu,
    pub(crate) pci: Pci,
    pub(crate) iommu: Iommu,
    pub(crate) kernel: Kernel,
    pub(crate) module: Module,
    pub(crate) devices: Devices,
    pub(crate) process: Process,
    pub(crate) host: Host,
    /// What the user's programs said.
    pub(crate) messages: Reading<String>,
    /// Whether the device is virtual, and how it is seen.
    pub(crate) virtual_device: Option<Virtual>,
}

/// How a virtual device is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Virtual {
    /// By the programs of a session.
    Session,
    /// As a directory in the place of `/sys`.
    Tree,
}

impl Survey {
    pub(crate) fn of(machine: &dyn Machine) -> Self {
        let look = Look(machine);
        let kernel = Kernel::of(look);
        Self {
            cpu: Cpu::of(look),
            pci: Pci::of(look),
            iommu: Iommu::of(look),
            module: Module::of(look, &kernel),
            devices: Devices::of(look),
            process: Process::of(look),
            host: Host::of(look),
            messages: look.lines(MESSAGES),
            virtual_device: match look.lines(VIRTUAL).as_deref().map(str::trim) {
                Ok(SESSION) => Some(Virtual::Session),
                Ok(TREE) => Some(Virtual::Tree),
                _ => None,
            },
            kernel,
        }
    }

    /// Whether this is a virtual machine.
    pub(crate) fn is_guest(&self) -> bool {
        self.cpu.has("hypervisor")
    }
}
