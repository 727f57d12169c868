//! DAMON by sysfs: the kernel's own monitor of accesses, on address ranges of a process (`fvaddr`) or on physical ones
//! (`paddr`).
//!
//! There is one such interface for the machine, and a monitor that runs cannot be changed by others: it
//! is held by a lock of the file `nr_kdamonds`.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;

/// Where the kernel has it.
pub const DIRECTORY: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// Whether the kernel monitors the whole machine, which excludes other monitors.
const STAT: &str = "/sys/module/damon_stat/parameters/enabled";
/// The largest age of regions in dray's scheme, by which a monitor that dray left is recognised. Other programs write
/// `u32::MAX` for regions of all ages, and no region becomes as old as either.
const MARK: u32 = u32::MAX - 1;
/// Where the mark stands, below the directory of a monitor.
const MARKED: &str = "contexts/0/schemes/0/access_pattern/age/max";
/// Monitors of others that are looked at for the mark at most.
const LEFT_AT_MOST: u32 = 64;
/// Samples of one aggregation: `nr_accesses` is at most that.
pub const SAMPLES: u32 = 20;

/// Why DAMON cannot be used.
#[derive(Debug, Error)]
pub enum DamonError {
    /// No CONFIG_DAMON_SYSFS.
    #[error("this kernel is built without DAMON (CONFIG_DAMON_SYSFS)")]
    Absent,
    /// Not root.
    #[error("DAMON is for root alone")]
    Forbidden,
    /// Another process uses DAMON.
    #[error("DAMON is in use by another program")]
    InUse,
    /// The kernel's own monitor of the whole machine (CONFIG_DAMON_STAT) lets no other one run.
    #[error("DAMON is in use by the kernel's damon_stat (echo N > {STAT})")]
    Stat,
    /// No CONFIG_DAMON_VADDR.
    #[error("this kernel's DAMON is built without virtual addresses (CONFIG_DAMON_VADDR)")]
    NoVaddr,
    /// No CONFIG_DAMON_PADDR.
    #[error("this kernel's DAMON is built without physical addresses (CONFIG_DAMON_PADDR)")]
    NoPaddr,
    /// All monitors of the session are used.
    #[error("DAMON monitors {monitors} processes here at most")]
    Full {
        /// How many.
        monitors: u32,
    },
    /// A file that has no reason to fail.
    #[error("DAMON: {path}: {source}")]
    File {
        /// Below the monitor's directory.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A range and how often it was found accessed, of [`SAMPLES`] looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
    /// Looks that found an access.
    pub accesses: u32,
}

/// How exact a monitor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Time between two looks at a region.
    pub sample: Duration,
    /// Regions at least and at most.
    pub regions: (u64, u64),
}

/// What is monitored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Virtual addresses of a process.
    Process(u32),
    /// Physical addresses.
    Memory,
}

impl Target {
    fn operations(self) -> &'static str {
        match self {
            Self::Process(_) => "fvaddr",
            Self::Memory => "paddr",
        }
    }
}

/// The interface, taken for so many monitors.
#[derive(Debug)]
pub struct Interface {
    directory: PathBuf,
    /// Its lock says that the interface is ours.
    _lock: File,
    /// Which of them are used.
    used: Mutex<Vec<bool>>,
    /// The monitors that there are, are these.
    ours: bool,
}

/// A monitor; it ends when this is dropped, or with the process that it monitors.
#[derive(Debug)]
pub struct Damon {
    interface: Arc<Interface>,
    index: u32,
    target: Target,
    runs: bool,
}

impl Interface {
    /// Takes the interface for this many monitors, of which the first is to monitor `target`; nothing is monitored yet.
    ///
    /// # Errors
    /// [`DamonError`]: it is not there, or others have it. Then it is as it was.
    pub fn take(
        directory: &Path,
        monitors: u32,
        target: Target,
    ) -> Result<Arc<Interface>, DamonError> {
        let count = directory.join("nr_kdamonds");
        let lock = File::options().read(true).write(true).open(&count);
        let lock = lock.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DamonError::Absent,
            io::ErrorKind::PermissionDenied => DamonError::Forbidden,
            _ => failed("nr_kdamonds")(error),
        })?;
        // What is not built is said first: that others use it is nothing that one could wait for.
        built(directory, target)?;
        // SAFETY: it locks a file of ours.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return Err(DamonError::InUse);
        }
        let stat = fs::read_to_string(STAT).unwrap_or_default();
        if directory == Path::new(DIRECTORY) && stat.trim() == "Y" {
            return Err(DamonError::Stat);
        }
        let mut interface = Interface {
            directory: directory.to_owned(),
            _lock: lock,
            used: Mutex::new(vec![false; monitors as usize]),
            ours: false,
        };
        let before = interface.read("nr_kdamonds").unwrap_or_default();
        interface.end_left(before.parse().unwrap_or(0), target);
        let busy = |error: DamonError| match error {
            DamonError::File { source, .. } if source.raw_os_error() == Some(libc::EBUSY) => {
                DamonError::InUse
            }
            other => other,
        };
        interface
            .write("nr_kdamonds", &monitors.to_string())
            .map_err(busy)?;
        if let Err(error) = interface.set_up(0, target) {
            let _ = interface.write("nr_kdamonds", &before);
            return Err(error);
        }
        interface.ours = true;
        Ok(Arc::new(interface))
    }

    /// Ends what a dray that was killed has left running: its lock went with it.
    fn end_left(&self, monitors: u32, target: Target) {
        for index in 0..monitors.clamp(1, LEFT_AT_MOST) {
            let reads = |path: &str| self.read(&format!("{index}/{path}"));
            // This process may be another program than it was.
            let own = match target {
                Target::Process(pid) => {
                    reads("contexts/0/targets/0/pid_target") == Ok(pid.to_string())
                }
                Target::Memory => false,
            };
            if own || reads(MARKED) == Ok(MARK.to_string()) {
                let _ = self.write(&format!("{index}/state"), "off");
            }
        }
    }

    fn set_up(&self, index: u32, target: Target) -> Result<(), DamonError> {
        self.write(&format!("{index}/contexts/nr_contexts"), "1")?;
        built(&self.directory, target)?;
        let operations = format!("{index}/contexts/0/operations");
        self.write(&operations, target.operations())
    }

    /// A monitor of the interface, if one is left.
    ///
    /// # Errors
    /// [`DamonError::Full`]; a file that has no reason to fail.
    pub fn monitor(self: &Arc<Interface>, target: Target) -> Result<Damon, DamonError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let monitors = used.len() as u32;
        let free = used.iter().position(|used| !used);
        let free = free.ok_or(DamonError::Full { monitors })?;
        self.set_up(free as u32, target)?;
        used[free] = true;
        Ok(Damon {
            interface: self.clone(),
            index: free as u32,
            target,
            runs: false,
        })
    }

    fn write(&self, path: &str, text: &str) -> Result<(), DamonError> {
        fs::write(self.directory.join(path), text).map_err(failed(path))
    }

    fn read(&self, path: &str) -> Result<String, ()> {
        let text = fs::read_to_string(self.directory.join(path));
        text.map(|text| text.trim().to_owned()).map_err(|_| ())
    }
}

/// Whether the kernel has the operations for a target: the first context of anybody's says so.
fn built(directory: &Path, target: Target) -> Result<(), DamonError> {
    let able = fs::read_to_string(directory.join("0/contexts/0/avail_operations"));
    let Ok(able) = able else { return Ok(()) };
    let wanted = target.operations();
    match (able.split_whitespace().any(|name| name == wanted), target) {
        (true, _) => Ok(()),
        (false, Target::Process(_)) => Err(DamonError::NoVaddr),
        (false, Target::Memory) => Err(DamonError::NoPaddr),
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        if self.ours {
            let _ = self.write("nr_kdamonds", "0");
        }
    }
}

impl Damon {
    /// Takes the interface for a process alone; nothing is monitored yet.
    ///
    /// # Errors
    /// As [`Interface::take`].
    pub fn take(directory: &Path, pid: u32) -> Result<Damon, DamonError> {
        let target = Target::Process(pid);
        Interface::take(directory, 1, target)?.monitor(target)
    }

    /// Monitors these ranges from now on, which are in order and apart.
    ///
    /// # Errors
    /// [`DamonError::File`]: the process is gone, or privileges are.
    pub fn monitor(
        &mut self,
        ranges: &[(u64, u64)],
        attributes: Attributes,
    ) -> Result<(), DamonError> {
        let micros = |time: Duration| time.as_micros().to_string();
        let at = "contexts/0/monitoring_attrs";
        if self.runs {
            // Least before most, or most before least: neither may ever be beyond the other.
            self.write(&format!("{at}/nr_regions/min"), "10")?;
        } else {
            self.write("contexts/0/targets/nr_targets", "1")?;
            if let Target::Process(pid) = self.target {
                self.write("contexts/0/targets/0/pid_target", &pid.to_string())?;
            }
            // A scheme that does nothing, of which every region is one.
            self.write("contexts/0/schemes/nr_schemes", "1")?;
            let scheme = "contexts/0/schemes/0";
            self.write(&format!("{scheme}/action"), "stat")?;
            for (name, most) in [
                ("sz", u64::MAX),
                ("nr_accesses", u32::MAX.into()),
                ("age", MARK.into()),
            ] {
                let path = format!("{scheme}/access_pattern/{name}/max");
                self.write(&path, &most.to_string())?;
            }
        }
        let (least, most) = attributes.regions;
        self.write(&format!("{at}/nr_regions/max"), &most.to_string())?;
        self.write(&format!("{at}/nr_regions/min"), &least.to_string())?;
        let aggregation = attributes.sample * SAMPLES;
        self.write(
            &format!("{at}/intervals/sample_us"),
            &micros(attributes.sample),
        )?;
        self.write(&format!("{at}/intervals/aggr_us"), &micros(aggregation))?;
        let target = "contexts/0/targets/0/regions";
        self.write(&format!("{target}/nr_regions"), &ranges.len().to_string())?;
        for (index, (start, end)) in ranges.iter().enumerate() {
            self.write(&format!("{target}/{index}/start"), &start.to_string())?;
            self.write(&format!("{target}/{index}/end"), &end.to_string())?;
        }
        let state = match self.runs {
            true => "commit",
            false => "on",
        };
        self.write("state", state)?;
        self.runs = true;
        Ok(())
    }

    /// Waits for the end of an aggregation; all regions in order.
    ///
    /// # Errors
    /// [`DamonError::File`]: the monitor has ended.
    pub fn regions(&self) -> Result<Vec<Region>, DamonError> {
        self.write("state", "update_schemes_tried_regions")?;
        let tried = "contexts/0/schemes/0/tried_regions";
        let entries = fs::read_dir(self.interface.directory.join(self.path(tried)));
        let entries = entries.map_err(failed(tried))?;
        let mut regions = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(number) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
                continue;
            };
            let value = |file: &str| -> Option<u64> {
                let text = self.read(&format!("{tried}/{number}/{file}")).ok()?;
                text.parse().ok()
            };
            if let (Some(start), Some(end), Some(accesses)) =
                (value("start"), value("end"), value("nr_accesses"))
                && start < end
            {
                regions.push(Region {
                    start,
                    end,
                    accesses: u32::try_from(accesses).unwrap_or(u32::MAX),
                });
            }
        }
        regions.sort_unstable_by_key(|region| region.start);
        Ok(regions)
    }

    /// Core time that the kernel's thread has used, if it says so.
    pub fn cpu(&self) -> Option<Duration> {
        let pid: u32 = self.read("pid").ok()?.parse().ok()?;
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    }

    /// A path below the directory of this monitor.
    fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.index)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), DamonError> {
        self.interface.write(&self.path(path), text)
    }

    fn read(&self, path: &str) -> Result<String, ()> {
        self.interface.read(&self.path(path))
    }
}

impl Drop for Damon {
    fn drop(&mut self) {
        if self.runs {
            let _ = self.write("state", "off");
        }
        let mut used = self.interface.used.lock();
        let used = used.as_mut().map(|used| used.get_mut(self.index as usize));
        if let Ok(Some(used)) = used {
            *used = false;
        }
    }
}

/// Takes away what the monitor of a process that has ended left.
pub fn tidy(directory: &Path, pid: u32) {
    let read = |path: &str| fs::read_to_string(directory.join(path)).unwrap_or_default();
    let ours = read("0/contexts/0/targets/0/pid_target").trim() == pid.to_string();
    if ours && let Ok(damon) = Damon::take(directory, pid) {
        drop(damon);
    }
}

fn failed(path: &str) -> impl FnOnce(io::Error) -> DamonError {
    let path = path.to_owned();
    move |source| DamonError::File { path, source }
}

#[cfg(test)]
mod tests;
