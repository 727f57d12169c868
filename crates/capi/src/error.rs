//! Error codes, and the text of the last error.
//!
//! Nothing of an error allocates or locks: the error that the mover is busy may go to a signal handler.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::{self, Display, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use dray_spec::Status;

/// Bytes of a text; what is longer is cut.
const TEXT: usize = 512;

/// A text that ends with 0.
#[repr(C)]
struct Text {
    bytes: [u8; TEXT],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars().filter(|character| *character != '\0') {
            let end = self.len + character.len_utf8();
            // One byte stays for the 0.
            let Some(place) = self.bytes[..TEXT - 1].get_mut(self.len..end) else {
                return Err(fmt::Error);
            };
            character.encode_utf8(place);
            self.len = end;
        }
        Ok(())
    }
}

thread_local! {
    static LAST: RefCell<Text> = const {
        RefCell::new(Text {
            bytes: [0; TEXT],
            len: 0,
        })
    };
}

/// A code; what happened is the thread's last error from then on.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: c_int,
}

impl Refusal {
    /// The code, below 0.
    pub(crate) fn code(&self) -> c_int {
        self.code
    }

    pub(crate) fn new(code: c_int, message: impl Display) -> Refusal {
        Refusal::writing(code, |text| write!(text, "{message}"))
    }

    /// The whole chain of an error.
    pub(crate) fn of(code: c_int, error: &dyn Error) -> Refusal {
        Refusal::writing(code, |text| {
            write!(text, "{error}")?;
            let mut source = error.source();
            while let Some(cause) = source {
                write!(text, ": {cause}")?;
                source = cause.source();
            }
            Ok(())
        })
    }

    fn writing(code: c_int, write: impl FnOnce(&mut Text) -> fmt::Result) -> Refusal {
        // A signal handler that interrupts the writing leaves the text alone.
        let _ = LAST.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                last.bytes.fill(0);
                last.len = 0;
                // What is too long is cut.
                let _ = write(&mut last);
            }
        });
        Refusal { code: -code }
    }
}

/// Runs a call of the interface: what it gives, or its error's code. A panic is -ENOTRECOVERABLE.
pub(crate) fn call(work: impl FnOnce() -> Result<c_int, Refusal>) -> c_int {
    let done = catch_unwind(AssertUnwindSafe(work));
    match done {
        Ok(Ok(value)) => value,
        Ok(Err(refusal)) => refusal.code,
        Err(_) => Refusal::new(libc::ENOTRECOVERABLE, "libdray has panicked").code,
    }
}

/// What the last error of this thread was about; "" if there was none. Calls that succeed leave it as it is: read
/// it after a call that has returned an error. Valid until the thread's next call of libdray.
#[unsafe(no_mangle)]
pub extern "C" fn dray_last_error() -> *const c_char {
    LAST.with(|last| last.as_ptr().cast::<c_char>().cast_const())
}

/// What the status of a completion is called and means, as "0x03 page_fault: ..."; with bit 7 set "on a write". The
/// text lives for ever, and may be read by all threads.
#[unsafe(no_mangle)]
pub extern "C" fn dray_status_name(status: u8) -> *const c_char {
    static TEXTS: LazyLock<Box<[CString]>> = LazyLock::new(|| {
        let text = |status| CString::new(Status(status).to_string()).unwrap_or_default();
        (0..=u8::MAX).map(text).collect()
    });
    TEXTS[usize::from(status)].as_ptr()
}

fn reason_name(texts: &[&'static CStr], reason: u32) -> *const c_char {
    let text = texts.get(reason as usize);
    text.copied().unwrap_or(c"unknown reason").as_ptr()
}

/// Why the core executed an operation or a part of it, of a dray_core_reason. The text lives for ever, and may be read by
/// all threads.
#[unsafe(no_mangle)]
pub extern "C" fn dray_core_reason_name(reason: u32) -> *const c_char {
    const TEXTS: [&CStr; 9] = [
        c"a device executed it",
        c"the core was to execute all that it can",
        c"it is below the threshold",
        c"the cost model takes the core for faster",
        c"the cost model tries whether the core is faster by now",
        c"no work queue is open, or none leads to a device with this operation",
        c"every queue was full",
        c"a device met a page that was not present",
        c"the queues were disabled or reset, or are gone with their device",
    ];
    reason_name(&TEXTS, reason)
}

/// Why a queue executes nothing more, of a dray_queue_lost_reason. The text lives for ever, and may be read by all threads.
#[unsafe(no_mangle)]
pub extern "C" fn dray_queue_lost_name(reason: u32) -> *const c_char {
    const TEXTS: [&CStr; 5] = [
        c"the queue executes",
        c"the queue was disabled, or it or its device was reset",
        c"the device of the queue has ended or failed",
        c"the kernel refuses descriptors",
        c"another reason",
    ];
    reason_name(&TEXTS, reason)
}

/// What a code means, in any function that returns it; [`dray_last_error`] says what has happened. The text
/// lives for ever, and may be read by all threads.
#[unsafe(no_mangle)]
pub extern "C" fn dray_strerror(code: c_int) -> *const c_char {
    // Each is true of every function that returns the code; the last error says which of it has happened.
    const TEXTS: &[(c_int, &CStr)] = &[
        (0, c"success"),
        (
            libc::EINVAL,
            c"an argument or a field of a structure is not valid",
        ),
        (
            libc::EAGAIN,
            c"not enough slots are free: poll completions first",
        ),
        (
            libc::EBUSY,
            c"another call is using the mover, threads share it, another process has the work queue, or operations in flight or a batch are in the way",
        ),
        (
            libc::ENODEV,
            c"there is no work queue, or no device, as it is required",
        ),
        (
            libc::EACCES,
            c"this user may not open the device file of the work queue",
        ),
        (
            libc::EPERM,
            c"the kernel does not let this process use the work queue: see dray doctor",
        ),
        (
            libc::EFAULT,
            c"memory of a page list cannot be read or written",
        ),
        (
            libc::EIO,
            c"the work queue or the device cannot be used, has not copied a page list that it was required to copy, or still has the operation of a mover that was closed",
        ),
        (
            libc::ENOTSUP,
            c"the mover, its work queue or this processor cannot do this",
        ),
        (
            libc::ETIMEDOUT,
            c"the time was over before an operation had ended or a page list was copied",
        ),
        (
            libc::ENOENT,
            c"nothing is enqueued or in flight, nothing was started with the handle, or no batch has begun, or it is empty",
        ),
        (
            libc::EBADF,
            c"the mover is closed, or is of the process that has forked this one",
        ),
        (
            libc::E2BIG,
            c"a batch has more operations than the mover takes",
        ),
        (
            libc::EALREADY,
            c"a batch has begun already, or the operation of the handle has not ended, or has begun and cannot be taken back",
        ),
        (
            libc::ENOTRECOVERABLE,
            c"libdray has panicked: the mover can only be closed",
        ),
    ];
    let found = TEXTS.iter().find(|(number, _)| -number == code);
    found.map_or(c"unknown code", |(_, text)| *text).as_ptr()
}
