//! The kernel's own migrations, from the tracepoint `migrate:mm_migrate_pages`: no patch is needed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::session::BINS;

/// Calls of one reason and mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Calls by pages: from 2^n on, below 2^(n+1).
    pub pages_per_call: [u64; BINS],
    /// Calls.
    pub calls: u64,
    /// Pages that moved.
    pub succeeded: u64,
    /// Pages that did not.
    pub failed: u64,
    /// Huge pages that moved, did not, and were split.
    pub huge: [u64; 3],
}

/// Histograms by reason and mode, as the kernel names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histograms {
    /// By (reason, mode).
    pub calls: BTreeMap<(String, String), Calls>,
    /// Lines of the tracepoint that could not be read.
    pub unknown: u64,
}

impl Histograms {
    /// Enters a line of the trace; others than the tracepoint's are left.
    pub fn line(&mut self, line: &str) {
        let Some((_, fields)) = line.split_once("mm_migrate_pages: ") else {
            return;
        };
        if self.fields(fields).is_none() {
            self.unknown += 1;
        }
    }

    fn fields(&mut self, fields: &str) -> Option<()> {
        let field = |name: &str| {
            let mut all = fields.split_whitespace();
            all.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name: &str| field(name).map_or(Some(0), |text| text.parse::<u64>().ok());
        field("nr_succeeded")?;
        let (succeeded, failed) = (number("nr_succeeded")?, number("nr_failed")?);
        let huge = [
            number("nr_thp_succeeded")?,
            number("nr_thp_failed")?,
            number("nr_thp_split")?,
        ];
        let key = (field("reason")?.to_owned(), field("mode")?.to_owned());
        let calls = self.calls.entry(key).or_default();
        let pages = succeeded.saturating_add(failed);
        let bin = (pages.max(1).ilog2() as usize).min(BINS - 1);
        calls.pages_per_call[bin] += 1;
        calls.calls += 1;
        calls.succeeded = calls.succeeded.saturating_add(succeeded);
        calls.failed = calls.failed.saturating_add(failed);
        for (sum, more) in calls.huge.iter_mut().zip(huge) {
            *sum = sum.saturating_add(more);
        }
        Some(())
    }
}

/// A trace instance of its own, removed at the end; others' tracing is left alone.
#[derive(Debug)]
pub struct Trace {
    instance: PathBuf,
    pipe: File,
    rest: Vec<u8>,
}

impl Trace {
    /// Starts to trace, with the trace file system at `tracefs`.
    ///
    /// # Errors
    /// It is not mounted there, or may not be written to.
    pub fn start(tracefs: &Path) -> io::Result<Trace> {
        let instance = tracefs
            .join("instances")
            .join(format!("dray-{}", std::process::id()));
        fs::create_dir(&instance)?;
        let started = || -> io::Result<File> {
            let enable = instance.join("events/migrate/mm_migrate_pages/enable");
            OpenOptions::new()
                .write(true)
                .open(enable)?
                .write_all(b"1")?;
            OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(instance.join("trace_pipe"))
        };
        match started() {
            Ok(pipe) => Ok(Trace {
                instance,
                pipe,
                rest: Vec::new(),
            }),
            Err(error) => {
                let _ = fs::remove_dir(&instance);
                Err(error)
            }
        }
    }

    /// Reads for so long, or until `stopped`.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn read(
        &mut self,
        time: Duration,
        stopped: impl Fn() -> bool,
        into: &mut Histograms,
    ) -> io::Result<()> {
        let start = Instant::now();
        let mut bytes = vec![0; 64 << 10];
        while !stopped() {
            match self.pipe.read(&mut bytes) {
                Ok(count) => {
                    self.rest.extend_from_slice(&bytes[..count]);
                    self.lines(into);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }

    fn lines(&mut self, into: &mut Histograms) {
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            into.line(&String::from_utf8_lossy(&line));
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let enable = self.instance.join("events/migrate/mm_migrate_pages/enable");
        let _ = fs::write(enable, b"0");
        // An instance whose pipe is open is busy.
        if let Ok(null) = File::open("/dev/null") {
            self.pipe = null;
        }
        let _ = fs::remove_dir(&self.instance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_tracepoint_are_counted() {
        let mut histograms = Histograms::default();
        for line in [
            "kswapd1-72 [001] .... 12.5: mm_migrate_pages: nr_succeeded=64 nr_failed=0 \
             nr_thp_succeeded=0 nr_thp_failed=0 nr_thp_split=0 nr_split=0 mode=MIGRATE_ASYNC \
             reason=demotion",
            "kswapd1-72 [001] .... 12.6: mm_migrate_pages: nr_succeeded=512 nr_failed=2 \
             nr_thp_succeeded=1 nr_thp_failed=0 nr_thp_split=0 mode=MIGRATE_ASYNC reason=demotion",
            "x-1 [000] 1.0: mm_migrate_pages: nr_succeeded=1 nr_failed=0 mode=MIGRATE_SYNC \
             reason=syscall_or_cpuset",
            "x-1 [000] 1.0: sched_switch: prev=1",
            "x-1 [000] 1.0: mm_migrate_pages: nr_succeeded=99999999999999999999999 mode=A reason=b",
            "x-1 [000] 1.0: mm_migrate_pages: ",
        ] {
            histograms.line(line);
        }
        assert_eq!(histograms.unknown, 2);
        let key = ("demotion".to_owned(), "MIGRATE_ASYNC".to_owned());
        let demotion = &histograms.calls[&key];
        assert_eq!(
            (demotion.calls, demotion.succeeded, demotion.failed),
            (2, 576, 2)
        );
        assert_eq!(demotion.pages_per_call[6], 1);
        assert_eq!(demotion.pages_per_call[9], 1);
        assert_eq!(demotion.huge, [1, 0, 0]);
        assert_eq!(histograms.calls.len(), 2);
    }
}
