//! Futures that wait for a free cell, in the order in which they came.
//!
//! A cell that becomes free is given to the first of them before it is woken: no other future can take it. Each
//! has a waiter of its own, which it leaves when it has a cell or is dropped. Waiters of futures that have left
//! are taken out of the list when they come to its beginning, and all of them when no other waiter is free; those
//! that wait keep their places. Nothing is allocated after `Waiters::new`, and nothing locks.

use std::task::Waker;

use super::list::{List, MOST};
use super::sync::{AtomicU64, AtomicUsize, AtomicWaker, Ordering, fence};

/// Its future waits.
const WAITING: u32 = GONE - 1;
/// Its future was woken without a cell.
const WOKEN: u32 = GONE - 2;
/// Below: its future has been given this cell.
const CELLS: u32 = GONE - 2;
/// Its future has it no more. Who sets the second one of this and `OUT` frees the waiter.
const GONE: u32 = 1 << 30;
/// It is not in the list any more.
const OUT: u32 = 1 << 31;

/// What a waiter is: one of the constants in the lower half, and a count of the futures that it has had in the
/// upper one. Who has slept gives no cell to a later future by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State(u64);

impl State {
    fn what(self) -> u32 {
        self.0 as u32
    }

    fn with(self, what: u32) -> State {
        State(self.0 >> 32 << 32 | u64::from(what))
    }

    fn of_next_future(self) -> State {
        State(self.0.wrapping_add(1 << 32)).with(WAITING)
    }

    fn cell(self) -> Option<u32> {
        let cell = self.what() & !(GONE | OUT);
        (cell < CELLS).then_some(cell)
    }
}

#[derive(Debug)]
struct Waiter {
    state: AtomicU64,
    waker: AtomicWaker,
}

impl Waiter {
    fn state(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }

    fn exchange(&self, from: State, to: State) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.state
            .compare_exchange(from.0, to.0, order.0, order.1)
            .is_ok()
    }

    /// Sets one of `GONE` and `OUT`. Whether it was the second.
    fn set(&self, bit: u32) -> bool {
        let before = self.state.fetch_or(bit.into(), Ordering::AcqRel);
        State(before).what() & (GONE | OUT) != 0
    }
}

/// The first future that waits, as it was found.
#[derive(Debug)]
pub(super) struct First {
    number: u32,
    state: State,
}

/// Waiters, and the list of those whose futures wait.
#[derive(Debug)]
pub(super) struct Waiters {
    waiters: Box<[Waiter]>,
    list: List,
    /// At least as many as wait: counted before they are in the list, and until they have been given a cell.
    waiting: AtomicUsize,
}

impl Waiters {
    /// For so many futures, at least 1; one waiter more, since the last one stays in the list.
    pub(super) fn new(most: u32) -> Waiters {
        let list = List::new(most.clamp(1, MOST - 1) + 1);
        let waiter = |_| Waiter {
            state: AtomicU64::new(State(0).with(GONE | OUT).0),
            waker: AtomicWaker::new(),
        };
        Waiters {
            waiters: (0..list.count()).map(waiter).collect(),
            list,
            waiting: AtomicUsize::new(0),
        }
    }

    fn waiter(&self, number: u32) -> &Waiter {
        &self.waiters[number as usize]
    }

    /// Whether no future waits. True for one that is entering only if its own look for a free cell, which it
    /// takes afterwards, finds what is free now: both sides have a fence between their write and their look.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// A waiter at the end of the list; `None`: all are taken. The caller must look for a free cell
    /// afterwards: one that becomes free later is given to the first that waits.
    pub(super) fn enter(&self, waker: &Waker) -> Option<u32> {
        let number = self.list.take_free().or_else(|| {
            self.walk(true);
            self.list.take_free()
        })?;
        let waiter = self.waiter(number);
        waiter.waker.register(waker);
        let state = waiter.state().of_next_future();
        waiter.state.store(state.0, Ordering::Release);
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.list.append(number);
        fence(Ordering::SeqCst);
        Some(number)
    }

    /// The cell that a waiter was given, which the future leaves by that; or none, and `waker` is woken when there
    /// is one, or when all are woken.
    pub(super) fn take(&self, number: u32, waker: &Waker) -> Option<u32> {
        let waiter = self.waiter(number);
        waiter.waker.register(waker);
        let cell = waiter.state().cell()?;
        self.set_gone(number);
        Some(cell)
    }

    /// Gives a waiter back: the cell that it was given, which the caller must give back too.
    #[must_use]
    pub(super) fn leave(&self, number: u32) -> Option<u32> {
        let waiter = self.waiter(number);
        let state = waiter.state();
        if state.what() == WAITING {
            // Before another future can have the waiter.
            drop(waiter.waker.take());
            if waiter.exchange(state, state.with(WAITING | GONE)) {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
                return None;
            }
        }
        let cell = waiter.state().cell();
        self.set_gone(number);
        cell
    }

    /// The first future that waits.
    pub(super) fn first(&self) -> Option<First> {
        let (number, state) = self.walk(false)?;
        Some(First { number, state })
    }

    /// Gives a cell to the future that was found to be the first, and wakes it. False if it does not wait any
    /// more: there may be another first then.
    pub(super) fn give(&self, first: &First, cell: u32) -> bool {
        self.wake(first, cell)
    }

    /// Wakes all that wait, without a cell.
    pub(super) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        while let Some(first) = self.first() {
            self.wake(&first, WOKEN);
        }
    }

    fn wake(&self, first: &First, what: u32) -> bool {
        let waiter = self.waiter(first.number);
        let waits = waiter.exchange(first.state, first.state.with(what));
        if waits {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            // Should the waiter have another future by now, that one is polled again, and waits on.
            waiter.waker.wake();
        }
        waits
    }

    /// Takes out waiters whose futures do not wait, up to the first whose future does, or all.
    fn walk(&self, all: bool) -> Option<(u32, State)> {
        let waits = |number| {
            let state = self.waiter(number).state();
            (state.what() == WAITING).then_some(state)
        };
        let taken_out = |number| {
            if self.waiter(number).set(OUT) {
                self.list.put_free(number);
            }
        };
        self.list.walk(all, waits, taken_out)
    }

    /// The future of a waiter that does not wait has it no more.
    fn set_gone(&self, number: u32) {
        let waiter = self.waiter(number);
        // Before another future can have the waiter.
        drop(waiter.waker.take());
        if waiter.set(GONE) {
            self.list.put_free(number);
        }
    }
}
