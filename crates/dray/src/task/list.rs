//! A list of numbers: each is appended at the end, and taken out wherever it stands. Several threads change it
//! at once without a lock: none waits for another that is preempted, and the others keep their order.
//!
//! It is a list as Michael's ("High Performance Dynamic Lock-Free Hash Tables and List-Based Sets", SPAA 2002)
//! with the tail of Michael's and Scott's queue (PODC 1996). A number is taken out in two steps: its link is
//! marked, and no number behind it can be taken out or appended by way of it any more; then the link before it
//! goes past it. Each change of a link gives it another tag, so that a thread that has slept changes nothing.

use super::sync::{AtomicU64, Ordering};

/// A link to no number.
const NONE: u64 = (1 << INDEX_BITS) - 1;
const INDEX_BITS: u32 = 24;
const MARK: u64 = 1 << INDEX_BITS;
const TAG: u64 = 1 << (INDEX_BITS + 1);

/// The most numbers of a list: one index is the head's, and one says that there is none.
pub(super) const MOST: u32 = NONE as u32 - 1;

/// A number, or none; whether the link's own number is being taken out; a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link(u64);

impl Link {
    fn index(self) -> u64 {
        self.0 & NONE
    }

    fn number(self) -> Option<u32> {
        (self.index() != NONE).then_some(self.index() as u32)
    }

    fn is_marked(self) -> bool {
        self.0 & MARK != 0
    }

    fn marked(self) -> Link {
        Link(self.0 | MARK)
    }

    /// What replaces this link: it leads elsewhere, is not marked, and has the next tag.
    fn to(self, index: u64) -> Link {
        Link((self.0 & !(TAG - 1)).wrapping_add(TAG) | index)
    }
}

/// One link, which threads change at once.
#[derive(Debug)]
struct AtomicLink(AtomicU64);

impl AtomicLink {
    fn new(index: u64) -> AtomicLink {
        AtomicLink(AtomicU64::new(index))
    }

    fn load(&self) -> Link {
        Link(self.0.load(Ordering::Acquire))
    }

    fn store(&self, link: Link) {
        self.0.store(link.0, Ordering::Release);
    }

    fn exchange(&self, from: Link, to: Link) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.0
            .compare_exchange(from.0, to.0, order.0, order.1)
            .is_ok()
    }
}

/// Numbers in the list, and those that are free. A number is in one of them, or the caller's.
#[derive(Debug)]
pub(super) struct List {
    /// Of each number to the next one; the last is the head's.
    links: Box<[AtomicLink]>,
    /// To the last number in the list, or to the one before it while a number is being appended.
    tail: AtomicLink,
    /// To the first free number.
    free: AtomicLink,
}

impl List {
    /// The numbers below `count`, all free; `count` is 1 to [`MOST`].
    pub(super) fn new(count: u32) -> List {
        let count = u64::from(count.clamp(1, MOST));
        let next = |n| if n + 1 < count { n + 1 } else { NONE };
        let head = AtomicLink::new(NONE);
        List {
            links: (0..count)
                .map(|n| AtomicLink::new(next(n)))
                .chain([head])
                .collect(),
            tail: AtomicLink::new(count),
            free: AtomicLink::new(0),
        }
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    fn link(&self, index: u64) -> &AtomicLink {
        &self.links[index as usize]
    }

    /// A free number, which is the caller's then.
    pub(super) fn take_free(&self) -> Option<u32> {
        loop {
            let first = self.free.load();
            let number = first.number()?;
            let next = self.link(number.into()).load();
            if self.free.exchange(first, first.to(next.index())) {
                return Some(number);
            }
        }
    }

    /// Frees a number, which must be the caller's.
    pub(super) fn put_free(&self, number: u32) {
        let own = self.link(number.into());
        loop {
            let first = self.free.load();
            own.store(own.load().to(first.index()));
            if self.free.exchange(first, first.to(number.into())) {
                return;
            }
        }
    }

    /// Appends a number, which must be the caller's. It must be alive by then, see [`List::walk`].
    pub(super) fn append(&self, number: u32) {
        let own = self.link(number.into());
        own.store(own.load().to(NONE));
        loop {
            let tail = self.tail.load();
            let last = self.link(tail.index());
            let next = last.load();
            // Then the tail's number was in the list when its link was read: see `pass_tail`.
            if self.tail.load() != tail {
                continue;
            }
            if let Some(next) = next.number() {
                // Another thread has appended it, and not moved the tail yet.
                self.tail.exchange(tail, tail.to(next.into()));
            } else if last.exchange(next, next.to(number.into())) {
                self.tail.exchange(tail, tail.to(number.into()));
                return;
            }
        }
    }

    /// Goes along the list, and takes out the numbers that are dead, up to the first that is alive or, if `all`,
    /// to the end. Gives the first that is alive, with what `alive` says of it; all before it were dead when
    /// it said so. `taken_out` gets each number that was taken out by this call. The last number stays in the list,
    /// alive or dead, until another one is appended.
    ///
    /// `alive` is `None` for a number that is dead; that may not change as long as it is in the list. It may be
    /// called for numbers that are not in the list, too: what it says then is not used.
    pub(super) fn walk<T>(
        &self,
        all: bool,
        alive: impl Fn(u32) -> Option<T>,
        taken_out: impl Fn(u32),
    ) -> Option<(u32, T)> {
        'again: loop {
            let mut before = u64::from(self.count());
            let mut link = self.link(before).load();
            while let Some(number) = link.number() {
                let own = self.link(number.into());
                let next = own.load();
                let found = alive(number);
                // Otherwise the number, or the one before it, was taken out, and may be another's by now.
                if self.link(before).load() != link {
                    continue 'again;
                }
                if next.is_marked() || found.is_none() && next.number().is_some() {
                    if !next.is_marked() && !own.exchange(next, next.marked()) {
                        // Marked by another thread, or the next number was taken out.
                        continue;
                    }
                    self.pass_tail(number, next);
                    let past = link.to(next.index());
                    if !self.link(before).exchange(link, past) {
                        continue 'again;
                    }
                    taken_out(number);
                    link = past;
                    continue;
                }
                match found {
                    Some(found) if !all => return Some((number, found)),
                    _ => (before, link) = (number.into(), next),
                }
            }
            return None;
        }
    }

    /// Moves the tail on if it leads to a number that is about to be taken out. As that number has a next one,
    /// the tail has reached it already, and does not come back to it: it leads to no number out of the list.
    fn pass_tail(&self, number: u32, next: Link) {
        let tail = self.tail.load();
        if tail.number() == Some(number) {
            // If that fails, another thread has moved it on.
            self.tail.exchange(tail, tail.to(next.index()));
        }
    }
}
