//! The reading side of a ring.

use crate::ring::{Ring, Words};
use crate::sync::Ordering;
use crate::tag::{COUNT, Tag, apart};

/// The reading side of a ring. There is one.
#[derive(Debug)]
pub(crate) struct Reader {
    ring: Ring,
    /// Descriptors read so far.
    read: u64,
    /// Descriptors that have been said to be taken.
    taken: u64,
    /// Where its writer has been waited for long enough.
    late: Option<u64>,
}

impl Reader {
    /// Of a ring that nobody has read.
    pub(crate) fn new(ring: Ring) -> Reader {
        Reader {
            ring,
            read: 0,
            taken: 0,
            late: None,
        }
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Descriptors that have been read, and whose entries are occupied.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.read != self.taken
    }

    /// Whether [`next`](Reader::next) would give something.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        let tag = self.ring.tag(self.read).load(Ordering::Acquire);
        // Whatever stands there: what is ahead of all entries cannot have been accepted.
        tag == Tag::written(self.read).0 && self.read - self.taken < self.ring.capacity()
    }

    /// Reads the next descriptor. Its entry stays occupied.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Words> {
        if !self.pending() {
            return None;
        }
        let entry = self.ring.entry(self.read);
        let mut words = Words::default();
        for (word, place) in words.iter_mut().zip(&entry.0) {
            *word = place.load(Ordering::Relaxed);
        }
        self.read += 1;
        Some(words)
    }

    /// Positions that have been claimed and that it has not read; `None` for more than there can be.
    fn claimed(&self) -> Option<u64> {
        let (accepted, _) = self.ring.claims();
        let claimed = accepted.wrapping_sub(self.read) & COUNT;
        (claimed <= self.ring.capacity() - (self.read - self.taken)).then_some(claimed)
    }

    /// Whether a position has been claimed that it has not read.
    pub(crate) fn is_behind(&self) -> bool {
        self.claimed().is_some_and(|claimed| claimed > 0)
    }

    /// Whether a position has been claimed that it has not read, and whose writer is worth waiting
    /// for: no [`expect_later`](Reader::expect_later) has been said of it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.late != Some(self.read) && self.is_behind()
    }

    /// The next position, if it has been claimed, is written some time, and nobody waits for that.
    pub(crate) fn expect_later(&mut self) {
        self.late = self.is_behind().then_some(self.read);
    }

    /// Leaves the next position out, if nobody will ever write there: `is_gone` says who will not.
    /// Whether it has.
    pub(crate) fn pass(&mut self, is_gone: impl FnOnce(u16) -> bool) -> bool {
        // First the count, then the tag: an owner that is gone may have written before.
        let (accepted, last) = self.ring.claims();
        let claimed = apart(accepted, self.read);
        if !self.is_behind() || self.pending() {
            return false;
        }
        let tag = Tag(self.ring.tag(self.read).load(Ordering::Acquire));
        let claimant = match claimed {
            1 => Some(last),
            _ => tag.claimant(self.read),
        };
        let gone = claimant.is_some_and(is_gone);
        self.read += u64::from(gone);
        gone
    }

    /// Has the ring agree with it about what was accepted, where that was nonsense. For a ring that is
    /// [held](Ring::hold) or closed.
    pub(crate) fn mend(&mut self) {
        if self.claimed().is_none() {
            self.ring.recount(self.read);
        }
        let (writers, taken) = (&self.ring.counters().writers.0, self.taken & COUNT);
        self.ring.counters().taken.0.store(taken, Ordering::Release);
        writers.taken_before.store(taken, Ordering::Release);
    }

    /// Of those that were read, all but `waiting` have been taken: their entries are free.
    #[inline]
    pub(crate) fn free_but(&mut self, waiting: u64) {
        let taken = self.read.saturating_sub(waiting);
        if taken > self.taken {
            self.taken = taken;
            let taken = taken & COUNT;
            self.ring.counters().taken.0.store(taken, Ordering::Release);
        }
    }
}
