//! ThreadSanitizer in the program (`dray run --sanitize=thread`): the device is a set of its fibers.
//!
//! When a descriptor is submitted, a fiber that begins after all that the thread did so far reads the sources, and writes the
//! destinations and the completion record, with no order to what the thread does next. What it did is released for the
//! record, and acquired by each thread that finds the record written ([`reads`]). So ThreadSanitizer itself judges
//! accesses of the program against those of the device.

mod callers;
mod fibers;
pub mod reads;
mod records;
pub mod report;
mod runtime;
mod submission;
mod vectors;

use std::sync::atomic::{AtomicBool, Ordering};

use dray_wire::{SANITIZE_VARIABLE, THREAD};
use thiserror::Error;

use crate::redirect::text::variable;
use runtime::Runtime;
pub(crate) use submission::{Queue, watched};

/// Why the program's accesses cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Obstacle {
    /// It has no runtime of ThreadSanitizer.
    #[error(
        "--sanitize=thread: this program has no ThreadSanitizer: build it with -fsanitize=thread"
    )]
    Missing,
    /// Reads of records are not seen.
    #[error(
        "--sanitize=thread: this program has ThreadSanitizer linked into it, and its reads of records cannot be seen: \
         build it with -shared-libsan (clang), or without -static-libtsan (gcc)"
    )]
    Static,
}

static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether accesses of the device are reported to ThreadSanitizer.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Looks for ThreadSanitizer, if the session wants it. Not in a signal handler.
///
/// # Errors
/// It is not there as it is needed.
pub(crate) fn look() -> Result<(), Obstacle> {
    if is_active() || variable(SANITIZE_VARIABLE).is_none_or(|value| value != THREAD.as_bytes()) {
        return Ok(());
    }
    let runtime = Runtime::find().ok_or(Obstacle::Missing)?;
    if !reads::are_seen() {
        return Err(Obstacle::Static);
    }
    fibers::begin(runtime);
    ACTIVE.store(true, Ordering::Release);
    Ok(())
}
