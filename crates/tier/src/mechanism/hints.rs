//! Pages taken out for a while to see whether the program reads them.
//!
//! Reads leave no trace that user space can see without a PMU. So now and then the page of a block is
//! moved out without a copy; who touches it waits some 16 us until the same frame is back. What was
//! not touched goes back at the end of the interval.

use std::collections::BTreeMap;

use super::batch::PAUSE;
use super::blocks::{block_of, mask};
use super::engine::Engine;
use crate::sys::uffd::REGISTER_MISSING;
use crate::sys::{PAGE, memory};

/// Pages that can be out at once.
pub(crate) const SLOTS: u64 = 4096;

/// A page that is out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hint {
    pub(crate) slot: u64,
    /// Attempts to put it back.
    pub(crate) tries: u8,
    /// Its mapping was moved since it went out: events may be late (see `flight.rs`).
    shifted: bool,
}

/// The pages that are out, by address.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// By the program's address.
    out: BTreeMap<u64, Hint>,
    free: Vec<u64>,
    /// Slots whose frame nobody wants any more.
    pub(crate) waste: Vec<u64>,
    /// Pages that were touched since the list was last taken.
    pub(crate) touched: Vec<u64>,
}

impl Hints {
    /// Slots from `base` on can be used.
    pub(crate) fn give(&mut self, base: u64) {
        self.free = (0..SLOTS).map(|slot| base + slot * PAGE).collect();
        self.touched.reserve(SLOTS as usize);
    }

    pub(crate) fn slot(&mut self) -> Option<u64> {
        self.free.pop()
    }

    pub(crate) fn give_back(&mut self, slot: u64) {
        self.free.push(slot);
    }

    pub(crate) fn insert(&mut self, address: u64, slot: u64) {
        let hint = Hint {
            slot,
            tries: 0,
            shifted: false,
        };
        self.out.insert(address, hint);
    }

    pub(crate) fn get(&mut self, address: u64) -> Option<&mut Hint> {
        self.out.get_mut(&address)
    }

    pub(crate) fn remove(&mut self, address: u64) {
        if let Some(hint) = self.out.remove(&address) {
            self.free.push(hint.slot);
        }
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.out.keys().next().copied()
    }

    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.out.keys().copied().collect()
    }

    pub(crate) fn first_in(&self, start: u64, end: u64) -> Option<u64> {
        self.out.range(start..end).next().map(|(at, _)| *at)
    }

    pub(crate) fn drop_range(&mut self, start: u64, end: u64, mapped: impl Fn(u64) -> bool) {
        for address in self.concerned(start, end, mapped) {
            if let Some(hint) = self.out.remove(&address) {
                self.waste.push(hint.slot);
            }
        }
    }

    pub(crate) fn shift(&mut self, from: u64, to: u64, len: u64, mapped: impl Fn(u64) -> bool) {
        for address in self.concerned(from, from + len, mapped) {
            if let Some(mut hint) = self.out.remove(&address) {
                hint.shifted = true;
                self.out.insert(address - from + to, hint);
            }
        }
    }

    /// Those in a range for which an event is not late.
    fn concerned(&self, start: u64, end: u64, mapped: impl Fn(u64) -> bool) -> Vec<u64> {
        let inside = self.out.range(start..end);
        let concerned = inside.filter(|(at, hint)| !(hint.shifted && mapped(**at)));
        concerned.map(|(at, _)| *at).collect()
    }
}

impl Engine {
    /// Takes single pages out; how many it could. Pages of huge pages must not be among them.
    pub fn arm_hints(&self, pages: &[u64]) -> u64 {
        let migrator = self.lock_migrator();
        let pinned = self.pinned();
        let is_pinned = |page: u64| {
            pinned
                .iter()
                .any(|(first, last)| (*first..*last).contains(&page))
        };
        let mut armed = 0;
        for page in pages {
            if is_pinned(*page) {
                continue;
            }
            let mut state = self.lock();
            if !state.covers(*page, page + PAGE) || state.in_flight(*page) {
                continue;
            }
            let number = block_of(*page);
            let dropping = state
                .blocks
                .map
                .get(&number)
                .map_or(0, |block| block.dropping);
            if dropping & mask(number, *page, page + PAGE) != 0 {
                continue;
            }
            let Some(slot) = state.hints.slot() else {
                break;
            };
            // SAFETY: the content stays in the window; who touches the page gets it back.
            match unsafe { self.uffd.move_pages(slot, *page, PAGE, false) } {
                Ok(()) => {
                    state.hints.insert(*page, slot);
                    armed += 1;
                }
                Err(_) => state.hints.give_back(slot),
            }
        }
        drop(migrator);
        armed
    }

    /// Puts all pages back that are out as hints; those that were touched, and those that were not.
    pub fn collect_hints(&self) -> (Vec<u64>, Vec<u64>) {
        let migrator = self.lock_migrator();
        let mut untouched = Vec::new();
        let pages = self.lock().hints.addresses();
        for page in pages {
            loop {
                let mut state = self.lock();
                if state.hints.get(page).is_none() {
                    break;
                }
                if self.put_hint_back(&mut state, page) {
                    untouched.push(page);
                    break;
                }
                drop(state);
                std::thread::sleep(PAUSE);
            }
        }
        let (touched, waste) = {
            let mut state = self.lock();
            let touched = std::mem::take(&mut state.hints.touched);
            state.hints.touched.reserve(SLOTS as usize);
            (touched, std::mem::take(&mut state.hints.waste))
        };
        self.empty_hint_slots(waste);
        drop(migrator);
        (touched, untouched)
    }

    /// Empties the slots of pages that were dropped while they were out.
    pub(crate) fn empty_hint_slots(&self, slots: Vec<u64>) {
        if slots.is_empty() {
            return;
        }
        // A slot is one page: its own registration is taken away, and that of the others stays.
        for slot in slots {
            let emptied = self.uffd.unregister(slot, PAGE).and_then(|()| {
                memory::advise(slot, PAGE, libc::MADV_DONTNEED)?;
                self.uffd.register(slot, PAGE, REGISTER_MISSING)
            });
            if emptied.is_ok() {
                self.lock().hints.give_back(slot);
            }
        }
    }
}
