//! Functions that change names: sysfs allows it to no process, and devtmpfs shows no change.

use std::ffi::{c_char, c_int, c_uint};
use std::mem::transmute;

use super::Failed;
use crate::next::Next;
use crate::redirect::entry::{entry, is_there};
use crate::redirect::path::FilePath;

/// What is to become of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Made,
    Removed,
}

/// Why a name in the tree cannot be changed: the kernel looks whether it is there first.
fn refusal(change: Change, place: &FilePath) -> c_int {
    match (change, is_there(place)) {
        (Change::Made, true) => libc::EEXIST,
        (Change::Removed, false) => libc::ENOENT,
        _ => libc::EPERM,
    }
}

/// Why a second name cannot be given: the tree is a file system of its own.
fn second_refusal(old: Option<&FilePath>, new: Option<&FilePath>) -> Option<c_int> {
    match (old, new) {
        (None, None) => None,
        (Some(old), Some(_)) => Some(refusal(Change::Removed, old)),
        _ => Some(libc::EXDEV),
    }
}

/// Functions that change names, and why they fail in the tree.
macro_rules! refused {
    ($($name:ident($($argument:ident: $type:ty),*) by $refusal:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which fails in the tree.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
            type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: the caller's paths.
            if let Some(error) = unsafe { $refusal } {
                return c_int::failed(error);
            }
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            match next {
                // SAFETY: the caller's own call.
                Some(next) => unsafe { next($($argument),*) },
                None => c_int::failed(libc::ENOSYS),
            }
        }
    )*};
}

type Path = *const c_char;

/// Why a name is neither made nor removed; `None` outside the tree.
///
/// # Safety
/// `path` is null or a text with its end.
unsafe fn one(change: Change, at: c_int, path: Path) -> Option<c_int> {
    // SAFETY: the caller vouches for the path.
    let place = unsafe { entry(at, path) }?;
    Some(refusal(change, &place))
}

/// Why what is called `old` is not called `new`; `None` outside the tree.
///
/// # Safety
/// As for [`one`].
unsafe fn two(from: c_int, old: Path, to: c_int, new: Path) -> Option<c_int> {
    // SAFETY: the caller vouches for the path.
    let old = unsafe { entry(from, old) };
    // SAFETY: as above.
    let new = unsafe { entry(to, new) };
    second_refusal(old.as_ref(), new.as_ref())
}

const HERE: c_int = libc::AT_FDCWD;

refused! {
    mkdir(path: Path, mode: c_uint) by one(Change::Made, HERE, path);
    mkdirat(at: c_int, path: Path, mode: c_uint) by one(Change::Made, at, path);
    mknod(path: Path, mode: c_uint, device: u64) by one(Change::Made, HERE, path);
    mknodat(at: c_int, path: Path, mode: c_uint, device: u64) by one(Change::Made, at, path);
    mkfifo(path: Path, mode: c_uint) by one(Change::Made, HERE, path);
    mkfifoat(at: c_int, path: Path, mode: c_uint) by one(Change::Made, at, path);
    symlink(target: Path, path: Path) by one(Change::Made, HERE, path);
    symlinkat(target: Path, at: c_int, path: Path) by one(Change::Made, at, path);
    rmdir(path: Path) by one(Change::Removed, HERE, path);
    unlink(path: Path) by one(Change::Removed, HERE, path);
    unlinkat(at: c_int, path: Path, flags: c_int) by one(Change::Removed, at, path);
    remove(path: Path) by one(Change::Removed, HERE, path);
    rename(old: Path, new: Path) by two(HERE, old, HERE, new);
    renameat(from: c_int, old: Path, to: c_int, new: Path) by two(from, old, to, new);
    renameat2(from: c_int, old: Path, to: c_int, new: Path, flags: c_uint)
        by two(from, old, to, new);
    link(old: Path, new: Path) by two(HERE, old, HERE, new);
    linkat(from: c_int, old: Path, to: c_int, new: Path, flags: c_int) by two(from, old, to, new);
}
