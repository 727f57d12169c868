//! DAMON by sysfs: the kernel's own monitor of accesses, on address ranges of one process (`fvaddr`).
//!
//! There is one such interface for the machine, and a monitor that runs cannot be changed by others: it
//! is held by a lock of the file `nr_kdamonds`.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

/// Where the kernel has it.
pub const DIRECTORY: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// Whether the kernel monitors the whole machine, which excludes other monitors.
const STAT: &str = "/sys/module/damon_stat/parameters/enabled";
/// The largest age of regions in dray's scheme, by which a monitor that dray left is recognised. Other programs write
/// `u32::MAX` for regions of all ages, and no region becomes as old as either.
const MARK: u32 = u32::MAX - 1;
/// Where the mark stands.
const MARKED: &str = "0/contexts/0/schemes/0/access_pattern/age/max";
/// Samples of one aggregation: `nr_accesses` is at most that.
pub const SAMPLES: u32 = 20;

/// Why DAMON cannot be used.
#[derive(Debug, Error)]
pub enum DamonError {
    /// No CONFIG_DAMON_SYSFS.
    #[error("this kernel has no DAMON")]
    Absent,
    /// Not root.
    #[error("DAMON is for root alone")]
    Forbidden,
    /// Another process uses DAMON.
    #[error("DAMON is in use")]
    InUse,
    /// The kernel's own monitor of the whole machine (CONFIG_DAMON_STAT) lets no other one run.
    #[error("DAMON is in use by the kernel's damon_stat (echo N > {STAT})")]
    Stat,
    /// No CONFIG_DAMON_VADDR.
    #[error("this kernel's DAMON does not monitor virtual addresses")]
    NoVaddr,
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

/// A monitor; it ends when this is dropped, or with the process that it monitors.
#[derive(Debug)]
pub struct Damon {
    directory: PathBuf,
    /// Its lock says that the interface is ours.
    _lock: File,
    pid: u32,
    /// The one monitor that there is, is this.
    ours: bool,
    runs: bool,
}

impl Damon {
    /// Takes the interface for a process; nothing is monitored yet.
    ///
    /// # Errors
    /// [`DamonError`]: it is not there, or others have it. Then it is as it was.
    pub fn take(directory: &Path, pid: u32) -> Result<Damon, DamonError> {
        let count = directory.join("nr_kdamonds");
        let lock = File::options().read(true).write(true).open(&count);
        let lock = lock.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DamonError::Absent,
            io::ErrorKind::PermissionDenied => DamonError::Forbidden,
            _ => failed("nr_kdamonds")(error),
        })?;
        // SAFETY: it locks a file of ours.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return Err(DamonError::InUse);
        }
        let stat = fs::read_to_string(STAT).unwrap_or_default();
        if directory == Path::new(DIRECTORY) && stat.trim() == "Y" {
            return Err(DamonError::Stat);
        }
        let mut damon = Damon {
            directory: directory.to_owned(),
            _lock: lock,
            pid,
            ours: false,
            runs: false,
        };
        // This process may be another program than it was; or a dray that monitored another was killed: its lock
        // went with it.
        let own = damon.read("0/contexts/0/targets/0/pid_target") == Ok(pid.to_string());
        if own || damon.read(MARKED) == Ok(MARK.to_string()) {
            let _ = damon.write("0/state", "off");
        }
        let before = damon.read("nr_kdamonds").unwrap_or_default();
        let busy = |error: DamonError| match error {
            DamonError::File { source, .. } if source.raw_os_error() == Some(libc::EBUSY) => {
                DamonError::InUse
            }
            other => other,
        };
        damon.write("nr_kdamonds", "1").map_err(busy)?;
        let able = damon.write("0/contexts/nr_contexts", "1").and_then(|()| {
            let operations = damon
                .read("0/contexts/0/avail_operations")
                .unwrap_or_default();
            match operations.split_whitespace().any(|name| name == "fvaddr") {
                true => damon.write("0/contexts/0/operations", "fvaddr"),
                false => Err(DamonError::NoVaddr),
            }
        });
        if let Err(error) = able {
            let _ = damon.write("nr_kdamonds", &before);
            return Err(error);
        }
        damon.ours = true;
        Ok(damon)
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
        let at = "0/contexts/0/monitoring_attrs";
        if self.runs {
            // Least before most, or most before least: neither may ever be beyond the other.
            self.write(&format!("{at}/nr_regions/min"), "10")?;
        } else {
            self.write("0/contexts/0/targets/nr_targets", "1")?;
            let pid = self.pid.to_string();
            self.write("0/contexts/0/targets/0/pid_target", &pid)?;
            // A scheme that does nothing, of which every region is one.
            self.write("0/contexts/0/schemes/nr_schemes", "1")?;
            let scheme = "0/contexts/0/schemes/0";
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
        let target = "0/contexts/0/targets/0/regions";
        self.write(&format!("{target}/nr_regions"), &ranges.len().to_string())?;
        for (index, (start, end)) in ranges.iter().enumerate() {
            self.write(&format!("{target}/{index}/start"), &start.to_string())?;
            self.write(&format!("{target}/{index}/end"), &end.to_string())?;
        }
        let state = match self.runs {
            true => "commit",
            false => "on",
        };
        self.write("0/state", state)?;
        self.runs = true;
        Ok(())
    }

    /// Waits for the end of an aggregation; all regions in order.
    ///
    /// # Errors
    /// [`DamonError::File`]: the monitor has ended.
    pub fn regions(&self) -> Result<Vec<Region>, DamonError> {
        self.write("0/state", "update_schemes_tried_regions")?;
        let tried = "0/contexts/0/schemes/0/tried_regions";
        let entries = fs::read_dir(self.directory.join(tried)).map_err(failed(tried))?;
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
        let pid: u32 = self.read("0/pid").ok()?.parse().ok()?;
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    }

    fn write(&self, path: &str, text: &str) -> Result<(), DamonError> {
        fs::write(self.directory.join(path), text).map_err(failed(path))
    }

    fn read(&self, path: &str) -> Result<String, ()> {
        let text = fs::read_to_string(self.directory.join(path));
        text.map(|text| text.trim().to_owned()).map_err(|_| ())
    }
}

impl Drop for Damon {
    fn drop(&mut self) {
        if self.runs {
            let _ = self.write("0/state", "off");
        }
        if self.ours {
            let _ = self.write("nr_kdamonds", "0");
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
mod tests {
    use super::*;

    /// Files as the kernel has them once there is one monitor with one target of two ranges.
    fn kernel(operations: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let context = "0/contexts/0";
        let mut files = vec![
            ("nr_kdamonds".to_owned(), "0"),
            ("0/state".to_owned(), "off"),
            ("0/contexts/nr_contexts".to_owned(), "0"),
            (format!("{context}/avail_operations"), operations),
        ];
        for name in [
            "operations",
            "monitoring_attrs/nr_regions/min",
            "monitoring_attrs/nr_regions/max",
            "monitoring_attrs/intervals/sample_us",
            "monitoring_attrs/intervals/aggr_us",
            "targets/nr_targets",
            "targets/0/pid_target",
            "targets/0/regions/nr_regions",
            "targets/0/regions/0/start",
            "targets/0/regions/0/end",
            "targets/0/regions/1/start",
            "targets/0/regions/1/end",
            "schemes/nr_schemes",
            "schemes/0/action",
            "schemes/0/access_pattern/sz/max",
            "schemes/0/access_pattern/nr_accesses/max",
            "schemes/0/access_pattern/age/max",
        ] {
            files.push((format!("{context}/{name}"), ""));
        }
        let tried = format!("{context}/schemes/0/tried_regions");
        for (number, file, text) in [
            (10, "start", "8192"),
            (10, "end", "12288"),
            (10, "nr_accesses", "0"),
            (9, "start", "4096"),
            (9, "end", "8192"),
            (9, "nr_accesses", "20"),
        ] {
            files.push((format!("{tried}/{number}/{file}"), text));
        }
        files.push((format!("{tried}/total_bytes"), "8192"));
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        root
    }

    fn read(root: &tempfile::TempDir, path: &str) -> String {
        fs::read_to_string(root.path().join(path)).expect(path)
    }

    const ATTRIBUTES: Attributes = Attributes {
        sample: Duration::from_millis(5),
        regions: (50, 1000),
    };

    #[test]
    fn ranges_of_a_process_are_monitored_until_drop() {
        let root = kernel("vaddr\nfvaddr\npaddr\n");
        let mut damon = Damon::take(root.path(), 77).expect("it is free");
        assert!(matches!(
            Damon::take(root.path(), 78),
            Err(DamonError::InUse)
        ));
        damon
            .monitor(&[(4096, 8192), (8192, 12288)], ATTRIBUTES)
            .expect("all files are there");
        assert_eq!(read(&root, "0/state"), "on");
        assert_eq!(read(&root, "0/contexts/0/targets/0/pid_target"), "77");
        let at = |name: &str| read(&root, &format!("0/contexts/0/{name}"));
        assert_eq!(at("operations"), "fvaddr");
        assert_eq!(at("targets/0/regions/1/end"), "12288");
        assert_eq!(at("monitoring_attrs/intervals/aggr_us"), "100000");
        assert_eq!(
            at("schemes/0/access_pattern/sz/max"),
            "18446744073709551615"
        );
        let region = |start, accesses| Region {
            start,
            end: start + 4096,
            accesses,
        };
        assert_eq!(
            damon.regions().expect("they are there"),
            [region(4096, 20), region(8192, 0)]
        );
        drop(damon);
        assert_eq!(read(&root, "0/state"), "off");
        assert_eq!(read(&root, "nr_kdamonds"), "0");
    }

    #[test]
    fn damon_without_vaddr_is_refused_and_unchanged() {
        let root = kernel("paddr\n");
        let error = Damon::take(root.path(), 77).expect_err("no virtual addresses");
        assert!(matches!(error, DamonError::NoVaddr), "{error}");
        assert_eq!(read(&root, "nr_kdamonds"), "0");
        let absent = tempfile::tempdir().expect("a directory");
        assert!(matches!(
            Damon::take(absent.path(), 77),
            Err(DamonError::Absent)
        ));
    }

    #[test]
    fn monitoring_of_a_killed_dray_is_ended_and_of_others_kept() {
        let root = kernel("fvaddr");
        let put = |path: &str, text: &str| fs::write(root.path().join(path), text).expect(path);
        let mut killed = Damon::take(root.path(), 77).expect("it is free");
        killed
            .monitor(&[(4096, 8192)], ATTRIBUTES)
            .expect("all files are there");
        // Its end without its work.
        killed.runs = false;
        killed.ours = false;
        drop(killed);
        assert_eq!(read(&root, "0/state"), "on");
        drop(Damon::take(root.path(), 78).expect("its lock is free"));
        assert_eq!(read(&root, "0/state"), "off");
        put("0/state", "on");
        put(MARKED, &u32::MAX.to_string());
        // The kernel refuses to change the number then (EBUSY), which these files cannot.
        let _ = Damon::take(root.path(), 78);
        assert_eq!(read(&root, "0/state"), "on");
    }

    #[test]
    fn tidy_ends_only_the_monitoring_of_the_given_process() {
        let root = kernel("fvaddr");
        let put = |path: &str, text: &str| fs::write(root.path().join(path), text).expect(path);
        put("nr_kdamonds", "1");
        put("0/contexts/0/targets/0/pid_target", "77\n");
        tidy(root.path(), 78);
        assert_eq!(read(&root, "nr_kdamonds"), "1");
        tidy(root.path(), 77);
        assert_eq!(read(&root, "nr_kdamonds"), "0");
    }
}
