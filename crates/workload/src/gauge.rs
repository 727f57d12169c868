//! How far a measurement is, for progress displays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count that one thread moves and another reads; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Gauge {
    counts: Arc<[AtomicU64; 2]>,
}

impl Gauge {
    /// What is done, and how much there is to do: 0 if nothing has begun.
    pub fn read(&self) -> (u64, u64) {
        let [done, all] = &*self.counts;
        (done.load(Ordering::Relaxed), all.load(Ordering::Relaxed))
    }

    /// Starts over with so much to do.
    pub fn start(&self, all: u64) {
        self.counts[0].store(0, Ordering::Relaxed);
        self.counts[1].store(all, Ordering::Relaxed);
    }

    /// So much more is done.
    pub fn add(&self, done: u64) {
        self.counts[0].fetch_add(done, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_gauge_share_their_counts() {
        let gauge = Gauge::default();
        let watcher = gauge.clone();
        gauge.start(10);
        gauge.add(3);
        gauge.add(4);
        assert_eq!(watcher.read(), (7, 10));
        gauge.start(5);
        assert_eq!(watcher.read(), (0, 5));
    }
}
