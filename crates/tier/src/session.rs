//! What `dray tier` and the programs it tiers share: knobs and counters, in one mapped file.
//!
//! Programs read knobs and write counters; `dray tier set` and `status` do the opposite. No side waits
//! for the other, and a program goes on when the command that started it is killed.

mod histogram;
mod process;
mod text;

pub use histogram::{BINS, EXECUTORS, Histogram, PHASES, REASONS, Reason};
pub use process::{Note, Process, ProcessState, VALUES, Value};
pub use text::Text;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::knobs::{KNOBS, Knob, KnobError, check_order, parse};
use crate::mechanism::{Release, Report};
use crate::tracking::Choice;

/// Variable that names the file to programs.
pub const VARIABLE: &str = "DRAY_TIER_SESSION";

const MAGIC: u64 = u64::from_le_bytes(*b"draytier");
const VERSION: u64 = 8;
/// The virtual device.
pub const VIRTUAL: u64 = 1;
/// The work queues of this machine.
pub const HW: u64 = 2;
/// Processes that have counters of their own at once.
pub const PROCESSES: usize = 128;

/// Programs that are not tiered and are named.
pub const UNTIERED: usize = 16;

/// What does not change while a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Bytes of each tier; `u64::MAX` where a node is the limit.
    pub bytes: [u64; 2],
    /// Node of each tier.
    pub nodes: [Option<u32>; 2],
    /// Index of the policy.
    pub policy: usize,
    /// Readers go on while pages are copied.
    pub shared_read: bool,
    /// What becomes of the frames that pages leave.
    pub release: Release,
    /// What `dsa_state` sets up: [`VIRTUAL`] or [`HW`].
    pub device: u64,
    /// What accesses are tracked with.
    pub tracking: Choice,
    /// Filters (seccomp(2)) that are in force where the session starts.
    pub filters: u64,
}

/// The file's content.
#[derive(Debug)]
#[repr(C)]
pub struct Shared {
    magic: AtomicU64,
    version: AtomicU64,
    setup: [AtomicU64; 16],
    knobs: [AtomicU64; 32],
    /// By [`REASONS`].
    pub histograms: [Histogram; REASONS.len()],
    /// Programs that are not tiered: how many, and of the first ones which and why.
    untiered: AtomicU64,
    untiered_texts: [Text<64>; UNTIERED],
    /// 1: the kernel's migration is the back end.
    by_kernel: AtomicU64,
    /// Processes that were seen and ended before they were looked at.
    missed: AtomicU64,
    /// Processes that have ever had counters at once: behind them all are empty, and need not be looked at.
    claimed: AtomicU64,
    /// Those of processes that have ended, together, and then each that lives.
    pub processes: [Process; PROCESSES],
}

/// A session's file, mapped.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    shared: &'static Shared,
}

impl Session {
    /// Makes a session in a new file. Knobs have their defaults.
    ///
    /// # Errors
    /// The file is there already or cannot be made.
    pub fn create(path: &Path, setup: &Setup) -> io::Result<Session> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.set_len(size_of::<Shared>() as u64)?;
        let session = Session::map(&file)?;
        session.begin(setup);
        Ok(session)
    }

    /// A session of this process alone.
    ///
    /// # Errors
    /// No memory.
    pub fn private(setup: &Setup) -> io::Result<Session> {
        // SAFETY: the name is a string.
        let fd = unsafe { libc::memfd_create(c"dray-tier".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given it to us.
        let file: File = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
        file.set_len(size_of::<Shared>() as u64)?;
        let session = Session::map(&file)?;
        session.begin(setup);
        Ok(session)
    }

    fn begin(self, setup: &Setup) {
        let node = |node: Option<u32>| node.map_or(0, |node| u64::from(node) + 1);
        let words = [
            setup.bytes[0],
            setup.bytes[1],
            node(setup.nodes[0]),
            node(setup.nodes[1]),
            setup.policy as u64,
            u64::from(setup.shared_read),
            setup.release as u64,
            setup.device,
            setup.tracking as u64,
            setup.filters,
        ];
        for (place, word) in self.shared.setup.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        for knob in &KNOBS {
            self.shared.knobs[knob.knob as usize].store(knob.default, Ordering::Relaxed);
        }
        self.shared.version.store(VERSION, Ordering::Relaxed);
        self.shared.magic.store(MAGIC, Ordering::Release);
    }

    /// Opens a session.
    ///
    /// # Errors
    /// There is no such file, or it is none of a session of this version.
    pub fn open(path: &Path) -> io::Result<Session> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() != size_of::<Shared>() as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let session = Session::map(&file)?;
        let magic = session.shared.magic.load(Ordering::Acquire);
        match (magic, session.shared.version.load(Ordering::Relaxed)) {
            (MAGIC, VERSION) => Ok(session),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn map(file: &File) -> io::Result<Session> {
        // By the system call: the program may have mmap interposed.
        // SAFETY: a new mapping wherever there is room.
        let start = unsafe {
            libc::syscall(
                libc::SYS_mmap,
                0usize,
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0usize,
            )
        };
        if start < 0 {
            return Err(io::Error::last_os_error());
        }
        let shared = std::ptr::with_exposed_provenance::<Shared>(start as usize);
        // SAFETY: as long, aligned, all atomics, and never unmapped.
        let shared = unsafe { &*shared };
        Ok(Session { shared })
    }

    /// All of it.
    pub fn shared(&self) -> &'static Shared {
        self.shared
    }

    /// What does not change.
    pub fn setup(&self) -> Setup {
        let word = |index: usize| self.shared.setup[index].load(Ordering::Relaxed);
        let node = |word: u64| word.checked_sub(1).map(|node| node as u32);
        Setup {
            bytes: [word(0), word(1)],
            nodes: [node(word(2)), node(word(3))],
            policy: word(4) as usize,
            shared_read: word(5) != 0,
            release: match word(6) {
                1 => Release::Checked,
                2 => Release::Reuse,
                _ => Release::Kernel,
            },
            device: word(7),
            tracking: match word(8) {
                1 => Choice::Damon,
                2 => Choice::Hints,
                _ => Choice::Best,
            },
            filters: word(9),
        }
    }

    /// A knob's value, within its range whatever the file holds.
    pub fn knob(&self, knob: Knob) -> u64 {
        let (least, most) = KNOBS[knob as usize].range;
        let value = self.shared.knobs[knob as usize].load(Ordering::Relaxed);
        value.clamp(least, most)
    }

    /// Sets `NAME=NUMBER`.
    ///
    /// # Errors
    /// [`KnobError`].
    pub fn set(&self, text: &str) -> Result<(), KnobError> {
        let (definition, value) = parse(text)?;
        check_order(definition, value, |knob| self.knob(knob))?;
        if definition.knob == Knob::Timer && value == 1 {
            self.shared.histograms.iter().for_each(Histogram::clear);
        }
        self.shared.knobs[definition.knob as usize].store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Records a call of a migration, if the timer runs.
    pub fn record(&self, reason: Reason, report: &Report) {
        if self.knob(Knob::Timer) != 0 && report.pages != 0 {
            self.shared.histograms[reason as usize].record(report);
        }
    }

    /// Counters for a process: its own, or those of one that has ended.
    pub fn claim(&self, pid: u64) -> Option<&'static Process> {
        let processes = &self.shared.processes[1..];
        let own = self
            .claimed()
            .iter()
            .find(|p| p.pid.load(Ordering::Relaxed) == pid);
        if let Some(process) = own {
            return Some(process);
        }
        for (index, process) in processes.iter().enumerate() {
            let holder = process.pid.load(Ordering::Relaxed);
            if holder != 0 && alive(holder) {
                continue;
            }
            let order = Ordering::AcqRel;
            let taken = process
                .pid
                .compare_exchange(holder, pid, order, Ordering::Relaxed);
            if taken.is_ok() {
                let claimed = &self.shared.claimed;
                claimed.fetch_max(index as u64 + 1, Ordering::AcqRel);
                process.fold_into(&self.shared.processes[0]);
                return Some(process);
            }
        }
        None
    }

    /// Counters that processes have or have had.
    fn claimed(&self) -> &'static [Process] {
        let claimed = self.shared.claimed.load(Ordering::Acquire) as usize;
        &self.shared.processes[1..][..claimed.min(PROCESSES - 1)]
    }

    /// Counters of processes, those that have ended first, without empty ones.
    pub fn processes(&self) -> impl Iterator<Item = &'static Process> {
        let used = |process: &&Process| {
            process.pid.load(Ordering::Relaxed) != 0
                || process.state() != ProcessState::Waits
                || process
                    .outcomes
                    .iter()
                    .any(|n| n.load(Ordering::Relaxed) != 0)
        };
        self.shared.processes.iter().filter(used)
    }

    /// Says that the kernel's migration is the back end, and how many processes ended before they were looked at.
    pub fn by_kernel(&self, missed: u64) {
        self.shared.by_kernel.store(1, Ordering::Relaxed);
        self.shared.missed.store(missed, Ordering::Relaxed);
    }

    /// The back end as it is named, and processes that were missed.
    pub fn back_end(&self) -> (&'static str, u64) {
        let name = match self.shared.by_kernel.load(Ordering::Relaxed) {
            0 => "uffd",
            _ => "kernel",
        };
        (name, self.shared.missed.load(Ordering::Relaxed))
    }

    /// Adds a program that is not tiered: which, and why. Only one thread may call this.
    pub fn add_untiered(&self, text: &str) {
        let index = self.shared.untiered.load(Ordering::Relaxed) as usize;
        if let Some(place) = self.shared.untiered_texts.get(index) {
            place.put(text);
        }
        self.shared.untiered.fetch_add(1, Ordering::Release);
    }

    /// How many programs are not tiered, and of the first [`UNTIERED`] which and why.
    pub fn untiered(&self) -> (u64, Vec<String>) {
        let count = self.shared.untiered.load(Ordering::Acquire);
        let named = self.shared.untiered_texts.iter().take(count as usize);
        (count, named.map(Text::get).collect())
    }

    /// Bytes of the fast tier that other processes hold.
    pub fn fast_of_others(&self, pid: u64) -> u64 {
        let others = self.claimed().iter().filter(|process| {
            let holder = process.pid.load(Ordering::Relaxed);
            holder != 0 && holder != pid && alive(holder)
        });
        others.map(|process| process.get(Value::FastBytes)).sum()
    }
}

fn alive(pid: u64) -> bool {
    // SAFETY: signal 0 asks alone.
    let answer = unsafe { libc::kill(pid as i32, 0) };
    answer == 0 || crate::sys::errno() == libc::EPERM
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup {
        bytes: [1 << 30, u64::MAX],
        nodes: [None, Some(1)],
        policy: 2,
        shared_read: true,
        release: Release::Checked,
        device: 1,
        tracking: Choice::Hints,
        filters: 0,
    };

    #[test]
    fn two_processes_share_a_session_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("session");
        let ours = Session::create(&path, &SETUP).expect("a new file");
        let theirs = Session::open(&path).expect("it is one");
        assert_eq!(theirs.setup(), SETUP);
        assert_eq!(theirs.set("limit_mt_num=7"), Ok(()));
        assert_eq!(ours.knob(Knob::LimitMtNum), 7);
        assert!(Session::create(&path, &SETUP).is_err());
        std::fs::write(&path, b"other").expect("it can be written");
        assert!(Session::open(&path).is_err());
    }

    #[test]
    fn slots_of_ended_processes_are_reused_and_keep_their_counts() {
        let session = Session::private(&SETUP).expect("memory");
        // No process has such a number (the limit is 2^22).
        let dead = session.claim(1 << 30).expect("room");
        dead.add(Value::DemotedPages, 5);
        dead.put(Value::FastBytes, 5);
        assert_eq!(session.fast_of_others(1), 0);
        let own = u64::from(std::process::id());
        let taken = session.claim(own).expect("room");
        assert!(std::ptr::eq(dead, taken));
        assert_eq!(taken.get(Value::FastBytes), 0);
        assert_eq!(session.shared().processes[0].get(Value::DemotedPages), 5);
        assert!(std::ptr::eq(taken, session.claim(own).expect("its own")));
    }

    #[test]
    fn the_timer_knob_clears_and_starts_the_histograms() {
        let session = Session::private(&SETUP).expect("memory");
        let report = Report {
            pages: 100,
            ..Report::default()
        };
        session.record(Reason::Demotion, &report);
        let calls = || {
            let histogram = &session.shared().histograms[0];
            (
                histogram.calls.load(Ordering::Relaxed),
                histogram.bins[6].load(Ordering::Relaxed),
            )
        };
        assert_eq!(calls(), (0, 0));
        assert_eq!(session.set("timer=1"), Ok(()));
        session.record(Reason::Demotion, &report);
        assert_eq!(calls(), (1, 1));
        assert_eq!(session.set("timer=0"), Ok(()));
        session.record(Reason::Demotion, &report);
        assert_eq!(calls(), (1, 1));
        assert_eq!(session.set("timer=1"), Ok(()));
        assert_eq!(calls(), (0, 0));
    }

    #[test]
    fn untiered_programs_are_counted_beyond_the_listed_ones() {
        let session = Session::private(&SETUP).expect("memory");
        assert_eq!(session.untiered(), (0, vec![]));
        for index in 0..UNTIERED + 2 {
            session.add_untiered(&format!("program {index}"));
        }
        let (count, named) = session.untiered();
        assert_eq!((count, named.len()), (18, 16));
        assert_eq!(named[15], "program 15");
    }

    #[test]
    fn notes_replace_their_kind_and_are_cut_to_length() {
        let session = Session::private(&SETUP).expect("memory");
        // No process has such a number.
        let process = session.claim(1 << 30).expect("room");
        assert!(process.notes().is_empty());
        process.note(Note::Group, "the first");
        process.note(Note::Tracking, "another");
        process.note(Note::Group, "the last");
        assert_eq!(process.notes(), ["another", "the last"]);
        process.fail(&"\u{e9}".repeat(1000), "a hint");
        assert_eq!(process.notes()[0], "\u{e9}".repeat(255));
        // The process that reuses the slot does not get its notes.
        let own = session.claim(std::process::id().into()).expect("room");
        assert!(own.notes().is_empty());
        let ended = session.processes().next().expect("those that have ended");
        assert_eq!(ended.notes().len(), 3);
        assert_eq!(ended.said(Note::Hint), "a hint");
        assert_eq!(ended.state(), ProcessState::Failed);
    }
}
