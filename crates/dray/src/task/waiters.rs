//! Futures that wait for a free cell, in the order in which they came.
//!
//! A cell that becomes free is given to the first of them before it is woken: no other future can take it. Each
//! has a waiter of its own, which it leaves when it has a cell or is dropped. Nothing is allocated after
//! `Waiters::new`, and nothing locks.

use std::task::Waker;

use super::sync::{ArrayQueue, AtomicU32, AtomicUsize, AtomicWaker, Ordering, fence};

/// No future has the waiter.
const FREE: u32 = u32::MAX;
/// Its future waits, and its number is in the queue.
const WAITING: u32 = u32::MAX - 1;
/// Its number was taken out of the queue, to wake its future without a cell.
const WOKEN: u32 = u32::MAX - 2;
/// Its future has left it; who takes the number out of the queue frees it.
const LEFT: u32 = u32::MAX - 3;
/// Below: its number was taken out of the queue, and its future has been given this cell.
const CELLS: u32 = u32::MAX - 3;

#[derive(Debug)]
struct Waiter {
    state: AtomicU32,
    waker: AtomicWaker,
}

/// Waiters, and the numbers of those whose futures wait.
#[derive(Debug)]
pub(super) struct Waiters {
    waiters: Box<[Waiter]>,
    free: ArrayQueue<u32>,
    queue: ArrayQueue<u32>,
    /// Numbers in the queue whose futures have left.
    left: AtomicUsize,
}

impl Waiters {
    /// For so many futures; at least 1.
    pub(super) fn new(most: u32) -> Waiters {
        let most = most.max(1);
        let waiter = |_| Waiter {
            state: AtomicU32::new(FREE),
            waker: AtomicWaker::new(),
        };
        let free = ArrayQueue::new(most as usize);
        for number in 0..most {
            // It has room for all numbers.
            let _ = free.push(number);
        }
        Waiters {
            waiters: (0..most).map(waiter).collect(),
            free,
            queue: ArrayQueue::new(most as usize),
            left: AtomicUsize::new(0),
        }
    }

    /// Whether no future waits. True for one that is entering only if its own look for a free cell, which it
    /// takes afterwards, finds what is free now: both sides have a fence between their write and their look.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// A waiter at the end of the queue; `None`: all are taken. The caller must look for a free cell
    /// afterwards: one that becomes free later is given to the first that waits.
    pub(super) fn enter(&self, waker: &Waker) -> Option<u32> {
        let number = self.free.pop()?;
        let waiter = &self.waiters[number as usize];
        waiter.waker.register(waker);
        waiter.state.store(WAITING, Ordering::Release);
        // It has room for all numbers.
        let _ = self.queue.push(number);
        fence(Ordering::SeqCst);
        Some(number)
    }

    /// The cell that a waiter was given, which frees the waiter; or none, and `waker` is woken when there is
    /// one, or when all are woken.
    pub(super) fn take(&self, number: u32, waker: &Waker) -> Option<u32> {
        let waiter = &self.waiters[number as usize];
        waiter.waker.register(waker);
        let cell = waiter.state.load(Ordering::Acquire);
        (cell < CELLS).then(|| {
            self.release(number);
            cell
        })
    }

    /// Gives a waiter back: the cell that it was given, which the caller must give back too.
    #[must_use]
    pub(super) fn leave(&self, number: u32) -> Option<u32> {
        let waiter = &self.waiters[number as usize];
        // Counted before its number can be taken out of the queue.
        self.left.fetch_add(1, Ordering::Relaxed);
        match exchange(waiter, WAITING, LEFT) {
            Ok(_) => None,
            Err(state) => {
                self.left.fetch_sub(1, Ordering::Relaxed);
                self.release(number);
                (state < CELLS).then_some(state)
            }
        }
    }

    /// Gives a cell to the first future that still waits, and wakes it. False if none does.
    pub(super) fn give(&self, cell: u32) -> bool {
        self.wake_first(cell)
    }

    /// Wakes all that wait, without a cell.
    pub(super) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        while self.wake_first(WOKEN) {}
    }

    fn wake_first(&self, state: u32) -> bool {
        while let Some(number) = self.queue.pop() {
            let waiter = &self.waiters[number as usize];
            if exchange(waiter, WAITING, state).is_ok() {
                // Should the waiter have another future by now, that one is polled again, and waits on.
                waiter.waker.wake();
                return true;
            }
            self.left.fetch_sub(1, Ordering::Relaxed);
            self.release(number);
        }
        false
    }

    /// Frees waiters whose futures have left before a cell was free. Meanwhile `give` may miss those that wait:
    /// the caller must look for a free cell afterwards. Each number that stays goes once to the end of the queue:
    /// a `give`, an `enter` or another sweep at the same time can change the order.
    #[cold]
    pub(super) fn sweep(&self) {
        if self.left.load(Ordering::Relaxed) == 0 {
            return;
        }
        // Those in the queue, not all waiters: one that was given a cell is not in it, and the first that waits
        // would go behind the others.
        for _ in 0..self.queue.len() {
            let Some(number) = self.queue.pop() else {
                break;
            };
            if self.waiters[number as usize].state.load(Ordering::Acquire) == LEFT {
                self.left.fetch_sub(1, Ordering::Relaxed);
                self.release(number);
            } else {
                // It has room for all numbers.
                let _ = self.queue.push(number);
            }
        }
        fence(Ordering::SeqCst);
    }

    /// Frees a waiter that neither its future nor the queue has any more.
    fn release(&self, number: u32) {
        let waiter = &self.waiters[number as usize];
        drop(waiter.waker.take());
        waiter.state.store(FREE, Ordering::Release);
        // It has room for all numbers.
        let _ = self.free.push(number);
    }
}

/// Changes a state; or the state that it was in.
fn exchange(waiter: &Waiter, from: u32, to: u32) -> Result<u32, u32> {
    let state = &waiter.state;
    state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
}
