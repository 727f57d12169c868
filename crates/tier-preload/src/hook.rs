//! The functions of threads that this library interposes, and what it needs of them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use dray_tier::sys::{PAGE, memory};

use crate::{agent, own_process, tasks, threads};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Start,
    *mut c_void,
) -> c_int;
type CreateC11 = unsafe extern "C" fn(*mut c_void, Start, *mut c_void) -> c_int;
type End = unsafe extern "C" fn(libc::pthread_t) -> c_int;
type Join = unsafe extern "C" fn(libc::pthread_t, *mut *mut c_void) -> c_int;

/// The function of that name behind this library, looked up once; null if there is none.
pub(crate) fn next(cache: &AtomicUsize, name: &std::ffi::CStr) -> *const c_void {
    let address = match cache.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: the name is a string.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            let address = found.expose_provenance();
            cache.store(address, Ordering::Relaxed);
            address
        }
        address => address,
    };
    std::ptr::with_exposed_provenance(address)
}

/// The function of that name behind this library, of that type.
macro_rules! real {
    ($name:literal, $type:ty) => {{
        static CACHE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let pointer = $crate::hook::next(&CACHE, $name);
        // SAFETY: null, or the function of that name.
        unsafe { std::mem::transmute::<*const std::ffi::c_void, Option<$type>>(pointer) }
    }};
}
pub(crate) use real;

/// Waits as long as the word has that value, but not longer than a time. By the one system call that no program with threads
/// forbids.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, most: Duration) {
    let most = libc::timespec {
        tv_sec: most.as_secs() as i64,
        tv_nsec: most.subsec_nanos().into(),
    };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let word = std::ptr::from_ref(word);
    // SAFETY: an aligned word, and a time.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, value, &raw const most) };
}

/// Wakes all that wait for the word.
pub(crate) fn futex_wake(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let word = std::ptr::from_ref(word);
    // SAFETY: an aligned word.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, i32::MAX) };
}

/// Runs a function on a thread of the C library, to its end, on memory of this function; whether it could.
pub(crate) fn run_a_thread(start: Start) -> bool {
    let (Some(create), Some(join)) = (
        real!(c"pthread_create", Create),
        real!(c"pthread_join", Join),
    ) else {
        return false;
    };
    let Ok(stack) = memory::reserve(tasks::BLOCK, PAGE) else {
        return false;
    };
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the place is written to.
    unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    let bottom = std::ptr::with_exposed_provenance_mut(stack as usize);
    // SAFETY: a stack that is this thread's alone.
    unsafe { libc::pthread_attr_setstack(attributes.as_mut_ptr(), bottom, tasks::BLOCK as usize) };
    let mut thread = 0;
    let nothing = std::ptr::null_mut();
    // SAFETY: attributes and function are what they must be.
    let begun = unsafe { create(&raw mut thread, attributes.as_ptr(), start, nothing) } == 0;
    if begun {
        // SAFETY: the thread from above, once.
        unsafe { join(thread, std::ptr::null_mut()) };
    }
    // SAFETY: no thread runs on it any more.
    unsafe { memory::unmap(stack, tasks::BLOCK) };
    begun
}

std::arch::global_asm!(
    // A thread of the program begins: nothing of this library is on its stack when its function is called.
    ".globl dray_tier_thread",
    ".hidden dray_tier_thread",
    "dray_tier_thread:",
    "sub rsp, 24",
    "mov rsi, rsp",
    "call {enters}",
    "mov rax, [rsp]",
    "mov rdi, [rsp + 8]",
    "add rsp, 24",
    "jmp rax",
    enters = sym enters,
);

unsafe extern "C" {
    safe fn dray_tier_thread(place: *mut c_void) -> *mut c_void;
}

/// What a thread of the program is to do. Not on the heap: a thread that is killed may end with its lock.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "dray_tier_thread reads both")]
struct Beginning {
    start: usize,
    argument: usize,
}

/// A place for one, until the thread has taken it.
struct Place {
    taken: AtomicBool,
    words: [AtomicUsize; 2],
}

static PLACES: [Place; 1024] = [const {
    Place {
        taken: AtomicBool::new(false),
        words: [AtomicUsize::new(0), AtomicUsize::new(0)],
    }
}; 1024];

/// Enters the calling thread, and says what it is to do. Its pages do not move from now on.
extern "C" fn enters(place: &Place, into: &mut Beginning) {
    let [start, argument] = place
        .words
        .each_ref()
        .map(|word| word.load(Ordering::Relaxed));
    *into = Beginning { start, argument };
    place.taken.store(false, Ordering::Release);
    threads::enter();
    if let Some(engine) = agent::engine() {
        engine.pass_round();
    }
}

/// A place for what a thread is to do. While all are taken, threads that have begun empty them.
fn place_of(start: Start, argument: *mut c_void) -> &'static Place {
    loop {
        let mut free = PLACES.iter();
        let free = free.find(|place| !place.taken.swap(true, Ordering::AcqRel));
        if let Some(place) = free {
            place.words[0].store(
                (start as *const c_void).expose_provenance(),
                Ordering::Relaxed,
            );
            place.words[1].store(argument.expose_provenance(), Ordering::Release);
            return place;
        }
        futex_wait(&AtomicU32::new(0), 0, Duration::from_millis(1));
    }
}

fn as_argument(place: &'static Place) -> *mut c_void {
    std::ptr::from_ref(place).cast_mut().cast()
}

/// Tasks of this library start tasks; threads of the program are entered.
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
    if tasks::on_one() {
        let Some(task) = tasks::spawn(start, argument) else {
            return libc::EAGAIN;
        };
        // SAFETY: the caller's place for it.
        unsafe { thread.write(task) };
        return 0;
    }
    let Some(create) = real!(c"pthread_create", Create) else {
        return libc::EAGAIN;
    };
    if !own_process::is_this() {
        // SAFETY: the caller's promise.
        return unsafe { create(thread, attributes, start, argument) };
    }
    let place = place_of(start, argument);
    // SAFETY: as above.
    let answer = unsafe { create(thread, attributes, dray_tier_thread, as_argument(place)) };
    if answer != 0 {
        place.taken.store(false, Ordering::Release);
    }
    answer
}

/// As [`pthread_create`]. The function's result is an `int`, in the same register.
///
/// # Safety
/// As thrd_create(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_create(
    thread: *mut c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    /// `thrd_error` of `threads.h`.
    const ERROR: c_int = 2;
    let Some(create) = real!(c"thrd_create", CreateC11) else {
        return ERROR;
    };
    if !own_process::is_this() {
        // SAFETY: the caller's promise.
        return unsafe { create(thread, start, argument) };
    }
    let place = place_of(start, argument);
    // SAFETY: as above.
    let answer = unsafe { create(thread, dray_tier_thread, as_argument(place)) };
    if answer != 0 {
        place.taken.store(false, Ordering::Release);
    }
    answer
}

/// # Safety
/// As pthread_join(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    if tasks::on_one() && tasks::join(thread) {
        return 0;
    }
    match real!(c"pthread_join", Join) {
        // SAFETY: the caller's promise.
        Some(join) => unsafe { join(thread, result) },
        None => libc::ESRCH,
    }
}

/// # Safety
/// As pthread_detach(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_detach(thread: libc::pthread_t) -> c_int {
    if tasks::on_one() && tasks::detach(thread) {
        return 0;
    }
    match real!(c"pthread_detach", End) {
        // SAFETY: the caller's promise.
        Some(detach) => unsafe { detach(thread) },
        None => libc::ESRCH,
    }
}

/// Thread-local variables of tasks of this library are not destroyed: the C library would allocate for that.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cxa_thread_atexit_impl(
    destroy: *const c_void,
    object: *mut c_void,
    library: *mut c_void,
) -> c_int {
    type AtExit = unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void) -> c_int;
    if tasks::on_one() {
        return 0;
    }
    match real!(c"__cxa_thread_atexit_impl", AtExit) {
        // SAFETY: the caller's promise.
        Some(real) => unsafe { real(destroy, object, library) },
        None => -1,
    }
}

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
    let Some(real) = real!(c"mremap", Mremap) else {
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
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the caller's promise.
    unsafe { real(old, old_size, new_size, flags, new) }
}
