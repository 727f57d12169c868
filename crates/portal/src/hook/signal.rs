//! sigaction, signal, sigprocmask and pthread_sigmask: handlers and masks of the program beside ours.
//!
//! The program's actions for SIGSEGV and SIGILL are stored once the handlers are installed. In masks
//! these two signals are left out: the kernel kills a process that raises one of them while it is
//! blocked, and a submission at a fresh site does.

use std::ffi::c_int;
use std::mem::transmute;

use super::{is_active, libc_answer};
use crate::chain::{self, Action, SYNCHRONOUS};
use crate::next::{self, Next};
use crate::trap;

/// `sigaction(2)`.
///
/// # Safety
/// As for `sigaction(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's; null is nothing.
    let new = unsafe { new.as_ref() }.map(Action::from_libc);
    if chain::is_ours(signal) && trap::is_installed() {
        let was = chain::replace(signal, new);
        // SAFETY: the caller's; null is nothing.
        if let Some(old) = unsafe { old.as_mut() } {
            *old = was.to_libc();
        }
        return 0;
    }
    let Some(mut new) = new else {
        // SAFETY: the caller's own call.
        return unsafe { next::sigaction()(signal, std::ptr::null(), old) };
    };
    if is_active() {
        new.mask &= !SYNCHRONOUS;
    }
    let new = new.to_libc();
    // SAFETY: the caller's own call.
    unsafe { next::sigaction()(signal, &new, old) }
}

/// `signal(2)`, with the meaning of BSD as in glibc.
///
/// # Safety
/// As for `signal(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    let new = Action {
        handler,
        flags: libc::SA_RESTART,
        mask: 0,
    };
    if !(1..=64).contains(&signal) {
        libc_answer(Err(libc::EINVAL));
        return libc::SIG_ERR;
    }
    let new = Action {
        mask: chain::bit(signal),
        ..new
    };
    let mut old = Action::DEFAULT.to_libc();
    // SAFETY: both are actions.
    match unsafe { sigaction(signal, &new.to_libc(), &mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

type Mask = unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;

static SIGPROCMASK: Next = Next::new(c"sigprocmask");
static PTHREAD_SIGMASK: Next = Next::new(c"pthread_sigmask");

/// # Safety
/// As for the function; `next` is one of that name.
unsafe fn change_mask(
    next: &Next,
    missing: Mask,
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: it is null or a function of this type.
    let next: Option<Mask> = unsafe { transmute(next.address()) };
    let next = next.unwrap_or(missing);
    // SAFETY: the caller's; null is nothing.
    let stripped = unsafe { set.as_ref() }.filter(|_| how != libc::SIG_UNBLOCK && is_active());
    let Some(set_of) = stripped else {
        // SAFETY: the caller's own call.
        return unsafe { next(how, set, old) };
    };
    let mut set = *set_of;
    for signal in [libc::SIGSEGV, libc::SIGILL] {
        // SAFETY: a set of ours.
        unsafe { libc::sigdelset(&mut set, signal) };
    }
    // SAFETY: the caller's own call, with fewer signals.
    unsafe { next(how, &set, old) }
}

/// `sigprocmask(2)`.
///
/// # Safety
/// As for `sigprocmask(2)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { change_mask(&SIGPROCMASK, libc::sigprocmask, how, set, old) }
}

/// `pthread_sigmask(3)`.
///
/// # Safety
/// As for `pthread_sigmask(3)`.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { change_mask(&PTHREAD_SIGMASK, libc::pthread_sigmask, how, set, old) }
}
