//! errno during a call.

use std::ffi::c_int;

/// errno, which these functions of the C library leave alone.
pub(crate) struct Errno(c_int);

impl Errno {
    pub(crate) fn keep() -> Errno {
        // SAFETY: it is this thread's.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        Errno(unsafe { place.read() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: it is this thread's.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { place.write(self.0) };
    }
}
