//! What `src/task/sync.rs` has, of loom.

use std::collections::VecDeque;
use std::task::Waker;

use loom::sync::Mutex;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

#[derive(Debug)]
pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

impl AtomicWaker {
    pub(crate) fn new() -> AtomicWaker {
        AtomicWaker(loom::future::AtomicWaker::new())
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.0.register_by_ref(waker);
    }

    pub(crate) fn wake(&self) {
        self.0.wake();
    }

    pub(crate) fn take(&self) -> Option<Waker> {
        self.0.take_waker()
    }
}

/// As the lock-free queue: each call is one step for the others.
#[derive(Debug)]
pub(crate) struct ArrayQueue<T> {
    capacity: usize,
    values: Mutex<VecDeque<T>>,
}

impl<T> ArrayQueue<T> {
    pub(crate) fn new(capacity: usize) -> ArrayQueue<T> {
        ArrayQueue {
            capacity,
            values: Mutex::new(VecDeque::new()),
        }
    }

    pub(crate) fn push(&self, value: T) -> Result<(), T> {
        let mut values = self.values.lock().expect("no poison in a model");
        assert!(values.len() < self.capacity, "room for all numbers");
        values.push_back(value);
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.values
            .lock()
            .expect("no poison in a model")
            .pop_front()
    }
}
