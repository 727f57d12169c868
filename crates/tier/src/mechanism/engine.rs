//! The engine: one userfaultfd, the windows of both tiers, and the copier.

use std::fs::File;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::hints::{HUGE_HINTS, SLOTS};
use super::knee::{self, Knee};
use super::state::State;
use super::windows::TierWindows;
use crate::TierError;
use crate::copier::PageCopier;
use crate::error::system;
use crate::sys::pagemap::{self, PageMap};
use crate::sys::references;
use crate::sys::uffd::{self, Permission, REGISTER_MISSING, Uffd};
use crate::sys::{HUGE, PAGE, memory};

/// Where the frames of a tier come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tier {
    /// The NUMA node; wherever the kernel takes them from if there is none.
    pub node: Option<u32>,
}

/// What threads that touch a page find while it is copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// They wait: the page is out first. Safe with pages that are pinned for a short time.
    #[default]
    Strict,
    /// Readers go on, writers wait: the page is protected first and goes out after the copy.
    SharedRead,
}

/// What becomes of the frames that pages leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Release {
    /// They go back to the kernel, which may still use them (a pipe after vmsplice(2)).
    #[default]
    Kernel,
    /// The next pages that move to that tier get them, if nothing but dray refers to them any more (see
    /// [`crate::sys::references`]); they go back to the kernel if that is not certain. Huge ones always do.
    /// Only where [`can_be_checked`](crate::sys::references::can_be_checked).
    Checked,
    /// The next pages that move to that tier get them. Faster; not safe where programs splice.
    Reuse,
}

impl Release {
    /// The way that makes the fewest frames and is safe with any program, on this kernel.
    pub fn safe() -> Release {
        match references::can_be_checked() {
            true => Release::Checked,
            false => Release::Kernel,
        }
    }

    /// In words, for statistics.
    pub fn name(self) -> &'static str {
        match self {
            Release::Kernel => "new frames",
            Release::Checked => "checked frames",
            Release::Reuse => "reused frames",
        }
    }
}

/// How an engine works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Config {
    /// Tier 0 is fast, tier 1 is slow.
    pub tiers: [Tier; 2],
    /// Whether readers wait.
    pub order: Order,
    /// Whether frames are used again.
    pub release: Release,
    /// Without protection, to see that tests find lost writes. Never else.
    pub unprotected: bool,
}

/// A run of pages to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First byte: a multiple of a page, or of a huge page.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// It consists of huge pages.
    pub huge: bool,
}

/// What an engine needs rights for: opened before they are given up.
#[derive(Debug)]
pub struct Opened {
    uffd: Uffd,
    /// To measure with.
    spare: Uffd,
    pagemap: File,
}

impl Opened {
    /// For this process's memory.
    ///
    /// # Errors
    /// userfaultfd is forbidden or too old; `/proc` is not there.
    pub fn new(order: Order) -> Result<Opened, TierError> {
        Ok(Opened {
            uffd: open(order)?,
            spare: knee::open()?,
            pagemap: File::open("/proc/self/pagemap").map_err(no_pagemap)?,
        })
    }

    /// From how many pages in a row on a page is cheap to move.
    ///
    /// # Errors
    /// No memory.
    pub fn measure_knee(&self) -> Result<Knee, TierError> {
        knee::measure_by(&self.spare)
    }

    /// Whether children have all of their memory however they are made.
    pub fn sees_forks(&self) -> bool {
        self.uffd.features() & uffd::FEATURE_EVENT_FORK != 0
    }
}

fn no_pagemap(error: std::io::Error) -> TierError {
    TierError::System {
        call: "opening /proc/self/pagemap",
        errno: error.raw_os_error().unwrap_or(0),
    }
}

/// Events since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) missing: AtomicU64,
    pub(crate) protected: AtomicU64,
    pub(crate) layout: AtomicU64,
    pub(crate) vanished: AtomicU64,
}

/// What only the migrating thread uses.
pub(crate) struct Migrator {
    pub(crate) windows: [TierWindows; 2],
    pub(crate) copier: Box<dyn PageCopier>,
    pub(crate) pagemap: PageMap,
}

/// Returns ranges: first byte, behind the last.
pub type Ranges = fn() -> Vec<(u64, u64)>;

/// Exchanges frames under managed memory.
///
/// One thread [serves](Engine::serve) events, any one at a time [migrates](Engine::migrate). Neither
/// may use managed memory itself, other than as pages to move.
pub struct Engine {
    pub(crate) uffd: Uffd,
    pub(crate) wake: File,
    pub(crate) config: Config,
    pub(crate) stopped: AtomicBool,
    pub(crate) counts: Counts,
    pub(crate) pid: i32,
    pub(super) hint_window: (u64, u64),
    /// A page that is present only while a [`Quiet`] lives: the fault of a read requests the serving thread to
    /// put all hints back.
    pub(crate) bell: u64,
    /// Held while pages are out: a fork waits for it.
    pub(crate) migrator: Mutex<Migrator>,
    /// Threads that wait for it to hold all moves: the next batch lets them go first.
    pub(crate) waiting: AtomicU32,
    /// Odd while pages are chosen and out; a futex.
    pub(crate) round: AtomicU32,
    state: Mutex<State>,
    failure: Mutex<Option<TierError>>,
    /// Returns whether a page is there.
    frames: File,
    pinned: OnceLock<Ranges>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Migrator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Migrator").finish_non_exhaustive()
    }
}

impl Engine {
    /// Whether this process may have one, and the kernel can.
    ///
    /// # Errors
    /// [`TierError::Forbidden`], [`TierError::OldKernel`].
    pub fn check() -> Result<Opened, TierError> {
        Opened::new(Order::Strict)
    }

    /// An engine without managed memory.
    ///
    /// # Errors
    /// userfaultfd is forbidden or too old; no such node; a copier that cannot copy so.
    pub fn new(config: Config, copier: Box<dyn PageCopier>) -> Result<Engine, TierError> {
        Engine::over(Opened::new(config.order)?, config, copier)
    }

    /// As [`Engine::new`], with what was opened before, for the order of `config`.
    ///
    /// # Errors
    /// As there.
    pub fn over(
        opened: Opened,
        config: Config,
        copier: Box<dyn PageCopier>,
    ) -> Result<Engine, TierError> {
        if config.order == Order::SharedRead && copier.name() != "cpu" {
            return Err(TierError::Order {
                copier: copier.name(),
            });
        }
        let Opened {
            uffd,
            pagemap: frames,
            ..
        } = opened;
        let windows = [
            TierWindows::new(&config.tiers[0], config.release, &uffd)?,
            TierWindows::new(&config.tiers[1], config.release, &uffd)?,
        ];
        let bell = SLOTS * PAGE;
        let huge = (bell + PAGE).next_multiple_of(HUGE);
        let len = huge + HUGE_HINTS * HUGE;
        let hints = memory::reserve(len, HUGE).map_err(system("mmap"))?;
        let _ = memory::advise(hints, huge, libc::MADV_NOHUGEPAGE);
        uffd.register(hints, len, REGISTER_MISSING)
            .map_err(system("UFFDIO_REGISTER"))?;
        let mut state = State::default();
        state.hints.give(hints, hints + huge);
        let pagemap = frames.try_clone().map_err(no_pagemap)?;
        let pagemap = PageMap::over_for_few_runs(pagemap);
        // SAFETY: it takes a value and flags.
        let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if wake < 0 {
            return Err(system("eventfd")(crate::sys::errno()));
        }
        Ok(Engine {
            uffd,
            // SAFETY: the kernel has just given it to us.
            wake: unsafe { File::from_raw_fd(wake) },
            config,
            stopped: AtomicBool::new(false),
            counts: Counts::default(),
            pid: std::process::id() as i32,
            hint_window: (hints, hints + len),
            bell: hints + bell,
            migrator: Mutex::new(Migrator {
                windows,
                copier,
                pagemap,
            }),
            waiting: AtomicU32::new(0),
            round: AtomicU32::new(0),
            state: Mutex::new(state),
            failure: Mutex::new(None),
            frames,
            pinned: OnceLock::new(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_migrator(&self) -> MutexGuard<'_, Migrator> {
        self.migrator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let (start, end) = self.hint_window;
        // Otherwise the kernel would report the unmapping and wait.
        let _ = self.uffd.unregister(start, end - start);
        // SAFETY: ours, and no user of it is left.
        unsafe { memory::unmap(start, end - start) };
    }
}

/// Ranges in order and apart.
#[derive(Debug)]
pub(crate) struct Pinned(Vec<(u64, u64)>);

impl Pinned {
    fn new(mut all: Vec<(u64, u64)>) -> Pinned {
        all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(all.len());
        for (start, end) in all {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Pinned(merged)
    }

    /// Whether something in a range is pinned.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let index = self.0.partition_point(|(_, last)| *last <= start);
        self.0.get(index).is_some_and(|(first, _)| *first < end)
    }
}

/// Pages are chosen and moved while it lives.
#[derive(Debug)]
pub(crate) struct Round<'a>(&'a AtomicU32);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        let word = std::ptr::from_ref(self.0);
        // SAFETY: an aligned word of the engine's.
        unsafe { libc::syscall(libc::SYS_futex, word, operation, i32::MAX) };
    }
}

/// With events of forks where they are allowed: only then has a child all of its memory however it was made.
fn open(order: Order) -> Result<Uffd, TierError> {
    let events = uffd::FEATURE_EVENT_REMAP | uffd::FEATURE_EVENT_REMOVE | uffd::FEATURE_EVENT_UNMAP;
    // With WP_ASYNC the kernel takes protection away by itself: that tracks writes, but stops none.
    let features = uffd::FEATURE_MOVE
        | uffd::FEATURE_WP
        | events
        | match order {
            Order::Strict => uffd::FEATURE_WP_ASYNC,
            Order::SharedRead => 0,
        };
    Uffd::open(features | uffd::FEATURE_EVENT_FORK)
        .or_else(|_| Uffd::open(features))
        .map_err(refused)
}

/// Why there is no userfaultfd.
pub(crate) fn refused(errno: i32) -> TierError {
    let permission = Permission::own();
    match errno {
        // Some filters say that there is no such call.
        libc::ENOSYS if permission.filtered => TierError::Forbidden { errno, permission },
        libc::EINVAL | libc::ENOSYS => TierError::OldKernel {
            feature: "UFFDIO_MOVE",
        },
        errno => TierError::Forbidden { errno, permission },
    }
}

impl Engine {
    /// How it works.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether children have all of their memory however they are made: the kernel tells of each.
    pub fn sees_forks(&self) -> bool {
        self.uffd.features() & uffd::FEATURE_EVENT_FORK != 0
    }

    /// Sets which pages never move, though their mappings are managed: those that the threads of the
    /// engine need. `pinned` is called before each batch.
    pub fn set_pinned(&self, pinned: Ranges) {
        let _ = self.pinned.set(pinned);
    }

    /// Pages that never move. It is asked within a [`Round`].
    pub(crate) fn pinned(&self) -> Pinned {
        let all = self.pinned.get().map_or_else(Vec::new, |pinned| pinned());
        Pinned::new(all)
    }

    /// From now on pages are chosen and moved. See [`Engine::pass_round`].
    pub(crate) fn begin_round(&self) -> Round<'_> {
        self.round.fetch_add(1, Ordering::SeqCst);
        Round(&self.round)
    }

    /// Returns when no page is out that may have been chosen before the call: what has been pinned by then is
    /// where it is, and stays. It makes no system call but futex(2).
    pub fn pass_round(&self) {
        let round = self.round.load(Ordering::SeqCst);
        while round % 2 == 1 && self.round.load(Ordering::SeqCst) == round {
            let no_limit = std::ptr::null::<libc::timespec>();
            let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            let word = &raw const self.round;
            // SAFETY: an aligned word of the engine's; it waits while the word has that value.
            unsafe { libc::syscall(libc::SYS_futex, word, operation, round, no_limit) };
        }
    }

    /// The page map of this process, over the file that was opened first.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn pagemap(&self) -> Result<PageMap, TierError> {
        let file = self.frames.try_clone().map_err(no_pagemap)?;
        Ok(PageMap::over(file))
    }

    pub(crate) fn failed(&self, error: impl Into<TierError>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(error.into());
    }

    /// Whether a page has a frame, or its content is in swap.
    pub(crate) fn is_there(&self, page: u64) -> bool {
        pagemap::is_there(&self.frames, page)
    }

    /// Hints that could not be put back since it was last asked: their mapping is gone, or bytes are
    /// lost.
    pub fn take_vanished(&self) -> u64 {
        self.counts.vanished.swap(0, Ordering::Relaxed)
    }

    /// Why pages could last not be copied, or windows not be emptied, once.
    pub fn take_failure(&self) -> Option<TierError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copier::Cores;

    #[test]
    fn pinned_ranges_are_merged_and_found() {
        let pinned = Pinned::new(vec![(30, 40), (10, 20), (15, 25), (25, 28)]);
        assert_eq!(pinned.0, [(10, 28), (30, 40)]);
        let overlaps = [
            (0, 10),
            (0, 11),
            (27, 30),
            (28, 30),
            (28, 31),
            (39, 50),
            (40, 50),
        ];
        let found = overlaps.map(|(start, end)| pinned.overlaps(start, end));
        assert_eq!(found, [false, true, true, false, true, true, false]);
        assert!(!Pinned::new(Vec::new()).overlaps(0, u64::MAX));
    }

    /// Who has pinned a page goes on when the round is over that may not have seen it.
    #[test]
    fn a_round_that_is_under_way_is_waited_for() {
        let engine = Engine::new(Config::default(), Box::new(Cores::new(1))).expect("Linux 6.8");
        engine.pass_round();
        let round = engine.begin_round();
        let passed = AtomicBool::new(false);
        let (begun, begins) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                begun.send(()).expect("it waits");
                engine.pass_round();
                passed.store(true, Ordering::SeqCst);
            });
            begins.recv().expect("a thread");
            for _ in 0..1000 {
                std::thread::yield_now();
                assert!(!passed.load(Ordering::SeqCst));
            }
            drop(round);
            waits.join().expect("a thread");
        });
        assert!(passed.load(Ordering::SeqCst));
    }
}
