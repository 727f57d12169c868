//! Futures that wait for a free cell, in the order in which they came.
//!
//! Each has a place of its own, which it leaves when it has a cell or is dropped: no wake-up is spent on
//! a future that is gone. Nothing is allocated after `Waiters::new`, and nothing locks.

use std::task::Waker;

use super::sync::{ArrayQueue, AtomicU8, AtomicUsize, AtomicWaker, Ordering, fence};

/// No future has the place.
const FREE: u8 = 0;
/// Its future waits, and its number is in the queue.
const WAITING: u8 = 1;
/// Its number was taken out of the queue, to wake its future.
const WOKEN: u8 = 2;
/// Its future has left it; who takes the number out of the queue frees it.
const LEFT: u8 = 3;

#[derive(Debug)]
struct Place {
    state: AtomicU8,
    waker: AtomicWaker,
}

/// Places, and the numbers of those whose futures wait.
#[derive(Debug)]
pub(super) struct Waiters {
    places: Box<[Place]>,
    free: ArrayQueue<u32>,
    queue: ArrayQueue<u32>,
    /// Numbers in the queue whose futures have left.
    left: AtomicUsize,
}

impl Waiters {
    /// For so many futures; at least 1.
    pub(super) fn new(most: u32) -> Waiters {
        let most = most.max(1);
        let place = |_| Place {
            state: AtomicU8::new(FREE),
            waker: AtomicWaker::new(),
        };
        let free = ArrayQueue::new(most as usize);
        for number in 0..most {
            // As many places as numbers.
            let _ = free.push(number);
        }
        Waiters {
            places: (0..most).map(place).collect(),
            free,
            queue: ArrayQueue::new(most as usize),
            left: AtomicUsize::new(0),
        }
    }

    /// A place at the end of the queue; `None`: all are taken. The caller must look for a free cell
    /// afterwards: one that becomes free later wakes it.
    pub(super) fn enter(&self, waker: &Waker) -> Option<u32> {
        let number = self.free.pop()?;
        let place = &self.places[number as usize];
        place.waker.register(waker);
        place.state.store(WAITING, Ordering::Release);
        // As many places as numbers.
        let _ = self.queue.push(number);
        fence(Ordering::SeqCst);
        Some(number)
    }

    /// Replaces the waker of a place. False if its future was woken already.
    pub(super) fn renew(&self, number: u32, waker: &Waker) -> bool {
        let place = &self.places[number as usize];
        place.waker.register(waker);
        place.state.load(Ordering::Acquire) == WAITING
    }

    /// Gives a place back. True if its future was woken: who does not take the cell that this was for
    /// must [wake the next](Waiters::wake_next).
    #[must_use]
    pub(super) fn leave(&self, number: u32) -> bool {
        let place = &self.places[number as usize];
        // Counted before its number can be taken out of the queue.
        self.left.fetch_add(1, Ordering::Relaxed);
        if exchange(place, WAITING, LEFT) {
            return false;
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        self.release(number);
        true
    }

    /// Wakes the first future that still waits. False if none does.
    pub(super) fn wake_next(&self) -> bool {
        // Either this look at the queue finds a future, or that future finds the cell.
        fence(Ordering::SeqCst);
        while let Some(number) = self.queue.pop() {
            let place = &self.places[number as usize];
            if exchange(place, WAITING, WOKEN) {
                // Should the place have another future by now, that one is polled again, and waits on.
                place.waker.wake();
                return true;
            }
            self.left.fetch_sub(1, Ordering::Relaxed);
            self.release(number);
        }
        false
    }

    /// Frees places whose futures have left before they were woken. Meanwhile `wake_next` may miss those
    /// that wait: the caller must call it afterwards if a cell is free.
    #[cold]
    pub(super) fn sweep(&self) {
        if self.left.load(Ordering::Relaxed) == 0 {
            return;
        }
        for _ in 0..self.places.len() {
            let Some(number) = self.queue.pop() else {
                break;
            };
            if self.places[number as usize].state.load(Ordering::Acquire) == LEFT {
                self.left.fetch_sub(1, Ordering::Relaxed);
                self.release(number);
            } else {
                // As many places as numbers.
                let _ = self.queue.push(number);
            }
        }
        fence(Ordering::SeqCst);
    }

    /// Frees a place that neither its future nor the queue has any more.
    fn release(&self, number: u32) {
        let place = &self.places[number as usize];
        drop(place.waker.take());
        place.state.store(FREE, Ordering::Release);
        // As many places as numbers.
        let _ = self.free.push(number);
    }
}

fn exchange(place: &Place, from: u8, to: u8) -> bool {
    let state = &place.state;
    let exchanged = state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    exchanged.is_ok()
}
