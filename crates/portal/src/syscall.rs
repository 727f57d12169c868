//! System calls, made directly.
//!
//! In a signal handler and around interposed functions neither `errno` nor a wrapper that another
//! library interposes may be used.

use std::arch::asm;
use std::ffi::{CStr, c_char};

use crate::quiet::is_quiet;

/// The answer: a value, or an error number.
pub(crate) type Answer = Result<usize, i32>;

/// Makes the system call `number`.
///
/// # Safety
/// What the call does with `arguments` must be sound.
pub(crate) unsafe fn syscall(number: libc::c_long, arguments: [usize; 6]) -> Answer {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    // SAFETY: the kernel changes rax, rcx and r11 alone, and memory as the caller vouches.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    match answer {
        -4095..=-1 => Err(-answer as i32),
        answer => Ok(answer as usize),
    }
}

/// A string that the program passes to the kernel; `None` where the kernel cannot read it either and would
/// return EFAULT.
///
/// # Safety
/// It stays as it is meanwhile, if it is a string at all.
pub(crate) unsafe fn name<'a>(text: *const c_char) -> Option<&'a CStr> {
    let arguments = [
        libc::AT_FDCWD as usize,
        text.addr(),
        libc::F_OK as usize,
        0,
        0,
        0,
    ];
    // SAFETY: it looks for the file, and changes nothing.
    match unsafe { syscall(libc::SYS_faccessat, arguments) } {
        Err(libc::EFAULT | libc::ENAMETOOLONG) => None,
        // SAFETY: the kernel has found its end.
        _ => Some(unsafe { CStr::from_ptr(text) }),
    }
}

/// The process.
pub(crate) fn pid() -> u32 {
    // SAFETY: it has no argument and no effect.
    unsafe { syscall(libc::SYS_getpid, [0; 6]) }.unwrap_or(0) as u32
}

/// The thread.
pub(crate) fn tid() -> u32 {
    // SAFETY: it has no argument and no effect.
    unsafe { syscall(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// Lets others run, if that is allowed.
pub(crate) fn give_way() {
    if is_quiet() {
        return std::hint::spin_loop();
    }
    // SAFETY: it has no argument and no effect on memory.
    let _ = unsafe { syscall(libc::SYS_sched_yield, [0; 6]) };
}

/// Closes a descriptor of ours.
pub(crate) fn close(fd: i32) {
    // SAFETY: the caller owns it; nothing else of the process is concerned.
    let _ = unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Changes this thread's signal mask; what it was.
pub(crate) fn mask_signals(how: i32, set: u64) -> u64 {
    let mut old = 0u64;
    let arguments = [
        how as usize,
        (&raw const set).addr(),
        (&raw mut old).addr(),
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: both sets are words of ours.
    let _ = unsafe { syscall(libc::SYS_rt_sigprocmask, arguments) };
    old
}
