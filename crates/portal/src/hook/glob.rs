//! glob: the C library opens directories by itself, unless it is given functions for that.

use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;

use super::Failed;
use super::path::{lstat, opendir, stat};
use crate::next::Next;
use crate::redirect::redirection;

/// `glob_t` (`glob.h`).
#[derive(Debug)]
#[repr(C)]
pub struct Glob {
    found: [usize; 3],
    flags: c_int,
    closedir: *const c_void,
    readdir: *const c_void,
    opendir: *const c_void,
    lstat: *const c_void,
    stat: *const c_void,
}

const _: () = assert!(size_of::<Glob>() == size_of::<libc::glob_t>());

macro_rules! globs {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which lists directories by the functions here.")]
        ///
        /// # Safety
        /// As for `glob(3)`.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            pattern: *const c_char,
            flags: c_int,
            failed: *const c_void,
            glob: *mut Glob,
        ) -> c_int {
            type Function = unsafe extern "C-unwind" fn(
                *const c_char, c_int, *const c_void, *mut Glob
            ) -> c_int;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let Some(next) = next else {
                return c_int::failed(libc::ENOSYS).abs();
            };
            let mut flags = flags;
            if redirection().is_some() && flags & libc::GLOB_ALTDIRFUNC == 0 {
                // SAFETY: the caller's.
                if let Some(glob) = unsafe { glob.as_mut() } {
                    flags |= libc::GLOB_ALTDIRFUNC;
                    glob.closedir = libc::closedir as *const c_void;
                    glob.readdir = libc::readdir as *const c_void;
                    glob.opendir = opendir as *const c_void;
                    glob.lstat = lstat as *const c_void;
                    glob.stat = stat as *const c_void;
                }
            }
            // SAFETY: the caller's own call.
            unsafe { next(pattern, flags, failed, glob) }
        }
    )*};
}

globs! { glob glob64 }
