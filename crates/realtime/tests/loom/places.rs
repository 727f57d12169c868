//! What `src/places.rs` has, in a vector.

use loom::sync::Arc;

use crate::ring::{Counters, Entry, Line, Writers};
use crate::sync::{AtomicU32, AtomicU64};

#[derive(Debug)]
struct Inner {
    counters: Counters,
    written: Vec<AtomicU32>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Inner>);

impl Places {
    pub(crate) fn new(capacity: usize) -> Places {
        let zero = || AtomicU64::new(0);
        let entry = |_| Entry(std::array::from_fn(|_| zero()));
        Places(Arc::new(Inner {
            counters: Counters {
                writers: Line(Writers {
                    accepted: zero(),
                    taken_before: zero(),
                    gate: zero(),
                }),
                taken: Line(zero()),
                lost: Line(zero()),
            },
            written: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
            entries: (0..capacity).map(entry).collect(),
        }))
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.entries.len()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    pub(crate) fn written(&self, index: usize) -> &AtomicU32 {
        &self.0.written[index]
    }

    pub(crate) fn entry(&self, index: usize) -> &Entry {
        &self.0.entries[index]
    }
}
