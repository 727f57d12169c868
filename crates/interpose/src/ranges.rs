//! Ranges of addresses that a preload library publishes to others: memory of its own, which is left alone.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const MOST: usize = 256;

/// Ranges, added and never taken away.
#[derive(Debug)]
#[repr(C)]
pub struct Ranges {
    ranges: [[AtomicU64; 2]; MOST],
    count: AtomicUsize,
}

impl Default for Ranges {
    fn default() -> Ranges {
        Ranges::new()
    }
}

impl Ranges {
    /// Without any.
    pub const fn new() -> Ranges {
        Ranges {
            ranges: [const { [AtomicU64::new(0), AtomicU64::new(0)] }; MOST],
            count: AtomicUsize::new(0),
        }
    }

    /// Adds a range. `false` if there is no room for more.
    pub fn add(&self, start: u64, end: u64) -> bool {
        let index = self.count.fetch_add(1, Ordering::Relaxed);
        let Some(range) = self.ranges.get(index) else {
            return false;
        };
        range[0].store(start, Ordering::Relaxed);
        // Behind the start: a range without an end is none.
        range[1].store(end, Ordering::Release);
        true
    }

    /// The range that ends at an address ends at another one.
    pub fn end_at(&self, before: u64, end: u64) {
        for range in &self.ranges {
            let (from, to) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = range[1].compare_exchange(before, end, from, to);
        }
    }

    /// All ranges.
    pub fn all(&self) -> Vec<(u64, u64)> {
        let count = self.count.load(Ordering::Relaxed).min(MOST);
        let all = self.ranges[..count].iter().map(|range| {
            let end = range[1].load(Ordering::Acquire);
            (range[0].load(Ordering::Relaxed), end)
        });
        all.filter(|(_, end)| *end != 0).collect()
    }

    /// Forgets all but the first so many: in a child, which has none of the threads.
    pub fn keep(&self, count: usize) {
        for range in &self.ranges[count..] {
            range[1].store(0, Ordering::Relaxed);
        }
        let before = self.count.load(Ordering::Relaxed);
        self.count.store(before.min(count), Ordering::Relaxed);
    }
}
