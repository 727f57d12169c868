//! The tree as a plain directory, where namespaces or FUSE are forbidden (`dray run --redirect`).
//!
//! Names below `/sys/bus/dsa`, `/dev/dsa` and so on are looked up in a directory of the launcher's
//! ([`path`]). Reads are of files that the launcher keeps up to date; writes and opens of nodes are
//! requests to it ([`ask`]). The file of a descriptor is found from the descriptor itself
//! ([`file`]), so that dup, fork and exec need no bookkeeping.
//!
//! Nothing here allocates: open and write are called in signal handlers and between fork and exec.

pub(crate) mod ask;
pub(crate) mod entry;
pub(crate) mod file;
#[cfg(feature = "preload")]
pub(crate) mod inner;
pub(crate) mod path;
pub(crate) mod text;

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use dray_wire::{MARK, REDIRECT_VARIABLE, Redirection};

use crate::syscall::{give_way, syscall};

/// Longest value of the variable.
const LONGEST: usize = 4096;

/// As far as it is known whether paths are redirected.
const UNKNOWN: u8 = 0;
const ASKING: u8 = 1;
const NO: u8 = 2;
const YES: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// The value of the variable: the program may overwrite its environment.
static VALUE: [AtomicU8; LONGEST] = [const { AtomicU8::new(0) }; LONGEST];
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Device of the file system that the directory's files are on.
static DEVICE: AtomicU64 = AtomicU64::new(0);

/// Where paths lead to; `None` if they stay as they are.
#[inline]
pub(crate) fn redirection() -> Option<Redirection<'static>> {
    match STATE.load(Ordering::Acquire) {
        NO => None,
        YES => kept(),
        _ => look(),
    }
}

/// Device of the file system that the directory's files are on.
pub(crate) fn device() -> u64 {
    DEVICE.load(Ordering::Relaxed)
}

fn kept() -> Option<Redirection<'static>> {
    let bytes = BYTES.load(Ordering::Relaxed);
    // SAFETY: they were written before the state became what it is, and are not written again.
    let value = unsafe { std::slice::from_raw_parts(VALUE.as_ptr().cast::<u8>(), bytes) };
    Redirection::parse(value)
}

#[cold]
fn look() -> Option<Redirection<'static>> {
    let order = Ordering::AcqRel;
    while let Err(state) = STATE.compare_exchange(UNKNOWN, ASKING, order, Ordering::Acquire) {
        match state {
            NO => return None,
            YES => return kept(),
            _ => give_way(),
        }
    }
    let found = read_variable();
    let state = match found {
        true => YES,
        false if text::has_environment() => NO,
        false => UNKNOWN,
    };
    STATE.store(state, Ordering::Release);
    found.then(kept).flatten()
}

/// Whether the variable names a directory that is there.
fn read_variable() -> bool {
    let Some(value) = text::variable(REDIRECT_VARIABLE) else {
        return false;
    };
    let Some(redirection) = Redirection::parse(value).filter(|_| value.len() <= LONGEST) else {
        return false;
    };
    for (place, byte) in VALUE.iter().zip(value) {
        place.store(*byte, Ordering::Relaxed);
    }
    BYTES.store(value.len(), Ordering::Relaxed);
    // A file, since its device can be another one than its directory's (overlayfs).
    let mut mark = text::Text::<LONGEST>::new();
    let fits = mark.push(redirection.root) && mark.push(b"/") && mark.push(MARK.as_bytes());
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    let arguments = [mark.as_ptr().addr(), stat.as_mut_ptr().addr(), 0, 0, 0, 0];
    // SAFETY: a text with its end, and room for the answer.
    let there = fits && unsafe { syscall(libc::SYS_stat, arguments) }.is_ok();
    // SAFETY: all zero is one as well.
    let stat = unsafe { stat.assume_init() };
    DEVICE.store(stat.st_dev, Ordering::Relaxed);
    there
}
