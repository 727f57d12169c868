//! Error codes, and the text of the last error.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// A code and what happened.
pub(crate) struct Refusal {
    pub(crate) code: c_int,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Refusal {
        Refusal {
            code: -code,
            message: message.into(),
        }
    }

    /// The whole chain of an error.
    pub(crate) fn of(code: c_int, error: &dyn Error) -> Refusal {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message += &format!(": {cause}");
            source = cause.source();
        }
        Refusal::new(code, message)
    }
}

/// Runs a call of the interface: what it gives, or its error's code. A panic is -ENOTRECOVERABLE.
pub(crate) fn call(work: impl FnOnce() -> Result<c_int, Refusal>) -> c_int {
    let done = catch_unwind(AssertUnwindSafe(work));
    let refusal = match done {
        Ok(Ok(value)) => return value,
        Ok(Err(refusal)) => refusal,
        Err(_) => Refusal::new(libc::ENOTRECOVERABLE, "libdray has panicked"),
    };
    let text: Vec<u8> = refusal.message.bytes().filter(|byte| *byte != 0).collect();
    LAST.with_borrow_mut(|last| *last = CString::new(text).unwrap_or_default());
    refusal.code
}

/// What the last error of this thread was about; "" if there was none. Valid until the thread's next
/// call of libdray.
#[unsafe(no_mangle)]
pub extern "C" fn dray_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// What a code means. The text lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn dray_strerror(code: c_int) -> *const c_char {
    const TEXTS: &[(c_int, &CStr)] = &[
        (0, c"success"),
        (libc::EINVAL, c"an argument is not valid"),
        (libc::EAGAIN, c"all slots are taken: poll completions first"),
        (
            libc::EBUSY,
            c"another thread is using the mover, or another process the work queue",
        ),
        (libc::ENODEV, c"there is no such work queue"),
        (libc::EIO, c"the work queue cannot be used"),
        (libc::ENOTSUP, c"the mover or this processor cannot do this"),
        (libc::ETIMEDOUT, c"no completion before the deadline"),
        (libc::ENOENT, c"there is nothing in flight, or no batch"),
        (libc::EBADF, c"the mover is closed"),
        (
            libc::E2BIG,
            c"a batch has more operations than the mover takes",
        ),
        (libc::EALREADY, c"a batch has begun already"),
        (libc::ENOTRECOVERABLE, c"libdray has panicked"),
    ];
    let found = TEXTS.iter().find(|(number, _)| -number == code);
    found.map_or(c"unknown code", |(_, text)| *text).as_ptr()
}
