//! mmap, munmap, mremap and mprotect: a work queue's node gives a portal. Of these and madvise who watches the program is told.

use std::ffi::{c_int, c_void};

use dray_ring::MemoryCall;

use super::{is_active, libc_answer};
use crate::place::Place;
use crate::quiet::is_quiet;
use crate::remote::note_call;
use crate::syscall::{Answer, syscall};
use crate::{connect, mapping, tsan};

/// `mmap(2)`.
///
/// # Safety
/// As for `mmap(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    if flags & libc::MAP_FIXED != 0 {
        tsan::settle();
        note_call(MemoryCall::Mmap, (address.addr(), bytes), &Place::here());
    }
    // SAFETY: the caller's own call.
    unsafe { map(address, bytes, protection, flags, fd, offset) }
}

/// Apart, for it needs much of the stack, of which the first bytes are noted.
///
/// # Safety
/// As for `mmap(2)`.
#[inline(never)]
unsafe fn map(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // Under a filter the supervisor maps it, which traces the process since it opened the node.
    if fd >= 0 && flags & libc::MAP_ANONYMOUS == 0 && is_active() && !is_quiet() {
        let wanted = connect::Wanted {
            address: address.addr(),
            bytes,
            protection,
            flags,
            offset,
        };
        if let Some(answer) = connect::map(fd, &wanted) {
            return libc_answer(answer) as *mut c_void;
        }
    }
    let arguments = [
        address.addr(),
        bytes,
        protection as usize,
        flags as usize,
        fd as usize,
        offset as usize,
    ];
    let answer = match tsan::memory_calls() {
        Some((mmap, _)) => {
            // SAFETY: the caller's own call.
            let value = unsafe { mmap(address, bytes, protection, flags, fd, offset) };
            libc_result(value as isize)
        }
        // SAFETY: as above.
        None => unsafe { syscall(libc::SYS_mmap, arguments) },
    };
    if let Ok(at) = answer {
        // What was there before is gone.
        tsan::forget(at, bytes);
        if flags & libc::MAP_FIXED != 0 {
            mapping::forget(at, bytes);
        }
    }
    libc_answer(answer) as *mut c_void
}

/// `mmap64`, which is the same.
///
/// # Safety
/// As for `mmap(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller's own call.
    unsafe { mmap(address, bytes, protection, flags, fd, offset) }
}

/// `munmap(2)`.
///
/// # Safety
/// As for `munmap(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn munmap(address: *mut c_void, bytes: usize) -> c_int {
    let at = address.addr();
    tsan::settle();
    note_call(MemoryCall::Munmap, (at, bytes), &Place::here());
    tsan::forget(at, bytes);
    // Before the call: afterwards the page may be another thread's.
    if at.is_multiple_of(4096) && bytes != 0 {
        mapping::forget(at, bytes);
    }
    if let Some((_, munmap)) = tsan::memory_calls() {
        // SAFETY: the caller's own call.
        return unsafe { munmap(address, bytes) };
    }
    // SAFETY: as above.
    libc_answer(unsafe { syscall(libc::SYS_munmap, [at, bytes, 0, 0, 0, 0]) }) as c_int
}

/// `mremap(2)`. A portal goes with its page.
///
/// # Safety
/// As for `mremap(2)`, whose last argument counts with `MREMAP_FIXED` alone.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn mremap(
    from: *mut c_void,
    bytes: usize,
    new_bytes: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    tsan::settle();
    note_call(MemoryCall::Mremap, (from.addr(), bytes), &Place::here());
    let moved = mapping::relocate(from.addr(), bytes, new_bytes, flags, to.addr());
    if let Some(at) = moved.ok().filter(|at| *at != from.addr()) {
        tsan::forget(from.addr(), bytes);
        tsan::forget(at, new_bytes);
    }
    libc_answer(moved) as *mut c_void
}

/// `mprotect(2)`. A portal's page stays inaccessible, whatever the program may do with it.
///
/// # Safety
/// As for `mprotect(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn mprotect(address: *mut c_void, bytes: usize, protection: c_int) -> c_int {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    if protection & both != both {
        tsan::settle();
        note_call(
            MemoryCall::Mprotect,
            (address.addr(), bytes),
            &Place::here(),
        );
    }
    libc_answer(mapping::protect(address.addr(), bytes, protection)) as c_int
}

/// Advice after which pages are gone: of `madvise(2)`, `MADV_GUARD_INSTALL` (102) included.
const TAKES_AWAY: [c_int; 6] = [
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_REMOVE,
    libc::MADV_DONTNEED_LOCKED,
    libc::MADV_PAGEOUT,
    102,
];

/// `madvise(2)`.
///
/// # Safety
/// As for `madvise(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    if TAKES_AWAY.contains(&advice) {
        tsan::settle();
        note_call(MemoryCall::Madvise, (address.addr(), bytes), &Place::here());
        if advice != libc::MADV_PAGEOUT {
            tsan::forget(address.addr(), bytes);
        }
    }
    let arguments = [address.addr(), bytes, advice as usize, 0, 0, 0];
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_madvise, arguments) }) as c_int
}

/// The answer of a function of the C library's.
fn libc_result(value: isize) -> Answer {
    match value {
        -1 => Err(std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL)),
        value => Ok(value as usize),
    }
}
