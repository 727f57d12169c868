//! The queues of a port, shared by threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Queue;

/// A queue that no other thread uses meanwhile.
pub type QueueGuard<'a> = MutexGuard<'a, Queue>;

/// A queue and its lock, on cache lines of their own: neighbours are used by different threads.
#[derive(Debug)]
#[repr(align(128))]
struct Locked(Mutex<Queue>);

/// The queues of a port: even ones to the guest, odd ones from it. Each has a lock, which is held while a
/// burst is received, while packets are sent for a turn at most, or for one change by a message. A thread holds at most one of them.
#[derive(Debug, Clone)]
pub struct Queues(Arc<[Locked]>);

impl Queues {
    /// So many.
    pub(crate) fn new(count: usize) -> Queues {
        let locked = |at| Locked(Mutex::new(Queue::new(at)));
        Queues((0..count).map(locked).collect())
    }

    /// Waits until no other thread uses the queue.
    #[inline]
    pub fn lock(&self, index: usize) -> QueueGuard<'_> {
        // A thread that panicked ends the program.
        let queue = self.0[index].0.lock();
        queue.unwrap_or_else(PoisonError::into_inner)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = QueueGuard<'_>> {
        (0..self.0.len()).map(|at| self.lock(at))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
