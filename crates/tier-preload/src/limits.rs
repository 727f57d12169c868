//! A program that limits its address space or its data: what dray has there would count, so the agent ends first, and
//! nothing moves any more. A program that begins under such a limit has no agent.

use std::ffi::c_int;

use crate::hook::real;
use crate::{agent, tasks};

/// Limits that the kernel compares with all that is mapped.
const COUNTED: [u32; 2] = [libc::RLIMIT_AS, libc::RLIMIT_DATA];

/// Whether this process is under such a limit.
pub(crate) fn in_force() -> bool {
    COUNTED.into_iter().any(|resource| {
        let mut limit = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        let new = std::ptr::null::<libc::rlimit>();
        // SAFETY: it writes one limit.
        unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, new, &raw mut limit) };
        limit.rlim_cur != libc::RLIM_INFINITY
    })
}

/// # Safety
/// `new` is null or a limit.
unsafe fn before(resource: u32, new: *const libc::rlimit) {
    if !COUNTED.contains(&resource) || new.is_null() || tasks::on_one() {
        return;
    }
    // SAFETY: the caller's promise.
    if unsafe { (*new).rlim_cur } != libc::RLIM_INFINITY {
        agent::leave_because("limits its address space or data: it is not tiered any more");
    }
}

type Set = unsafe extern "C" fn(u32, *const libc::rlimit) -> c_int;
type SetOf =
    unsafe extern "C" fn(libc::pid_t, u32, *const libc::rlimit, *mut libc::rlimit) -> c_int;

/// # Safety
/// As setrlimit(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn setrlimit(resource: u32, new: *const libc::rlimit) -> c_int {
    let Some(real) = real!(c"setrlimit", Set) else {
        return -1;
    };
    // SAFETY: the caller's promise.
    unsafe { before(resource, new) };
    // SAFETY: the caller's promise.
    unsafe { real(resource, new) }
}

/// # Safety
/// As setrlimit(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn setrlimit64(resource: u32, new: *const libc::rlimit) -> c_int {
    // SAFETY: the caller's promise; the types are one on 64-bit machines.
    unsafe { setrlimit(resource, new) }
}

/// # Safety
/// As prlimit(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn prlimit(
    pid: libc::pid_t,
    resource: u32,
    new: *const libc::rlimit,
    old: *mut libc::rlimit,
) -> c_int {
    let Some(real) = real!(c"prlimit", SetOf) else {
        return -1;
    };
    if pid == 0 || pid.unsigned_abs() == std::process::id() {
        // SAFETY: the caller's promise.
        unsafe { before(resource, new) };
    }
    // SAFETY: the caller's promise.
    unsafe { real(pid, resource, new, old) }
}

/// # Safety
/// As prlimit(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn prlimit64(
    pid: libc::pid_t,
    resource: u32,
    new: *const libc::rlimit,
    old: *mut libc::rlimit,
) -> c_int {
    // SAFETY: the caller's promise; the types are one on 64-bit machines.
    unsafe { prlimit(pid, resource, new, old) }
}
