//! Around fork(3): nothing is out, the child finds this library in order, and gets an agent of its own.
//!
//! A child by another call has all of its memory too (see `mechanism/children.rs` of `dray-tier`), but no agent.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use dray_tier::mechanism::Quiet;

use crate::{agent, own_process};

/// What holds everything still while a thread forks.
struct Held(UnsafeCell<Option<Quiet<'static>>>);

// SAFETY: used between `prepare` and `parent` or `child` alone, by the thread that forks: the C library lets one in at a time.
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
    // Of dray's locks this one alone may be held: the agent must read the event of the fork before it returns.
    let quiet = agent::engine().map(dray_tier::mechanism::Engine::quiet);
    // SAFETY: as above.
    unsafe { *HELD.0.get() = quiet };
    PREPARED.store(true, Ordering::Relaxed);
}

/// If this fork was prepared, what it has held.
fn ends() -> Option<Option<Quiet<'static>>> {
    let prepared = PREPARED.swap(false, Ordering::Relaxed);
    // SAFETY: as above.
    prepared.then(|| unsafe { (*HELD.0.get()).take() })
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
