//! The functions that this library interposes.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::own::PINNED;
use crate::{fork, stacks};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Start,
    *mut c_void,
) -> c_int;

/// The function of that name behind this library; looked up once.
pub(crate) fn next(cache: &AtomicUsize, name: &std::ffi::CStr) -> usize {
    match cache.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: the name is a string.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            let address = found.expose_provenance();
            cache.store(address, Ordering::Relaxed);
            address
        }
        address => address,
    }
}

static CREATE: AtomicUsize = AtomicUsize::new(0);

fn real_create() -> Option<Create> {
    let address = next(&CREATE, c"pthread_create");
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: null, or the function of that name.
    unsafe { std::mem::transmute::<*const c_void, Option<Create>>(pointer) }
}

/// What a thread of this library begins with.
struct Beginning {
    start: Start,
    argument: *mut c_void,
    /// 1 when the thread is; a futex.
    ready: AtomicU32,
}

extern "C" fn begin(beginning: *mut c_void) -> *mut c_void {
    // Its thread-local variables must be readable whatever is out.
    let (first, last) = stacks::vector_pages();
    PINNED.add(first, last);
    // SAFETY: `create_on_own` keeps it until this thread is ready.
    let beginning = unsafe { &*beginning.cast::<Beginning>() };
    let (start, argument) = (beginning.start, beginning.argument);
    let ready = &raw const beginning.ready;
    beginning.ready.store(1, Ordering::Release);
    // From here on `beginning` may be gone; the call only looks which thread waits at that address.
    futex(ready, libc::FUTEX_WAKE, 1);
    start(argument)
}

/// Starts a thread on a stack of this library; whether it could.
pub(crate) fn create_own(start: Start, argument: *mut c_void) -> bool {
    let mut thread = 0;
    create_on_own(&raw mut thread, start, argument) == 0
}

fn create_on_own(thread: *mut libc::pthread_t, start: Start, argument: *mut c_void) -> c_int {
    let (Some(create), Some(stack)) = (real_create(), stacks::make()) else {
        return libc::EAGAIN;
    };
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the place is written to.
    unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    let bottom = std::ptr::with_exposed_provenance_mut((stack + 4096) as usize);
    let size = (stacks::STACK - 4096) as usize;
    // SAFETY: a stack that is this thread's alone.
    unsafe { libc::pthread_attr_setstack(attributes.as_mut_ptr(), bottom, size) };
    let beginning = Beginning {
        start,
        argument,
        ready: AtomicU32::new(0),
    };
    let start_with = (&raw const beginning).cast_mut().cast();
    // SAFETY: attributes, function and argument are what they must be.
    let answer = unsafe { create(thread, attributes.as_ptr(), begin, start_with) };
    // Before it is ready its pages may be moved away from under it.
    while answer == 0 && beginning.ready.load(Ordering::Acquire) == 0 {
        futex(&raw const beginning.ready, libc::FUTEX_WAIT, 0);
    }
    answer
}

/// futex(2) between threads of this process: waits as long as the word has that value, or wakes so many.
fn futex(word: *const AtomicU32, operation: c_int, value: u32) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    let no_limit = std::ptr::null::<libc::timespec>();
    // SAFETY: an aligned word; the kernel refuses an address that is not mapped.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, value, no_limit) };
}

/// Threads of this library get stacks of this library.
///
/// # Safety
/// As pthread_create(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    if stacks::on_one() {
        return create_on_own(thread, start, argument);
    }
    match real_create() {
        // SAFETY: the caller's promise.
        Some(create) => unsafe { create(thread, attributes, start, argument) },
        None => libc::EAGAIN,
    }
}

static FORK: AtomicUsize = AtomicUsize::new(0);

/// `_Fork` calls no handlers.
///
/// # Safety
/// As _Fork(3).
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the C library's name")]
unsafe extern "C" fn _Fork() -> libc::pid_t {
    let address = next(&FORK, c"_Fork");
    if address == 0 {
        return -1;
    }
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: the function of that name.
    let real = unsafe {
        std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> libc::pid_t>(pointer)
    };
    fork::prepare();
    // SAFETY: the caller's promise.
    let pid = unsafe { real() };
    match pid {
        0 => fork::child(),
        _ => fork::parent(),
    }
    pid
}

static MREMAP: AtomicUsize = AtomicUsize::new(0);

/// A mapping that is being registered may be in two parts for a moment; it is whole when that is
/// seen.
///
/// # Safety
/// As mremap(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_size: usize,
    new_size: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    type Mremap =
        unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
    let address = next(&MREMAP, c"mremap");
    let pointer = std::ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: null, or the function of that name.
    let real = unsafe { std::mem::transmute::<*const c_void, Option<Mremap>>(pointer) };
    let Some(real) = real else {
        return libc::MAP_FAILED;
    };
    for _ in 0..3 {
        // SAFETY: the caller's promise.
        let moved = unsafe { real(old, old_size, new_size, flags, new) };
        let split = moved == libc::MAP_FAILED
            && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT);
        if !split {
            return moved;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // SAFETY: the caller's promise.
    unsafe { real(old, old_size, new_size, flags, new) }
}
