//! write and similar functions: bytes written to an attribute or a node go to the driver.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::os::fd::BorrowedFd;

use super::{Failed, is_active, libc_answer};
use crate::next::Next;
use crate::node::identify;
use crate::quiet::is_quiet;
use crate::redirect::ask::ask;
use crate::redirect::file::{File, file, is_writable};
use crate::redirect::redirection;
use crate::syscall::{Answer, syscall};
use dray_wire::{MAX_DATA, Request};

/// Longest write to an attribute: a page, less the zero that the kernel adds.
const LONGEST: usize = 4095;

static WRITE: Next = Next::new(c"write");
static WRITEV: Next = Next::new(c"writev");
static READ: Next = Next::new(c"read");

/// Looks the originals up, which handlers of signals and children of vfork(2) must not.
#[cfg(feature = "preload")]
pub(super) fn prepare() {
    for next in [&WRITE, &WRITEV, &READ] {
        next.address();
    }
}

/// Writes to a file of ours; `None` for all others.
///
/// # Safety
/// There are `count` bytes at `bytes`.
#[inline]
unsafe fn written(fd: c_int, bytes: *const c_void, count: usize) -> Option<Answer> {
    let file = file(fd)?;
    let most = match &file {
        File::Attribute(..) => LONGEST,
        File::Node(_) => MAX_DATA,
    };
    let bytes = match count.min(most) {
        0 => &[],
        // SAFETY: the caller vouches for them.
        count => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) },
    };
    Some(send(fd, &file, bytes))
}

#[inline(never)]
fn send(fd: c_int, file: &File, bytes: &[u8]) -> Answer {
    match file {
        File::Attribute(..) if !is_writable(fd) => Err(libc::EBADF),
        File::Attribute(path, _) => ask(Request::Store {
            path: path.as_bytes(),
            bytes,
        }),
        File::Node(node) if i32::from(node.mode) == libc::O_RDONLY => Err(libc::EBADF),
        File::Node(node) => ask(Request::Submit {
            cookie: node.cookie,
            bytes,
        }),
    }
}

/// `write(2)`.
///
/// # Safety
/// As for `write(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize {
    type Write = unsafe extern "C-unwind" fn(c_int, *const c_void, usize) -> isize;
    type WriteV = unsafe extern "C-unwind" fn(c_int, *const libc::iovec, c_int) -> isize;
    if redirection().is_none() {
        // SAFETY: it is null or the function of that name.
        let next: Option<Write> = unsafe { transmute(WRITE.address()) };
        return match next {
            // SAFETY: the caller's own call.
            Some(next) => unsafe { next(fd, bytes, count) },
            None => isize::failed(libc::ENOSYS),
        };
    }
    // SAFETY: the caller vouches for the bytes.
    if let Some(answer) = unsafe { written(fd, bytes, count) } {
        return libc_answer(answer);
    }
    if is_quiet() {
        // A filter of the program knows this call, and not the one below.
        let arguments = [fd as usize, bytes.addr(), count, 0, 0, 0];
        // SAFETY: the caller's own call.
        return libc_answer(unsafe { syscall(libc::SYS_write, arguments) });
    }
    // The C library's own write leads here, see `inner`. This one is a cancellation point as well.
    // SAFETY: it is null or the function of that name.
    let next: Option<WriteV> = unsafe { transmute(WRITEV.address()) };
    let part = libc::iovec {
        iov_base: bytes.cast_mut(),
        iov_len: count,
    };
    match next {
        // SAFETY: the caller's own call.
        Some(next) => unsafe { next(fd, &part, 1) },
        None => isize::failed(libc::ENOSYS),
    }
}

/// Functions with a descriptor, bytes, their number and an offset, which does not matter to a file
/// of ours.
macro_rules! written_at {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            fd: c_int, bytes: *const c_void, count: usize, offset: libc::off_t
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(
                c_int, *const c_void, usize, libc::off_t
            ) -> isize;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: the caller vouches for the bytes.
            if let Some(answer) = unsafe { written(fd, bytes, count) } {
                return libc_answer(answer);
            }
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let done = match next {
                // SAFETY: the caller's own call.
                Some(next) => unsafe { next(fd, bytes, count, offset) },
                None => isize::failed(libc::ENOSYS),
            };
            match is_seek_of_node(fd, done) {
                // SAFETY: the caller vouches for the bytes.
                true => unsafe { write(fd, bytes, count) },
                false => done,
            }
        }
    )*};
}

written_at! { pwrite pwrite64 }

/// Whether a call with an offset has failed because the file is a node of a file system in user space, which
/// has no positions. The driver's has none either, and does not look at the offset (`idxd_cdev_write`).
fn is_seek_of_node(fd: c_int, done: isize) -> bool {
    if done >= 0
        || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESPIPE)
        || !is_active()
    {
        return false;
    }
    // SAFETY: it is open for the time of the call, or was: then it is none of ours.
    identify(unsafe { BorrowedFd::borrow_raw(fd) }).is_some()
}

/// Functions that read at an offset: a node has no read(2).
macro_rules! read_at {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            fd: c_int, bytes: *mut c_void, count: usize, offset: libc::off_t
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(
                c_int, *mut c_void, usize, libc::off_t
            ) -> isize;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let done = match next {
                // SAFETY: the caller's own call.
                Some(next) => unsafe { next(fd, bytes, count, offset) },
                None => isize::failed(libc::ENOSYS),
            };
            match is_seek_of_node(fd, done) {
                true => isize::failed(libc::EINVAL),
                false => done,
            }
        }
    )*};
}

read_at! { pread pread64 }

/// Bytes of several places, one behind the other.
///
/// # Safety
/// As for the arguments of `writev(2)`.
unsafe fn gather(parts: *const libc::iovec, count: c_int, place: &mut [u8]) -> usize {
    let mut filled = 0;
    for index in 0..usize::try_from(count).unwrap_or(0) {
        let part = parts.wrapping_add(index);
        // SAFETY: the caller says how many there are.
        let part = unsafe { part.read() };
        let more = part.iov_len.min(place.len() - filled);
        if more != 0 {
            // SAFETY: the caller vouches for the bytes.
            let bytes = unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), more) };
            place[filled..filled + more].copy_from_slice(bytes);
            filled += more;
        }
    }
    filled
}

/// `writev(2)`.
///
/// # Safety
/// As for `writev(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn writev(
    fd: c_int,
    parts: *const libc::iovec,
    count: c_int,
) -> isize {
    type Function = unsafe extern "C-unwind" fn(c_int, *const libc::iovec, c_int) -> isize;
    if let Some(file) = file(fd) {
        let mut place = [0; LONGEST + 1];
        // SAFETY: the caller's arguments.
        let filled = unsafe { gather(parts, count, &mut place) };
        return libc_answer(send(fd, &file, &place[..filled]));
    }
    // SAFETY: it is null or the function of that name.
    let next: Option<Function> = unsafe { transmute(WRITEV.address()) };
    match next {
        // SAFETY: the caller's own call.
        Some(next) => unsafe { next(fd, parts, count) },
        None => isize::failed(libc::ENOSYS),
    }
}

/// Functions that move bytes from one descriptor to another: to a redirected one they fail, and their
/// callers fall back to write(2).
macro_rules! moved {
    ($($name:ident($($before:ident: $before_type:ty,)* [to] $(, $after:ident: $after_type:ty)*);)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which fails with `EINVAL` where the target is ours.")]
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            $($before: $before_type,)* to: c_int $(, $after: $after_type)*
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(
                $($before_type,)* c_int $(, $after_type)*
            ) -> isize;
            static NEXT: Next = Next::named(concat!(stringify!($name), "\0"));
            // SAFETY: it is null or the function of that name.
            let next: Option<Function> = unsafe { transmute(NEXT.address()) };
            let Some(next) = next.filter(|_| file(to).is_none()) else {
                return isize::failed(libc::EINVAL);
            };
            // SAFETY: the caller's own call.
            unsafe { next($($before,)* to $(, $after)*) }
        }
    )*};
}

moved! {
    copy_file_range(
        from: c_int, from_offset: *mut i64, [to], to_offset: *mut i64, count: usize, flags: u32
    );
    sendfile([to], from: c_int, offset: *mut i64, count: usize);
    sendfile64([to], from: c_int, offset: *mut i64, count: usize);
    splice(
        from: c_int, from_offset: *mut i64, [to], to_offset: *mut i64, count: usize, flags: u32
    );
}

/// `read(2)`, which a node does not have.
///
/// # Safety
/// As for `read(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn read(fd: c_int, bytes: *mut c_void, count: usize) -> isize {
    type Read = unsafe extern "C-unwind" fn(c_int, *mut c_void, usize) -> isize;
    if let Some(File::Node(_)) = file(fd) {
        return isize::failed(libc::EINVAL);
    }
    // SAFETY: it is null or the function of that name.
    let next: Option<Read> = unsafe { transmute(READ.address()) };
    match next {
        // SAFETY: the caller's own call.
        Some(next) => unsafe { next(fd, bytes, count) },
        None => isize::failed(libc::ENOSYS),
    }
}
