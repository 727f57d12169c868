//! Entries of a queue that a mover may fill.
//!
//! A posted write to a full dedicated queue is lost, so a process never has more descriptors in flight
//! there than the queue has entries. No other process can open a dedicated queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries of a dedicated queue that several movers fill.
#[derive(Debug)]
pub(super) struct Pool {
    entries: usize,
    free: AtomicUsize,
}

impl Pool {
    pub(super) fn new(entries: usize) -> Pool {
        Pool {
            entries,
            free: AtomicUsize::new(entries),
        }
    }

    /// Takes an entry if more than `kept` are free.
    fn take(&self, kept: usize) -> bool {
        let fewer = |free: usize| (free > kept).then(|| free - 1);
        let taken = self
            .free
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, fewer);
        taken.is_ok()
    }
}

/// What one mover may have in flight.
#[derive(Debug)]
pub(super) enum Credits {
    /// The entries are its own. The mover counts what it has in flight.
    Own(usize),
    /// It takes entries from a pool, and holds so many.
    Pooled(Arc<Pool>, usize),
}

impl Credits {
    /// From a pool.
    pub(super) fn of(pool: Arc<Pool>) -> Credits {
        Credits::Pooled(pool, 0)
    }

    /// Descriptors in flight at most.
    #[inline]
    pub(super) fn most(&self) -> usize {
        match self {
            Credits::Own(entries) => *entries,
            Credits::Pooled(pool, _) => pool.entries,
        }
    }

    /// Takes an entry for a descriptor. A mover that has one in flight already leaves half of the pool to
    /// movers that have none.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        let Credits::Pooled(pool, held) = self else {
            return true;
        };
        let kept = if *held == 0 { 0 } else { pool.entries / 2 };
        let taken = pool.take(kept);
        *held += usize::from(taken);
        taken
    }

    /// Gives an entry back: the descriptor has ended, or was not accepted.
    #[inline]
    pub(super) fn give_back(&mut self) {
        if let Credits::Pooled(pool, held) = self {
            *held -= 1;
            pool.free.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn movers_of_a_pool_never_have_more_than_its_entries() {
        let pool = Arc::new(Pool::new(8));
        let mut movers: Vec<Credits> = (0..8).map(|_| Credits::of(pool.clone())).collect();
        let taken = (0..10).filter(|_| movers[0].take()).count();
        assert_eq!(taken, 4, "half is left to others");
        // Each of the others gets a first entry, as long as there are any.
        let first = movers[1..]
            .iter_mut()
            .filter_map(|m| m.take().then_some(()));
        assert_eq!(first.count(), 4);
        assert!(!movers[7].take());
        movers[0].give_back();
        assert!(movers[7].take());
        assert!(!movers[0].take(), "it has entries, and none is free");
        assert_eq!(pool.free.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_queue_of_one_entry_serves_one_at_a_time() {
        let pool = Arc::new(Pool::new(1));
        let [mut a, mut b] = [(); 2].map(|()| Credits::of(pool.clone()));
        assert!(a.take() && !a.take() && !b.take());
        a.give_back();
        assert!(b.take() && !a.take());
    }

    #[test]
    fn own_entries_are_counted_by_the_mover() {
        let mut own = Credits::Own(4);
        assert!((0..100).all(|_| own.take()));
        own.give_back();
        assert_eq!(own.most(), 4);
    }

    #[test]
    fn threads_share_a_pool_and_give_all_of_it_back() {
        let pool = Arc::new(Pool::new(3));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut credits = Credits::of(pool.clone());
                    for _ in 0..1000 {
                        if credits.take() {
                            assert!(pool.free.load(Ordering::Relaxed) < 3);
                            credits.give_back();
                        }
                    }
                });
            }
        });
        assert_eq!(pool.free.load(Ordering::Relaxed), 3);
    }
}
