//! What a client sees: the function's regions, interrupts and the client's own memory.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use dray_device::{Bar, ConfigError, DeviceConfig, Function, Hardware, PciControls, Submission};
use dray_realtime::{Chaos, Deviation, Stopped};
use dray_spec::registers::PortalAddress;
use zerocopy::IntoBytes;

use crate::VfioError;
use crate::assembly::Assembly;
use crate::config_space::{ConfigSpace, Identity, Written};
use crate::counts::{Counts, SharedCounts};
use crate::dma::{DmaTable, MAX_MAPS};
use crate::inject::{Injection, Injector, Passage};
use crate::interrupts::Interrupts;
use crate::pasid::Root;
use crate::protocol::{
    self, DEVICE_FLAGS, DeviceInfo, DmaUnmap, Errno, Header, IRQ_FLAGS, IRQ_INDEXES, IrqInfo,
    MSIX_INDEX, REGION_BAR0, REGION_BAR2, REGION_CONFIG, REGION_FLAGS, REGIONS, Refusal,
    RegionAccess, RegionInfo, Request, Version,
};
use crate::runner::Runner;

/// What a door gives a client.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the part is.
    pub hardware: Hardware,
    /// What its configuration space says it is.
    pub identity: Identity,
    /// A configuration that the device comes with and software cannot change (GENCAP bit 31 is 0).
    pub fixed: Option<DeviceConfig>,
    /// Faults that each client's device has once.
    pub injections: Vec<Injection>,
    /// An adversary that chooses what each client's device does.
    pub chaos: Option<Chaos>,
    /// What each client's device does otherwise than the specification says.
    pub deviation: Option<Deviation>,
}

impl Options {
    /// A part that software configures.
    pub fn new(mut hardware: Hardware) -> Options {
        // The client keeps the MSI-X table, and its masks.
        hardware.masks_vectors = false;
        Options {
            hardware,
            identity: Identity::default(),
            fixed: None,
            injections: Vec::new(),
            chaos: None,
            deviation: None,
        }
    }

    /// A device as after power-on, with PCI's controls off.
    ///
    /// # Errors
    /// A fixed configuration that the part cannot have.
    pub fn function(&self) -> Result<Function, ConfigError> {
        let hardware = self.hardware.clone();
        let pci = PciControls::default().off();
        match &self.fixed {
            None => Ok(Function::new(hardware, pci)),
            Some(config) => Function::fixed(hardware, pci, config, true),
        }
    }
}

/// One client's function, from power-on to the client's end.
#[derive(Debug)]
pub struct Door {
    runner: Runner,
    config: ConfigSpace,
    bar_bytes: [u64; 2],
    dma: Arc<DmaTable>,
    root: Arc<Root>,
    interrupts: Interrupts,
    assembly: Assembly,
    injector: Injector,
    counts: SharedCounts,
}

/// What follows a reply's header, in parts.
type Answer = Vec<Vec<u8>>;

impl Door {
    /// A door of its own, which writes `log` one line for each thing that it does not model.
    ///
    /// # Errors
    /// A device that cannot be started.
    pub fn new(
        options: &Options,
        log: impl FnMut(&str) + Send + 'static,
    ) -> Result<Door, VfioError> {
        Door::with_counts(options, SharedCounts::new(log))
    }

    pub(crate) fn with_counts(options: &Options, counts: SharedCounts) -> Result<Door, VfioError> {
        let function = options
            .function()
            .map_err(dray_realtime::StartError::from)?;
        let vectors = function.hardware().interrupt_vectors.clamp(1, 2048);
        let bar_bytes = [Bar::Registers, Bar::Portals].map(|bar| function.bar_bytes(bar));
        let config = ConfigSpace::new(options.identity, function.layout(), bar_bytes, vectors);
        let dma = Arc::new(DmaTable::default());
        let root = Arc::new(Root::default());
        let interrupts = Interrupts::new(vectors, counts.clone());
        counts.forget();
        let runner = Runner::start(
            function,
            dma.clone(),
            root.clone(),
            interrupts.clone(),
            counts.clone(),
            options,
        )?;
        Ok(Door {
            runner,
            config,
            bar_bytes,
            dma,
            root,
            interrupts,
            assembly: Assembly::default(),
            injector: Injector::new(options.injections.clone()),
            counts,
        })
    }

    /// What went through.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Handles one message: `payload` is what follows its header. Returns the reply, unless the message has the
    /// flag "no reply".
    pub fn handle(
        &mut self,
        header: &Header,
        payload: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Option<Vec<u8>> {
        self.counts.message();
        let answer = Request::parse(header, payload).and_then(|request| self.answer(request, fds));
        let reply = match answer {
            Ok(parts) => {
                let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                protocol::reply(header, &parts)
            }
            Err(refusal) => return self.refuse(header, refusal),
        };
        (!header.wants_no_reply()).then_some(reply)
    }

    /// Refuses a message, and counts it. Returns the reply, unless the message has the flag "no reply".
    pub(crate) fn refuse(&mut self, header: &Header, refusal: Refusal) -> Option<Vec<u8>> {
        self.counts.unmodelled(refusal.what);
        let reply = protocol::error_reply(header, refusal.errno);
        (!header.wants_no_reply()).then_some(reply)
    }

    fn answer(&mut self, request: Request<'_>, fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        match request {
            Request::Version(version) => self.version(version),
            Request::DmaMap(map) => {
                self.counts.dma_map();
                let mut fds = fds;
                if fds.len() > 1 {
                    return Err(Refusal::new(Errno::Invalid, "DMA_MAP of several files"));
                }
                self.dma.map(&map, fds.pop()).map(|()| Vec::new())
            }
            Request::DmaUnmap(unmap) => self.unmap(unmap),
            Request::DeviceInfo => {
                let info = DeviceInfo {
                    argsz: size_of::<DeviceInfo>() as u32,
                    flags: DEVICE_FLAGS,
                    regions: REGIONS,
                    irqs: IRQ_INDEXES,
                };
                Ok(vec![info.as_bytes().to_vec()])
            }
            Request::RegionInfo(info) => self.region_info(info),
            Request::IrqInfo(info) => self.irq_info(info),
            Request::SetIrqs(set) => self.interrupts.set(&set, fds).map(|()| Vec::new()),
            Request::RegionRead(access) => {
                let mut bytes = vec![0; access.count as usize];
                self.read(access, &mut bytes)?;
                Ok(vec![access.as_bytes().to_vec(), bytes])
            }
            Request::RegionWrite(access, bytes) => {
                self.write(access, bytes)?;
                Ok(vec![access.as_bytes().to_vec()])
            }
            Request::Reset => self.reset().map(|()| Vec::new()),
        }
    }

    /// The protocol has had no version but 0.
    fn version(&mut self, version: Version) -> Result<Answer, Refusal> {
        if version.major != 0 {
            return Err(Refusal::new(Errno::NotSupported, "VERSION other than 0"));
        }
        let version = Version {
            minor: version.minor.min(1),
            ..version
        };
        Ok(vec![
            version.as_bytes().to_vec(),
            protocol::capabilities(MAX_MAPS),
        ])
    }

    /// Descriptors under way end before the memory goes.
    fn unmap(&mut self, unmap: DmaUnmap) -> Result<Answer, Refusal> {
        self.counts.dma_map();
        let dma = self.dma.clone();
        self.runner
            .quiesced(move || dma.unmap(&unmap))
            .map_err(stopped)??;
        Ok(vec![unmap.as_bytes().to_vec()])
    }

    fn region_bytes(&self, region: u32) -> u64 {
        match region {
            REGION_BAR0 => self.bar_bytes[0],
            REGION_BAR2 => self.bar_bytes[1],
            REGION_CONFIG => crate::config_space::CONFIG_BYTES as u64,
            _ => 0,
        }
    }

    fn region_info(&self, info: RegionInfo) -> Result<Answer, Refusal> {
        if info.index >= REGIONS {
            return Err(Refusal::new(Errno::Invalid, "a region that is not there"));
        }
        let size = self.region_bytes(info.index);
        let info = RegionInfo {
            argsz: size_of::<RegionInfo>() as u32,
            flags: if size > 0 { REGION_FLAGS } else { 0 },
            index: info.index,
            capabilities_offset: 0,
            size,
            offset: 0,
        };
        Ok(vec![info.as_bytes().to_vec()])
    }

    fn irq_info(&self, info: IrqInfo) -> Result<Answer, Refusal> {
        if info.index >= IRQ_INDEXES {
            return Err(Refusal::new(
                Errno::Invalid,
                "interrupts that are not there",
            ));
        }
        let there = info.index == MSIX_INDEX;
        let info = IrqInfo {
            argsz: size_of::<IrqInfo>() as u32,
            flags: if there { IRQ_FLAGS } else { 0 },
            index: info.index,
            count: if there { self.interrupts.count() } else { 0 },
        };
        Ok(vec![info.as_bytes().to_vec()])
    }

    /// An access that lies in its region, or a refusal.
    fn check(&self, access: &RegionAccess) -> Result<(), Refusal> {
        let end = access.offset.checked_add(access.count.into());
        let size = self.region_bytes(access.region);
        match end.is_some_and(|end| end <= size) {
            true => Ok(()),
            false => Err(Refusal::new(Errno::Invalid, "an access outside its region")),
        }
    }

    fn read(&mut self, access: RegionAccess, bytes: &mut [u8]) -> Result<(), Refusal> {
        self.check(&access)?;
        match access.region {
            REGION_BAR0 => {
                self.runner.read(access.offset, bytes).map_err(stopped)?;
                self.injector.read(access.offset, bytes);
                Ok(())
            }
            REGION_BAR2 => {
                self.assembly.read(access.offset, bytes);
                Ok(())
            }
            _ => {
                self.config.read(access.offset, bytes);
                Ok(())
            }
        }
    }

    fn write(&mut self, access: RegionAccess, bytes: &[u8]) -> Result<(), Refusal> {
        self.check(&access)?;
        match access.region {
            REGION_BAR0 => match self.injector.write(access.offset, bytes) {
                Passage::Through => self.runner.write(access.offset, bytes).map_err(stopped),
                Passage::Failed { interrupt } => {
                    if interrupt {
                        self.interrupts.raise(0);
                    }
                    Ok(())
                }
            },
            REGION_BAR2 => self.submit(access.offset, bytes),
            _ => self.configure(access.offset, bytes),
        }
    }

    /// A write to a portal, or to part of it.
    fn submit(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let torn = self.assembly.torn;
        let written = self.assembly.write(offset, bytes);
        if self.assembly.torn != torn {
            self.counts
                .unmodelled("a write to a portal that is no whole descriptor");
        }
        let Some(written) = written else {
            return Ok(());
        };
        let submission = match PortalAddress::at(written.offset) {
            Some(address) if !address.message_storage => {
                self.runner
                    .submit(address, written.deferrable, &written.descriptor)
            }
            _ => {
                self.counts
                    .unmodelled("a portal of the interrupt message storage");
                Submission::Retry
            }
        };
        if written.deferrable {
            let retry = submission != Submission::Accepted;
            self.assembly.answer(written.offset, retry);
        } else if submission != Submission::Accepted {
            self.counts.unmodelled(match submission {
                Submission::Lost => "a descriptor for a full dedicated queue",
                _ => "a posted write to a queue that takes none",
            });
        }
        match self.injector.submitted() {
            Some(reset) => self.runner.halt(reset).map_err(stopped),
            None => Ok(()),
        }
    }

    fn configure(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let Written {
            reset,
            controls,
            root,
        } = self.config.write(offset, bytes);
        if reset {
            return self.reset();
        }
        if root {
            let (table, requester) = self.config.root();
            self.root.set(table, requester);
        }
        if controls {
            self.runner
                .set_pci(self.config.controls())
                .map_err(stopped)?;
        }
        Ok(())
    }

    /// Function level reset. What the client has mapped and its eventfds stay: they are not the
    /// function's.
    fn reset(&mut self) -> Result<(), Refusal> {
        self.runner.reset().map_err(stopped)?;
        self.counts.forget();
        self.config.reset();
        self.assembly = Assembly::default();
        Ok(())
    }
}

impl Drop for Door {
    /// The client is gone: its memory and its eventfds are not touched any more.
    fn drop(&mut self) {
        self.interrupts.clear();
        let dma = self.dma.clone();
        if self.runner.quiesced(move || dma.clear()).is_err() {
            self.dma.clear();
        }
    }
}

fn stopped(_: Stopped) -> Refusal {
    Refusal::new(Errno::Io, "the device has stopped")
}
