//! fopen and freopen: the C library opens files by itself, so that here it is given an open one.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

use super::Failed;
use super::open::open;
use crate::next::Next;
use crate::redirect::entry::entry;

type Stream = *mut c_void;

/// Flags of open(2) for a mode of fopen(3).
fn flags(mode: &[u8]) -> c_int {
    let plus = mode.contains(&b'+');
    let (access, more) = match mode.first() {
        Some(b'w') => (libc::O_WRONLY, libc::O_CREAT | libc::O_TRUNC),
        Some(b'a') => (libc::O_WRONLY, libc::O_CREAT | libc::O_APPEND),
        _ => (libc::O_RDONLY, 0),
    };
    let access = if plus { libc::O_RDWR } else { access };
    let flag = |letter: u8, flag| if mode.contains(&letter) { flag } else { 0 };
    access | more | flag(b'e', libc::O_CLOEXEC) | flag(b'x', libc::O_EXCL)
}

macro_rules! streams {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for `fopen(3)`.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, mode: *const c_char) -> Stream {
            type Function = unsafe extern "C-unwind" fn(*const c_char, *const c_char) -> Stream;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: the caller's path.
            if unsafe { entry(libc::AT_FDCWD, path) }.is_some() && !mode.is_null() {
                // SAFETY: the caller's arguments.
                return unsafe { stream(path, mode) };
            }
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            match next {
                // SAFETY: the caller's own call.
                Some(next) => unsafe { next(path, mode) },
                None => Stream::failed(libc::ENOSYS),
            }
        }
    )*};
}

streams! { fopen fopen64 }

/// A stream of a file in the tree.
///
/// # Safety
/// Path and mode are texts with their ends.
unsafe fn stream(path: *const c_char, mode: *const c_char) -> Stream {
    // SAFETY: the caller vouches for it.
    let letters = unsafe { CStr::from_ptr(mode) }.to_bytes();
    // SAFETY: the caller vouches for the path.
    let fd = unsafe { open(path, flags(letters), 0o666) };
    if fd < 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: the descriptor is open, and the mode is one or refused.
    let stream = unsafe { libc::fdopen(fd, mode) };
    if stream.is_null() {
        crate::syscall::close(fd);
    }
    stream.cast()
}

macro_rules! opened_again {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for `freopen(3)`.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            path: *const c_char, mode: *const c_char, stream: Stream
        ) -> Stream {
            type Function = unsafe extern "C-unwind" fn(
                *const c_char, *const c_char, Stream
            ) -> Stream;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let Some(next) = next else {
                return Stream::failed(libc::ENOSYS);
            };
            // SAFETY: the caller's arguments.
            unsafe { reopen(path, mode, stream, next) }
        }
    )*};
}

opened_again! { freopen freopen64 }

/// Has a stream be one of another file. The C library may open the file of an attribute, but not
/// empty it: that is left out of the mode.
///
/// # Safety
/// As for `freopen(3)`, which `next` is.
unsafe fn reopen(
    path: *const c_char,
    mode: *const c_char,
    stream: Stream,
    next: unsafe extern "C-unwind" fn(*const c_char, *const c_char, Stream) -> Stream,
) -> Stream {
    let call = |there: *const c_char| {
        let same = there == path;
        let kept = match (same, mode.is_null()) {
            (false, false) => {
                // SAFETY: the caller vouches for it.
                let letters = unsafe { CStr::from_ptr(mode) }.to_bytes();
                match (letters.first(), letters.contains(&b'+')) {
                    (Some(b'w'), true) => c"r+".as_ptr(),
                    (Some(b'w'), false) => c"a".as_ptr(),
                    _ => mode,
                }
            }
            _ => mode,
        };
        // SAFETY: the caller's own call, with another path.
        unsafe { next(there, kept, stream) }
    };
    // SAFETY: the caller's path.
    match unsafe { entry(libc::AT_FDCWD, path) } {
        Some(place) => call(place.as_ptr()),
        None => call(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_of_fopen_are_converted_to_open_flags() {
        assert_eq!(flags(b"r"), libc::O_RDONLY);
        assert_eq!(flags(b"r+e"), libc::O_RDWR | libc::O_CLOEXEC);
        let created = libc::O_CREAT | libc::O_TRUNC;
        assert_eq!(flags(b"wb"), libc::O_WRONLY | created);
        assert_eq!(flags(b"w+x"), libc::O_RDWR | created | libc::O_EXCL);
        assert_eq!(flags(b"a"), libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND);
    }
}
