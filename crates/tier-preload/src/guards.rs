//! Calls during which nothing may be out: the kernel does what they ask without an event, or without waiting for a page.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::sync::atomic::Ordering;

use dray_tier::mechanism::Quiet;

use crate::hook::real;
use crate::{agent, tasks};

/// Nothing is out as long as the result lives, if pages of this process move.
pub(crate) fn quiet() -> Option<Quiet<'static>> {
    match tasks::on_one() {
        true => None,
        false => agent::engine().map(dray_tier::mechanism::Engine::quiet),
    }
}

/// Pages of a range are made, as the call that follows would, but waiting for the agent.
pub(crate) fn populate(start: u64, len: u64) {
    // SAFETY: it changes no byte; it fails for a range that is none, as the call that follows.
    unsafe { libc::syscall(libc::SYS_madvise, start, len, libc::MADV_POPULATE_WRITE) };
}

/// Guard regions have no event: a page that is out would come back into one that is taken away again.
///
/// # Safety
/// As madvise(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int {
    const GUARD_INSTALL: c_int = 102;
    const GUARD_REMOVE: c_int = 103;
    let Some(real) = real!(
        c"madvise",
        unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int
    ) else {
        return -1;
    };
    let _quiet = matches!(advice, GUARD_INSTALL | GUARD_REMOVE).then(quiet);
    // SAFETY: the caller's promise.
    unsafe { real(start, len, advice) }
}

/// AF_XDP pins the memory of packets, and does not wait for a page.
///
/// # Safety
/// As setsockopt(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    socket: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: libc::socklen_t,
) -> c_int {
    const UMEM_REG: c_int = 4;
    type Set = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, libc::socklen_t) -> c_int;
    let Some(real) = real!(c"setsockopt", Set) else {
        return -1;
    };
    let pins = level == libc::SOL_XDP && option == UMEM_REG && len >= 16 && !value.is_null();
    let quiet = if pins { quiet() } else { None };
    if quiet.is_some() {
        // SAFETY: `struct xdp_umem_reg` begins with address and length, and the caller says that it has so many bytes.
        let [start, len] = unsafe { value.cast::<[u64; 2]>().read_unaligned() };
        populate(start, len);
    }
    // SAFETY: the caller's promise.
    unsafe { real(socket, level, option, value, len) }
}

/// All memory is locked: dray's would be too, and count. So the agent ends first, and nothing moves any more.
///
/// # Safety
/// As mlockall(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let Some(real) = real!(c"mlockall", unsafe extern "C" fn(c_int) -> c_int) else {
        return -1;
    };
    agent::leave();
    // SAFETY: the caller's promise.
    unsafe { real(flags) }
}

/// Nothing is out as long as the result lives, if the kernel does not tell of children and a copy of what is out would lack
/// in one.
fn quiet_for_a_child() -> Option<Quiet<'static>> {
    let untold = agent::engine().is_some_and(|engine| !engine.sees_forks());
    if untold { quiet() } else { None }
}

/// A child's locks are its parent's threads'.
fn end_quiet(quiet: Option<Quiet<'static>>, is_child: bool) {
    match is_child {
        true => std::mem::forget(quiet),
        false => drop(quiet),
    }
}

/// A program puts itself under a filter: see [`agent::LAST`].
///
/// # Safety
/// As prctl(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    type Prctl = unsafe extern "C" fn(c_int, ...) -> c_int;
    let Some(real) = real!(c"prctl", Prctl) else {
        return -1;
    };
    if option == libc::PR_SET_SECCOMP && !tasks::on_one() {
        agent::LAST.store(true, Ordering::Relaxed);
    }
    // SAFETY: the caller's promise.
    unsafe { real(option, a, b, c, d) }
}

/// # Safety
/// As _Fork(3).
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the C library's name")]
unsafe extern "C" fn _Fork() -> libc::pid_t {
    let Some(real) = real!(c"_Fork", unsafe extern "C" fn() -> libc::pid_t) else {
        return -1;
    };
    let quiet = quiet_for_a_child();
    // SAFETY: the caller's promise.
    let pid = unsafe { real() };
    end_quiet(quiet, pid == 0);
    pid
}

/// # Safety
/// As clone(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn clone(
    entry: *const c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    number: *mut c_void,
    storage: *mut c_void,
    child: *mut c_void,
) -> c_int {
    type Clone = unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        c_int,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
    ) -> c_int;
    let Some(real) = real!(c"clone", Clone) else {
        return -1;
    };
    let copies = flags & libc::CLONE_VM == 0;
    let _quiet = if copies { quiet_for_a_child() } else { None };
    // The child does not return from it.
    // SAFETY: the caller's promise.
    unsafe { real(entry, stack, flags, argument, number, storage, child) }
}

std::arch::global_asm!(
    // syscall(2) as the C library has it, but for children with a copy of this process's memory that go on on its stack.
    ".globl syscall",
    ".type syscall, @function",
    "syscall:",
    "cmp rdi, 57",
    "je {forks}",
    "cmp rdi, 56",
    "jne 2f",
    "test esi, 0x100",
    "jnz 3f",
    "test rdx, rdx",
    "jz {forks}",
    "2:",
    "cmp rdi, 317",
    "je 5f",
    "cmp rdi, 435",
    "jne 3f",
    "test dword ptr [rsi], 0x100",
    "jnz 3f",
    "cmp qword ptr [rsi + 40], 0",
    "je {forks}",
    "3:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "cmp rax, -4095",
    "jae 4f",
    "ret",
    "4:",
    "mov rdi, rax",
    "jmp {fails}",
    // seccomp(2): see `agent::LAST`.
    "5:",
    "mov byte ptr [rip + {last}], 1",
    "jmp 3b",
    ".size syscall, . - syscall",
    forks = sym forks,
    fails = sym fails,
    last = sym agent::LAST,
);

extern "C" fn fails(answer: c_long) -> c_long {
    // SAFETY: it cannot fail.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's own.
    unsafe { place.write(-answer as c_int) };
    -1
}

/// # Safety
/// As syscall(2), with a call that makes a child on the same stack.
unsafe extern "C" fn forks(
    number: c_long,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
    e: c_ulong,
) -> c_long {
    let quiet = quiet_for_a_child();
    let answer: c_long;
    // SAFETY: the caller's promise.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    end_quiet(quiet, answer == 0);
    match answer {
        -4095..0 => fails(answer),
        _ => answer,
    }
}
