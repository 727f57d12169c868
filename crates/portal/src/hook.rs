//! The functions of the C library that this library interposes.
//!
//! Each works before any constructor of ours has run, for other libraries' run before. What concerns
//! memory goes to the kernel directly, and not to the next library: looking that up allocates, and
//! allocators call mmap. Functions that take paths are originals where nothing is redirected.

pub mod call;
pub mod change;
mod environment;
pub mod exec;
pub mod file;
pub mod filter;
pub mod glob;
pub mod memory;
pub mod name;
pub mod open;
pub mod path;
pub mod signal;
pub mod spawn;
pub mod stream;
pub mod write;

use std::ffi::c_char;
use std::sync::atomic::{AtomicU8, Ordering};

use dray_wire::{NONE, SUPERVISE_VARIABLE};

#[cfg(feature = "preload")]
use crate::redirect;
use crate::redirect::text::{has_environment, variable};
use crate::syscall::Answer;

/// Whether the program runs under `dray run`. Otherwise every function is its original.
fn is_active() -> bool {
    static ACTIVE: AtomicU8 = AtomicU8::new(0);
    known(&ACTIVE, || crate::connect::socket_name().is_some())
}

/// Whether programs that cannot load this library are to be supervised.
fn looks_at_programs() -> bool {
    static LOOKS: AtomicU8 = AtomicU8::new(0);
    known(&LOOKS, || {
        is_active() && variable(SUPERVISE_VARIABLE).is_none_or(|value| value != NONE.as_bytes())
    })
}

/// What was found out once the environment was there.
fn known(answer: &AtomicU8, find_out: impl FnOnce() -> bool) -> bool {
    match answer.load(Ordering::Relaxed) {
        0 => {
            let found = find_out();
            if has_environment() {
                answer.store(if found { 1 } else { 2 }, Ordering::Relaxed);
            }
            found
        }
        known => known == 1,
    }
}

/// Fixes what the environment says before the program changes it.
#[cfg(feature = "preload")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        // A memory checker in the program initialises itself at the first call that it interposes, and its
        // initialisation calls this library: here, where nothing is half done.
        // SAFETY: a text with its end; the environment is as the C library has it.
        unsafe { libc::getenv(c"DRAY_SOCKET".as_ptr()) };
        if looks_at_programs() {
            exec::prepare();
            spawn::prepare();
        }
        crate::tsan::prepare();
        call::prepare();
        open::prepare();
        write::prepare();
        if redirect::redirection().is_some() {
            redirect::inner::lead(write::write as *const () as u64);
        }
    }
    begin
};

/// As the C library answers: the value, or -1 with `errno`.
fn libc_answer(answer: Answer) -> isize {
    match answer {
        Ok(value) => value as isize,
        Err(error) => {
            // SAFETY: it is this thread's.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: as above.
            unsafe { errno.write(error) };
            -1
        }
    }
}

/// Strings up to a null pointer.
type Strings = *const *const c_char;

/// How many strings there are.
///
/// # Safety
/// They are such.
pub(crate) unsafe fn count(strings: Strings) -> usize {
    let mut count = 0;
    loop {
        // SAFETY: the null pointer has not been reached.
        let at = unsafe { strings.add(count) };
        // SAFETY: as above.
        if unsafe { at.read() }.is_null() {
            return count;
        }
        count += 1;
    }
}

/// What a function answers when it fails.
trait Failed {
    /// The answer, with `errno` set.
    fn failed(error: i32) -> Self;
}

impl Failed for std::ffi::c_int {
    fn failed(error: i32) -> Self {
        libc_answer(Err(error)) as Self
    }
}

impl Failed for isize {
    fn failed(error: i32) -> Self {
        libc_answer(Err(error))
    }
}

impl Failed for std::ffi::c_long {
    fn failed(error: i32) -> Self {
        libc_answer(Err(error)) as Self
    }
}

impl<T> Failed for *mut T {
    fn failed(error: i32) -> Self {
        libc_answer(Err(error));
        std::ptr::null_mut()
    }
}
