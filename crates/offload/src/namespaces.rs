//! unshare(2) and setns(2) in a process that has threads of the virtual device: the kernel lets only a process of one thread
//! into another user namespace. Where it refuses, the threads are ended, and the call is made once more.

use std::ffi::{CStr, c_int};
use std::io;

use crate::runtime;

/// Times that the call is made again: the kernel still counts a thread for a moment after it has been waited for.
const AGAIN: u32 = 1000;

/// Makes a call, and again without the device's threads if it has no permission with them.
fn alone(call: impl Fn() -> c_int) -> c_int {
    let refused = || io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    let result = call();
    if result == 0 || !refused() {
        return result;
    }
    let lanes = runtime::get().and_then(|runtime| runtime.lanes.as_ref().ok());
    let ended = lanes.is_some_and(|lanes| lanes.end_threads());
    let mut left = if ended { AGAIN } else { 0 };
    loop {
        // Ending threads has made other calls: the result is that of the last one.
        let result = call();
        if result == 0 || !refused() || left == 0 {
            return result;
        }
        left -= 1;
        // SAFETY: a system call without arguments.
        unsafe { libc::sched_yield() };
    }
}

fn next(name: &CStr) -> *mut libc::c_void {
    // SAFETY: the name is a string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

#[unsafe(no_mangle)]
extern "C" fn unshare(flags: c_int) -> c_int {
    type Unshare = extern "C" fn(c_int) -> c_int;
    let found = next(c"unshare");
    // SAFETY: null, or the function of that name.
    let next = unsafe { std::mem::transmute::<*mut libc::c_void, Option<Unshare>>(found) };
    alone(|| match next {
        Some(next) => next(flags),
        // SAFETY: it takes flags alone.
        None => unsafe { libc::syscall(libc::SYS_unshare, flags) as c_int },
    })
}

#[unsafe(no_mangle)]
extern "C" fn setns(fd: c_int, kind: c_int) -> c_int {
    type Setns = extern "C" fn(c_int, c_int) -> c_int;
    let found = next(c"setns");
    // SAFETY: null, or the function of that name.
    let next = unsafe { std::mem::transmute::<*mut libc::c_void, Option<Setns>>(found) };
    alone(|| match next {
        Some(next) => next(fd, kind),
        // SAFETY: it takes a file and flags.
        None => unsafe { libc::syscall(libc::SYS_setns, fd, kind) as c_int },
    })
}
