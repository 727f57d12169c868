//! Around fork(2): nothing is out, so that the child finds all of its memory, and the child gets an
//! agent of its own.

use std::cell::UnsafeCell;

use dray_tier::mechanism::Quiet;

use crate::{HEAP, agent};

/// What holds everything still while a thread forks. Its locks are the forking thread's, and the
/// first of them lets one thread in at a time.
struct Held(UnsafeCell<Option<Quiet<'static>>>);

// SAFETY: used between `prepare` and `parent` or `child` alone, by the thread that forks.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

/// From now on, forks of the C library are prepared.
pub(crate) fn listen() {
    // SAFETY: three functions that may be called at any fork.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

pub(crate) extern "C" fn prepare() {
    if let Some(engine) = agent::engine() {
        let quiet = engine.quiet();
        // SAFETY: `quiet` holds the engine's lock, so no other thread is here.
        unsafe { *HELD.0.get() = Some(quiet) };
    }
    HEAP.lock();
}

pub(crate) extern "C" fn parent() {
    HEAP.unlock();
    // SAFETY: this thread has put it there.
    drop(unsafe { (*HELD.0.get()).take() });
}

pub(crate) extern "C" fn child() {
    HEAP.unlock();
    // Its locks are the parent's threads'.
    // SAFETY: the only thread of this process.
    std::mem::forget(unsafe { (*HELD.0.get()).take() });
    agent::forget();
    agent::start();
}
