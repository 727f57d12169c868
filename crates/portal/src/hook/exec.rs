//! The exec family: a thread that is about to become a program without a dynamic linker comes under
//! the supervisor first.
//!
//! The C library's functions call one another past interposed functions, so that each has
//! to be here. What they answer is what the originals answer: they are called in any case.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int};
use std::mem::transmute;
use std::os::fd::BorrowedFd;

use rustix::fs::CWD;
use rustix::path::DecInt;

use super::environment::obstacle;
use super::{Strings, count, libc_answer, looks_at_programs};
use crate::connect::socket_name;
use crate::next::Next;
use crate::supervised::enter;
use crate::syscall::{name, syscall};
use dray_interpose::program::{Path, PreloadSupport, UnknownError, kind, kind_at};

type Execve = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
type Execveat = unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int;
type Fexecve = unsafe extern "C" fn(c_int, Strings, Strings) -> c_int;

static EXECVE: Next = Next::new(c"execve");
static EXECVPE: Next = Next::new(c"execvpe");
static EXECVEAT: Next = Next::new(c"execveat");
static FEXECVE: Next = Next::new(c"fexecve");

/// Looks the originals up, which a child of vfork(2) must not.
#[cfg(feature = "preload")]
pub(super) fn prepare() {
    for next in [&EXECVE, &EXECVPE, &EXECVEAT, &FEXECVE] {
        next.address();
    }
}

/// The program's environment.
pub(super) fn environment() -> Strings {
    unsafe extern "C" {
        static environ: Strings;
    }
    // SAFETY: the C library defines it; a program that changes it while another thread executes a program
    // breaks the original function as well.
    unsafe { environ }
}

/// Where the search of execvp(3) looks.
pub(super) fn directories() -> Option<&'static CStr> {
    // SAFETY: the name is one.
    let value = unsafe { libc::getenv(c"PATH".as_ptr()) };
    // SAFETY: the value is a string, and stays as long as no thread changes the environment meanwhile.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Before `program` is executed, which is of this kind, with this environment.
///
/// # Safety
/// `envp` is null or an array of strings.
unsafe fn before(kind: Result<PreloadSupport, UnknownError>, program: &CStr, envp: Strings) {
    // SAFETY: as the caller promises.
    let obstacle = unsafe { obstacle(kind, envp) };
    if let (Some(obstacle), Some(socket)) = (obstacle, socket_name()) {
        enter(socket, Some(obstacle), program);
    }
}

/// `execve(2)`.
///
/// # Safety
/// As for `execve(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    if looks_at_programs()
        // SAFETY: the caller's string.
        && let Some(path) = unsafe { name(path) }
    {
        // SAFETY: the caller's strings.
        unsafe { before(kind(path), path, envp) };
    }
    // SAFETY: it is null or a function of this type.
    let next: Option<Execve> = unsafe { transmute(EXECVE.address()) };
    match next {
        // SAFETY: the caller's own call.
        Some(next) => unsafe { next(path, argv, envp) },
        None => {
            let arguments = [path.addr(), argv.addr(), envp.addr(), 0, 0, 0];
            // SAFETY: the caller's own call.
            libc_answer(unsafe { syscall(libc::SYS_execve, arguments) }) as c_int
        }
    }
}

/// `execv(3)`.
///
/// # Safety
/// As for `execv(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { execve(path, argv, environment()) }
}

/// `execvpe(3)`.
///
/// # Safety
/// As for `execvpe(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    if !file.is_null() && looks_at_programs() {
        // SAFETY: the caller's string.
        let file = unsafe { CStr::from_ptr(file) };
        let mut room: Path = Path::empty();
        if let Some(path) = room.find(file, directories()) {
            // SAFETY: the caller's strings.
            unsafe { before(kind(path), path, envp) };
        }
    }
    // SAFETY: it is null or a function of this type.
    let next: Option<Execve> = unsafe { transmute(EXECVPE.address()) };
    match next {
        // SAFETY: the caller's own call.
        Some(next) => unsafe { next(file, argv, envp) },
        None => libc_answer(Err(libc::ENOSYS)) as c_int,
    }
}

/// `execvp(3)`.
///
/// # Safety
/// As for `execvp(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Strings) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { execvpe(file, argv, environment()) }
}

/// `execveat(2)`.
///
/// # Safety
/// As for `execveat(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn execveat(
    directory: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    if looks_at_programs()
        // SAFETY: the caller's string.
        && let Some(name) = unsafe { name(path) }
    {
        if name.is_empty() {
            // SAFETY: the caller's strings.
            unsafe { before_file(directory, envp) };
        } else if directory == libc::AT_FDCWD {
            // SAFETY: the caller's strings.
            unsafe { before(kind_at(CWD, name), name, envp) };
        } else if directory >= 0 || name.to_bytes().starts_with(b"/") {
            // SAFETY: it is open, or every use of it is refused.
            let directory = unsafe { BorrowedFd::borrow_raw(directory.max(0)) };
            // SAFETY: the caller's strings.
            unsafe { before(kind_at(directory, name), name, envp) };
        }
    }
    // SAFETY: it is null or a function of this type.
    let next: Option<Execveat> = unsafe { transmute(EXECVEAT.address()) };
    match next {
        // SAFETY: the caller's own call.
        Some(next) => unsafe { next(directory, path, argv, envp, flags) },
        None => {
            let (directory, flags) = (directory as usize, flags as usize);
            let arguments = [directory, path.addr(), argv.addr(), envp.addr(), flags, 0];
            // SAFETY: the caller's own call.
            libc_answer(unsafe { syscall(libc::SYS_execveat, arguments) }) as c_int
        }
    }
}

/// `fexecve(3)`.
///
/// # Safety
/// As for `fexecve(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int {
    if looks_at_programs() {
        // SAFETY: the caller's strings.
        unsafe { before_file(fd, envp) };
    }
    // SAFETY: it is null or a function of this type.
    let next: Option<Fexecve> = unsafe { transmute(FEXECVE.address()) };
    match next {
        // SAFETY: the caller's own call.
        Some(next) => unsafe { next(fd, argv, envp) },
        None => libc_answer(Err(libc::ENOSYS)) as c_int,
    }
}

/// Before an open file is executed, which may be open for nothing else (`O_PATH`).
///
/// # Safety
/// As for [`before`].
unsafe fn before_file(fd: c_int, envp: Strings) {
    let mut room = Path::<32>::empty();
    if fd >= 0
        && let Some(path) = room.set(&[b"/proc/self/fd/", DecInt::new(fd).as_bytes()])
    {
        // SAFETY: as the caller promises.
        unsafe { before(kind(path), path, envp) };
    }
}

/// Makes an array of the arguments behind the first, which is where the caller has put most of them:
/// those that came in registers are pushed in front. Then it calls what takes arrays.
macro_rules! with_list {
    ($function:path) => {
        naked_asm!(
            "pop rax",
            "push r9",
            "push r8",
            "push rcx",
            "push rdx",
            "push rsi",
            "mov rsi, rsp",
            "push rax",
            "call {function}",
            "pop rcx",
            "add rsp, 40",
            "push rcx",
            "ret",
            function = sym $function,
        )
    };
}

/// `execl(3)`.
///
/// # Safety
/// As for `execl(3)`, with its arguments.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn execl() -> c_int {
    with_list!(list)
}

/// `execlp(3)`.
///
/// # Safety
/// As for `execlp(3)`, with its arguments.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn execlp() -> c_int {
    with_list!(list_in_path)
}

/// `execle(3)`.
///
/// # Safety
/// As for `execle(3)`, with its arguments.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn execle() -> c_int {
    with_list!(list_and_environment)
}

unsafe extern "C" fn list(path: *const c_char, argv: Strings) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { execv(path, argv) }
}

unsafe extern "C" fn list_in_path(file: *const c_char, argv: Strings) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { execvp(file, argv) }
}

unsafe extern "C" fn list_and_environment(path: *const c_char, argv: Strings) -> c_int {
    // SAFETY: the arguments end with a null pointer.
    let count = unsafe { count(argv) };
    // SAFETY: one more argument comes behind it.
    let envp = unsafe { argv.add(count + 1) };
    // SAFETY: as above.
    let envp = unsafe { envp.read() };
    // SAFETY: the caller's own call.
    unsafe { execve(path, argv, envp.cast()) }
}
