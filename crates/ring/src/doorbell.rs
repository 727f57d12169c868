//! How an idle thread sleeps without missing what comes in meanwhile.
//!
//! Dekker's handshake. The sleeper says that it sleeps, then looks once more; who brings something
//! puts it down, then looks whether a thread sleeps. With a full fence between the two steps on
//! each side at least one of them sees the other. Ringing costs one fence and one load of a line
//! that is not written while the sleeper is awake.

use std::time::Duration;

use crate::completion_bell::CompletionBell;
use crate::sync::{AtomicU32, Futex, Ordering, fence};

/// Who submits says where in the program it does.
const TRACED: u32 = 1 << 31;
/// Who submits is to wait a moment, so that the owner sees what it has submitted before it goes on.
const WATCHED: u32 = 1 << 30;
/// Beside [`TRACED`]: with CPU times.
const TIMED: u32 = 1 << 29;
const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// A thread's doorbell. All zero: no thread sleeps.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Doorbell {
    state: Futex,
    /// A bit for each thread of the device that waits for a processor much of its time, [`TRACED`], [`WATCHED`] and [`TIMED`].
    /// Beside the state, for who rings reads that line anyway.
    delayed: AtomicU32,
    /// Not 0: the owner looks by itself, at short intervals, and who rings makes no system call.
    polled: AtomicU32,
    /// For those who wait for what the owner does.
    completions: CompletionBell,
}

/// How long an owner sleeps at most that looks by itself.
const NAP: Duration = Duration::from_micros(50);

impl Doorbell {
    /// With this state, and nothing delayed.
    pub fn new(state: Futex, completions: CompletionBell) -> Doorbell {
        Doorbell {
            state,
            delayed: AtomicU32::new(0),
            polled: AtomicU32::new(0),
            completions,
        }
    }

    /// Whether who submits has more to do: a thread of the device waits for a processor, as far as they have said, or
    /// submissions are traced.
    #[inline]
    pub fn is_delayed(&self) -> bool {
        self.delayed.load(Ordering::Relaxed) != 0
    }

    /// Whether it is a thread of the device that waits.
    pub fn lacks_processor(&self) -> bool {
        self.delayed.load(Ordering::Relaxed) & !(TRACED | WATCHED | TIMED) != 0
    }

    /// Whether submitters are watched.
    pub fn is_watched(&self) -> bool {
        self.delayed.load(Ordering::Relaxed) & WATCHED != 0
    }

    /// Whether submissions say where in the program they are made.
    pub fn is_traced(&self) -> bool {
        self.delayed.load(Ordering::Relaxed) & TRACED != 0
    }

    /// Whether they say how much CPU time their threads have used, too.
    pub fn is_timed(&self) -> bool {
        self.delayed.load(Ordering::Relaxed) & TIMED != 0
    }

    /// From now on who submits says where in the program it does; `timed`: and how much CPU time its thread has used.
    pub fn trace(&self, timed: bool) {
        let bits = if timed { TRACED | TIMED } else { TRACED };
        self.delayed.fetch_or(bits, Ordering::Relaxed);
    }

    /// From now on who submits waits a moment, so that the owner sees the memory as it was submitted, or does not.
    pub fn watch(&self, watched: bool) {
        self.set_delayed(WATCHED, watched);
    }

    /// Says it of the thread with this bit, one of the lower 29.
    pub fn set_delayed(&self, bit: u32, delayed: bool) {
        match delayed {
            true => self.delayed.fetch_or(bit, Ordering::Relaxed),
            false => self.delayed.fetch_and(!bit, Ordering::Relaxed),
        };
    }

    /// What the owner rings when it has written completion records.
    #[inline]
    pub fn completions(&self) -> &CompletionBell {
        &self.completions
    }

    /// Whether the owner looks by itself.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.polled.load(Ordering::Relaxed) != 0
    }

    /// Has the owner look by itself from now on, for one who rings and may not make system calls. Makes the
    /// last one, if the owner sleeps.
    pub fn begin_polling(&self) {
        self.polled.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.wake();
    }

    /// All who asked for it are gone.
    pub fn end_polling(&self) {
        self.polled.store(0, Ordering::Relaxed);
    }

    /// Wakes the owner, if it sleeps. What it is to find has been stored before.
    #[inline]
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.state.word().load(Ordering::Relaxed) == ASLEEP && !self.is_polled() {
            self.wake();
        }
    }

    /// Sleeps until it rings, unless `pending` finds that there is something to do; at most for
    /// `limit`. For the owner alone.
    pub fn sleep(&self, pending: impl FnOnce() -> bool, limit: Option<Duration>) {
        self.state.word().swap(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // As one of the two fences sees to it: an owner that does not see this yet is awoken.
        let nap = self.is_polled().then_some(NAP);
        if !pending() {
            self.state.wait(ASLEEP, nap.or(limit));
        }
        self.state.word().swap(AWAKE, Ordering::Relaxed);
    }

    #[cold]
    fn wake(&self) {
        // Of many who see the sleeper one makes the call.
        if self.state.word().swap(AWAKE, Ordering::Relaxed) == ASLEEP {
            self.state.wake();
        }
    }
}
