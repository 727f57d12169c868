//! prctl and the call of seccomp(2) by number: from then on system calls may end the program.

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use super::{is_active, libc_answer};
use crate::quiet;
use crate::syscall::syscall;

/// `prctl(2)`.
///
/// # Safety
/// As for `prctl(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    if option == libc::PR_SET_SECCOMP && is_active() {
        quiet::begin();
    }
    let rest = [second, third, fourth, fifth].map(|argument| argument as usize);
    let [second, third, fourth, fifth] = rest;
    let arguments = [option as usize, second, third, fourth, fifth, 0];
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_prctl, arguments) }) as c_int
}

/// `seccomp(2)`, which the C library has no function for.
///
/// # Safety
/// As for `seccomp(2)`.
pub unsafe extern "C" fn seccomp(operation: c_uint, flags: c_uint, filter: *const c_void) -> c_int {
    let sets = [libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER];
    // Without a filter it asks which flags there are, and is refused.
    let given = operation == libc::SECCOMP_SET_MODE_STRICT || !filter.is_null();
    if sets.contains(&operation) && given && is_active() {
        quiet::begin();
    }
    let arguments = [operation as usize, flags as usize, filter.addr(), 0, 0, 0];
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_seccomp, arguments) }) as c_int
}
