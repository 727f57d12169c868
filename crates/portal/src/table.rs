//! Which pages are portals.
//!
//! Read by every submission and by the signal handler: without a lock, of fixed size, all zero at
//! first.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::submit::Portal;

/// Portals that a process may map, far more than programs do, and twice that: slots.
pub(crate) const PORTALS: usize = 4096;
const SLOTS: usize = 2 * PORTALS;
/// Ranges of so many pages are looked up page by page; of longer ones the slots are searched.
const FEW: u64 = 32;
const PAGE: u64 = 4096;

/// In a place's word: nothing yet; the rest of a chain is elsewhere.
const EMPTY: u64 = 0;
/// Nothing any more.
const GONE: u64 = 1 << 1;
/// A thread is filling it.
const BUSY: u64 = 1 << 2;
/// With the page's address: it may be written.
const WRITABLE: u64 = 1 << 0;

#[derive(Debug)]
#[repr(C)]
struct Slot {
    word: AtomicU64,
    portal: AtomicPtr<Portal>,
}

/// The pages.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Table {
    /// Slots with a page, or about to have one.
    used: AtomicU32,
    slots: [Slot; SLOTS],
}

/// A portal page that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapped {
    /// The portal of the page.
    pub(crate) portal: &'static Portal,
    /// Whether it was mapped to be written.
    pub(crate) writable: bool,
}

#[inline]
fn page(address: u64) -> u64 {
    address & !(PAGE - 1)
}

#[inline]
fn chain(page: u64) -> impl Iterator<Item = usize> {
    const BITS: u32 = SLOTS.trailing_zeros();
    let first = ((page / PAGE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize;
    (0..SLOTS).map(move |step| (first + step) % SLOTS)
}

impl Table {
    /// The portal whose page contains `address`.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<Mapped> {
        let (place, word) = self.slot(page(address))?;
        // SAFETY: it was stored before the word, and portals live for ever. Should the
        // place have been filled anew since, it is another portal: the page was unmapped
        // while it was written to, and anything may come of that.
        let portal = unsafe { place.portal.load(Ordering::Relaxed).as_ref() }?;
        let writable = word & WRITABLE != 0;
        Some(Mapped { portal, writable })
    }

    /// The slot of a page, and its word.
    #[inline]
    fn slot(&self, page: u64) -> Option<(&Slot, u64)> {
        for index in chain(page) {
            let place = &self.slots[index];
            let word = place.word.load(Ordering::Acquire);
            if self::page(word) == page {
                return Some((place, word));
            }
            if word == EMPTY {
                return None;
            }
        }
        None
    }

    /// Enters a page. Whether there was room.
    pub(crate) fn insert(&self, page: u64, portal: &'static Portal, writable: bool) -> bool {
        debug_assert!(page != 0 && page.is_multiple_of(PAGE));
        if self.used.fetch_add(1, Ordering::Relaxed) >= PORTALS as u32 {
            self.used.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        for index in chain(page) {
            let place = &self.slots[index];
            let word = place.word.load(Ordering::Relaxed);
            let free = word == EMPTY || word == GONE;
            let order = Ordering::Acquire;
            let claim = |word| place.word.compare_exchange(word, BUSY, order, order);
            if free && claim(word).is_ok() {
                place
                    .portal
                    .store((&raw const *portal).cast_mut(), Ordering::Relaxed);
                let writable = if writable { WRITABLE } else { 0 };
                place.word.store(page | writable, Ordering::Release);
                return true;
            }
        }
        self.used.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Takes all pages out that overlap these bytes, and calls back with each.
    pub(crate) fn remove(
        &self,
        address: u64,
        bytes: u64,
        mut removed: impl FnMut(&'static Portal),
    ) {
        for (place, word) in self.overlapping(address, bytes) {
            // SAFETY: as in `find`.
            let portal = unsafe { place.portal.load(Ordering::Relaxed).as_ref() };
            if let (Some(portal), true) = (portal, self.clear(place, word)) {
                removed(portal);
            }
        }
    }

    /// Takes one page out; what it was.
    pub(crate) fn take(&self, page: u64) -> Option<Mapped> {
        let (place, word) = self.overlapping(page, 1).next()?;
        // SAFETY: as in `find`.
        let portal = unsafe { place.portal.load(Ordering::Relaxed).as_ref() }?;
        let writable = word & WRITABLE != 0;
        self.clear(place, word)
            .then_some(Mapped { portal, writable })
    }

    /// Takes the page out of a slot. Whether it was there.
    fn clear(&self, place: &Slot, word: u64) -> bool {
        let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let gone = place.word.compare_exchange(word, GONE, order, failed);
        if gone.is_ok() {
            self.used.fetch_sub(1, Ordering::Relaxed);
        }
        gone.is_ok()
    }

    /// The first page that overlaps these bytes.
    pub(crate) fn first(&self, address: u64, bytes: u64) -> Option<u64> {
        let pages = self.overlapping(address, bytes).map(|(_, word)| page(word));
        pages.min()
    }

    /// Makes the pages that overlap these bytes writable or not.
    pub(crate) fn protect(&self, address: u64, bytes: u64, writable: bool) {
        for (place, _) in self.overlapping(address, bytes) {
            match writable {
                true => place.word.fetch_or(WRITABLE, Ordering::AcqRel),
                false => place.word.fetch_and(!WRITABLE, Ordering::AcqRel),
            };
        }
    }

    /// Whether a portal lies in these bytes.
    pub(crate) fn overlaps(&self, address: u64, bytes: u64) -> bool {
        self.overlapping(address, bytes).next().is_some()
    }

    fn overlapping(&self, address: u64, bytes: u64) -> impl Iterator<Item = (&Slot, u64)> {
        let end = address.saturating_add(bytes);
        let first = page(address);
        let pages = (end - first).div_ceil(PAGE);
        let none = self.used.load(Ordering::Acquire) == 0;
        let few = pages <= FEW && !none;
        let single = (0..if few { pages } else { 0 })
            .map(move |index| first + index * PAGE)
            .filter(|page| *page != 0)
            .filter_map(|page| self.slot(page));
        let searched = if few || none { &[][..] } else { &self.slots };
        let all = searched.iter().filter_map(move |place| {
            let word = place.word.load(Ordering::Acquire);
            let page = self::page(word);
            (page != 0 && page < end && page + PAGE > address).then_some((place, word))
        });
        single.chain(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submit::tests::portal;

    fn table() -> Box<Table> {
        // SAFETY: all zero is its initial state.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn a_page_is_found_by_any_address_in_it_until_it_is_removed() {
        let (table, portal) = (table(), portal());
        assert!(table.insert(0x7000, portal, true));
        for (address, found) in [
            (0x6fff, false),
            (0x7000, true),
            (0x7fff, true),
            (0x8000, false),
        ] {
            assert_eq!(table.find(address).is_some(), found, "{address:#x}");
        }
        let mut removed = 0;
        table.remove(0x7800, 1, |gone| {
            assert!(std::ptr::eq(gone, portal));
            removed += 1;
        });
        assert_eq!(removed, 1);
        assert!(table.find(0x7000).is_none());
    }

    #[test]
    fn take_removes_a_page_from_the_table() {
        let (table, portal) = (table(), portal());
        table.insert(0x1000, portal, true);
        table.insert(0x2000, portal, false);
        assert_eq!(
            table.take(0x2000).map(|mapped| mapped.writable),
            Some(false)
        );
        assert!(table.take(0x2000).is_none());
        assert!(table.find(0x1000).is_some() && table.find(0x2000).is_none());
    }

    #[test]
    fn a_full_table_refuses_a_page_and_finds_all_others() {
        let (table, portal) = (table(), portal());
        let pages = (1..=PORTALS as u64).map(|n| n * 0x11000);
        for page in pages.clone() {
            assert!(table.insert(page, portal, page & 0x1000 == 0));
        }
        assert!(!table.insert(0x5000_0000, portal, true));
        for page in pages.clone() {
            let found = table.find(page + 0x40).map(|mapped| mapped.writable);
            assert_eq!(found, Some(page & 0x1000 == 0));
        }
        // Slots that were given back serve again, whatever chains went over them.
        for turn in 0..10u64 {
            table.remove(0, u64::MAX, |_| ());
            for page in pages.clone() {
                assert!(table.insert(page + turn * 0x1000, portal, true));
            }
            assert!(
                pages
                    .clone()
                    .all(|page| table.find(page + turn * 0x1000).is_some())
            );
        }
    }

    #[test]
    fn protect_changes_only_the_given_pages() {
        let (table, portal) = (table(), portal());
        table.insert(0x1000, portal, true);
        table.insert(0x3000, portal, true);
        assert_eq!(table.first(0, u64::MAX), Some(0x1000));
        assert_eq!(table.first(0x2000, 0x1000), None);
        table.protect(0x1000, 0x1000, false);
        table.protect(0x2000, 0x1000, false);
        assert_eq!(table.find(0x1000).map(|m| m.writable), Some(false));
        assert_eq!(table.find(0x3000).map(|m| m.writable), Some(true));
        assert!(table.overlaps(0x2fff, 2));
        assert!(!table.overlaps(0x2000, 0x1000));
    }
}
