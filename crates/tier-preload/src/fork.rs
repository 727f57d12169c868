//! Around fork(3): nothing is out, the child finds this library in order, and gets an agent of its own.
//!
//! A child by another call has all of its memory too (see `mechanism/children.rs` of `dray-tier`), but no agent.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use dray_tier::mechanism::Quiet;

use crate::{HEAP, agent, own_process};

/// What holds everything still while a thread forks. Its locks are the forking thread's, and the
/// first of them lets one thread in at a time.
struct Held(UnsafeCell<Option<Quiet<'static>>>);

// SAFETY: used between `prepare` and `parent` or `child` alone, by the thread that forks.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));
/// The fork that is under way was prepared, in the process that has the agent.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// From now on, forks of the C library are prepared.
pub(crate) fn listen() {
    // SAFETY: three functions that may be called at any fork.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

extern "C" fn prepare() {
    // In a child by a bare system call, locks may be held by threads that are not there.
    if !own_process::is_this() {
        return;
    }
    let quiet = agent::engine().map(dray_tier::mechanism::Engine::quiet);
    HEAP.lock();
    // SAFETY: this thread has the heap's lock, so no other is here.
    unsafe { *HELD.0.get() = quiet };
    PREPARED.store(true, Ordering::Relaxed);
}

/// Whether this fork was prepared; the heap is open again.
fn ends() -> Option<Option<Quiet<'static>>> {
    if !PREPARED.swap(false, Ordering::Relaxed) {
        return None;
    }
    // SAFETY: as above.
    let quiet = unsafe { (*HELD.0.get()).take() };
    HEAP.unlock();
    Some(quiet)
}

extern "C" fn parent() {
    drop(ends());
}

extern "C" fn child() {
    if let Some(quiet) = ends() {
        // Its locks are the parent's threads'.
        std::mem::forget(quiet);
        agent::forget();
        agent::start();
    }
}
