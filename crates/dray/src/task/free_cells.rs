//! Numbers of free cells, and the futures that wait for one.

use std::task::Waker;

use super::sync::{ArrayQueue, AtomicBool, Ordering, fence};
use super::waiters::Waiters;

/// Futures that wait in order, without being polled again and again.
const MOST_WAITERS: u32 = 1024;
/// Waiters for futures that have left: those are looked for once in so many drops.
const MOST_LEFT: u32 = 256;

/// Cells that no operation has. Futures get them in the order in which they asked: one that comes while others
/// wait is behind them. A future that waits keeps the number of its waiter.
#[derive(Debug)]
pub(super) struct FreeCells {
    free: ArrayQueue<u32>,
    waiters: Waiters,
    closed: AtomicBool,
}

impl FreeCells {
    /// The numbers below `count`, which is at least 1.
    pub(super) fn new(count: u32) -> FreeCells {
        FreeCells::with_waiters(count, MOST_WAITERS + MOST_LEFT)
    }

    pub(super) fn with_waiters(count: u32, most_waiters: u32) -> FreeCells {
        let free = ArrayQueue::new(count as usize);
        for number in 0..count {
            // It has room for all numbers.
            let _ = free.push(number);
        }
        FreeCells {
            free,
            waiters: Waiters::new(most_waiters),
            closed: AtomicBool::new(false),
        }
    }

    /// The number of a free cell; or none, and `waker` is woken when there is one for this future, or when no
    /// cell becomes free any more. `waiter` is that of the future.
    #[inline]
    pub(super) fn take(&self, waiter: &mut Option<u32>, waker: &Waker) -> Option<u32> {
        if waiter.is_none()
            && self.waiters.is_empty()
            && let Some(cell) = self.free.pop()
        {
            return Some(cell);
        }
        self.wait(waiter, waker)
    }

    #[cold]
    fn wait(&self, waiter: &mut Option<u32>, waker: &Waker) -> Option<u32> {
        if waiter.is_none() {
            *waiter = self.waiters.enter(waker);
            self.give_free();
        }
        let Some(number) = *waiter else {
            // Too many wait: this one asks again.
            waker.wake_by_ref();
            return None;
        };
        let cell = self.waiters.take(number, waker)?;
        *waiter = None;
        Some(cell)
    }

    /// The future does not wait any more. A cell that it was given goes to the next one.
    pub(super) fn leave(&self, waiter: &mut Option<u32>) {
        let given = waiter.take().and_then(|number| self.waiters.leave(number));
        if let Some(cell) = given {
            self.give_back(cell);
        }
    }

    /// Frees a cell: the first future that waits gets it.
    pub(super) fn give_back(&self, cell: u32) {
        // It has room for all numbers.
        let _ = self.free.push(cell);
        // Either this look at the waiters finds a future, or that future finds the cell.
        fence(Ordering::SeqCst);
        if !self.waiters.is_empty() {
            self.give_free();
        }
    }

    /// No cell becomes free any more: wakes all that wait.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.waiters.wake_all();
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Gives free cells to the futures that wait, in their order, as long as there are both.
    #[cold]
    fn give_free(&self) {
        while let Some(first) = self.waiters.first()
            && let Some(cell) = self.free.pop()
        {
            if !self.waiters.give(&first, cell) {
                let _ = self.free.push(cell);
                // A future that came meanwhile has not found the cell: as in `give_back`.
                fence(Ordering::SeqCst);
            }
        }
    }
}
