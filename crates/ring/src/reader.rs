//! The reading side of a ring.

use crate::origin::Origin;
use crate::ring::{Ring, Words};
use crate::sync::Ordering;
use crate::tag::{COUNT, Tag, apart};

/// The reading side of a ring. There is one.
#[derive(Debug)]
pub struct Reader {
    ring: Ring,
    /// Descriptors read so far, up to the first that is not there yet.
    read: u64,
    /// By entry: behind that one, and read.
    ahead: Vec<bool>,
    /// How many those are.
    read_ahead: u64,
    /// Descriptors that have been said to be taken.
    taken: u64,
    /// Where its writer has been waited for long enough.
    late: Option<u64>,
    /// Position of the descriptor that was read last.
    last: u64,
}

impl Reader {
    /// Of a ring that has not been read.
    pub fn new(ring: Ring) -> Reader {
        Reader {
            ahead: vec![false; ring.capacity() as usize],
            read_ahead: 0,
            ring,
            read: 0,
            taken: 0,
            late: None,
            last: 0,
        }
    }

    /// What it reads.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Descriptors that have been read, and whose entries are occupied.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.read + self.read_ahead != self.taken
    }

    /// Whether [`next`](Reader::next) would give something.
    #[inline]
    pub fn pending(&self) -> bool {
        let tag = self.ring.tag(self.read).load(Ordering::Acquire);
        // Whatever stands there: what is ahead of all entries cannot have been accepted.
        tag == Tag::written(self.read).0 && self.read - self.taken < self.ring.capacity()
    }

    /// Reads the next descriptor. Its entry stays occupied.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "a ring that is empty now is not at its end"
    )]
    pub fn next(&mut self) -> Option<Words> {
        if !self.pending() {
            return None;
        }
        let words = self.words(self.read);
        self.last = self.read;
        self.step();
        Some(words)
    }

    /// A tool has looked at the memory of all that were read: who waits for that may go on.
    pub fn looked(&self) {
        let looked = &self.ring.counters().taken.0.looked;
        looked.store(self.read & COUNT, Ordering::Release);
    }

    /// Where in a program the descriptor was submitted that was read last. It was written before the descriptor, and
    /// stays until the entry is given back.
    pub fn last_origin(&self) -> Option<Origin> {
        self.ring.origin(self.last).load(self.last)
    }

    /// Whether [`next_ahead`](Reader::next_ahead) would give something.
    pub fn pending_ahead(&self) -> bool {
        self.first_ahead().is_some()
    }

    /// Reads a descriptor behind one that has been claimed and is not there yet. Its writer may be a
    /// thread that a signal has interrupted just there, and the one behind it the handler's, which waits
    /// for its completion before it returns. Writes at the same time have no order.
    pub fn next_ahead(&mut self) -> Option<Words> {
        let position = self.first_ahead()?;
        let index = self.index(position);
        self.ahead[index] = true;
        self.read_ahead += 1;
        self.last = position;
        Some(self.words(position))
    }

    /// The first position behind the next that is there and was not read.
    fn first_ahead(&self) -> Option<u64> {
        let claimed = self.claimed()?;
        // The next one itself is read in its turn.
        if claimed < 2 || self.pending() {
            return None;
        }
        let mut positions = self.read + 1..self.read + claimed;
        positions.find(|position| {
            let tag = self.ring.tag(*position).load(Ordering::Acquire);
            tag == Tag::written(*position).0 && !self.ahead[self.index(*position)]
        })
    }

    fn index(&self, position: u64) -> usize {
        (position & (self.ring.capacity() - 1)) as usize
    }

    #[inline]
    fn words(&self, position: u64) -> Words {
        let entry = self.ring.entry(position);
        let mut words = Words::default();
        for (word, place) in words.iter_mut().zip(&entry.0) {
            *word = place.load(Ordering::Relaxed);
        }
        words
    }

    /// Goes on to the next position that was not read.
    #[inline]
    fn step(&mut self) {
        self.read += 1;
        while self.read_ahead > 0 {
            let index = self.index(self.read);
            if !std::mem::take(&mut self.ahead[index]) {
                return;
            }
            self.read_ahead -= 1;
            self.read += 1;
        }
    }

    /// Positions that have been claimed and that it has not read; `None` for more than there can be.
    fn claimed(&self) -> Option<u64> {
        let (accepted, _) = self.ring.claims();
        let claimed = accepted.wrapping_sub(self.read) & COUNT;
        (claimed <= self.ring.capacity() - (self.read - self.taken)).then_some(claimed)
    }

    /// Whether a position has been claimed that it has not read.
    pub fn is_behind(&self) -> bool {
        self.claimed().is_some_and(|claimed| claimed > 0)
    }

    /// Whether a position has been claimed that it has not read, and whose writer is worth waiting
    /// for: no [`expect_later`](Reader::expect_later) has been said of it.
    pub fn is_awaited(&self) -> bool {
        self.late != Some(self.read) && self.is_behind()
    }

    /// The next position, if it has been claimed, is written some time, and no thread waits for that.
    pub fn expect_later(&mut self) {
        self.late = self.is_behind().then_some(self.read);
    }

    /// Leaves the next position out, if no client will ever write there: `is_gone` says who will not.
    /// Whether it has.
    pub fn pass(&mut self, is_gone: impl FnOnce(u16) -> bool) -> bool {
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
        if gone {
            self.step();
        }
        gone
    }

    /// Has the ring agree with it about what was accepted, where that was nonsense. For a ring that is
    /// [held](Ring::hold) or closed.
    pub fn restore_counters(&mut self) {
        if self.claimed().is_none() {
            self.ahead.fill(false);
            self.read_ahead = 0;
            self.ring.recount(self.read);
        }
        let (writers, taken) = (&self.ring.counters().writers.0, self.taken & COUNT);
        self.ring
            .counters()
            .taken
            .0
            .taken
            .store(taken, Ordering::Release);
        writers.taken_before.store(taken, Ordering::Release);
    }

    /// Of those that were read, all but `waiting` have been taken: their entries are free.
    #[inline]
    pub fn free_but(&mut self, waiting: u64) {
        // The entry of one that is not there yet is occupied.
        let taken = (self.read + self.read_ahead).saturating_sub(waiting);
        let taken = taken.min(self.read);
        if taken > self.taken {
            self.taken = taken;
            let taken = taken & COUNT;
            self.ring
                .counters()
                .taken
                .0
                .taken
                .store(taken, Ordering::Release);
        }
    }
}
