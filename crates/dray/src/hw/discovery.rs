//! Which work queues there are, where, and what they can do.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use dray_device::WorkQueueMode;
use dray_spec::{GenCap, OpCap};

use super::attributes::Attributes;
use super::{HwError, QueueResult, RefusedQueue};
use crate::Capabilities;

/// Set for programs inside `dray run`, whose device is the virtual one.
const INSIDE: &str = "DRAY_SOCKET";

/// Where the driver's attributes are below `/sys`.
pub(super) const DEVICES: &str = "bus/dsa/devices";

/// Whether this machine's devices are virtual: inside `dray run`.
pub fn is_virtual() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Where the driver's files are.
///
/// ```
/// use dray::hw::{HwError, Paths};
///
/// // A machine without work queues.
/// let paths = Paths { sysfs: "/nonexistent/sys".into(), dev: "/nonexistent/dev".into() };
/// assert!(matches!(paths.discover(), Err(HwError::NoQueues { .. })));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Directory with the attributes of devices and work queues.
    pub sysfs: PathBuf,
    /// Directory with the work queues' device files.
    pub dev: PathBuf,
}

impl Paths {
    /// What `DRAY_SYSFS_PATH` and `DRAY_DEV_PATH` name, or else `/sys` and `/dev/dsa`.
    ///
    /// `DRAY_SYSFS_PATH` stands for `/sys`, as it does for `dray config`; a path that ends in
    /// `bus/dsa/devices` is that directory itself.
    pub fn from_environment() -> Paths {
        let path = |name, default: &str| {
            let set = env::var_os(name).filter(|path| !path.is_empty());
            PathBuf::from(set.unwrap_or_else(|| default.into()))
        };
        Paths {
            sysfs: devices(path("DRAY_SYSFS_PATH", "/sys")),
            dev: path("DRAY_DEV_PATH", "/dev/dsa"),
        }
    }
}

/// The directory of devices in a `/sys`, or what is that directory already.
fn devices(sysfs: PathBuf) -> PathBuf {
    match sysfs.ends_with(DEVICES) {
        true => sysfs,
        false => sysfs.join(DEVICES),
    }
}

/// A work queue that programs can open.
///
/// ```no_run
/// for queue in dray::hw::discover()? {
///     println!("{}: {:?}, {} entries", queue.name(), queue.mode, queue.entries);
/// }
/// # Ok::<(), dray::hw::HwError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInfo {
    /// Number of its device.
    pub device: u16,
    /// Its number on the device.
    pub queue: u16,
    /// Dedicated (MOVDIR64B, one client) or shared (ENQCMD).
    pub mode: WorkQueueMode,
    /// Entries that this client may fill: the size, or the threshold of a shared queue.
    pub entries: u16,
    /// NUMA node of the device; `None` where the machine has none.
    pub numa_node: Option<u32>,
    /// VERSION register (spec 9.2.1).
    pub version: u32,
    /// What descriptors it takes.
    pub capabilities: Capabilities,
    /// Its device file.
    pub path: PathBuf,
    /// Its attribute `state` in sysfs: `enabled` as long as it takes descriptors.
    pub state: PathBuf,
}

impl QueueInfo {
    /// Its name in sysfs: `wq0.1`.
    pub fn name(&self) -> String {
        format!("wq{}.{}", self.device, self.queue)
    }
}

/// The work queues that this machine offers to programs, by device and number.
///
/// # Errors
/// There is none, or none that can be used: [`HwError::NoneUsable`] has the reason of each. The directory of
/// device files cannot be read.
pub fn discover() -> Result<Vec<QueueInfo>, HwError> {
    Paths::from_environment().discover()
}

impl Paths {
    /// The work queues below these paths that programs can use, by device and number.
    ///
    /// # Errors
    /// As [`discover`].
    pub fn discover(&self) -> Result<Vec<QueueInfo>, HwError> {
        let mut queues = Vec::new();
        let mut refused = Vec::new();
        for (name, found) in self.survey()? {
            match found {
                Ok(queue) => queues.push(queue),
                Err(reason) => refused.push(RefusedQueue {
                    queue: name,
                    reason,
                }),
            }
        }
        match (queues.is_empty(), refused.is_empty()) {
            (false, _) => Ok(queues),
            (true, false) => Err(HwError::NoneUsable { refused }),
            (true, true) => Err(HwError::NoQueues {
                path: self.dev.clone(),
            }),
        }
    }

    /// Every work queue of a DSA below these paths by device and number, with its name, or why programs cannot
    /// use it: it is not enabled, of another type, without a device file, or its attributes cannot be read.
    ///
    /// # Errors
    /// The directory of device files cannot be read, and is not just missing.
    pub fn survey(&self) -> Result<Vec<QueueResult<QueueInfo>>, HwError> {
        let mut files = BTreeMap::new();
        match fs::read_dir(&self.dev) {
            Ok(entries) => {
                for entry in entries {
                    let entry = entry.map_err(|source| HwError::Read {
                        path: self.dev.clone(),
                        source,
                    })?;
                    if let Some(numbers) = entry.file_name().to_str().and_then(numbers) {
                        files.insert(numbers, Some(entry.path()));
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => {
                let path = self.dev.clone();
                return Err(HwError::Read { path, source });
            }
        }
        // Those that the driver has, and that have no file. A directory that cannot be read shows in the
        // attributes of those that have one.
        for entry in fs::read_dir(&self.sysfs).into_iter().flatten().flatten() {
            if let Some(numbers) = entry.file_name().to_str().and_then(numbers) {
                // Queues of analytics accelerators are in the same directory.
                if !self.sysfs.join(format!("iax{}", numbers.0)).exists() {
                    files.entry(numbers).or_insert(None);
                }
            }
        }
        let queue = |((device, queue), file)| {
            let name = format!("wq{device}.{queue}");
            (name, self.usable(device, queue, file))
        };
        Ok(files.into_iter().map(queue).collect())
    }

    fn usable(&self, device: u16, queue: u16, file: Option<PathBuf>) -> Result<QueueInfo, HwError> {
        let name = format!("wq{device}.{queue}");
        let attributes = Attributes::of(self.sysfs.join(&name));
        let state = attributes.text("state")?;
        if let Some(state) = state.filter(|state| state != "enabled") {
            let path = attributes.path("state");
            return Err(HwError::NotEnabled { path, state });
        }
        let kind = attributes.text("type")?;
        if let Some(kind) = kind.filter(|kind| kind != "user") {
            let path = attributes.path("type");
            return Err(HwError::WrongType { path, kind });
        }
        let Some(file) = file else {
            return Err(HwError::NoFile {
                path: self.dev.join(name),
            });
        };
        self.queue(device, queue, file)
    }

    fn queue(&self, device: u16, queue: u16, path: PathBuf) -> Result<QueueInfo, HwError> {
        let of_queue = Attributes::of(self.sysfs.join(format!("wq{device}.{queue}")));
        let of_device = Attributes::of(self.sysfs.join(format!("dsa{device}")));
        let required = |attributes: &Attributes, name: &'static str| -> Result<u64, HwError> {
            let number = attributes.number(name)?;
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| HwError::Attribute {
                path: attributes.path(name),
                text: String::new(),
                expected: "number of 0 or more",
            })
        };
        let mode = of_queue.parsed("mode", "mode of a work queue", |text| match text {
            "dedicated" => Some(WorkQueueMode::Dedicated),
            "shared" => Some(WorkQueueMode::Shared),
            _ => None,
        })?;
        let mode = mode.ok_or_else(|| HwError::Attribute {
            path: of_queue.path("mode"),
            text: String::new(),
            expected: "mode of a work queue",
        })?;
        let size = required(&of_queue, "size")?;
        let entries = match mode {
            WorkQueueMode::Dedicated => size,
            WorkQueueMode::Shared => match required(&of_queue, "threshold")? {
                0 => size,
                threshold => threshold,
            },
        };
        let bitmap = |attributes: &Attributes, name| {
            attributes.parsed(name, "bitmap of operations", |text| {
                text.parse::<OpCap>().ok()
            })
        };
        let mut operations = bitmap(&of_device, "op_cap")?.unwrap_or(OpCap([u64::MAX; 4]));
        if let Some(allowed) = bitmap(&of_queue, "op_config")? {
            for (word, allowed) in operations.0.iter_mut().zip(allowed.0) {
                *word &= allowed;
            }
        }
        let limit = |name: &'static str| -> Result<u64, HwError> {
            let of_device = required(&of_device, name)?;
            let of_queue = of_queue.number(name)?;
            let of_queue = of_queue.and_then(|number| u64::try_from(number).ok());
            Ok(of_device.min(of_queue.filter(|limit| *limit > 0).unwrap_or(u64::MAX)))
        };
        let numa_node = of_device.number("numa_node")?;
        Ok(QueueInfo {
            device,
            queue,
            mode,
            entries: u16::try_from(entries).unwrap_or(u16::MAX).max(1),
            numa_node: numa_node.and_then(|node| u32::try_from(node).ok()),
            version: of_device.hexadecimal("version")?.unwrap_or(0x100) as u32,
            capabilities: Capabilities {
                operations,
                general: GenCap::from_bits(of_device.hexadecimal("gen_cap")?.unwrap_or(0)),
                max_transfer_bytes: limit("max_transfer_size")?,
                divides: false,
                max_batch: u32::try_from(limit("max_batch_size")?).unwrap_or(u32::MAX),
                block_on_fault: of_queue.number("block_on_fault")? == Some(1),
            },
            path,
            state: of_queue.path("state"),
        })
    }
}

/// Device and queue of a device file's name: `wq0.1`, or `wq0.1-` and anything.
fn numbers(name: &str) -> Option<(u16, u16)> {
    let name = name.split_once('-').map_or(name, |(name, _)| name);
    let (device, queue) = name.strip_prefix("wq")?.split_once('.')?;
    Some((device.parse().ok()?, queue.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_sysfs_and_its_directory_of_devices_are_the_same() {
        for (named, directory) in [
            ("/sys", "/sys/bus/dsa/devices"),
            ("/tmp/sys/", "/tmp/sys/bus/dsa/devices"),
            ("/tmp/sys/bus/dsa/devices", "/tmp/sys/bus/dsa/devices"),
            ("/tmp/sys/bus/dsa/devices/", "/tmp/sys/bus/dsa/devices"),
            ("/tmp/devices", "/tmp/devices/bus/dsa/devices"),
        ] {
            assert_eq!(devices(named.into()), Path::new(directory), "{named}");
        }
    }

    #[test]
    fn names_of_device_files() {
        for (name, expected) in [
            ("wq0.1", Some((0, 1))),
            ("wq12.7-3", Some((12, 7))),
            ("wq0", None),
            ("wq0.", None),
            ("wq0.1.2", None),
            ("wq99999.1", None),
            ("dsa0", None),
            ("", None),
        ] {
            assert_eq!(numbers(name), expected, "{name}");
        }
    }
}
