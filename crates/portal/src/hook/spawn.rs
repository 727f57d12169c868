//! posix_spawn: no code of the library runs in the child before it executes the program. So it executes
//! this library as a program (`start.rs`), which comes under the supervisor and executes the requested
//! program. An error that only this exec can find (ETXTBSY) is not returned by posix_spawn then; the
//! child ends with exit code 127 instead, as the manual page of the function allows.

use std::ffi::{CStr, c_char, c_int};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::environment::obstacle;
use super::exec::directories;
use super::{Strings, count, looks_at_programs};
use crate::connect::{socket_name, socket_variable};
use crate::next::Next;
use crate::supervised::enter;
use crate::syscall::{name, syscall};
use dray_interpose::program::{Obstacle, Path, kind};

type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const libc::posix_spawn_file_actions_t,
    *const libc::posix_spawnattr_t,
    Strings,
    Strings,
) -> c_int;

static POSIX_SPAWN: Next = Next::new(c"posix_spawn");
static POSIX_SPAWNP: Next = Next::new(c"posix_spawnp");

/// The file of this library, as a string that stays.
static LIBRARY: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// The file of this library; `None` before it is known, and where it is no shared object.
pub(super) fn library() -> Option<&'static CStr> {
    let library = LIBRARY.load(Ordering::Relaxed);
    // SAFETY: the dynamic linker keeps the string.
    (!library.is_null()).then(|| unsafe { CStr::from_ptr(library) })
}

/// Looks up what a child of vfork(2) must not.
#[cfg(feature = "preload")]
pub(super) fn prepare() {
    for next in [&POSIX_SPAWN, &POSIX_SPAWNP] {
        next.address();
    }
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = std::ptr::from_ref(&LIBRARY).cast::<std::ffi::c_void>();
    // SAFETY: it writes to the place.
    if unsafe { libc::dladdr(here, found.as_mut_ptr()) } != 0 {
        // SAFETY: all zero is one as well.
        let found = unsafe { found.assume_init() };
        LIBRARY.store(found.dli_fname.cast_mut(), Ordering::Relaxed);
    }
}

/// `posix_spawn(3)`.
///
/// # Safety
/// As for `posix_spawn(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: it is null or a function of this type.
    let next: Option<Spawn> = unsafe { transmute(POSIX_SPAWN.address()) };
    let Some(next) = next else {
        return libc::ENOSYS;
    };
    if looks_at_programs()
        // SAFETY: the caller's string.
        && let Some(path) = unsafe { name(path) }
    {
        let call = |starter, argv| {
            // SAFETY: the caller's own call, of another program.
            unsafe { next(pid, starter, actions, attributes, argv, envp) }
        };
        // SAFETY: the caller's strings.
        if unsafe { start(path, argv, envp, call) } {
            return 0;
        }
    }
    // SAFETY: the caller's own call.
    unsafe { next(pid, path, actions, attributes, argv, envp) }
}

/// `posix_spawnp(3)`.
///
/// # Safety
/// As for `posix_spawnp(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    file: *const c_char,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: it is null or a function of this type.
    let next: Option<Spawn> = unsafe { transmute(POSIX_SPAWNP.address()) };
    let Some(next) = next else {
        return libc::ENOSYS;
    };
    if !file.is_null() && looks_at_programs() {
        // SAFETY: the caller's string.
        let file = unsafe { CStr::from_ptr(file) };
        let call = |starter, argv| {
            // SAFETY: the caller's own call, of another program by its path.
            unsafe { next(pid, starter, actions, attributes, argv, envp) }
        };
        let mut room: Path = Path::empty();
        let path = room.find(file, directories());
        // SAFETY: the caller's strings.
        if path.is_some_and(|path| unsafe { start(path, argv, envp, call) }) {
            return 0;
        }
    }
    // SAFETY: the caller's own call.
    unsafe { next(pid, file, actions, attributes, argv, envp) }
}

/// Has `spawn` start the program by way of this library, if it needs a supervisor. Whether it has;
/// if not, for whatever reason, the program is still to be started.
///
/// # Safety
/// `argv` and `envp` are null or arrays of strings.
unsafe fn start(
    path: &CStr,
    argv: Strings,
    envp: Strings,
    spawn: impl FnOnce(*const c_char, Strings) -> c_int,
) -> bool {
    // SAFETY: the caller's strings.
    let Some(obstacle) = (unsafe { obstacle(kind(path), envp) }) else {
        return false;
    };
    let (library, socket) = (LIBRARY.load(Ordering::Relaxed), socket_variable());
    let Some(socket) = socket.filter(|_| !library.is_null() && !argv.is_null()) else {
        return false;
    };
    if obstacle == Obstacle::Machine {
        // To say so is all that can be done.
        if let Some(socket) = socket_name() {
            enter(socket, Some(obstacle), path);
        }
        return false;
    }
    // SAFETY: the caller's strings.
    let count = unsafe { count(argv) };
    // The first two, and the null pointer.
    let Some(mut list) = List::new(count + 3) else {
        return false;
    };
    let strings = list.as_mut();
    strings[0] = socket.as_ptr();
    strings[1] = path.as_ptr();
    for (index, string) in strings[2..][..count].iter_mut().enumerate() {
        // SAFETY: there are as many.
        let at = unsafe { argv.add(index) };
        // SAFETY: as above.
        *string = unsafe { at.read() };
    }
    spawn(library, strings.as_ptr()) == 0
}

/// An array of pointers, null at first, that needs no heap.
struct List {
    start: *mut *const c_char,
    count: usize,
}

impl List {
    fn new(count: usize) -> Option<List> {
        let bytes = count.checked_mul(size_of::<*const c_char>())?;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let arguments = [0, bytes, protection, flags, usize::MAX, 0];
        // SAFETY: new pages, wherever there is room.
        let start = unsafe { syscall(libc::SYS_mmap, arguments) }.ok()?;
        let start = std::ptr::with_exposed_provenance_mut(start);
        Some(List { start, count })
    }

    fn as_mut(&mut self) -> &mut [*const c_char] {
        // SAFETY: the pages are as long, not shared, and zeros are null pointers.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.count) }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        let bytes = self.count * size_of::<*const c_char>();
        let arguments = [self.start.addr(), bytes, 0, 0, 0, 0];
        // SAFETY: the pages are ours, and no pointer into them is left.
        let _ = unsafe { syscall(libc::SYS_munmap, arguments) };
    }
}
