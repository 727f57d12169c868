//! What clients and their driver share: a cell an operation, and queues of their numbers.

use std::cell::UnsafeCell;
use std::task::Waker;

use super::free_cells::FreeCells;
use super::sync::{ArrayQueue, AtomicU8, AtomicUsize, AtomicWaker, Ordering};
use crate::{ChannelError, Completed, Rejected, Request};

/// What a request became.
pub(super) type Answer<B> = Result<Completed<B>, Box<Rejected<B>>>;

/// The cell is free.
const FREE: u8 = 0;
/// The driver has it: a request, or an operation in flight.
const REQUESTED: u8 = 1;
/// The future has it: an answer.
const ANSWERED: u8 = 2;
/// The driver has it, and no future waits for the answer.
const ABANDONED: u8 = 3;

/// What is in a cell.
#[derive(Debug)]
enum Content<B> {
    Nothing,
    Request(Request<B>),
    Answer(Answer<B>),
}

/// One operation.
#[derive(Debug)]
struct Cell<B> {
    state: AtomicU8,
    content: UnsafeCell<Content<B>>,
    waker: AtomicWaker,
}

/// A request for which no cell is free.
pub(super) struct Refused<B> {
    pub(super) request: Request<B>,
    /// There is no driver any more.
    pub(super) closed: bool,
}

/// Cells and queues.
#[derive(Debug)]
pub(super) struct Shared<B> {
    cells: Box<[Cell<B>]>,
    free: FreeCells,
    requests: ArrayQueue<u32>,
    pub(super) driver: AtomicWaker,
    pub(super) clients: AtomicUsize,
}

// SAFETY: a cell's content is accessed by the side that its state names, and handed over with release and
// acquire; the rest is atomic.
unsafe impl<B: Send> Sync for Shared<B> {}

impl<B> Shared<B> {
    pub(super) fn new(slots: usize) -> Shared<B> {
        let slots = slots.max(1);
        let cell = |_| Cell {
            state: AtomicU8::new(FREE),
            content: UnsafeCell::new(Content::Nothing),
            waker: AtomicWaker::new(),
        };
        Shared {
            cells: (0..slots).map(cell).collect(),
            free: FreeCells::new(slots as u32),
            requests: ArrayQueue::new(slots),
            driver: AtomicWaker::new(),
            clients: AtomicUsize::new(1),
        }
    }

    /// Replaces a cell's content.
    ///
    /// # Safety
    /// The caller must be the one that the cell's state names.
    unsafe fn replace(&self, index: u32, content: Content<B>) -> Content<B> {
        let place = self.cells[index as usize].content.get();
        // SAFETY: by the caller's promise nothing else accesses it.
        unsafe { std::ptr::replace(place, content) }
    }

    /// Hands a request over: its cell; or the request back if no cell is free, and `waker` is woken
    /// when it has one. `waiter` is that of the future meanwhile.
    pub(super) fn request(
        &self,
        request: Request<B>,
        waiter: &mut Option<u32>,
        waker: &Waker,
    ) -> Result<u32, Refused<B>> {
        let Some(index) = self.free.take(waiter, waker) else {
            return Err(Refused {
                request,
                closed: self.free.is_closed(),
            });
        };
        // SAFETY: a number out of `free` belongs to the caller that took it.
        drop(unsafe { self.replace(index, Content::Request(request)) });
        let cell = &self.cells[index as usize];
        cell.waker.register(waker);
        cell.state.store(REQUESTED, Ordering::Release);
        // It has room for all numbers.
        let _ = self.requests.push(index);
        if self.free.is_closed() {
            self.refuse_all();
        } else {
            self.driver.wake();
        }
        Ok(index)
    }

    /// The next request, and its cell.
    pub(super) fn next_request(&self) -> Option<(u32, Request<B>)> {
        while let Some(index) = self.requests.pop() {
            // SAFETY: the driver takes numbers out of `requests`, whose cells are its own.
            match unsafe { self.replace(index, Content::Nothing) } {
                Content::Request(request) => return Some((index, request)),
                other => drop(other),
            }
        }
        None
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Gives the answer of a request that the driver has.
    pub(super) fn answer(&self, index: u32, answer: Answer<B>) {
        let cell = &self.cells[index as usize];
        // SAFETY: the cell is the driver's until the state says otherwise.
        drop(unsafe { self.replace(index, Content::Answer(answer)) });
        let handed =
            cell.state
                .compare_exchange(REQUESTED, ANSWERED, Ordering::AcqRel, Ordering::Acquire);
        match handed {
            Ok(_) => cell.waker.wake(),
            Err(_) => self.recycle(index),
        }
    }

    /// The answer, if it is there; the cell is free then.
    pub(super) fn take(&self, index: u32, waker: &Waker) -> Option<Answer<B>> {
        let cell = &self.cells[index as usize];
        cell.waker.register(waker);
        if cell.state.load(Ordering::Acquire) != ANSWERED {
            return None;
        }
        // SAFETY: an answered cell is its future's.
        let content = unsafe { self.replace(index, Content::Nothing) };
        self.recycle(index);
        match content {
            Content::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    /// No future waits for the answer of this cell any more.
    pub(super) fn abandon(&self, index: u32) {
        let cell = &self.cells[index as usize];
        let left =
            cell.state
                .compare_exchange(REQUESTED, ABANDONED, Ordering::AcqRel, Ordering::Acquire);
        if left.is_err() {
            self.recycle(index);
        }
    }

    /// A future does not wait for a cell any more.
    pub(super) fn leave(&self, waiter: &mut Option<u32>) {
        self.free.leave(waiter);
    }

    /// Frees a cell, which must be the caller's.
    fn recycle(&self, index: u32) {
        // SAFETY: the caller has it: an answered cell its future, an abandoned one the driver.
        drop(unsafe { self.replace(index, Content::Nothing) });
        let cell = &self.cells[index as usize];
        drop(cell.waker.take());
        cell.state.store(FREE, Ordering::Release);
        self.free.give_back(index);
    }

    /// The driver ends: what it has not begun is refused, and what comes is. Cells that a device holds are
    /// never free.
    pub(super) fn close(&self) {
        self.free.close();
        self.refuse_all();
    }

    fn refuse_all(&self) {
        while let Some((index, request)) = self.next_request() {
            let rejected = Rejected {
                error: ChannelError::Closed,
                buffers: request.into_buffers(),
            };
            self.answer(index, Err(Box::new(rejected)));
        }
    }
}
