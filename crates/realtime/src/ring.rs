//! The entries of one work queue: a bounded ring that many threads write and one reads.
//!
//! The ring answers as the portal of the queue does: accepted, or no room, from what it holds alone,
//! without a lock and without asking anybody. An entry is occupied from the moment in which it is
//! accepted until the device says that an engine has taken its descriptor (spec 3.3), which is later
//! than the moment in which the dispatcher has read it. So occupancy is a difference of two counters:
//! descriptors accepted, which only writers advance, and descriptors taken, which only the reader
//! advances. A writer that has read both, in this order, and then advances the first from the value
//! that it has read, has counted no entry too few; one that is refused has counted none too many.
//!
//! Everything in it is an atomic of fixed size and all zero at first, and nothing in it is an
//! address: it can lie in memory that processes share. What it says is trusted for descriptors only;
//! its size and limits are each side's own knowledge.

use crate::places::Places;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// In the counter of accepted descriptors: no more of them.
const CLOSED: u64 = 1 << 63;

/// The 64 bytes of a descriptor.
pub(crate) type Words = [u64; 8];

/// Two cache lines: they are fetched in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

/// What the writers of a ring share.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Writers {
    /// Descriptors accepted so far, and [`CLOSED`].
    pub(crate) accepted: AtomicU64,
    /// Some earlier value of `taken`. It spares writers the reader's line as long as even by this
    /// there is room.
    pub(crate) taken_before: AtomicU64,
}

/// The counters of a ring.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) writers: Line<Writers>,
    /// Descriptors that engines have taken so far.
    pub(crate) taken: Line<AtomicU64>,
    /// Descriptors that a full queue has lost so far.
    pub(crate) lost: Line<AtomicU64>,
}

/// Room for one descriptor.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Entry(pub(crate) [AtomicU64; 8]);

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// It has an entry.
    Accepted,
    /// There is no room.
    Full,
    /// Nothing is taken any more.
    Closed,
}

/// A ring, as one of its sides sees it.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    places: Places,
    mask: u64,
}

impl Ring {
    /// Over places for a power of two of entries.
    pub(crate) fn new(places: Places) -> Ring {
        let mask = places.capacity() as u64 - 1;
        Ring { places, mask }
    }

    /// Takes `words` in, if fewer than `limit` entries are occupied; `limit` is at most the capacity.
    #[inline]
    pub(crate) fn offer(&self, words: &Words, limit: u64) -> Offer {
        let writers = &self.counters().writers.0;
        let mut accepted = writers.accepted.load(Ordering::Relaxed);
        loop {
            if accepted & CLOSED != 0 {
                return Offer::Closed;
            }
            // Acquire, also where another writer passes it on: the reader is through with the entry.
            // The difference is negative if `accepted` is old; then the exchange fails.
            let before = writers.taken_before.load(Ordering::Acquire);
            if accepted.saturating_sub(before) >= limit {
                let taken = self.counters().taken.0.load(Ordering::Acquire);
                if accepted.saturating_sub(taken) >= limit {
                    return Offer::Full;
                }
                writers.taken_before.store(taken, Ordering::Release);
            }
            match writers.accepted.compare_exchange_weak(
                accepted,
                accepted + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => accepted = now,
            }
        }
        let entry = self.places.entry((accepted & self.mask) as usize);
        for (place, word) in entry.0.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        self.written(accepted)
            .store(mark(accepted), Ordering::Release);
        Offer::Accepted
    }

    /// Counts a descriptor that found no room and has gone.
    #[cold]
    pub(crate) fn lose(&self) {
        self.counters().lost.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Descriptors lost so far.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.counters().lost.0.load(Ordering::Relaxed)
    }

    /// From now on nothing is accepted. How much has been.
    pub(crate) fn close(&self) -> u64 {
        let accepted = &self.counters().writers.0.accepted;
        accepted.fetch_or(CLOSED, Ordering::Relaxed) & !CLOSED
    }

    /// Accepts again.
    #[allow(dead_code, reason = "the models of the loom tests close once")]
    pub(crate) fn open(&self) {
        let accepted = &self.counters().writers.0.accepted;
        accepted.fetch_and(!CLOSED, Ordering::Relaxed);
    }

    /// Entries occupied at one moment during the call.
    pub(crate) fn occupancy(&self) -> u64 {
        let writers = &self.counters().writers.0;
        loop {
            let accepted = writers.accepted.load(Ordering::Acquire);
            let taken = self.counters().taken.0.load(Ordering::Acquire);
            if writers.accepted.load(Ordering::Acquire) == accepted {
                return (accepted & !CLOSED).saturating_sub(taken);
            }
        }
    }

    #[inline]
    fn counters(&self) -> &Counters {
        self.places.counters()
    }

    #[inline]
    fn written(&self, position: u64) -> &AtomicU32 {
        self.places.written((position & self.mask) as usize)
    }
}

/// What stands beside the entry once descriptor number `position` is in it. Never what stood there a
/// round before, nor the zero that stands there at first.
#[inline]
fn mark(position: u64) -> u32 {
    (position as u32).wrapping_add(1)
}

/// The reading side of a ring. There is one.
#[derive(Debug)]
pub(crate) struct Reader {
    ring: Ring,
    /// Descriptors read so far.
    read: u64,
    /// Descriptors that have been said to be taken.
    taken: u64,
}

impl Reader {
    /// Of a ring that nobody has read.
    pub(crate) fn new(ring: Ring) -> Reader {
        Reader {
            ring,
            read: 0,
            taken: 0,
        }
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Whether [`next`](Reader::next) would give something.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        self.ring.written(self.read).load(Ordering::Acquire) == mark(self.read)
    }

    /// Reads the next descriptor. Its entry stays occupied.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Words> {
        if !self.pending() {
            return None;
        }
        let entry = self
            .ring
            .places
            .entry((self.read & self.ring.mask) as usize);
        let mut words = Words::default();
        for (word, place) in words.iter_mut().zip(&entry.0) {
            *word = place.load(Ordering::Relaxed);
        }
        self.read += 1;
        Some(words)
    }

    /// Descriptors read so far.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// Of those that were read, all but `waiting` have been taken: their entries are free.
    #[inline]
    pub(crate) fn free_but(&mut self, waiting: u64) {
        let taken = self.read.saturating_sub(waiting);
        if taken > self.taken {
            self.taken = taken;
            self.ring.counters().taken.0.store(taken, Ordering::Release);
        }
    }
}
