//! The driver and its running devices, for many threads.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use dray_device::{Function, Portal};
use dray_idxd::Profile;
use dray_idxd::driver::{ClientId, Driver, Entry, EntryKind, Errno, Part, Personality};
use dray_realtime::{
    Chaos, Deviation, Engines, Event, MappedPortal, Options, RealtimeDevice, SharedMemory,
};

use crate::fault_injection::Countdown;
use crate::iax::Iax;
use crate::pci;
use crate::pollers::Pollers;
use crate::recorder::Recorder;
use crate::registers::RunningRegisters;
use crate::uevent;
use crate::{RunError, Session};

/// First wait for a command that waits for descriptors, and the longest of those that follow.
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(5);

/// The machine that the programs find.
///
/// A device runs on threads of its own, and the driver reads and writes its [registers](RunningRegisters)
/// between two descriptors, for which it waits. A thread that changes a device works on a copy of the driver, which
/// it publishes then; no lock is held that readers or threads that change other devices need while it waits for the
/// device.
#[derive(Debug)]
pub(crate) struct SessionDevices {
    /// As it was after the last change. Locked to clone or replace the `Arc`, never while waiting.
    driver: RwLock<Arc<Driver<RunningRegisters>>>,
    devices: Vec<SessionDevice>,
    /// Address and place of each device on PCI.
    functions: Vec<(String, pci::Function)>,
    iax: Option<Iax>,
    /// Who waits for errors.
    pub(crate) pollers: Pollers,
    /// What `/dev/char` and `/sys/dev/char` hold outside of the session: names and where they lead.
    char_links: [Vec<(String, String)>; 2],
}

/// One device of the session.
#[derive(Debug)]
struct SessionDevice {
    id: u32,
    device: Arc<RealtimeDevice>,
    /// Held by the thread that changes the device, also while it waits for it.
    changing: Mutex<()>,
}

/// Where program and dispatcher have a processor each, threads of engines only take them away.
fn engines() -> Engines {
    match std::thread::available_parallelism() {
        Ok(processors) if processors.get() <= 2 => Engines::ThreadsThatWait,
        _ => Engines::Threads,
    }
}

/// The links of a directory; none where there is no such directory.
fn links(directory: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        let name = entry.file_name().into_string().ok()?;
        Some((name, target.into_os_string().into_string().ok()?))
    });
    links.collect()
}

/// Ours, and those of the machine that ours do not hide.
fn with_others(
    mut ours: Vec<(String, String)>,
    others: &[(String, String)],
) -> Vec<(String, String)> {
    let known: HashSet<String> = ours.iter().map(|(name, _)| name.clone()).collect();
    let others = others.iter().filter(|(name, _)| !known.contains(name));
    ours.extend(others.cloned());
    ours
}

impl SessionDevices {
    /// Has the devices of a driver run.
    ///
    /// # Errors
    /// No threads, or no memory that can be shared.
    pub(crate) fn start<M: SharedMemory>(
        driver: Driver,
        memory: &M,
        recorder: &mut Recorder,
        countdown: &Arc<Countdown>,
        chaos: Option<Chaos>,
        deviation: Option<Deviation>,
    ) -> Result<SessionDevices, RunError> {
        let mut devices = Vec::new();
        let pollers = Pollers::default();
        let start = |part: &Part, function: Function| {
            let options = Options {
                shared: true,
                engines: engines(),
                steps: recorder.is_wanted() || countdown.is_wanted(),
                hold: recorder.holds(),
                times: recorder.times(),
                chaos,
                deviation,
                ..Options::default()
            };
            // Errors are in the registers.
            let (mut listener, countdown) = (recorder.listener(part.id), countdown.clone());
            let (pollers, id) = (pollers.clone(), part.id);
            let listen = move |event: Event| {
                match event {
                    Event::Accepted { .. } => countdown.count(),
                    // The first entry of the table is the driver's own, for errors.
                    Event::Interrupt { handle: 0 } => pollers.wake(id),
                    _ => {}
                }
                listener(event);
            };
            let device = RealtimeDevice::start_function(function, memory.clone(), options, listen)?;
            let device = Arc::new(device);
            recorder.watch(part.id, &device);
            devices.push(SessionDevice {
                id: part.id,
                device: device.clone(),
                changing: Mutex::default(),
            });
            Ok::<_, RunError>(RunningRegisters(device))
        };
        let driver = driver.with_registers(start)?;
        let functions = driver.parts().zip(0..).map(|(part, number)| {
            let function = pci::Function {
                number,
                numa_node: part.numa_node,
            };
            (part.pci_address.clone(), function)
        });
        Ok(SessionDevices {
            functions: functions.collect(),
            driver: RwLock::new(Arc::new(driver)),
            devices,
            iax: None,
            pollers,
            char_links: Default::default(),
        })
    }

    /// With the links that the machine has by the numbers of its character devices now.
    pub(crate) fn with_char_links(mut self) -> SessionDevices {
        self.char_links = ["/dev/char", "/sys/dev/char"].map(|path| links(Path::new(path)));
        self
    }

    /// The links of `/dev/char`: as udev makes them, from the numbers of a node to its name
    /// (rules.d/50-udev-default.rules).
    pub(crate) fn char_links(&self) -> Vec<(String, String)> {
        let nodes = self.nodes().into_iter();
        let ours = nodes.filter_map(|entry| match entry.kind {
            EntryKind::Node { major, minor } => {
                Some((format!("{major}:{minor}"), format!("../dsa/{}", entry.name)))
            }
            _ => None,
        });
        with_others(ours.collect(), &self.char_links[0])
    }

    /// The links of `/sys/dev/char`, to the devices themselves.
    pub(crate) fn sys_char_links(&self) -> Vec<(String, String)> {
        with_others(uevent::numbers(self), &self.char_links[1])
    }

    /// Processes that hold the driver: clients of its work queues.
    pub(crate) fn references(&self) -> u64 {
        let nodes = self.nodes().into_iter();
        let clients = nodes.filter_map(|node| {
            let path = format!("/sys/bus/dsa/devices/{}/clients", node.name);
            let bytes = self.read(&path).ok()?;
            str::from_utf8(&bytes).ok()?.trim().parse::<u64>().ok()
        });
        clients.sum()
    }

    /// With the IAXes of the session's profile, or with one if the session has one.
    pub(crate) fn with_iax(mut self, session: &Session) -> SessionDevices {
        let taken: Vec<u32> = self.device_ids().collect();
        let profile = session.profile.as_ref();
        let named = profile.map_or(&[][..], Profile::iaa).iter();
        let mut ids: Vec<u32> = named
            .filter_map(|name| name.trim_start_matches(char::is_alphabetic).parse().ok())
            .filter(|id| !taken.contains(id))
            .collect();
        if ids.is_empty() && session.iax {
            let last = taken.iter().max();
            ids.push(last.map_or(0, |id| id.saturating_add(1)));
        }
        if let Some((address, function)) = self.functions.first().filter(|_| !ids.is_empty()) {
            self.iax = Some(Iax::new(&ids, address, function.numa_node));
        }
        self
    }

    pub(crate) fn iax(&self) -> Option<&Iax> {
        self.iax.as_ref()
    }

    /// A device by its number.
    pub(crate) fn device(&self, id: u32) -> Option<&RealtimeDevice> {
        self.session_device(id).map(|found| &*found.device)
    }

    fn session_device(&self, id: u32) -> Option<&SessionDevice> {
        self.devices.iter().find(|device| device.id == id)
    }

    /// The numbers of the devices.
    pub(crate) fn device_ids(&self) -> impl Iterator<Item = u32> {
        self.devices.iter().map(|device| device.id)
    }

    /// The device that reading or writing a file concerns; `None` where it concerns none, or several.
    pub(crate) fn device_of(&self, path: &str, written: &[u8]) -> Option<u32> {
        self.driver().device_of(path, written)
    }

    /// A device that has stopped is as one that does not answer on the bus.
    ///
    /// # Errors
    /// It has.
    pub(crate) fn is_alive(&self, id: u32) -> Result<(), Errno> {
        let device = self.device(id).ok_or(Errno::ENXIO)?;
        match device.failure().is_some() || device.has_ended() {
            false => Ok(()),
            true => Err(Errno::ENXIO),
        }
    }

    /// Whether SWERROR is valid, as its bit 0 in `errors` says.
    pub(crate) fn has_error(&self, id: u32) -> bool {
        let errors = self.read(&format!("/sys/bus/dsa/devices/dsa{id}/errors"));
        let text = errors.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let lowest = text
            .as_deref()
            .and_then(|text| text.trim().rsplit(',').next());
        lowest
            .and_then(|word| u32::from_str_radix(word, 16).ok())
            .is_some_and(|word| word & 1 == 1)
    }

    /// Where descriptors are written that come by write(2).
    pub(crate) fn portal(&self, device: u32, wq: u16) -> Option<MappedPortal> {
        let limited = true;
        self.device(device)?.map(Portal { wq, limited })
    }

    pub(crate) fn personality(&self) -> Personality {
        self.driver().options().personality
    }

    /// Addresses of the devices on PCI.
    pub(crate) fn pci_addresses(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|(address, _)| address.as_str())
    }

    /// The function at an address on PCI.
    pub(crate) fn pci_function(&self, address: &str) -> Option<pci::Function> {
        let mut functions = self.functions.iter();
        functions.find(|(other, _)| other == address).map(|f| f.1)
    }

    pub(crate) fn list(&self, path: &str) -> Result<Vec<Entry>, Errno> {
        self.driver().list(path)
    }

    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let driver = self.driver();
        let read = driver.read(path);
        self.answered(driver.device_of(path, &[]), read)
    }

    /// Reads many files, with nothing changed by the driver meanwhile.
    pub(crate) fn read_all(&self, paths: &[&str]) -> Vec<Result<Vec<u8>, Errno>> {
        let driver = self.driver();
        let read = |path: &&str| self.answered(driver.device_of(path, &[]), driver.read(path));
        paths.iter().map(read).collect()
    }

    /// Writes a file of the driver's, and waits where the kernel waits.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        let driver = self.driver();
        match driver.device_of(path, bytes) {
            Some(device) => self.retry_while_busy(device, |driver| driver.write(path, bytes)),
            // Nothing that can be written concerns no device: the copy says why it is refused.
            None => driver.copy().write(path, bytes),
        }
    }

    /// Opens a work queue for a process.
    pub(crate) fn open(&self, device: u32, wq: u16, pasid: u32) -> Result<ClientId, Errno> {
        self.retry_while_busy(device, |driver| driver.open(device, wq, pasid))
    }

    /// A work queue is closed and unmapped.
    pub(crate) fn release(&self, device: u32, client: ClientId) -> Result<(), Errno> {
        self.retry_while_busy(device, |driver| driver.release(client))
    }

    /// The entries of `/dev/dsa`.
    pub(crate) fn nodes(&self) -> Vec<Entry> {
        self.driver().nodes()
    }

    /// Changes a device by the driver, and retries while descriptors in flight prevent it. Each attempt begins with the
    /// state in which other threads have left the device.
    fn retry_while_busy<R>(
        &self,
        device: u32,
        change: impl Fn(&mut Driver<RunningRegisters>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let mut wait = FIRST_WAIT;
        loop {
            let changed = self.change(device, &change);
            match self.answered(Some(device), changed) {
                Err(Errno::EAGAIN) => {
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                result => return result,
            }
        }
    }

    /// The driver's result for a device, or an error if the device has ended.
    fn answered<R>(&self, device: Option<u32>, found: Result<R, Errno>) -> Result<R, Errno> {
        if let Some(device) = device {
            self.is_alive(device)?;
        }
        found
    }

    /// Changes a device on a copy of the driver, and publishes it.
    fn change<R>(
        &self,
        id: u32,
        change: impl FnOnce(&mut Driver<RunningRegisters>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        // Of a device that is not there, the driver says what is wrong, and nothing changes.
        let changing = self.session_device(id).map(|device| &device.changing);
        let _held = changing.map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner));
        let mut copy = self.driver().copy();
        let result = change(&mut copy);
        let mut current = self.driver.write().unwrap_or_else(PoisonError::into_inner);
        let current = Arc::make_mut(&mut current);
        current.adopt(id, copy);
        // The events of this copy of the driver are not used.
        current.take_events();
        result
    }

    /// The driver as it was after the last change.
    fn driver(&self) -> Arc<Driver<RunningRegisters>> {
        let driver = self.driver.read().unwrap_or_else(PoisonError::into_inner);
        driver.clone()
    }
}

#[cfg(test)]
mod tests;
