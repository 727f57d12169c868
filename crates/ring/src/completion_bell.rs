//! How submitters sleep until the device has written completion records.
//!
//! The handshake is the [doorbell](crate::Doorbell)'s, the other way round and for many sleepers. A sleeper says
//! that it waits, then looks for its record once more; the device writes the record, then looks whether any
//! waits. The bell wakes all of them, for it is not known whose record it was.

use std::time::Duration;

use crate::sync::{AtomicU32, Futex, Ordering, fence};

/// Rung by the device. All zero: nobody waits.
#[derive(Debug)]
#[repr(C)]
pub struct CompletionBell {
    /// Another number after each ring that has woken someone.
    rings: Futex,
    /// Not 0: a submitter waits. The device clears it when it wakes them, so that one that dies
    /// meanwhile costs one call.
    awaited: AtomicU32,
}

impl CompletionBell {
    /// With this word to sleep on.
    pub fn new(rings: Futex) -> CompletionBell {
        CompletionBell {
            rings,
            awaited: AtomicU32::new(0),
        }
    }

    /// Sleeps until it rings, unless `ended` finds that there is nothing to wait for; at most for
    /// `limit`. May return early.
    pub fn wait(&self, ended: impl FnOnce() -> bool, limit: Option<Duration>) {
        let seen = self.rings.word().load(Ordering::Acquire);
        self.awaited.swap(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !ended() {
            self.rings.wait(seen, limit);
        }
    }

    /// Wakes those who wait. What they wait for has been written before.
    #[inline]
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.awaited.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        if self.awaited.swap(0, Ordering::Relaxed) != 0 {
            self.rings.word().fetch_add(1, Ordering::Release);
            self.rings.wake_all();
        }
    }
}
