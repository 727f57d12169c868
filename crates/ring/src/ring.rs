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
//! # Writers that die
//!
//! Between the moment in which a writer has claimed a position and the one in which its descriptor
//! is there it may be killed, if it is another process. Everything behind the position would wait for
//! ever, so the reader must be able to leave it out; but only when no client will write there any more,
//! for the entry is another client's in the next round. No time limit separates a dead writer from one
//! that is stopped, so it must be known who has claimed what, as exactly as the claim itself. The
//! claim is one exchange of one word, and that word has the name of the client beside the count: of
//! the last claim the word says whose it is. The client that claims the next position replaces the name, and
//! therefore first sees to it that the name of the one before stands in that one's [`tag`](crate::tag),
//! unless the descriptor is there already: the claim then needs no name. So at every moment every
//! position that was claimed and not written has the name of its client, in its tag or in the word,
//! and it costs nothing but a look at the tag before. Once the device knows that the client is gone,
//! the reader leaves out what it has claimed.
//!
//! A client that is only stopped there holds up its queue, as a stalled bus would; other queues go
//! on, and so do commands once they have waited a moment for it.
//!
//! # Writers that lie
//!
//! Everything in the ring is an atomic of fixed size and all zero at first, and nothing in it is an
//! address: it can lie in memory that processes share. What it says is trusted for descriptors only.
//! Its size is each side's own knowledge, and no limit in it is above that; what the reader has read
//! and freed is its own knowledge too, and it never reads further ahead of that than the ring is
//! large. So a client that writes nonsense can spoil its queue for others, until the queue is enabled
//! again, but not keep the reader from going on.

use crate::gate::{Gate, WriteKind};
use crate::origin::{Origin, OriginSlot};
use crate::ring_view::RingView;
use crate::sync::{AtomicU64, Ordering, publish, relax};
use crate::tag::{COUNT, NAME, Tag, apart};

/// In the counter of accepted descriptors: the queue is not enabled.
const CLOSED: u64 = 1 << 63;
/// Writers wait: a command is being carried out.
const HELD: u64 = 1 << 62;
/// The device ends, and the queue will not be enabled again.
const ENDED: u64 = 1 << 61;
/// How often the gate has changed, in the bits below: a writer that has read another one is turned
/// back by that, however often other bits have come and gone; unless it has slept through 32 changes.
const ROUND: u64 = 1 << 56;
const _: () = assert!(ROUND == (COUNT | NAME) + 1);

/// The 64 bytes of a descriptor.
pub type Words = [u64; 8];

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

/// How far the reader is.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Reading {
    /// Descriptors that engines have taken so far.
    pub(crate) taken: AtomicU64,
    /// Descriptors so far whose memory a tool has looked at, if there is one.
    pub(crate) looked: AtomicU64,
}

/// The counters of a ring.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) writers: Line<Writers>,
    pub(crate) taken: Line<Reading>,
    pub(crate) refused: Line<Refused>,
}

/// What a queue has not taken so far.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Refused {
    /// Posted writes that a full queue had no room for: descriptors that are lost.
    pub(crate) lost: AtomicU64,
    /// Deferrable writes that it had no room for, whose writers know.
    pub(crate) retried: AtomicU64,
    /// Posted writes to a queue that takes deferrable ones.
    pub(crate) posted: AtomicU64,
    /// Deferrable writes to a queue that takes posted ones.
    pub(crate) deferrable: AtomicU64,
}

/// Writes of the kind that a queue does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrongKind {
    /// Posted writes (MOVDIR64B) to a shared queue, which ignores them.
    pub posted: u64,
    /// Deferrable writes (ENQCMD) to a dedicated queue, which answers retry whenever it is asked.
    pub deferrable: u64,
}

/// Room for one descriptor.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Entry(pub(crate) [AtomicU64; 8]);

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// It has an entry.
    Accepted,
    /// There is no room.
    Full,
    /// A command is being carried out: it will be known soon.
    Held,
    /// Nothing is taken any more.
    Closed,
}

/// A ring, as one of its sides sees it.
#[derive(Debug, Clone)]
pub struct Ring {
    view: RingView,
    mask: u64,
}

impl Ring {
    /// Over view for a power of two of entries.
    pub(crate) fn new(view: RingView) -> Ring {
        let mask = view.capacity() as u64 - 1;
        Ring { view, mask }
    }

    /// Takes `words` in for `client`, if the gate lets them.
    #[inline]
    pub fn offer(&self, words: &Words, kind: WriteKind, client: u16) -> Offer {
        match self.claim(kind, client) {
            Ok(position) => {
                self.fill(position, words);
                Offer::Accepted
            }
            Err(refused) => refused,
        }
    }

    /// As [`offer`](Ring::offer), and says where in the program that was.
    pub fn offer_from(
        &self,
        words: &Words,
        kind: WriteKind,
        client: u16,
        origin: &Origin,
    ) -> Offer {
        match self.claim(kind, client) {
            Ok(position) => {
                self.origin(position).store(position, origin);
                self.fill(position, words);
                Offer::Accepted
            }
            Err(refused) => refused,
        }
    }

    /// A position for a descriptor, if the gate lets it in.
    ///
    /// # Errors
    /// Why there is none.
    #[inline]
    pub fn claim(&self, kind: WriteKind, client: u16) -> Result<u64, Offer> {
        let writers = &self.counters().writers.0;
        let mut word = writers.accepted.load(Ordering::Acquire);
        loop {
            if word & (CLOSED | HELD | ENDED) != 0 {
                return Err(match word & (CLOSED | ENDED) {
                    0 => Offer::Held,
                    _ => Offer::Closed,
                });
            }
            let gate = Gate::from_word(writers.gate.load(Ordering::Relaxed));
            let Some(limit) = gate.limit(kind) else {
                return Err(Offer::Closed);
            };
            // Whatever another process may have written there.
            let limit = limit.min(self.mask + 1);
            let accepted = word & COUNT;
            // Acquire, also where another writer passes it on: the reader is through with the entry.
            // The difference is negative if `accepted` is old; then the exchange fails.
            let before = writers.taken_before.load(Ordering::Acquire);
            if apart(accepted, before) >= limit {
                let taken = self.counters().taken.0.taken.load(Ordering::Acquire);
                if apart(accepted, taken) >= limit {
                    return Err(Offer::Full);
                }
                writers.taken_before.store(taken, Ordering::Release);
            }
            self.name_last(word);
            let next = word & !(COUNT | NAME) | Tag::name(client) | (accepted + 1) & COUNT;
            // Release: who sees this claim sees the names of those before.
            match writers.accepted.compare_exchange_weak(
                word,
                next,
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(accepted),
                Err(now) => word = now,
            }
        }
    }

    /// Sees to it that the last claim does not need its name in `word` any more.
    #[inline]
    fn name_last(&self, word: u64) {
        // This process does not outlive its own claims.
        if word & NAME == 0 {
            return;
        }
        let claim = Tag::claimed((word & COUNT).wrapping_sub(1), word & NAME);
        let place = self.tag(claim.position());
        let found = place.load(Ordering::Acquire);
        // One of this round or, if `word` is old, of a later one stays. One that has changed since
        // has become such a one.
        if Tag(found).is_before(claim) {
            let _ = place.compare_exchange(found, claim.0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Writes the descriptor at a position that was [claimed](Ring::claim).
    #[inline]
    pub fn fill(&self, position: u64, words: &Words) {
        let entry = self.entry(position);
        for (place, word) in entry.0.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        publish(self.tag(position), Tag::written(position).0);
    }

    /// Counts a descriptor that found no room and has gone.
    #[cold]
    pub fn lose(&self) {
        let lost = &self.counters().refused.0.lost;
        lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a descriptor that found no room, and whose writer learns that.
    #[cold]
    pub fn put_off(&self) {
        let retried = &self.counters().refused.0.retried;
        retried.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a write that finds the queue closed, if it is of the kind that the queue never takes.
    #[cold]
    pub fn turn_away(&self, kind: WriteKind) {
        let refused = &self.counters().refused.0;
        if self.gate().limit(kind).is_none() {
            let count = match kind {
                WriteKind::Posted => &refused.posted,
                WriteKind::Limited | WriteKind::Unlimited => &refused.deferrable,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes of the wrong kind so far.
    pub fn wrong_kind(&self) -> WrongKind {
        let refused = &self.counters().refused.0;
        WrongKind {
            posted: refused.posted.load(Ordering::Relaxed),
            deferrable: refused.deferrable.load(Ordering::Relaxed),
        }
    }

    /// Descriptors put off so far.
    pub fn retried(&self) -> u64 {
        self.counters().refused.0.retried.load(Ordering::Relaxed)
    }

    /// Descriptors lost so far.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.counters().refused.0.lost.load(Ordering::Relaxed)
    }

    /// From now on, and for ever, nothing is accepted.
    pub fn end(&self) {
        let accepted = &self.counters().writers.0.accepted;
        accepted.fetch_or(ENDED, Ordering::Relaxed);
    }

    /// Has writers wait until it is [opened](Ring::open) or [closed](Ring::close). For the reader
    /// alone, as these are.
    pub fn hold(&self) {
        let accepted = &self.counters().writers.0.accepted;
        accepted.fetch_or(HELD, Ordering::Relaxed);
    }

    /// Lets another thread go on, for a writer that found it [held](Offer::Held).
    #[cold]
    pub fn relax() {
        relax();
    }

    /// Accepts what `gate` lets in.
    pub fn open(&self, gate: Gate) {
        let writers = &self.counters().writers.0;
        let (word, was) = (gate.word(), writers.gate.load(Ordering::Relaxed));
        let change = match word == was {
            true => 0,
            false => {
                writers.gate.store(word, Ordering::Relaxed);
                ROUND
            }
        };
        self.change(|accepted| {
            let count = accepted & (ROUND - 1);
            let round = (accepted & (ENDED - 1) & !(ROUND - 1)).wrapping_add(change) & (ENDED - 1);
            count | round | accepted & ENDED
        });
    }

    /// Whether it turns everything away until it is opened again, or for ever. While a command is carried
    /// out it does not yet.
    pub fn is_closed(&self) -> bool {
        let accepted = &self.counters().writers.0.accepted;
        accepted.load(Ordering::Acquire) & (CLOSED | ENDED) != 0
    }

    /// Turns everything away until it is opened again.
    pub fn close(&self) {
        self.change(|accepted| accepted & !HELD | CLOSED);
    }

    /// The number of accepted descriptors was nonsense: it is `count`.
    #[cold]
    pub(crate) fn recount(&self, count: u64) {
        self.change(|accepted| accepted & !(COUNT | NAME) | count & COUNT);
    }

    /// It has not ended, whatever it says.
    #[cold]
    pub fn resume(&self) {
        let accepted = &self.counters().writers.0.accepted;
        accepted.fetch_and(!ENDED, Ordering::Relaxed);
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
    pub fn gate(&self) -> Gate {
        Gate::from_word(self.counters().writers.0.gate.load(Ordering::Relaxed))
    }

    /// Entries occupied at one moment during the call; about that many if so much is going on that
    /// there is no such moment.
    pub fn occupancy(&self) -> u64 {
        const READS: usize = 1000;
        let writers = &self.counters().writers.0;
        let mut occupied = 0;
        for _ in 0..READS {
            let accepted = writers.accepted.load(Ordering::Acquire);
            let taken = self.counters().taken.0.taken.load(Ordering::Acquire);
            occupied = apart(accepted & COUNT, taken).min(self.mask + 1);
            if writers.accepted.load(Ordering::Acquire) == accepted {
                break;
            }
        }
        occupied
    }

    /// Entries that there are.
    pub fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// Descriptors accepted so far, and whose the last one is.
    #[inline]
    pub(crate) fn claims(&self) -> (u64, u16) {
        let word = self.counters().writers.0.accepted.load(Ordering::Acquire);
        (word & COUNT, Tag(word).client())
    }

    #[inline]
    pub(crate) fn entry(&self, position: u64) -> &Entry {
        self.view.entry((position & self.mask) as usize)
    }

    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        self.view.counters()
    }

    /// Descriptors that were accepted and not looked at, as far as the reader has said.
    pub(crate) fn unlooked(&self, accepted: u64) -> u64 {
        let looked = self.counters().taken.0.looked.load(Ordering::Acquire);
        apart(accepted, looked)
    }

    pub(crate) fn origin(&self, position: u64) -> &OriginSlot {
        self.view.origin((position & self.mask) as usize)
    }

    /// What stands beside the entry of `position`: a [`Tag`].
    #[inline]
    pub(crate) fn tag(&self, position: u64) -> &AtomicU64 {
        self.view.tag((position & self.mask) as usize)
    }
}
