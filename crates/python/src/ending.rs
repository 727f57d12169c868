//! The end of the interpreter. A thread that attaches to an interpreter that ends is unwound through the frames of this
//! module, which aborts the process: threads that come back from a wait by then stay where they are.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

static ENDING: AtomicBool = AtomicBool::new(false);
/// Threads that have found that it does not end, and are about to attach.
static ATTACHING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread ends the interpreter, and attaches until it is gone.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the interpreter ends, which it does on one of its threads alone.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst) && !ENDS.get()
}

/// # Errors
/// RuntimeError: the interpreter ends.
pub(crate) fn refuse() -> PyResult<()> {
    match is_ending() {
        true => Err(PyRuntimeError::new_err("the interpreter is about to end")),
        false => Ok(()),
    }
}

/// Waits while other threads of the interpreter run. If the interpreter ends meanwhile, it does not return.
pub(crate) fn detached<T: Send>(py: Python<'_>, wait: impl FnOnce() -> T + Send) -> T {
    let found = py.detach(|| {
        let found = wait();
        ATTACHING.fetch_add(1, Ordering::SeqCst);
        if is_ending() {
            ATTACHING.fetch_sub(1, Ordering::SeqCst);
            loop {
                thread::park();
            }
        }
        found
    });
    ATTACHING.fetch_sub(1, Ordering::SeqCst);
    found
}

/// From now on no other thread attaches here, and no mover or answer is begun.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    const LOOK: Duration = Duration::from_millis(1);
    ENDS.set(true);
    ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        while ATTACHING.load(Ordering::SeqCst) > 0 {
            thread::sleep(LOOK);
        }
    });
}

/// In a child of fork: threads that were about to attach are not in it.
#[pyfunction]
pub(crate) fn forked() {
    ATTACHING.store(0, Ordering::SeqCst);
}
