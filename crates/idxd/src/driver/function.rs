//! The driver on the PCI bus: binding a function is `idxd_pci_probe`, unbinding it `idxd_remove`.

use super::state::Device;
use super::tree::Object;
use super::{Driver, Errno, Registers, parse};

impl<R: Registers> Driver<R> {
    /// The device whose address on PCI was written (`bus_find_device_by_name`).
    pub(super) fn addressed(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let address = std::str::from_utf8(parse::line(bytes)).map_err(|_| Errno::ENODEV)?;
        let found = self
            .devices
            .iter()
            .position(|device| device.part.pci_address == address);
        found.ok_or(Errno::ENODEV)
    }

    /// Disables a device and all that it has, and forgets it: nothing of it is on the bus any more.
    pub(super) fn unbind_function(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let at = self.addressed(bytes)?;
        if !self.devices[at].present {
            return Err(Errno::ENODEV);
        }
        if self.bound_driver(at, Object::Device).is_some() {
            self.disable(at)?;
        }
        self.devices[at].present = false;
        Ok(())
    }

    /// Finds a device as after power-on.
    pub(super) fn bind_function(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let at = self.addressed(bytes)?;
        if self.devices[at].present {
            return Err(Errno::EBUSY);
        }
        let old = self.devices.remove(at);
        let options = &self.options;
        let mut device = Device::new(
            old.part,
            old.registers,
            options.personality,
            options.tc_override,
        );
        // Files that are open still have theirs.
        device.next_client = old.next_client;
        device.probe();
        self.devices.insert(at, device);
        Ok(())
    }
}
