//! Numbers of free cells, and the futures that wait for one.

use std::task::Waker;

use super::sync::{ArrayQueue, AtomicBool, Ordering, fence};
use super::waiters::Waiters;

/// Futures that wait without being polled again and again.
const MOST_WAITERS: u32 = 1024;

/// Cells that no operation has. A future that waits for one keeps its place in the queue beside itself.
#[derive(Debug)]
pub(super) struct FreeCells {
    free: ArrayQueue<u32>,
    waiters: Waiters,
    closed: AtomicBool,
}

impl FreeCells {
    /// The numbers below `count`, which is at least 1.
    pub(super) fn new(count: u32) -> FreeCells {
        FreeCells::with_waiters(count, MOST_WAITERS)
    }

    pub(super) fn with_waiters(count: u32, most_waiters: u32) -> FreeCells {
        let free = ArrayQueue::new(count as usize);
        for number in 0..count {
            // As many places as numbers.
            let _ = free.push(number);
        }
        FreeCells {
            free,
            waiters: Waiters::new(most_waiters),
            closed: AtomicBool::new(false),
        }
    }

    /// The number of a free cell; or none, and `waker` is woken when there may be one. `place` is where
    /// the future waits.
    pub(super) fn take(&self, place: &mut Option<u32>, waker: &Waker) -> Option<u32> {
        let cell = self.free.pop().or_else(|| self.wait(place, waker))?;
        self.leave(place);
        Some(cell)
    }

    #[cold]
    fn wait(&self, place: &mut Option<u32>, waker: &Waker) -> Option<u32> {
        if let Some(number) = *place {
            if self.waiters.renew(number, waker) {
                return None;
            }
            // Another future has taken the cell that this one was woken for.
            let _ = self.waiters.leave(number);
        }
        *place = self.waiters.enter(waker).or_else(|| {
            self.waiters.sweep();
            self.wake_for_free();
            self.waiters.enter(waker)
        });
        if place.is_none() {
            // Too many wait: this one asks again.
            waker.wake_by_ref();
        }
        self.free.pop()
    }

    /// The future does not wait any more. If it was woken for a cell that it does not take, the next one
    /// is woken.
    pub(super) fn leave(&self, place: &mut Option<u32>) {
        if let Some(number) = place.take()
            && self.waiters.leave(number)
        {
            self.wake_for_free();
        }
    }

    /// Frees a cell, and wakes the next future that waits.
    pub(super) fn give_back(&self, cell: u32) {
        // As many places as numbers.
        let _ = self.free.push(cell);
        self.waiters.wake_next();
    }

    /// No cell becomes free any more: wakes all that wait.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        while self.waiters.wake_next() {}
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Wakes the next future that waits if there is something for it.
    #[cold]
    fn wake_for_free(&self) {
        fence(Ordering::SeqCst);
        if self.is_closed() {
            while self.waiters.wake_next() {}
        } else if !self.free.is_empty() {
            self.waiters.wake_next();
        }
    }
}
