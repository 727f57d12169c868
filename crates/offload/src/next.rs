//! The functions behind this library: those of the C library, or of another library in between.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Addresses, as [`crate::entry`] jumps to them. 0: not looked up yet.
pub(crate) static MEMCPY: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MEMMOVE: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MEMSET: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MEMCMP: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MEMCPY_CHK: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MEMMOVE_CHK: AtomicUsize = AtomicUsize::new(0);
pub(crate) static MEMSET_CHK: AtomicUsize = AtomicUsize::new(0);

/// Looks all of them up; whether they are there.
pub(crate) fn find() -> bool {
    let all: [(&AtomicUsize, &CStr); 7] = [
        (&MEMMOVE, c"memmove"),
        (&MEMSET, c"memset"),
        (&MEMCMP, c"memcmp"),
        (&MEMCPY_CHK, c"__memcpy_chk"),
        (&MEMMOVE_CHK, c"__memmove_chk"),
        (&MEMSET_CHK, c"__memset_chk"),
        // Last: it says that all are there.
        (&MEMCPY, c"memcpy"),
    ];
    all.iter().all(|(cell, name)| {
        // SAFETY: the name is a string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        cell.store(found.expose_provenance(), Ordering::Release);
        !found.is_null()
    })
}

type Move = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
type Set = unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void;
type Compare = unsafe extern "C" fn(*const c_void, *const c_void, usize) -> c_int;

/// `memmove` of the core.
///
/// # Safety
/// As memmove(3).
pub(crate) unsafe fn memmove(to: *mut u8, from: *const u8, len: usize) {
    let address = MEMMOVE.load(Ordering::Relaxed);
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: null, or the function of that name.
    let next = unsafe { std::mem::transmute::<*const c_void, Option<Move>>(pointer) };
    match next {
        // SAFETY: the caller's promise.
        Some(next) => unsafe { next(to.cast(), from.cast(), len) },
        // SAFETY: the caller's promise.
        None => unsafe { libc::memmove(to.cast(), from.cast(), len) },
    };
}

/// `memset` of the core.
///
/// # Safety
/// As memset(3).
pub(crate) unsafe fn memset(to: *mut u8, byte: c_int, len: usize) {
    let address = MEMSET.load(Ordering::Relaxed);
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: null, or the function of that name.
    let next = unsafe { std::mem::transmute::<*const c_void, Option<Set>>(pointer) };
    match next {
        // SAFETY: the caller's promise.
        Some(next) => unsafe { next(to.cast(), byte, len) },
        // SAFETY: the caller's promise.
        None => unsafe { libc::memset(to.cast(), byte, len) },
    };
}

/// `memcmp` of the core.
///
/// # Safety
/// As memcmp(3).
pub(crate) unsafe fn memcmp(a: *const u8, b: *const u8, len: usize) -> c_int {
    let address = MEMCMP.load(Ordering::Relaxed);
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: null, or the function of that name.
    let next = unsafe { std::mem::transmute::<*const c_void, Option<Compare>>(pointer) };
    match next {
        // SAFETY: the caller's promise.
        Some(next) => unsafe { next(a.cast(), b.cast(), len) },
        // SAFETY: the caller's promise.
        None => unsafe { libc::memcmp(a.cast(), b.cast(), len) },
    }
}
