//! open and its kin: attributes are not truncated and not created, and a node is the driver's to open.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute;

use super::{Failed, libc_answer};
use crate::next::Next;
use crate::redirect::entry::entry;
use crate::redirect::file::{File, file};
use crate::redirect::path::{FilePath, Use, node, place};
use crate::redirect::{ask, redirection};
use crate::syscall::{close, syscall};
use dray_wire::{Redirection, Request};

/// What becomes of flags: files of sysfs are neither created nor truncated.
const STRIPPED: c_int = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC;
/// What changes files before it is known which they are.
const CHANGING: c_int = STRIPPED | (libc::O_TMPFILE & !libc::O_DIRECTORY);

/// Opens `path` by `next`, or what it leads to.
///
/// # Safety
/// `path` is null or a text with its end; `next` takes any path.
pub(super) unsafe fn open_by(
    at: c_int,
    path: *const c_char,
    flags: c_int,
    next: impl Fn(*const c_char, c_int) -> c_int,
) -> c_int {
    match redirection() {
        // SAFETY: as the caller says.
        Some(redirection) => unsafe { redirected(&redirection, at, path, flags, next) },
        None => next(path, flags),
    }
}

#[inline(never)]
unsafe fn redirected(
    redirection: &Redirection<'_>,
    at: c_int,
    path: *const c_char,
    flags: c_int,
    next: impl Fn(*const c_char, c_int) -> c_int,
) -> c_int {
    let purpose = match flags & libc::O_DIRECTORY {
        0 => Use::Entry,
        _ => Use::Listing,
    };
    // SAFETY: the caller vouches for the path.
    if let Some(place) = unsafe { place(path, purpose) } {
        return in_tree(redirection, &place, flags, next);
    }
    if flags & CHANGING != 0 {
        // SAFETY: the caller vouches for the path.
        if let Some(place) = unsafe { entry(at, path) } {
            return in_tree(redirection, &place, flags, next);
        }
    }
    let fd = next(path, flags);
    // SAFETY: the caller vouches for the path.
    let relative = unsafe { path.as_ref() }.is_some_and(|first| *first != b'/' as c_char);
    match relative && fd >= 0 {
        true => finish(admit(fd, flags)),
        false => fd,
    }
}

fn finish(answer: Result<c_int, c_int>) -> c_int {
    match answer {
        Ok(fd) => fd,
        Err(error) => c_int::failed(error),
    }
}

fn in_tree(
    redirection: &Redirection<'_>,
    place: &FilePath,
    flags: c_int,
    next: impl Fn(*const c_char, c_int) -> c_int,
) -> c_int {
    if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        return c_int::failed(libc::EOPNOTSUPP);
    }
    if flags & libc::O_PATH != 0 {
        return next(place.as_ptr(), flags);
    }
    if let Some(path) = node(redirection, place.as_bytes()) {
        return finish(open_node(place, path, flags));
    }
    let fd = next(place.as_ptr(), flags & !STRIPPED);
    if fd < 0 {
        return match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOENT) if flags & libc::O_CREAT != 0 => c_int::failed(libc::EACCES),
            _ => fd,
        };
    }
    let exclusive = libc::O_CREAT | libc::O_EXCL;
    if flags & exclusive == exclusive {
        close(fd);
        return c_int::failed(libc::EEXIST);
    }
    finish(admit(fd, flags & !STRIPPED))
}

/// Opens a node as the driver lets it be opened.
fn open_node(place: &FilePath, path: &[u8], flags: c_int) -> Result<c_int, c_int> {
    let wanted = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => libc::R_OK,
        libc::O_WRONLY => libc::W_OK,
        _ => libc::R_OK | libc::W_OK,
    };
    let arguments = [place.as_ptr().addr(), wanted as usize, 0, 0, 0, 0];
    // SAFETY: a text with its end.
    unsafe { syscall(libc::SYS_access, arguments) }.map_err(|error| match error {
        libc::ENOENT if flags & libc::O_CREAT != 0 => libc::EACCES,
        error => error,
    })?;
    if flags & libc::O_DIRECTORY != 0 {
        return Err(libc::ENOTDIR);
    }
    ask::open(path, flags)
}

/// What a file that has been opened needs: an attribute's permissions count for root as well
/// (`kernfs_fop_open`), and what it holds is to be what the driver shows now.
#[inline(never)]
fn admit(fd: c_int, flags: c_int) -> Result<c_int, c_int> {
    let Some(File::Attribute(path, mode)) = file(fd) else {
        return Ok(fd);
    };
    if flags & libc::O_PATH != 0 {
        return Ok(fd);
    }
    if path.as_bytes().starts_with(b"/dev/dsa/") {
        // By a relative path.
        close(fd);
        return ask::open(path.as_bytes(), flags);
    }
    let access = flags & libc::O_ACCMODE;
    let (reads, writes) = (access != libc::O_WRONLY, access != libc::O_RDONLY);
    let allowed = !(reads && mode & 0o444 == 0 || writes && mode & 0o222 == 0);
    let stale = reads || flags & STRIPPED != 0;
    let admitted = match (allowed, stale) {
        (false, _) => Err(libc::EACCES),
        (true, false) => Ok(0),
        (true, true) => ask::ask(Request::Refresh {
            path: path.as_bytes(),
        }),
    };
    match admitted {
        Ok(_) => Ok(fd),
        Err(error) => {
            close(fd);
            Err(error)
        }
    }
}

type Open = unsafe extern "C-unwind" fn(*const c_char, c_int, ...) -> c_int;
type OpenAt = unsafe extern "C-unwind" fn(c_int, *const c_char, c_int, ...) -> c_int;

/// Functions with a path, flags, and a mode that may be missing: what stands in its place is then
/// not looked at. On this architecture it is passed like any other argument.
macro_rules! opened {
    ($($name:ident)*) => {$(
        mod $name {
            pub(super) static NEXT: crate::next::Next =
                crate::next::Next::named(concat!(stringify!($name), "\0"));
        }

        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            path: *const c_char, flags: c_int, mode: c_uint
        ) -> c_int {
            // SAFETY: it is null or the function of that name.
            let next: Option<Open> = unsafe { transmute($name::NEXT.address()) };
            let Some(next) = next else {
                return c_int::failed(libc::ENOSYS);
            };
            let call = |path, flags| {
                // SAFETY: the caller's own call, with another path.
                unsafe { next(path, flags, mode) }
            };
            // SAFETY: the caller's path.
            unsafe { open_by(libc::AT_FDCWD, path, flags, call) }
        }
    )*};
}

macro_rules! opened_at {
    ($($name:ident)*) => {$(
        mod $name {
            pub(super) static NEXT: crate::next::Next =
                crate::next::Next::named(concat!(stringify!($name), "\0"));
        }

        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            at: c_int, path: *const c_char, flags: c_int, mode: c_uint
        ) -> c_int {
            // SAFETY: it is null or the function of that name.
            let next: Option<OpenAt> = unsafe { transmute($name::NEXT.address()) };
            let Some(next) = next else {
                return c_int::failed(libc::ENOSYS);
            };
            let call = |path, flags| {
                // SAFETY: the caller's own call, with another path.
                unsafe { next(at, path, flags, mode) }
            };
            // SAFETY: the caller's path.
            unsafe { open_by(at, path, flags, call) }
        }
    )*};
}

/// Looks the originals up, which handlers of signals and children of vfork(2) must not.
#[cfg(feature = "preload")]
pub(super) fn prepare() {
    for next in [&open::NEXT, &open64::NEXT, &openat::NEXT, &openat64::NEXT] {
        next.address();
    }
}

opened! { open open64 __open_2 __open64_2 }
opened_at! { openat openat64 __openat_2 __openat64_2 }

/// `creat(2)`.
///
/// # Safety
/// As for `creat(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn creat(path: *const c_char, mode: c_uint) -> c_int {
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    // SAFETY: the caller's own call.
    unsafe { open(path, flags, mode) }
}

/// `creat64`, which is the same.
///
/// # Safety
/// As for `creat(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn creat64(path: *const c_char, mode: c_uint) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { creat(path, mode) }
}

/// `ftruncate(2)`, which does nothing to an attribute.
///
/// # Safety
/// As for `ftruncate(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ftruncate(fd: c_int, length: libc::off_t) -> c_int {
    if matches!(file(fd), Some(File::Attribute(..))) {
        return 0;
    }
    let arguments = [fd as usize, length as usize, 0, 0, 0, 0];
    // SAFETY: the caller's own call.
    libc_answer(unsafe { syscall(libc::SYS_ftruncate, arguments) }) as c_int
}

/// `ftruncate64`, which is the same.
///
/// # Safety
/// As for `ftruncate(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ftruncate64(fd: c_int, length: libc::off_t) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { ftruncate(fd, length) }
}

/// `posix_spawn_file_actions_addopen(3)`. A child opens attributes with it, and no nodes: they are
/// refused.
///
/// # Safety
/// As for the function of this name.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_addopen(
    actions: *mut c_void,
    fd: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    type Function =
        unsafe extern "C-unwind" fn(*mut c_void, c_int, *const c_char, c_int, c_uint) -> c_int;
    static NEXT: Next = Next::new(c"posix_spawn_file_actions_addopen");
    // SAFETY: it is null or the function of that name.
    let next: Option<Function> = unsafe { transmute(NEXT.address()) };
    let Some(next) = next else {
        return libc::ENOSYS;
    };
    let redirection = redirection();
    // SAFETY: the caller's path.
    let place = redirection.and(unsafe { place(path, Use::Entry) });
    match (redirection, place) {
        (Some(redirection), Some(place)) if node(&redirection, place.as_bytes()).is_some() => {
            libc::EACCES
        }
        // SAFETY: the caller's own call, which keeps a copy of the path.
        (_, Some(place)) => unsafe { next(actions, fd, place.as_ptr(), flags & !STRIPPED, mode) },
        // SAFETY: the caller's own call.
        (_, None) => unsafe { next(actions, fd, path, flags, mode) },
    }
}
