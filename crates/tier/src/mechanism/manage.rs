//! Which memory the engine manages, what is known of it, and how all moves are stopped.

use std::io::Write;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::batch::PAUSE;
use super::blocks::{Block, Blocks};
use super::engine::{Engine, Migrator};
use super::windows::TierWindows;
use crate::sys::uffd::{REGISTER_MISSING, REGISTER_WP};
use crate::sys::{PAGE, memory};

/// Stops an engine when it is dropped.
#[derive(Debug)]
pub struct Stops<'a>(&'a Engine);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// While this lives no page is out. Faults are still served.
#[derive(Debug)]
pub struct Quiet<'a> {
    /// The page whose read requests that all hints are put back, if some were out.
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
    // If that fails, the reader of the page checks again whether hints are out.
    // SAFETY: the engine's own page, which is read by address alone.
    let _ = unsafe { memory::empty(bell, PAGE) };
}

impl Engine {
    /// Manages private anonymous memory from now on. It waits while an event may be due which says that
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

    /// Pages of a range are protected no more: writes to them take no time, and are not seen. In strict order, where
    /// a scan alone has protected them.
    pub(crate) fn release_protection(&self, start: u64, end: u64) {
        // What has been unmapped meanwhile has no protection either.
        let _ = self.uffd.write_protect(start, end - start, false);
        self.with_blocks(start, end, |blocks| {
            blocks.change_known(start, end, |block, pages| block.protected &= !pages);
        });
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
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let migrator = self.lock_migrator();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
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

    /// Stops it when the result is dropped, also by a panic: a scope that a thread serves in ends then.
    pub fn stops(&self) -> Stops<'_> {
        Stops(self)
    }

    /// Ends [`Engine::serve`]. No page is out afterwards, and nothing is managed.
    pub fn stop(&self) {
        loop {
            for (start, end) in self.regions() {
                self.unregister(start, end);
            }
            // Pages that are set aside stay so until their event has been read.
            if self.lock().due.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.stopped.store(true, Ordering::Release);
        let _ = (&self.wake).write(&1u64.to_ne_bytes());
    }

    /// Has the books of managed blocks changed, if the range is still managed.
    pub(crate) fn with_blocks<T: Default>(
        &self,
        start: u64,
        end: u64,
        change: impl FnOnce(&mut Blocks) -> T,
    ) -> T {
        let mut state = self.lock();
        match state.covers(start, end) {
            true => change(&mut state.blocks),
            false => T::default(),
        }
    }

    /// Calls `each` for blocks from a number on, until it says `false`.
    pub(crate) fn each_block(&self, from: u64, mut each: impl FnMut(u64, &Block) -> bool) {
        let state = self.lock();
        for (number, block) in state.blocks.map.range(from..) {
            if !each(*number, block) {
                return;
            }
        }
    }

    /// The books of all blocks, in the order of their numbers.
    pub fn blocks(&self) -> Vec<(u64, Block)> {
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
        let blocks = &mut self.lock().blocks.map;
        let back = numbers.iter().filter(|number| {
            let block = blocks.get_mut(number);
            block.is_some_and(|block| block.enter_move(demoted, interval, soon))
        });
        back.count() as u64
    }
}
