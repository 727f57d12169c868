//! Counters in a file that all processes of a session have mapped: they are there whatever ends a
//! process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_placement::Reason;

use crate::calls::Call;

/// Buckets of sizes: powers of two.
pub const BUCKETS: usize = 48;
const MAGIC: u64 = u64::from_le_bytes(*b"drayoff3");

/// The executor of a call, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Executor {
    /// The C library on the calling core.
    Core,
    /// The virtual device.
    Virtual,
    /// A device behind its driver; inside `dray run` that is the virtual device.
    Hardware,
}

impl Executor {
    /// All, in the order of their numbers.
    pub const ALL: [Executor; 3] = [Executor::Core, Executor::Virtual, Executor::Hardware];

    /// As in results.
    pub const fn name(self) -> &'static str {
        match self {
            Executor::Core => "core",
            Executor::Virtual => "virtual",
            Executor::Hardware => "hardware",
        }
    }
}

impl From<dray::Executor> for Executor {
    fn from(executor: dray::Executor) -> Executor {
        match executor {
            dray::Executor::Hardware => Executor::Hardware,
            dray::Executor::Virtual => Executor::Virtual,
            _ => Executor::Core,
        }
    }
}

/// Calls and bytes.
#[derive(Debug, Default)]
#[repr(C)]
struct Cell {
    calls: AtomicU64,
    bytes: AtomicU64,
    ns: AtomicU64,
}

#[derive(Debug)]
#[repr(C)]
struct Counters {
    magic: AtomicU64,
    processes: AtomicU64,
    /// Bits: 1 << executor, of what processes have opened.
    opened: AtomicU64,
    faults: AtomicU64,
    resumed: AtomicU64,
    /// As they were last: percent and bytes.
    core_percent: AtomicU64,
    min_bytes: AtomicU64,
    small: [Cell; 4],
    reasons: [Cell; Reason::ALL.len()],
    cells: [[[Cell; BUCKETS]; 4]; 3],
}

/// The counters, mapped.
#[derive(Debug, Clone, Copy)]
pub struct Stats {
    counters: &'static Counters,
}

/// Bytes of the file.
pub const FILE_BYTES: u64 = size_of::<Counters>() as u64;

fn bucket(bytes: usize) -> usize {
    (bytes.max(1).ilog2() as usize).min(BUCKETS - 1)
}

fn add(cell: &Cell, calls: u64, bytes: usize, ns: u64) {
    cell.calls.fetch_add(calls, Ordering::Relaxed);
    cell.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    cell.ns.fetch_add(ns, Ordering::Relaxed);
}

impl Stats {
    /// A new file.
    ///
    /// # Errors
    /// It is there already, or cannot be made or mapped.
    pub fn create(path: &Path) -> io::Result<Stats> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        file.set_len(FILE_BYTES)?;
        let stats = Stats::map(Some(&file))?;
        stats.counters.magic.store(MAGIC, Ordering::Release);
        Ok(stats)
    }

    /// A file that [`Stats::create`] has made.
    ///
    /// # Errors
    /// It cannot be read, or is another file.
    pub fn open(path: &Path) -> io::Result<Stats> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let other = || io::Error::new(io::ErrorKind::InvalidData, "no file of counters");
        if file.metadata()?.len() != FILE_BYTES {
            return Err(other());
        }
        let stats = Stats::map(Some(&file))?;
        match stats.counters.magic.load(Ordering::Acquire) == MAGIC {
            true => Ok(stats),
            false => Err(other()),
        }
    }

    /// Counters of this process and its children alone.
    ///
    /// # Errors
    /// No memory.
    pub fn anonymous() -> io::Result<Stats> {
        Stats::map(None)
    }

    fn map(file: Option<&File>) -> io::Result<Stats> {
        let anonymous = if file.is_none() {
            libc::MAP_ANONYMOUS
        } else {
            0
        };
        // SAFETY: a new mapping wherever there is room.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Counters>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | anonymous,
                file.map_or(-1, AsRawFd::as_raw_fd),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it stays mapped, is aligned to a page, and consists of atomics, of which any bytes
        // are a value.
        let counters = unsafe { &*base.cast::<Counters>() };
        Ok(Stats { counters })
    }

    /// A process has begun, with this executor.
    pub fn opened(&self, executor: Executor) {
        self.counters.processes.fetch_add(1, Ordering::Relaxed);
        let bit = 1 << executor as usize;
        self.counters.opened.fetch_or(bit, Ordering::Relaxed);
    }

    /// A call below the threshold.
    pub fn small(&self, call: Call, bytes: usize) {
        add(&self.counters.small[call as usize], 1, bytes, 0);
    }

    /// A call: bytes that a device has executed, and its duration.
    pub fn call(&self, call: Call, bytes: usize, executor: Executor, device: usize, ns: u64) {
        let cells = &self.counters.cells;
        let at = bucket(bytes);
        let cell = |executor: Executor| &cells[executor as usize][call as usize][at];
        match device {
            0 => add(cell(Executor::Core), 1, bytes, ns),
            _ => {
                add(cell(executor), 1, device, ns);
                if device < bytes {
                    add(cell(Executor::Core), 0, bytes - device, 0);
                }
            }
        }
    }

    /// The core executed so much, because.
    pub fn reason(&self, reason: Reason, bytes: usize) {
        add(&self.counters.reasons[reason as usize], 1, bytes, 0);
    }

    /// A page fault of a device, and whether it went on.
    pub fn fault(&self, resumed: bool) {
        self.counters.faults.fetch_add(1, Ordering::Relaxed);
        let one = u64::from(resumed);
        self.counters.resumed.fetch_add(one, Ordering::Relaxed);
    }

    /// What is adapted, as it is now.
    pub fn adapted(&self, core_percent: usize, min_bytes: usize) {
        let percent = core_percent as u64;
        self.counters.core_percent.store(percent, Ordering::Relaxed);
        self.counters
            .min_bytes
            .store(min_bytes as u64, Ordering::Relaxed);
    }

    /// All of it, as it is now.
    pub fn snapshot(&self) -> Snapshot {
        let of = |cell: &Cell| Count {
            calls: cell.calls.load(Ordering::Relaxed),
            bytes: cell.bytes.load(Ordering::Relaxed),
            ns: cell.ns.load(Ordering::Relaxed),
        };
        let c = self.counters;
        let mut rows = Vec::new();
        for call in Call::ALL {
            for at in 0..BUCKETS {
                for executor in Executor::ALL {
                    let count = of(&c.cells[executor as usize][call as usize][at]);
                    if count.bytes > 0 || count.calls > 0 {
                        rows.push(Row {
                            call,
                            from_bytes: 1 << at,
                            executor,
                            count,
                        });
                    }
                }
            }
        }
        let opened = c.opened.load(Ordering::Relaxed);
        let executors = Executor::ALL.into_iter();
        Snapshot {
            processes: c.processes.load(Ordering::Relaxed),
            executors: executors
                .filter(|executor| opened >> *executor as usize & 1 == 1)
                .collect(),
            rows,
            small: Call::ALL.map(|call| of(&c.small[call as usize])),
            reasons: Reason::ALL.map(|reason| (reason, of(&c.reasons[reason as usize]))),
            faults: c.faults.load(Ordering::Relaxed),
            resumed: c.resumed.load(Ordering::Relaxed),
            core_percent: c.core_percent.load(Ordering::Relaxed),
            min_bytes: c.min_bytes.load(Ordering::Relaxed),
        }
    }
}

/// Calls, bytes and nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Calls.
    pub calls: u64,
    /// Bytes.
    pub bytes: u64,
    /// Time of all these calls together, in ns.
    pub ns: u64,
}

/// One cell of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The function.
    pub call: Call,
    /// The bucket holds sizes from this, in bytes, to below its double.
    pub from_bytes: u64,
    /// The executor. A call that core and device share counts as the device's, and its bytes for
    /// both.
    pub executor: Executor,
    /// How many.
    pub count: Count,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Programs that were started.
    pub processes: u64,
    /// What they had.
    pub executors: Vec<Executor>,
    /// What is not zero, by call, size and executor.
    pub rows: Vec<Row>,
    /// Calls below the threshold, by [`Call`], if they were counted.
    pub small: [Count; 4],
    /// Why the core executed calls above the threshold, or parts of them; a call may have several reasons.
    pub reasons: [(Reason, Count); Reason::ALL.len()],
    /// Page faults of devices.
    pub faults: u64,
    /// Those after which the device went on.
    pub resumed: u64,
    /// Percent of a call that the core took, at last.
    pub core_percent: u64,
    /// The threshold in bytes, at last.
    pub min_bytes: u64,
}

impl Snapshot {
    /// Calls and bytes of one executor.
    pub fn by(&self, executor: Executor) -> Count {
        let rows = self.rows.iter().filter(|row| row.executor == executor);
        rows.fold(Count::default(), |sum, row| Count {
            calls: sum.calls + row.count.calls,
            bytes: sum.bytes + row.count.bytes,
            ns: sum.ns + row.count.ns,
        })
    }

    /// Bytes of all calls above the threshold.
    pub fn eligible_bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.count.bytes).sum()
    }

    /// Bytes that devices have executed.
    pub fn offloaded_bytes(&self) -> u64 {
        self.eligible_bytes() - self.by(Executor::Core).bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_the_counters_of_one_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("session");
        let stats = Stats::create(&path).expect("a file");
        let other = Stats::open(&path).expect("the same file");
        other.opened(Executor::Hardware);
        other.call(Call::Memcpy, 100_000, Executor::Hardware, 60_000, 70);
        stats.call(Call::Memcpy, 70_000, Executor::Hardware, 0, 30);
        stats.reason(Reason::Share, 40_000);
        stats.small(Call::Memset, 12);
        let snapshot = stats.snapshot();
        assert_eq!(snapshot, other.snapshot());
        assert_eq!(snapshot.executors, [Executor::Hardware]);
        let rows: Vec<(u64, Executor, u64, u64)> = snapshot
            .rows
            .iter()
            .map(|r| (r.from_bytes, r.executor, r.count.calls, r.count.bytes))
            .collect();
        let expected = [
            (65536, Executor::Core, 1, 110_000),
            (65536, Executor::Hardware, 1, 60_000),
        ];
        assert_eq!(rows, expected);
        assert_eq!(snapshot.eligible_bytes(), 170_000);
        assert_eq!(snapshot.offloaded_bytes(), 60_000);
        assert_eq!(snapshot.small[Call::Memset as usize].bytes, 12);
        assert!(Stats::create(&path).is_err());
        std::fs::write(&path, "other").expect("a file");
        assert!(Stats::open(&path).is_err());
    }

    #[test]
    fn sizes_are_counted_in_buckets_by_powers_of_two() {
        assert_eq!([0, 1, 2, 65535, 65536].map(bucket), [0, 0, 1, 15, 16]);
        assert_eq!(bucket(usize::MAX), BUCKETS - 1);
    }
}
