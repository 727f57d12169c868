//! Pages taken out for a while to see whether the program reads them.
//!
//! Reads leave no trace that user space can see without a PMU. So now and then the page of a block is
//! moved out without a copy; a thread that touches it waits some 16 us until the same frame is back. Pages
//! that were not touched are put back at the end of the interval.

use std::collections::BTreeMap;

use super::batch::PAUSE;
use super::blocks::{block_of, mask};
use super::engine::Engine;
use crate::error::system;
use crate::sys::uffd::REGISTER_MISSING;
use crate::sys::{HUGE, PAGE, memory};

/// Pages that can be out at once, base and huge.
pub(crate) const SLOTS: u64 = 4096;
pub(crate) const HUGE_HINTS: u64 = 16;

/// A page that is out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hint {
    pub(crate) slot: u64,
    pub(crate) huge: bool,
    /// Attempts to put it back.
    pub(crate) tries: u8,
}

/// The pages that are out, by address.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// By the program's address.
    out: BTreeMap<u64, Hint>,
    free: Vec<u64>,
    /// Slots whose frame is no longer needed.
    pub(crate) waste: Vec<u64>,
    /// The window of huge slots: first byte, behind the last.
    window: (u64, u64),
    free_huge: Vec<u64>,
    /// Huge slots whose page is out as base pages, and how many of these are.
    parts: BTreeMap<u64, u64>,
    /// Huge slots that have a page table and must be mapped anew.
    pub(crate) waste_huge: Vec<u64>,
    /// Pages that were touched since the list was last taken.
    pub(crate) touched: Vec<u64>,
}

impl Hints {
    /// Slots from `base` on can be used, and huge ones from `huge` on.
    pub(crate) fn give(&mut self, base: u64, huge: u64) {
        self.free = (0..SLOTS).map(|slot| base + slot * PAGE).collect();
        self.touched.reserve(SLOTS as usize);
        self.window = (huge, huge + HUGE_HINTS * HUGE);
        self.free_huge = (0..HUGE_HINTS).map(|slot| huge + slot * HUGE).collect();
    }

    pub(crate) fn slot(&mut self, huge: bool) -> Option<u64> {
        match huge {
            true => self.free_huge.pop(),
            false => self.free.pop(),
        }
    }

    pub(crate) fn give_back(&mut self, slot: u64, huge: bool) {
        match huge {
            true => self.free_huge.push(slot),
            false => self.free.push(slot),
        }
    }

    pub(crate) fn insert(&mut self, address: u64, slot: u64, huge: bool) {
        let hint = Hint {
            slot,
            huge,
            tries: 0,
        };
        self.out.insert(address, hint);
    }

    /// The page that an address lies in, if it is out: its first byte.
    pub(crate) fn at(&self, address: u64) -> Option<u64> {
        let (at, hint) = self.out.range(..=address).next_back()?;
        (address < at + hint.len()).then_some(*at)
    }

    pub(crate) fn get(&mut self, address: u64) -> Option<&mut Hint> {
        self.out.get_mut(&address)
    }

    /// A page is back under its address.
    pub(crate) fn remove(&mut self, address: u64) {
        if let Some(hint) = self.out.remove(&address)
            && !self.part_has_ended(hint.slot)
        {
            self.give_back(hint.slot, hint.huge);
        }
    }

    /// Whether a slot is part of a huge one, which is free when all of them are.
    fn part_has_ended(&mut self, slot: u64) -> bool {
        let huge = slot / HUGE * HUGE;
        if slot < self.window.0 || slot >= self.window.1 {
            return false;
        }
        let Some(left) = self.parts.get_mut(&huge) else {
            return false;
        };
        *left -= 1;
        if *left == 0 {
            self.parts.remove(&huge);
            self.waste_huge.push(huge);
        }
        true
    }

    /// Makes base pages of a huge page that is out.
    pub(crate) fn split(&mut self, address: u64) {
        let Some(hint) = self.out.get(&address).copied().filter(|hint| hint.huge) else {
            return;
        };
        self.parts.insert(hint.slot, HUGE / PAGE);
        for offset in (0..HUGE).step_by(PAGE as usize) {
            let part = Hint {
                slot: hint.slot + offset,
                huge: false,
                tries: 0,
            };
            self.out.insert(address + offset, part);
        }
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.out.keys().next().copied()
    }

    /// Pages that are out: address, slot, bytes.
    pub(crate) fn out(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let all = self.out.iter();
        all.map(|(address, hint)| (*address, hint.slot, hint.len()))
    }

    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.out.keys().copied().collect()
    }

    /// The first that begins in a range.
    pub(crate) fn first_in(&self, start: u64, end: u64) -> Option<u64> {
        self.out.range(start..end).next().map(|(at, _)| *at)
    }

    /// The first that lies in a range, if only in part.
    pub(crate) fn overlapping(&self, start: u64, end: u64) -> Option<u64> {
        self.at(start).or_else(|| self.first_in(start, end))
    }

    /// Bytes of those that begin in a range.
    pub(crate) fn bytes_in(&self, start: u64, end: u64) -> u64 {
        self.out.range(start..end).map(|(_, hint)| hint.len()).sum()
    }

    pub(crate) fn drop_range(&mut self, start: u64, end: u64) {
        for address in self.concerned(start, end) {
            if let Some(hint) = self.out.remove(&address)
                && !self.part_has_ended(hint.slot)
            {
                match hint.huge {
                    true => self.waste_huge.push(hint.slot),
                    false => self.waste.push(hint.slot),
                }
            }
        }
    }

    pub(crate) fn shift(&mut self, from: u64, to: u64, len: u64) {
        for address in self.concerned(from, from + len) {
            if let Some(hint) = self.out.remove(&address) {
                let before = self.out.insert(address - from + to, hint);
                debug_assert!(before.is_none(), "two pages are out of one address");
            }
        }
        // A huge page that is not aligned any more is none.
        let moved = self.out.range(to..to + len);
        let odd = moved.filter(|(at, hint)| hint.huge && *at % HUGE != 0);
        for address in odd.map(|(at, _)| *at).collect::<Vec<_>>() {
            self.split(address);
        }
    }

    /// Those in a range. A huge page that is only partly in it becomes base pages.
    fn concerned(&mut self, start: u64, end: u64) -> Vec<u64> {
        for edge in [start, end - 1] {
            if let Some(address) = self.at(edge)
                && (address < start || address + HUGE > end)
            {
                self.split(address);
            }
        }
        self.out.range(start..end).map(|(at, _)| *at).collect()
    }
}

impl Hint {
    pub(crate) fn len(&self) -> u64 {
        match self.huge {
            true => HUGE,
            false => PAGE,
        }
    }
}

impl Engine {
    /// Takes single pages out; how many it could. Pages of huge pages must not be among them.
    pub fn arm_hints(&self, pages: &[u64]) -> u64 {
        self.arm(pages, false)
    }

    /// Takes huge pages out, each as a whole; how many it could.
    pub fn arm_huge_hints(&self, pages: &[u64]) -> u64 {
        self.arm(pages, true)
    }

    fn arm(&self, pages: &[u64], huge: bool) -> u64 {
        let len = if huge { HUGE } else { PAGE };
        let migrator = self.lock_migrator();
        let _round = self.begin_round();
        let pinned = self.pinned();
        let mut armed = 0;
        for page in pages {
            if pinned.overlaps(*page, page + len) {
                continue;
            }
            let mut state = self.lock();
            let out = state.hints.overlapping(*page, page + len).is_some();
            if out || !state.covers(*page, page + len) || state.in_flight(*page) {
                continue;
            }
            let numbers = block_of(*page)..=block_of(page + len - 1);
            let mut blocks = state.blocks.map.range(numbers);
            if blocks.any(|(number, b)| b.dropping & mask(*number, *page, page + len) != 0) {
                continue;
            }
            let Some(slot) = state.hints.slot(huge) else {
                break;
            };
            // SAFETY: the content stays in the window; a thread that touches the page gets it back.
            match unsafe { self.uffd.move_pages(slot, *page, len, false) } {
                Ok(()) => {
                    state.hints.insert(*page, slot, huge);
                    armed += 1;
                }
                // It was a huge page no more and some of it is out, or all of it is and was not counted
                // (see `Uffd::move_pages`): the slot was empty, so what is in it was under the page.
                Err((done, error)) if done > 0 || error == libc::EEXIST => {
                    state.hints.insert(*page, slot, huge);
                    if huge {
                        state.hints.split(*page);
                    }
                    for offset in (0..len).step_by(PAGE as usize) {
                        if !self.is_there(slot + offset) {
                            let part = page + offset;
                            state.hints.drop_range(part, part + PAGE);
                        }
                    }
                    armed += 1;
                }
                Err(_) => state.hints.give_back(slot, huge),
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
        let touched = {
            let mut state = self.lock();
            let touched = std::mem::take(&mut state.hints.touched);
            state.hints.touched.reserve(SLOTS as usize);
            touched
        };
        self.empty_hint_slots();
        drop(migrator);
        (touched, untouched)
    }

    /// Empties the slots of pages that were dropped while they were out. For the thread that migrates.
    pub(crate) fn empty_hint_slots(&self) {
        let (slots, huge) = {
            let hints = &mut self.lock().hints;
            let huge = std::mem::take(&mut hints.waste_huge);
            (std::mem::take(&mut hints.waste), huge)
        };
        // A slot is one page: its own registration is taken away, and that of the others stays.
        for slot in slots {
            let emptied = self.uffd.unregister(slot, PAGE).and_then(|()| {
                // SAFETY: a slot of the engine's window, whose page the program has given up.
                unsafe { memory::empty(slot, PAGE) }?;
                self.uffd.register(slot, PAGE, REGISTER_MISSING)
            });
            match emptied {
                Ok(()) => self.lock().hints.give_back(slot, false),
                Err(errno) => self.failed(system("emptying a slot of a hint")(errno)),
            }
        }
        for slot in huge {
            let emptied = self.uffd.unregister(slot, HUGE).and_then(|()| {
                // SAFETY: a slot of the engine's own that no page is in.
                unsafe { memory::renew(slot, HUGE) }?;
                self.uffd.register(slot, HUGE, REGISTER_MISSING)
            });
            match emptied {
                Ok(()) => self.lock().hints.give_back(slot, true),
                Err(errno) => self.failed(system("emptying a slot of a hint")(errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints() -> Hints {
        let mut hints = Hints::default();
        hints.give(1 << 40, 1 << 41);
        let slot = hints.slot(true).expect("one is free");
        hints.insert(4 * HUGE, slot, true);
        hints
    }

    #[test]
    fn every_address_of_a_huge_page_finds_its_hint() {
        let hints = hints();
        assert_eq!(hints.at(4 * HUGE), Some(4 * HUGE));
        assert_eq!(hints.at(5 * HUGE - 1), Some(4 * HUGE));
        assert_eq!(hints.at(5 * HUGE), None);
        assert_eq!(hints.overlapping(4 * HUGE + PAGE, 9 * HUGE), Some(4 * HUGE));
    }

    #[test]
    fn a_partly_dropped_huge_hint_frees_its_slot_with_its_last_page() {
        let mut hints = hints();
        let free = hints.free_huge.len();
        hints.drop_range(4 * HUGE + PAGE, 4 * HUGE + 3 * PAGE);
        assert_eq!(hints.addresses().len(), 510);
        assert_eq!(hints.at(4 * HUGE + PAGE), None);
        assert_eq!((hints.waste.len(), hints.waste_huge.len()), (0, 0));
        for address in hints.addresses() {
            hints.remove(address);
        }
        assert_eq!(hints.waste_huge.len(), 1);
        assert_eq!(hints.free_huge.len(), free);
        assert_eq!(hints.free.len(), SLOTS as usize);
    }

    #[test]
    fn a_huge_hint_follows_its_mapping() {
        let mut hints = hints();
        hints.shift(4 * HUGE, 20 * HUGE, HUGE);
        assert_eq!(hints.addresses(), [20 * HUGE]);
        hints.shift(20 * HUGE, 30 * HUGE + PAGE, HUGE);
        assert_eq!(hints.addresses().len(), 512);
        assert_eq!(hints.first(), Some(30 * HUGE + PAGE));
    }

    #[test]
    fn the_slot_of_a_dropped_huge_hint_is_mapped_anew() {
        let mut hints = hints();
        hints.drop_range(0, 9 * HUGE);
        assert_eq!(hints.first(), None);
        assert_eq!(hints.waste_huge.len(), 1);
    }
}
