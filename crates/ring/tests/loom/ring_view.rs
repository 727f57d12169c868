//! What `src/view.rs` has, in a vector.

use loom::sync::Arc;

use crate::origin::OriginSlot;
use crate::ring::{Counters, Entry, Line, Reading, Refused, Writers};
use crate::sync::AtomicU64;

#[derive(Debug)]
struct Inner {
    counters: Counters,
    tags: Vec<AtomicU64>,
    entries: Vec<Entry>,
    origins: Vec<OriginSlot>,
}

#[derive(Debug, Clone)]
pub(crate) struct RingView(Arc<Inner>);

impl RingView {
    pub(crate) fn new(capacity: usize) -> RingView {
        let zero = || AtomicU64::new(0);
        let entry = |_| Entry(std::array::from_fn(|_| zero()));
        RingView(Arc::new(Inner {
            counters: Counters {
                writers: Line(Writers {
                    accepted: zero(),
                    taken_before: zero(),
                    gate: zero(),
                }),
                taken: Line(Reading {
                    taken: zero(),
                    looked: zero(),
                }),
                refused: Line(Refused {
                    lost: zero(),
                    retried: zero(),
                    posted: zero(),
                    deferrable: zero(),
                }),
            },
            tags: (0..capacity).map(|_| zero()).collect(),
            entries: (0..capacity).map(entry).collect(),
            origins: (0..capacity).map(|_| OriginSlot::default()).collect(),
        }))
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.entries.len()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    pub(crate) fn tag(&self, index: usize) -> &AtomicU64 {
        &self.0.tags[index]
    }

    pub(crate) fn entry(&self, index: usize) -> &Entry {
        &self.0.entries[index]
    }

    pub(crate) fn origin(&self, index: usize) -> &OriginSlot {
        &self.0.origins[index]
    }
}
