//! The engine: one userfaultfd, the windows of both tiers, and who copies.

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::batch::PAUSE;
use super::hints::{HUGE_HINTS, SLOTS};
use super::outcome::Outcomes;
use super::state::State;
use super::windows::TierWindows;
use crate::TierError;
use crate::copier::{Copied, PageCopier};
use crate::error::system;
use crate::sys::pagemap::{self, PageMap};
use crate::sys::uffd::{self, REGISTER_MISSING, REGISTER_WP, Uffd};
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
    /// The next pages that move to that tier get them. Faster; not safe where programs splice.
    Reuse,
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

/// What a call of [`Engine::migrate`] did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Pages by what became of them.
    pub outcomes: Outcomes,
    /// Pages that it was asked to move.
    pub pages: u64,
    /// Time to make frames.
    pub frames: Duration,
    /// Time to protect pages.
    pub protect: Duration,
    /// Time to move pages out.
    pub out: Duration,
    /// Time to copy.
    pub copy: Duration,
    /// Time to move frames in.
    pub back: Duration,
    /// Time to release frames.
    pub release: Duration,
    /// Bytes by who copied them.
    pub copied: Copied,
}

impl Report {
    /// Adds what another call did with pages that this one left.
    pub(crate) fn add(&mut self, other: &Report) {
        self.outcomes.merge(&other.outcomes);
        for (ours, theirs) in [
            (&mut self.frames, other.frames),
            (&mut self.protect, other.protect),
            (&mut self.out, other.out),
            (&mut self.copy, other.copy),
            (&mut self.back, other.back),
            (&mut self.release, other.release),
        ] {
            *ours += theirs;
        }
        self.copied.core += other.copied.core;
        self.copied.cores += other.copied.cores;
        self.copied.device += other.copied.device;
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

/// Tells of ranges: first byte, behind the last.
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
    hint_window: (u64, u64),
    /// A page that is never there but while a [`Quiet`] lives: who reads it asks the thread that
    /// serves to put all hints back.
    pub(crate) bell: u64,
    /// Held while pages are out: a fork waits for it.
    pub(crate) migrator: Mutex<Migrator>,
    state: Mutex<State>,
    failure: Mutex<Option<TierError>>,
    /// Tells whether a page is there.
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

/// Everything in its place: no page is out as long as this lives. Faults are served all the same.
#[derive(Debug)]
pub struct Quiet<'a> {
    /// The page that asked for hints, if some were out.
    bell: Option<u64>,
    _migrator: MutexGuard<'a, Migrator>,
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        if let Some(bell) = self.bell {
            empty_bell(bell);
        }
    }
}

/// Empties the page, so that the next read of it is a message.
fn empty_bell(bell: u64) {
    // If that fails, who reads the page looks again whether hints are out.
    let _ = memory::empty(bell, PAGE);
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
    pub fn check() -> Result<(), TierError> {
        open(Order::Strict).map(|_| ())
    }

    /// An engine without managed memory.
    ///
    /// # Errors
    /// userfaultfd is forbidden or too old; no such node; a copier that cannot copy so.
    pub fn new(config: Config, copier: Box<dyn PageCopier>) -> Result<Engine, TierError> {
        if config.order == Order::SharedRead && copier.name() != "cpu" {
            return Err(TierError::Order {
                copier: copier.name(),
            });
        }
        let uffd = open(config.order)?;
        let windows = [
            TierWindows::new(&config.tiers[0], &uffd)?,
            TierWindows::new(&config.tiers[1], &uffd)?,
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
        let proc = |error: std::io::Error| TierError::System {
            call: "opening /proc/self/pagemap",
            errno: error.raw_os_error().unwrap_or(0),
        };
        let pagemap = PageMap::own().map_err(proc)?;
        let frames = File::open("/proc/self/pagemap").map_err(proc)?;
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

    /// Manages private anonymous memory from now on. It waits while an event may be due that tells that
    /// other memory is no more where this is: it must not be called by the thread that
    /// [serves](Engine::serve).
    ///
    /// # Errors
    /// The error number: `EBUSY` if the program has registered it with a userfaultfd of its own.
    pub fn register(&self, start: u64, end: u64) -> Result<(), i32> {
        let mut state = self.lock();
        while (state.due.overlaps(start, end) || !state.overlapping(start, end).is_empty())
            && self.is_layout_changing()
            && !self.stopped.load(Ordering::Acquire)
        {
            drop(state);
            std::thread::sleep(PAUSE);
            state = self.lock();
        }
        self.settle(&mut state);
        let mode = REGISTER_MISSING | REGISTER_WP;
        self.uffd.register(start, end - start, mode)?;
        state.insert(start, end);
        Ok(())
    }

    /// Whether a thread unmaps, moves or drops managed memory, or has done so and that is not in the books
    /// yet. No page moves meanwhile.
    pub fn is_layout_changing(&self) -> bool {
        self.uffd.is_layout_changing(self.bell)
    }

    /// Manages memory no more. Its pages stay on the frames they have.
    pub fn unregister(&self, start: u64, end: u64) {
        let _migrator = self.lock_migrator();
        let mut state = self.lock();
        while let Some(page) = state.hints.overlapping(start, end) {
            if !self.put_hint_back(&mut state, page) {
                drop(state);
                std::thread::sleep(PAUSE);
                state = self.lock();
            }
        }
        let _ = self.uffd.unregister(start, end - start);
        state.remove(start, end);
        state.blocks.forget(start, end);
    }

    /// Whether all of a range is managed.
    pub fn manages(&self, start: u64, end: u64) -> bool {
        self.lock().covers(start, end)
    }

    /// Managed ranges.
    pub fn regions(&self) -> Vec<(u64, u64)> {
        self.lock().regions().collect()
    }

    /// Ranges of the engine's own memory, which must not be managed.
    pub fn own_ranges(&self) -> Vec<(u64, u64)> {
        let migrator = self.lock_migrator();
        let windows = migrator.windows.iter().flat_map(TierWindows::ranges);
        windows.chain([self.hint_window]).collect()
    }

    /// Pages on frames of the slow tier.
    pub fn slow_pages(&self) -> u64 {
        self.lock().blocks.slow_pages()
    }

    /// Faults on missing pages, on protected pages, and changes of layout since the start.
    pub fn events(&self) -> [u64; 3] {
        [
            &self.counts.missing,
            &self.counts.protected,
            &self.counts.layout,
        ]
        .map(|count| count.load(Ordering::Relaxed))
    }

    /// Waits until no page is out, and keeps it so: before a fork.
    ///
    /// Any thread of the program may call it, also one that has another table of files than the
    /// thread that [serves](Engine::serve), and that thread must run.
    pub fn quiet(&self) -> Quiet<'_> {
        let migrator = self.lock_migrator();
        let mut bell = None;
        while self.lock().hints.first().is_some() {
            if let Some(bell) = bell.replace(self.bell) {
                empty_bell(bell);
            }
            let page = std::ptr::with_exposed_provenance::<u8>(self.bell as usize);
            // SAFETY: a page of the engine's own, which reads as zero once it has been given. The
            // thread that serves gives it when no hint is out.
            unsafe { page.read_volatile() };
        }
        Quiet {
            bell,
            _migrator: migrator,
        }
    }

    /// Ends [`Engine::serve`]. No page is out afterwards, and nothing is managed.
    pub fn stop(&self) {
        loop {
            for (start, end) in self.regions() {
                self.unregister(start, end);
            }
            // Of what is set aside it is yet to be told where it is.
            if self.lock().due.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.stopped.store(true, Ordering::Release);
        let _ = (&self.wake).write(&1u64.to_ne_bytes());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let (start, end) = self.hint_window;
        // Otherwise the kernel would report the unmapping and wait.
        let _ = self.uffd.unregister(start, end - start);
        // SAFETY: ours, and nobody is left who uses it.
        unsafe { memory::unmap(start, end - start) };
    }
}

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
    Uffd::open(features).map_err(|errno| match errno {
        libc::EINVAL | libc::ENOSYS => TierError::OldKernel {
            feature: "UFFDIO_MOVE",
        },
        errno => TierError::Forbidden { errno },
    })
}

impl Engine {
    /// How it works.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Says which pages never move, though their mappings are managed: those that the threads of the
    /// engine need. It is asked before each batch.
    pub fn set_pinned(&self, pinned: Ranges) {
        let _ = self.pinned.set(pinned);
    }

    pub(crate) fn pinned(&self) -> Vec<(u64, u64)> {
        self.pinned.get().map_or_else(Vec::new, |pinned| pinned())
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

    /// Has the books of managed blocks changed, if the range is still managed.
    pub(crate) fn with_blocks<T: Default>(
        &self,
        start: u64,
        end: u64,
        change: impl FnOnce(&mut super::blocks::Blocks) -> T,
    ) -> T {
        let mut state = self.lock();
        match state.covers(start, end) {
            true => change(&mut state.blocks),
            false => T::default(),
        }
    }

    /// Calls `each` for blocks from a number on, until it says `false`.
    pub(crate) fn each_block(
        &self,
        from: u64,
        mut each: impl FnMut(u64, &super::blocks::Block) -> bool,
    ) {
        let state = self.lock();
        for (number, block) in state.blocks.map.range(from..) {
            if !each(*number, block) {
                return;
            }
        }
    }

    /// The books of all blocks, in the order of their numbers.
    pub fn blocks(&self) -> Vec<(u64, super::blocks::Block)> {
        let state = self.lock();
        let blocks = state.blocks.map.iter();
        blocks.map(|(number, block)| (*number, *block)).collect()
    }

    /// Halves all access counts.
    pub fn cool(&self) {
        for block in self.lock().blocks.map.values_mut() {
            block.heat /= 2;
        }
    }

    /// Enters that blocks have moved in an interval; how many came back soon after a demotion.
    pub(crate) fn moved(&self, numbers: &[u64], demoted: bool, interval: u32, soon: u32) -> u64 {
        let mut back = 0;
        let mut state = self.lock();
        for number in numbers {
            if let Some(block) = state.blocks.map.get_mut(number) {
                let lately = interval.saturating_sub(block.moved_at) < soon.saturating_mul(4);
                if !demoted && block.demoted && block.moved_at != 0 && lately {
                    block.ping_pongs = block.ping_pongs.saturating_add(1);
                    back += 1;
                }
                block.moved_at = interval.max(1);
                block.demoted = demoted;
            }
        }
        back
    }
}
