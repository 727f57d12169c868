//! Functions that take a path: where it is one of the tree's, they work on the file in the
//! launcher's directory.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::mem::transmute;

use super::Failed;
use crate::next::Next;
use crate::redirect::path::{Use, through};

/// Functions with a path among their arguments, and a flag: `Entry` where it names something,
/// `Listing` where the names in it matter.
macro_rules! led {
    ($($purpose:ident $name:ident($($before:ident: $before_type:ty,)* [path]
        $(, $after:ident: $after_type:ty)*) -> $answer:ty;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, of the file that the path leads to.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            $($before: $before_type,)* path: *const c_char $(, $after: $after_type)*
        ) -> $answer {
            type Function = unsafe extern "C-unwind" fn(
                $($before_type,)* *const c_char $(, $after_type)*
            ) -> $answer;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let Some(next) = next else {
                return <$answer>::failed(libc::ENOSYS);
            };
            let call = |path| {
                // SAFETY: the caller's own call, with another text in the place of its path.
                unsafe { next($($before,)* path $(, $after)*) }
            };
            // SAFETY: the caller's path.
            unsafe { through(path, Use::$purpose, call) }
        }
    )*};
}

led! {
    Entry stat([path], stat: *mut c_void) -> c_int;
    Entry stat64([path], stat: *mut c_void) -> c_int;
    Entry lstat([path], stat: *mut c_void) -> c_int;
    Entry lstat64([path], stat: *mut c_void) -> c_int;
    Entry fstatat(at: c_int, [path], stat: *mut c_void, flags: c_int) -> c_int;
    Entry fstatat64(at: c_int, [path], stat: *mut c_void, flags: c_int) -> c_int;
    Entry statx(at: c_int, [path], flags: c_int, mask: c_uint, stat: *mut c_void) -> c_int;
    Entry __xstat(version: c_int, [path], stat: *mut c_void) -> c_int;
    Entry __xstat64(version: c_int, [path], stat: *mut c_void) -> c_int;
    Entry __lxstat(version: c_int, [path], stat: *mut c_void) -> c_int;
    Entry __lxstat64(version: c_int, [path], stat: *mut c_void) -> c_int;
    Entry __fxstatat(version: c_int, at: c_int, [path], stat: *mut c_void, flags: c_int) -> c_int;
    Entry __fxstatat64(version: c_int, at: c_int, [path], stat: *mut c_void, flags: c_int) -> c_int;
    Entry access([path], mode: c_int) -> c_int;
    Entry faccessat(at: c_int, [path], mode: c_int, flags: c_int) -> c_int;
    Entry euidaccess([path], mode: c_int) -> c_int;
    Entry eaccess([path], mode: c_int) -> c_int;
    Entry chmod([path], mode: c_uint) -> c_int;
    Entry fchmodat(at: c_int, [path], mode: c_uint, flags: c_int) -> c_int;
    Entry chown([path], owner: c_uint, group: c_uint) -> c_int;
    Entry lchown([path], owner: c_uint, group: c_uint) -> c_int;
    Entry fchownat(at: c_int, [path], owner: c_uint, group: c_uint, flags: c_int) -> c_int;
    Entry utimensat(at: c_int, [path], times: *const c_void, flags: c_int) -> c_int;
    Entry getxattr([path], name: *const c_char, value: *mut c_void, size: usize) -> isize;
    Entry lgetxattr([path], name: *const c_char, value: *mut c_void, size: usize) -> isize;
    Entry listxattr([path], list: *mut c_char, size: usize) -> isize;
    Entry llistxattr([path], list: *mut c_char, size: usize) -> isize;
    Entry pathconf([path], name: c_int) -> c_long;
    Entry inotify_add_watch(fd: c_int, [path], mask: c_uint) -> c_int;
    Listing chdir([path]) -> c_int;
    Listing opendir([path]) -> *mut c_void;
    Listing scandir(
        [path], names: *mut c_void, filter: *const c_void, compare: *const c_void
    ) -> c_int;
    Listing scandir64(
        [path], names: *mut c_void, filter: *const c_void, compare: *const c_void
    ) -> c_int;
}
