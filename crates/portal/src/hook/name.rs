//! Functions that answer with a path: the launcher's directory does not show in it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

use super::Failed;
use crate::next::Next;
use crate::redirect::path::{Use, place, through};
use crate::redirect::redirection;

/// Takes the launcher's directory off the text at `name`.
///
/// # Safety
/// `name` is null or a text with its end that may be written.
unsafe fn strip(name: *mut c_char) -> *mut c_char {
    let Some(redirection) = redirection().filter(|_| !name.is_null()) else {
        return name;
    };
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let length = bytes.len();
    let kept = match redirection.strip(bytes) {
        Some(rest) => rest.len() + 1,
        None if bytes == redirection.root => {
            let slash = [b'/' as c_char, 0];
            // SAFETY: a root is longer than a slash.
            unsafe { name.copy_from(slash.as_ptr(), slash.len()) };
            return name;
        }
        None => return name,
    };
    // SAFETY: the rest begins within the text.
    let rest = unsafe { name.add(length + 1 - kept) };
    // SAFETY: both lie within the text.
    unsafe { std::ptr::copy(rest, name, kept) };
    name
}

/// `realpath(3)`.
///
/// # Safety
/// As for `realpath(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn realpath(path: *const c_char, room: *mut c_char) -> *mut c_char {
    type Function = unsafe extern "C-unwind" fn(*const c_char, *mut c_char) -> *mut c_char;
    static NEXT: Next = Next::new(c"realpath");
    // SAFETY: it is null or the function of that name.
    let next: Option<Function> = unsafe { transmute(NEXT.address()) };
    let Some(next) = next else {
        return <*mut c_char>::failed(libc::ENOSYS);
    };
    // SAFETY: the caller's own call, with another path.
    let call = |path| unsafe { next(path, room) };
    // SAFETY: the caller's path.
    let name = unsafe { through(path, Use::Entry, call) };
    // SAFETY: null or the answer.
    unsafe { strip(name) }
}

/// `realpath(3)` that knows the size of the room.
///
/// # Safety
/// As for `realpath(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __realpath_chk(
    path: *const c_char,
    room: *mut c_char,
    size: usize,
) -> *mut c_char {
    type Function = unsafe extern "C-unwind" fn(*const c_char, *mut c_char, usize) -> *mut c_char;
    static NEXT: Next = Next::new(c"__realpath_chk");
    // SAFETY: it is null or the function of that name.
    let next: Option<Function> = unsafe { transmute(NEXT.address()) };
    let Some(next) = next else {
        return <*mut c_char>::failed(libc::ENOSYS);
    };
    // SAFETY: the caller's own call, with another path.
    let call = |path| unsafe { next(path, room, size) };
    // SAFETY: the caller's path.
    let name = unsafe { through(path, Use::Entry, call) };
    // SAFETY: null or the answer.
    unsafe { strip(name) }
}

/// `canonicalize_file_name(3)`.
///
/// # Safety
/// As for `canonicalize_file_name(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn canonicalize_file_name(path: *const c_char) -> *mut c_char {
    // SAFETY: the caller's own call.
    unsafe { realpath(path, std::ptr::null_mut()) }
}

/// `getcwd(3)`.
///
/// # Safety
/// As for `getcwd(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getcwd(room: *mut c_char, size: usize) -> *mut c_char {
    type Function = unsafe extern "C-unwind" fn(*mut c_char, usize) -> *mut c_char;
    static NEXT: Next = Next::new(c"getcwd");
    // SAFETY: it is null or the function of that name.
    let next: Option<Function> = unsafe { transmute(NEXT.address()) };
    let Some(next) = next else {
        return <*mut c_char>::failed(libc::ENOSYS);
    };
    // SAFETY: the caller's own call.
    let name = unsafe { next(room, size) };
    // SAFETY: null or the answer.
    unsafe { strip(name) }
}

/// Takes the launcher's directory off what a link says, which has no end of its own.
///
/// # Safety
/// There are `length` bytes at `target`.
unsafe fn strip_link(target: *mut c_char, length: isize) -> isize {
    let Some(redirection) = redirection().filter(|_| length > 0) else {
        return length;
    };
    let whole = length as usize;
    // SAFETY: the caller vouches for them.
    let bytes = unsafe { std::slice::from_raw_parts_mut(target.cast::<u8>(), whole) };
    let Some(kept) = redirection.strip(bytes).map(<[u8]>::len) else {
        return length;
    };
    bytes.copy_within(whole - kept.., 0);
    kept as isize
}

/// Functions that read a link.
macro_rules! links {
    ($($name:ident($($before:ident: $before_type:ty,)* [path, room, size] $(, $after:ident: $after_type:ty)*);)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            $($before: $before_type,)* path: *const c_char, room: *mut c_char, size: usize
            $(, $after: $after_type)*
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(
                $($before_type,)* *const c_char, *mut c_char, usize $(, $after_type)*
            ) -> isize;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let Some(next) = next else {
                return isize::failed(libc::ENOSYS);
            };
            // SAFETY: the caller's own call, with another path.
            let call = |path| unsafe { next($($before,)* path, room, size $(, $after)*) };
            // SAFETY: the caller's path.
            let length = unsafe { through(path, Use::Entry, call) };
            // SAFETY: so many bytes were written there.
            unsafe { strip_link(room, length) }
        }
    )*};
}

links! {
    readlink([path, room, size]);
    readlinkat(at: c_int, [path, room, size]);
    __readlink_chk([path, room, size], room_size: usize);
    __readlinkat_chk(at: c_int, [path, room, size], room_size: usize);
}

/// `statfs(2)` and its kin, which say that the tree is a sysfs.
macro_rules! file_systems {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for `statfs(2)`.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, answer: *mut c_void) -> c_int {
            type Function = unsafe extern "C-unwind" fn(*const c_char, *mut c_void) -> c_int;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let Some(next) = next else {
                return c_int::failed(libc::ENOSYS);
            };
            // SAFETY: the caller's path.
            let Some(place) = (unsafe { place(path, Use::Entry) }) else {
                // SAFETY: the caller's own call.
                return unsafe { next(path, answer) };
            };
            // SAFETY: the caller's own call, with another path.
            let result = unsafe { next(place.as_ptr(), answer) };
            if result == 0 {
                // SAFETY: the call has written it; the kind comes first.
                unsafe { answer.cast::<i64>().write(SYSFS_MAGIC) };
            }
            result
        }
    )*};
}

/// `f_type` of sysfs (`linux/magic.h`).
const SYSFS_MAGIC: i64 = 0x6265_6572;

file_systems! { statfs statfs64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unchanged_without_redirection() {
        let mut name = *b"/tmp/x\0";
        let start = name.as_mut_ptr().cast();
        // SAFETY: a text with its end.
        assert_eq!(unsafe { strip(start) }, start);
        assert_eq!(&name, b"/tmp/x\0");
        // SAFETY: six bytes.
        assert_eq!(unsafe { strip_link(start, 6) }, 6);
    }
}
