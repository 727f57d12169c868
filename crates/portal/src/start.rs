//! The library as a program: it comes under the supervisor and executes another program.
//!
//! `libdray_portal.so SOCKET PATH ARGUMENT...`, where the first argument is argv[0]. It is for
//! children of posix_spawn (`hook/spawn.rs`). The linker makes [`dray_portal_start`] its entry point,
//! which the dynamic linker jumps to when all is loaded. No main function of Rust or C comes in
//! between: the one would change SIGPIPE and open what is closed of the first three descriptors, and
//! both are the program's.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char};

use dray_wire::SocketName;

use crate::hook::count;
use crate::supervised::enter;
use crate::syscall::syscall;
use dray_interpose::program::{Obstacle, PreloadSupport, kind};

/// The dynamic linker of x86-64 (its ABI, 5.2.1): a shared object that names one can be executed.
#[used]
#[unsafe(link_section = ".interp")]
static INTERPRETER: [u8; 28] = *b"/lib64/ld-linux-x86-64.so.2\0";

/// Exit code of a program that could not be executed, as posix_spawn(3) has it.
const NOT_EXECUTED: usize = 127;

/// The entry point: the stack is as the kernel has made it (System V ABI, x86-64, 3.4.1).
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dray_portal_start() -> ! {
    naked_asm!(
        "xor ebp, ebp",
        "mov rdi, rsp",
        "and rsp, -16",
        "call {start}",
        "ud2",
        start = sym start,
    )
}

/// `stack` holds the number of arguments, the arguments, a null pointer, and the environment.
unsafe extern "C" fn start(stack: *const *const c_char) -> ! {
    // SAFETY: the arguments come behind their number.
    let arguments = unsafe { stack.add(1) };
    // SAFETY: they end with a null pointer.
    let count = unsafe { count(arguments) };
    if count >= 2 {
        // SAFETY: the environment comes behind the null pointer.
        let environment = unsafe { arguments.add(count + 1) };
        // SAFETY: there are two, and as many.
        unsafe { execute(arguments, environment) };
    }
    // SAFETY: it ends this process.
    let _ = unsafe { syscall(libc::SYS_exit_group, [NOT_EXECUTED, 0, 0, 0, 0, 0]) };
    std::process::abort()
}

/// # Safety
/// There are two arguments or more, and both arrays end with a null pointer.
unsafe fn execute(arguments: *const *const c_char, environment: *const *const c_char) {
    // SAFETY: the first.
    let socket = unsafe { arguments.read() };
    // SAFETY: it is a string.
    let socket = unsafe { CStr::from_ptr(socket) };
    // SAFETY: the second.
    let path = unsafe { arguments.add(1) };
    // SAFETY: as above.
    let path = unsafe { path.read() };
    // SAFETY: it is a string.
    let path = unsafe { CStr::from_ptr(path) };
    let obstacle = match kind(path) {
        Ok(PreloadSupport::Hindered(obstacle)) => Some(obstacle),
        // The process that started this one has looked at the environment.
        Ok(PreloadSupport::Native) => Some(Obstacle::Environment),
        Err(_) => None,
    };
    if let (Some(socket), Some(_)) = (SocketName::parse(socket.to_bytes()), obstacle) {
        enter(socket, obstacle, path);
    }
    // SAFETY: behind the second there is one more, or the null pointer.
    let argv = unsafe { arguments.add(2) };
    let call = [
        path.as_ptr().addr(),
        argv.addr(),
        environment.addr(),
        0,
        0,
        0,
    ];
    // SAFETY: a string and two arrays of strings.
    let _ = unsafe { syscall(libc::SYS_execve, call) };
}
