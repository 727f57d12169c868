//! The atomics that the rings are made of. The loom tests compile the rings with loom's instead.

use std::time::Duration;

use rustix::thread::futex;

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Stores `value`, and what was stored before is seen with it.
#[inline]
pub(crate) fn publish(place: &AtomicU64, value: u64) {
    place.store(value, Ordering::Release);
}

/// Lets another thread go on.
#[cold]
pub(crate) fn relax() {
    rustix::thread::sched_yield();
}

/// A word that a thread can sleep on, in this process or, over shared memory, in several.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Futex(AtomicU32);

impl Futex {
    /// The word itself.
    #[inline]
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Sleeps while the word is `value`, at most for `limit`. May return early.
    pub fn wait(&self, value: u32, limit: Option<Duration>) {
        let limit = limit.and_then(|limit| limit.try_into().ok());
        // Woken, too late, interrupted, timed out: the caller looks again in any case.
        let _ = futex::wait(&self.0, futex::Flags::empty(), value, limit.as_ref());
    }

    /// Wakes all sleepers.
    pub fn wake_all(&self) {
        let _ = futex::wake(&self.0, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Wakes the sleeper.
    pub fn wake(&self) {
        // It fails for addresses that are not mapped only, and this one is.
        let _ = futex::wake(&self.0, futex::Flags::empty(), 1);
    }
}
