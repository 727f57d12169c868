//! The registers of a device that runs, for the driver.

use std::sync::Arc;

use dray_device::{Effect, Function};
use dray_idxd::driver::Registers;
use dray_realtime::RealtimeDevice;

/// BAR0 of a running device. A read holds no ring; a write happens between two descriptors, with the
/// rings held. A device that has stopped reads as all ones, and takes nothing.
#[derive(Debug, Clone)]
pub(crate) struct RunningRegisters(pub(crate) Arc<RealtimeDevice>);

impl RunningRegisters {
    fn change(&self, write: impl FnOnce(&mut Function, &mut Vec<Effect>) + Send + 'static) {
        // What is written to a device that does not answer is lost, as on PCI.
        let _ = self.0.control(write);
    }
}

impl Registers for RunningRegisters {
    fn read32(&self, offset: u64) -> u32 {
        let read = self.0.inspect(move |function| function.read32(offset));
        read.unwrap_or(u32::MAX)
    }

    fn read64(&self, offset: u64) -> u64 {
        let read = self.0.inspect(move |function| function.read64(offset));
        read.unwrap_or(u64::MAX)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        self.change(move |function, effects| function.write32(offset, value, effects));
    }

    fn write64(&mut self, offset: u64, value: u64) {
        self.change(move |function, effects| function.write64(offset, value, effects));
    }

    fn privileged_mode(&self) -> bool {
        let read = self
            .0
            .inspect(|function| function.pci().config.privileged_mode);
        read.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use dray_device::{Capabilities, Hardware, PciControls};
    use dray_idxd::driver::{Driver, Options, Part, Personality};
    use dray_realtime::{AllAccessible, ProcessMemory, Stop};

    use super::*;

    #[test]
    fn a_device_that_has_stopped_reads_as_all_ones_and_halted() {
        let hardware = Hardware::new(Capabilities::sapphire_rapids());
        let function = Function::new(hardware.clone(), PciControls::default());
        // SAFETY: no descriptor is submitted.
        let memory = unsafe { ProcessMemory::new(AllAccessible) };
        let options = dray_realtime::Options::default();
        let device = RealtimeDevice::start_function(function, memory, options, |_| ());
        let device = Arc::new(device.expect("threads"));
        let part = Part::new(0, hardware);
        let options = Options::new(Personality::Linux6_8);
        let driver = Driver::over(options, [(part, RunningRegisters(device.clone()))]);
        let state = "/sys/bus/dsa/devices/dsa0/state";
        assert_eq!(driver.read(state), Ok(b"disabled\n".to_vec()));
        let panicked = device.control(|_, _| -> () { panic!("on request") });
        assert!(panicked.is_err());
        assert_eq!(driver.read(state), Ok(b"halted\n".to_vec()));
        let mut registers = RunningRegisters(device.clone());
        registers.write32(0x10, 1);
        assert_eq!(registers.read64(0), u64::MAX);
        drop((driver, registers));
        let device = Arc::into_inner(device).expect("the last handle");
        assert!(device.stop(Stop::Drain).is_err());
    }
}
