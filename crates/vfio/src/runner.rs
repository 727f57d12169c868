//! The device that runs behind a door. All calls of the door to `dray_realtime` are made here.

use std::sync::Arc;

use dray_device::{Bar, Function, Portal, Submission};
use dray_realtime::{Engines, Event, MappedPortal, Options, RealtimeDevice, Stop, Stopped};
use dray_spec::Descriptor;
use dray_spec::registers::{PortalAddress, ResetType};

use crate::VfioError;
use crate::counts::SharedCounts;
use crate::dma::DmaTable;
use crate::guest_memory::GuestMemory;
use crate::inject::Faults;
use crate::interrupts::Interrupts;
use crate::pasid::Root;

/// A running device and its portals.
#[derive(Debug)]
pub(crate) struct Runner {
    device: RealtimeDevice,
    /// By work queue: unlimited, limited.
    portals: Vec<[MappedPortal; 2]>,
}

impl Runner {
    /// Starts a function that works on the client's memory.
    ///
    /// One thread is all its engines: what it does between two descriptors no engine overlaps.
    pub(crate) fn start(
        function: Function,
        dma: Arc<DmaTable>,
        root: Arc<Root>,
        interrupts: Interrupts,
        counts: SharedCounts,
        wanted: &crate::Options,
    ) -> Result<Runner, VfioError> {
        let faults = Faults::of(&wanted.injections);
        let memory = GuestMemory::new(dma, root, counts.clone(), faults);
        let options = Options {
            engines: Engines::Dispatcher,
            steps: true,
            on_drop: Stop::Abort,
            chaos: wanted.chaos,
            deviation: wanted.deviation,
            driven: true,
            ..Options::default()
        };
        let listener = move |event| match event {
            Event::Interrupt { handle } => interrupts.raise(handle),
            Event::Message { .. } => counts.unmodelled("interrupt message storage"),
            // These are in the software error register, or in no record.
            Event::SoftwareError { .. } | Event::Abandoned { .. } => {}
            step => counts.record(&step),
        };
        let device = RealtimeDevice::start_function(function, memory, options, listener)?;
        let queues = u16::from(device.hardware().wq_cap.work_queues());
        let portals = (0..queues).filter_map(|wq| {
            let map = |limited| device.map(Portal { wq, limited });
            Some([map(false)?, map(true)?])
        });
        Ok(Runner {
            portals: portals.collect(),
            device,
        })
    }

    /// Reads BAR0.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Stopped> {
        let length = bytes.len();
        if length > 8 {
            bytes.fill(0);
            return Ok(());
        }
        let read = self.device.inspect(move |function| {
            let mut value = [0; 8];
            function.read(Bar::Registers, offset, &mut value[..length]);
            value
        })?;
        bytes.copy_from_slice(&read[..length]);
        Ok(())
    }

    /// Writes BAR0.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Stopped> {
        let mut value = [0; 8];
        let length = bytes.len();
        if length > 8 {
            return Ok(());
        }
        value[..length].copy_from_slice(bytes);
        self.device.control(move |function, effects| {
            function.write(Bar::Registers, offset, &value[..length], effects);
        })
    }

    /// Writes a descriptor to a portal, by MOVDIR64B, or by ENQCMD if it is `deferrable`.
    pub(crate) fn submit(
        &self,
        address: PortalAddress,
        deferrable: bool,
        descriptor: &Descriptor,
    ) -> Submission {
        let refused = match deferrable {
            true => Submission::Retry,
            false => Submission::Ignored,
        };
        let portals = self.portals.get(usize::from(address.wq));
        match portals.map(|portals| &portals[usize::from(address.limited)]) {
            Some(portal) if deferrable => portal.enqueue(descriptor),
            Some(portal) => portal.write_posted(descriptor),
            None => refused,
        }
    }

    /// Software has changed PCI's controls.
    pub(crate) fn set_pci(&self, pci: dray_device::PciControls) -> Result<(), Stopped> {
        self.device
            .control(move |function, effects| function.set_pci(pci, effects))
    }

    /// Does something while no engine touches memory.
    pub(crate) fn quiesced<R: Send + 'static>(
        &self,
        action: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        self.device.control(move |_, _| action())
    }

    /// Function level reset: descriptors in the device are abandoned.
    pub(crate) fn reset(&self) -> Result<(), Stopped> {
        self.device.reset()
    }

    /// Halts as by an internal error: the reset that brings it back is `reset_type`.
    pub(crate) fn halt(&self, reset_type: ResetType) -> Result<(), Stopped> {
        self.device
            .control(move |function, effects| function.halt(reset_type, effects))
    }
}
