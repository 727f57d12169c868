//! What `src/sync.rs` has, of loom.

use std::time::Duration;

use loom::sync::{Condvar, Mutex};

pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// An exchange, for loom does not know that a store which comes after what an exchange has replaced
/// comes after the exchange too, and would show what was exchanged in the end.
pub(crate) fn publish(place: &AtomicU64, value: u64) {
    place.swap(value, Ordering::Release);
}

pub(crate) fn relax() {
    loom::thread::yield_now();
}

/// As the kernel has it: comparing with the word and going to sleep is one step for those who wake.
#[derive(Debug)]
pub(crate) struct Futex {
    word: AtomicU32,
    queue: Mutex<()>,
    woken: Condvar,
}

impl Futex {
    pub(crate) fn new() -> Futex {
        Futex {
            word: AtomicU32::new(0),
            queue: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    pub(crate) fn wait(&self, value: u32, _: Option<Duration>) {
        let queue = self.queue.lock().expect("no poison in a model");
        if self.word.load(Ordering::Relaxed) == value {
            drop(self.woken.wait(queue).expect("no poison in a model"));
        }
    }

    pub(crate) fn wake_all(&self) {
        let _queue = self.queue.lock().expect("no poison in a model");
        self.woken.notify_all();
    }

    pub(crate) fn wake(&self) {
        let _queue = self.queue.lock().expect("no poison in a model");
        self.woken.notify_one();
    }
}
