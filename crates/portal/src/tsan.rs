//! ThreadSanitizer in the program (`dray run --sanitize=thread`): the device is a set of its fibers.
//!
//! When a descriptor is submitted, a fiber that begins after all that the thread did so far reads the sources, and writes the
//! destinations and the completion record, with no order to what the thread does next. What it did is released for the
//! record, and acquired by each thread that finds the record written ([`reads`]). So ThreadSanitizer itself judges
//! accesses of the program against those of the device.

mod callers;
mod fibers;
mod pending;
pub mod reads;
mod records;
pub mod report;
mod runtime;
mod submission;
mod vectors;
pub mod writes;

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, Ordering};

use dray_wire::{SANITIZE_VARIABLE, THREAD};
use thiserror::Error;

use crate::next::Next;
use crate::redirect::text::variable;
use crate::syscall::{pid, syscall};
use runtime::Runtime;
pub(crate) use submission::{Queue, watched};

/// The program has no runtime of ThreadSanitizer in a shared object, so that its reads of records cannot be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "--sanitize=thread: this program does not call ThreadSanitizer in a shared object: build it with -fsanitize=thread (gcc), \
     or -fsanitize=thread -shared-libsan (clang)"
)]
pub(crate) struct Missing;

static ACTIVE: AtomicBool = AtomicBool::new(false);
static PREPARED: AtomicBool = AtomicBool::new(false);
static BLIND: AtomicBool = AtomicBool::new(false);
/// At a fork.
#[cfg(feature = "preload")]
static FORKS_WITH_THREADS: AtomicBool = AtomicBool::new(false);
/// That this process is blind.
static SAID: AtomicBool = AtomicBool::new(false);
static MMAP: Next = Next::new(c"mmap");
static MUNMAP: Next = Next::new(c"munmap");

/// Whether accesses of the device are reported to ThreadSanitizer.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

fn is_wanted() -> bool {
    variable(SANITIZE_VARIABLE).is_some_and(|value| value == THREAD.as_bytes())
}

/// From now on mmap(2) and munmap(2) go to the runtime, which forgets what the program did to memory that is mapped anew.
#[cfg(feature = "preload")]
pub(crate) fn prepare() {
    if is_wanted() && Runtime::find().is_some() && MMAP.address() != 0 && MUNMAP.address() != 0 {
        PREPARED.store(true, Ordering::Release);
        // SAFETY: the functions do what is allowed at a fork.
        unsafe { libc::pthread_atfork(Some(before_fork), None, Some(in_child)) };
    }
}

/// Whether the runtime ignores what this process does: it was forked by one with threads, fibers among them. It goes on to look
/// at fibers, and would know of no order between them and the threads.
fn is_blind() -> bool {
    BLIND.load(Ordering::Relaxed)
}

/// The runtime has a thread of its own as soon as the program has a second one.
#[cfg(feature = "preload")]
extern "C" fn before_fork() {
    let threads = threads();
    let with_threads = is_active() || threads.is_none_or(|threads| threads > 2);
    FORKS_WITH_THREADS.store(with_threads, Ordering::Relaxed);
}

#[cfg(feature = "preload")]
extern "C" fn in_child() {
    if FORKS_WITH_THREADS.load(Ordering::Relaxed) {
        BLIND.store(true, Ordering::Relaxed);
    }
}

/// Threads of this process, by the links of the directory that has one for each, and two of its own.
#[cfg(feature = "preload")]
fn threads() -> Option<u64> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    let path = c"/proc/self/task";
    let arguments = [path.as_ptr().addr(), stat.as_mut_ptr().addr(), 0, 0, 0, 0];
    // SAFETY: a path, and room for the answer.
    unsafe { syscall(libc::SYS_stat, arguments) }.ok()?;
    // SAFETY: the kernel has written it.
    let links = unsafe { stat.assume_init() }.st_nlink;
    links.checked_sub(2)
}

type Mmap =
    unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
type Munmap = unsafe extern "C" fn(*mut c_void, usize) -> c_int;

/// The runtime's mmap(2) and munmap(2), where calls are to go through it.
#[inline]
pub(crate) fn memory_calls() -> Option<(Mmap, Munmap)> {
    if !PREPARED.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: it is null or the function of that name.
    let mmap: Option<Mmap> = unsafe { transmute(MMAP.address()) };
    // SAFETY: as above.
    let munmap: Option<Munmap> = unsafe { transmute(MUNMAP.address()) };
    mmap.zip(munmap)
}

/// The program is about to change its mappings: what this thread has polled is looked at while it is there.
pub(crate) fn settle() {
    if is_active() {
        pending::resolve(0);
    }
}

/// Memory is given back, or was just mapped: it has no records.
pub(crate) fn forget(at: usize, bytes: usize) {
    if is_active() {
        records::forget_within(at as u64, bytes as u64);
    }
}

/// In a child: threads that had fibers are not there.
pub(crate) fn forked() {
    fibers::forked();
    records::forked();
}

/// Looks for ThreadSanitizer, if the session wants it. Not in a signal handler.
///
/// # Errors
/// It is not there as it is needed.
pub(crate) fn look() -> Result<(), Missing> {
    if is_blind() && !SAID.swap(true, Ordering::Relaxed) {
        say_blind();
    }
    if is_active() || !is_wanted() {
        return Ok(());
    }
    let runtime = Runtime::find()
        .filter(|_| reads::are_seen())
        .ok_or(Missing)?;
    report::look_up();
    fibers::begin(runtime);
    ACTIVE.store(true, Ordering::Release);
    Ok(())
}

fn say_blind() {
    let text = format!(
        "dray: --sanitize=thread: process {}, forked by one with threads, is not looked at: ThreadSanitizer ignores what it does\n",
        pid()
    );
    let arguments = [2, text.as_ptr().addr(), text.len(), 0, 0, 0];
    // SAFETY: the text is there; nobody else could be told of a failure.
    let _ = unsafe { syscall(libc::SYS_write, arguments) };
}
