//! Where the driver's registers are.

use dray_device::Function;

/// BAR0 of a device: the virtual device's function, a PCI function behind vfio-user, a mapped BAR.
///
/// Reads do not fail: a device that is gone reads as all ones, as on PCI, and the driver takes that for a device that has
/// halted.
pub trait Registers {
    /// Reads four bytes at an offset.
    fn read32(&self, offset: u64) -> u32;

    /// Reads eight bytes at an offset.
    fn read64(&self, offset: u64) -> u64;

    /// Writes four bytes.
    fn write32(&mut self, offset: u64, value: u32);

    /// As [`write32`](Self::write32), eight bytes.
    fn write64(&mut self, offset: u64, value: u64);

    /// Privileged mode is enabled in the PASID capability of the configuration space.
    fn privileged_mode(&self) -> bool;
}

/// Nothing runs the device: what it would do at once on a write is dropped.
impl Registers for Function {
    fn read32(&self, offset: u64) -> u32 {
        Function::read32(self, offset)
    }

    fn read64(&self, offset: u64) -> u64 {
        Function::read64(self, offset)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        Function::write32(self, offset, value, &mut Vec::new());
    }

    fn write64(&mut self, offset: u64, value: u64) {
        Function::write64(self, offset, value, &mut Vec::new());
    }

    fn privileged_mode(&self) -> bool {
        self.pci().config.privileged_mode
    }
}
