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
//! its size is each side's own knowledge, and no limit in it is above that.

use crate::gate::{Gate, Way};
use crate::places::Places;
use crate::sync::{AtomicU32, AtomicU64, Ordering, relax};

/// In the counter of accepted descriptors: the queue is not enabled.
const CLOSED: u64 = 1 << 63;
/// Writers wait: a command is being carried out.
const HELD: u64 = 1 << 62;
/// The device ends, and the queue will not be enabled again.
const ENDED: u64 = 1 << 61;
/// How often the ring was opened, in the bits below: a writer that has read the gate before is
/// turned back by that, however often other bits have come and gone.
const ROUND: u64 = 1 << 56;
/// The descriptors themselves: for two hundred years at ten million a second.
const COUNT: u64 = ROUND - 1;

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
    /// Descriptors accepted so far, and whether there may be more.
    pub(crate) accepted: AtomicU64,
    /// Some earlier value of `taken`. It spares writers the reader's line as long as even by this
    /// there is room.
    pub(crate) taken_before: AtomicU64,
    /// The [`Gate`].
    pub(crate) gate: AtomicU64,
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

    /// Takes `words` in, if the gate lets them.
    #[inline]
    pub(crate) fn offer(&self, words: &Words, way: Way) -> Offer {
        let writers = &self.counters().writers.0;
        let mut word = writers.accepted.load(Ordering::Acquire);
        let accepted = loop {
            if word & (CLOSED | HELD | ENDED) != 0 {
                if word & (CLOSED | ENDED) != 0 {
                    return Offer::Closed;
                }
                relax();
                word = writers.accepted.load(Ordering::Acquire);
                continue;
            }
            let gate = Gate::from_word(writers.gate.load(Ordering::Relaxed));
            let Some(limit) = gate.limit(way) else {
                return Offer::Closed;
            };
            // Whatever another process may have written there.
            let limit = limit.min(self.mask + 1);
            let accepted = word & COUNT;
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
                word,
                word + 1,
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => break accepted,
                Err(now) => word = now,
            }
        };
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

    /// From now on, and for ever, nothing is accepted. How much has been.
    pub(crate) fn end(&self) -> u64 {
        let accepted = &self.counters().writers.0.accepted;
        accepted.fetch_or(ENDED, Ordering::Relaxed) & COUNT
    }

    /// Has writers wait until it is [opened](Ring::open) or [closed](Ring::close). How much has been
    /// accepted. For the reader alone, as these are.
    pub(crate) fn hold(&self) -> u64 {
        let accepted = &self.counters().writers.0.accepted;
        accepted.fetch_or(HELD, Ordering::Relaxed) & COUNT
    }

    /// Accepts what `gate` lets in.
    pub(crate) fn open(&self, gate: Gate) {
        let writers = &self.counters().writers.0;
        let (word, was) = (gate.word(), writers.gate.load(Ordering::Relaxed));
        if word != was {
            writers.gate.store(word, Ordering::Relaxed);
        }
        self.change(|accepted| {
            let count = accepted & (ROUND - 1);
            let round = (accepted & (ENDED - 1) & !COUNT).wrapping_add(ROUND) & (ENDED - 1);
            count | round | accepted & ENDED
        });
    }

    /// Turns everything away until it is opened again.
    pub(crate) fn close(&self) {
        self.change(|accepted| accepted & !HELD | CLOSED);
    }

    fn change(&self, to: impl Fn(u64) -> u64) {
        let accepted = &self.counters().writers.0.accepted;
        let mut word = accepted.load(Ordering::Relaxed);
        while let Err(now) =
            accepted.compare_exchange(word, to(word), Ordering::Release, Ordering::Relaxed)
        {
            word = now;
        }
    }

    /// What it lets in, or let in before it was closed.
    #[inline]
    pub(crate) fn gate(&self) -> Gate {
        Gate::from_word(self.counters().writers.0.gate.load(Ordering::Relaxed))
    }

    /// Entries occupied at one moment during the call.
    pub(crate) fn occupancy(&self) -> u64 {
        let writers = &self.counters().writers.0;
        loop {
            let accepted = writers.accepted.load(Ordering::Acquire);
            let taken = self.counters().taken.0.load(Ordering::Acquire);
            if writers.accepted.load(Ordering::Acquire) == accepted {
                return (accepted & COUNT).saturating_sub(taken);
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

    /// Descriptors that have been read, and whose entries are occupied.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.read != self.taken
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
