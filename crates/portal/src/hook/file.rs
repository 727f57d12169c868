//! close: programs that close whatever is open leave the connections of their portals open.

use std::ffi::c_int;

use super::libc_answer;
use crate::connect;
use crate::syscall::syscall;

/// `close(2)`.
///
/// # Safety
/// As for `close(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    // The program has never opened it.
    if connect::is_connection(fd) {
        return libc_answer(Err(libc::EBADF)) as c_int;
    }
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) }) as c_int
}
