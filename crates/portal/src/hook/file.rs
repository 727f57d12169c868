//! close, close_range, dup2 and similar: programs that close all descriptors or replace a given one leave the
//! connections of their portals open.

use std::ffi::{c_int, c_uint};

use super::{Failed, libc_answer};
use crate::next::Next;
use crate::remote::{connection_within, is_connection, vacate};
use crate::syscall::{Answer, syscall};

/// `close(2)`.
///
/// # Safety
/// As for `close(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    // The program has never opened it.
    if is_connection(fd) {
        return libc_answer(Err(libc::EBADF)) as c_int;
    }
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) }) as c_int
}

/// Closes the descriptors of a range but those of connections.
fn close_between(first: c_uint, last: c_uint, flags: c_int) -> Answer {
    let call = |first: c_uint, last: c_uint| {
        let arguments = [first as usize, last as usize, flags as usize, 0, 0, 0];
        // SAFETY: the program closes what it has opened.
        unsafe { syscall(libc::SYS_close_range, arguments) }
    };
    let highest = |number: c_uint| c_int::try_from(number).unwrap_or(c_int::MAX);
    let mut from = first;
    while let Some(fd) = connection_within(highest(from), highest(last)) {
        let fd = fd as c_uint;
        if fd > from {
            call(from, fd - 1)?;
        }
        from = fd + 1;
        if from > last {
            return Ok(0);
        }
    }
    call(from, last)
}

/// `close_range(2)`.
///
/// # Safety
/// As for `close_range(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    libc_answer(close_between(first, last, flags)) as c_int
}

/// `closefrom(3)`.
///
/// # Safety
/// As for `closefrom(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn closefrom(first: c_int) {
    static NEXT: Next = Next::new(c"closefrom");
    if close_between(first.max(0) as c_uint, c_uint::MAX, 0).is_ok() {
        return;
    }
    // A kernel that has no such call: the C library has another way.
    type Function = unsafe extern "C" fn(c_int);
    // SAFETY: it is null or the function of that name.
    let next: Option<Function> = unsafe { std::mem::transmute(NEXT.address()) };
    if let Some(next) = next {
        // SAFETY: the caller's own call.
        unsafe { next(first) };
    }
}

/// `dup2(2)`.
///
/// # Safety
/// As for `dup2(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    if is_connection(old) {
        return c_int::failed(libc::EBADF);
    }
    vacate(new);
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_dup2, [old as usize, new as usize, 0, 0, 0, 0]) })
        as c_int
}

/// `dup3(2)`.
///
/// # Safety
/// As for `dup3(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if is_connection(old) {
        return c_int::failed(libc::EBADF);
    }
    vacate(new);
    let arguments = [old as usize, new as usize, flags as usize, 0, 0, 0];
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_dup3, arguments) }) as c_int
}
