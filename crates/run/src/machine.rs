//! The driver and its running devices, for many threads.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dray_device::{Function, Hardware, PciControls, Portal};
use dray_idxd::driver::{ClientId, Driver, Entry, EntryKind, Errno, Personality};
use dray_realtime::{Event, MappedPortal, Options, RealtimeDevice, SharedMemory};

use crate::RunError;
use crate::fault_injection::Countdown;
use crate::iax::Iax;
use crate::pci;
use crate::recorder::Recorder;
use crate::uevent;

/// First wait for a command that waits for descriptors, and the longest of those that follow.
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(5);

/// The machine that the programs find.
///
/// A device runs on threads of its own, and the driver reads and writes its registers between two
/// descriptors: for that time the driver is brought to the device's thread and has the running
/// function in the place of its own. So no thread that waits for a device holds the driver's lock.
#[derive(Debug)]
pub(crate) struct SessionDevices {
    driver: Arc<Mutex<Driver>>,
    devices: Vec<(u32, RealtimeDevice)>,
    /// Address and place of each device on PCI.
    functions: Vec<(String, pci::Function)>,
    iax: Option<Iax>,
    /// What `/dev/char` and `/sys/dev/char` hold outside of the session: names and where they lead.
    char_links: [Vec<(String, String)>; 2],
}

fn lock(driver: &Mutex<Driver>) -> MutexGuard<'_, Driver> {
    driver.lock().unwrap_or_else(PoisonError::into_inner)
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
        mut driver: Driver,
        memory: &M,
        recorder: &mut Recorder,
        countdown: &Arc<Countdown>,
    ) -> Result<SessionDevices, RunError> {
        let parts: Vec<(u32, Hardware)> = driver
            .parts()
            .map(|part| (part.id, part.hardware.clone()))
            .collect();
        let mut devices = Vec::new();
        for (id, hardware) in parts {
            let Some(place) = driver.function_mut(id) else {
                continue;
            };
            let empty = Function::new(hardware, PciControls::default());
            let function = std::mem::replace(place, empty);
            let options = Options {
                shared: true,
                steps: recorder.is_wanted() || countdown.is_wanted(),
                ..Options::default()
            };
            // Errors are in the registers; interrupts are not used here.
            let (mut recorder, countdown) = (recorder.listener(id), countdown.clone());
            let listener = move |event: Event| {
                if matches!(event, Event::Accepted { .. }) {
                    countdown.count();
                }
                recorder(event);
            };
            let device =
                RealtimeDevice::start_function(function, memory.clone(), options, listener)?;
            devices.push((id, device));
        }
        let functions = driver.parts().zip(0..).map(|(part, number)| {
            let function = pci::Function {
                number,
                numa_node: part.numa_node,
            };
            (part.pci_address.clone(), function)
        });
        Ok(SessionDevices {
            functions: functions.collect(),
            driver: Arc::new(Mutex::new(driver)),
            devices,
            iax: None,
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

    /// With an IAX beside the first device.
    pub(crate) fn with_iax(mut self) -> SessionDevices {
        let id = self.devices.iter().map(|(id, _)| id + 1).max();
        if let Some((address, function)) = self.functions.first() {
            self.iax = Some(Iax::new(id.unwrap_or(0), address, function.numa_node));
        }
        self
    }

    pub(crate) fn iax(&self) -> Option<&Iax> {
        self.iax.as_ref()
    }

    /// A device by its number.
    pub(crate) fn device(&self, id: u32) -> Option<&RealtimeDevice> {
        let mut devices = self.devices.iter();
        devices.find(|(other, _)| *other == id).map(|(_, d)| d)
    }

    /// A device that has stopped is as one that does not answer on the bus.
    ///
    /// # Errors
    /// It has.
    pub(crate) fn is_alive(&self, id: u32) -> Result<(), Errno> {
        let device = self.device(id).ok_or(Errno::ENXIO)?;
        match device.failure() {
            None => Ok(()),
            Some(_) => Err(Errno::ENXIO),
        }
    }

    /// Where descriptors are written that come by write(2).
    pub(crate) fn portal(&self, device: u32, wq: u16) -> Option<MappedPortal> {
        let limited = true;
        self.device(device)?.map(Portal { wq, limited })
    }

    pub(crate) fn personality(&self) -> Personality {
        lock(&self.driver).options().personality
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
        lock(&self.driver).list(path)
    }

    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let concerned = lock(&self.driver).device_of(path, &[]);
        match concerned {
            Some(device) => {
                let path = path.to_owned();
                self.at_device(device, move |driver| driver.read(&path))?
            }
            None => lock(&self.driver).read(path),
        }
    }

    /// Reads many files, in one visit to each device.
    pub(crate) fn read_all(&self, paths: &[&str]) -> Vec<Result<Vec<u8>, Errno>> {
        let concerned: Vec<Option<u32>> = {
            let driver = lock(&self.driver);
            paths
                .iter()
                .map(|path| driver.device_of(path, &[]))
                .collect()
        };
        let mut found: Vec<Result<Vec<u8>, Errno>> = vec![Err(Errno::ENOENT); paths.len()];
        let mut devices: Vec<Option<u32>> = concerned.clone();
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            let indices = (0..paths.len()).filter(|index| concerned[*index] == device);
            let indices: Vec<usize> = indices.collect();
            let some: Vec<String> = indices.iter().map(|i| paths[*i].to_owned()).collect();
            let read = move |driver: &mut Driver| {
                let read = some.iter().map(|path| driver.read(path));
                read.collect::<Vec<_>>()
            };
            let read = match device {
                Some(device) => self.at_device(device, read),
                None => Ok(read(&mut lock(&self.driver))),
            };
            for (at, index) in indices.into_iter().enumerate() {
                found[index] = match &read {
                    Ok(read) => read[at].clone(),
                    Err(errno) => Err(*errno),
                };
            }
        }
        found
    }

    /// Writes a file of the driver's, and waits where the kernel waits.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        let concerned = lock(&self.driver).device_of(path, bytes);
        let Some(device) = concerned else {
            return lock(&self.driver).write(path, bytes);
        };
        let file: Arc<(String, Vec<u8>)> = Arc::new((path.to_owned(), bytes.to_owned()));
        self.patiently(device, move |driver| driver.write(&file.0, &file.1))
    }

    /// Opens a work queue for a process.
    pub(crate) fn open(&self, device: u32, wq: u16, pasid: u32) -> Result<ClientId, Errno> {
        self.patiently(device, move |driver| driver.open(device, wq, pasid))
    }

    /// A work queue is closed and unmapped.
    pub(crate) fn release(&self, device: u32, client: ClientId) -> Result<(), Errno> {
        self.patiently(device, move |driver| driver.release(client))
    }

    /// The entries of `/dev/dsa`.
    pub(crate) fn nodes(&self) -> Vec<Entry> {
        lock(&self.driver).nodes()
    }

    /// Does something again until what is in flight lets it.
    fn patiently<R: Send + 'static>(
        &self,
        device: u32,
        action: impl Fn(&mut Driver) -> Result<R, Errno> + Clone + Send + 'static,
    ) -> Result<R, Errno> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.at_device(device, action.clone())? {
                Err(Errno::EAGAIN) => {
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                result => return result,
            }
        }
    }

    /// Has the driver do something while the function of a device is its own.
    fn at_device<R: Send + 'static>(
        &self,
        id: u32,
        action: impl FnOnce(&mut Driver) -> R + Send + 'static,
    ) -> Result<R, Errno> {
        let device = self.device(id).ok_or(Errno::ENODEV)?;
        let driver = self.driver.clone();
        let visit = move |function: &mut Function, effects: &mut Vec<_>| {
            let mut driver = lock(&driver);
            if let Some(place) = driver.function_mut(id) {
                std::mem::swap(place, function);
            }
            // Also if it panics: what is in the function is to be ended then.
            let result = catch_unwind(AssertUnwindSafe(|| action(&mut driver)));
            effects.extend(driver.take_effects(id));
            if let Some(place) = driver.function_mut(id) {
                std::mem::swap(place, function);
            }
            result.unwrap_or_else(|payload| resume_unwind(payload))
        };
        // A device that has stopped is as one that does not answer on the bus.
        device.control(visit).map_err(|_| Errno::ENXIO)
    }
}
