//! syscall(3): a program that names a call by its number gets what the function of that name gives.

use std::arch::naked_asm;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::exec::{execve, execveat};
use super::file::{close, close_range, dup2, dup3};
use super::filter::{prctl, seccomp};
use super::libc_answer;
use super::memory::{mmap, mprotect, mremap, munmap};
use crate::next::Next;

static SYSCALL: Next = Next::new(c"syscall");
/// The original's address; 0 before it is looked up.
static ORIGINAL: AtomicUsize = AtomicUsize::new(0);

/// Looks the original up: a child of vfork(2) must not.
#[cfg_attr(
    not(feature = "preload"),
    expect(dead_code, reason = "it is preloaded alone")
)]
pub(super) fn prepare() {
    ORIGINAL.store(SYSCALL.address(), Ordering::Relaxed);
}

/// `syscall(3)`. A call by number for which there is an interposed function jumps to it, with the arguments
/// in the registers of that function; the others jump to the original. It must not have a stack frame: the
/// call may return in another process on the same stack (vfork), or in a thread on another.
///
/// # Safety
/// As for the call.
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
        "cmp rdi, {number_of_mmap}",
        "je 2f",
        "cmp rdi, {number_of_mprotect}",
        "je 3f",
        "cmp rdi, {number_of_munmap}",
        "je 4f",
        "cmp rdi, {number_of_execve}",
        "je 5f",
        "cmp rdi, {number_of_execveat}",
        "je 6f",
        "cmp rdi, {number_of_mremap}",
        "je 20f",
        "cmp rdi, {number_of_close}",
        "je 21f",
        "cmp rdi, {number_of_close_range}",
        "je 22f",
        "cmp rdi, {number_of_dup2}",
        "je 23f",
        "cmp rdi, {number_of_dup3}",
        "je 24f",
        "cmp rdi, {number_of_prctl}",
        "je 26f",
        "cmp rdi, {number_of_seccomp}",
        "je 27f",
        "mov rax, qword ptr [rip + {original}]",
        "test rax, rax",
        "je 7f",
        "jmp rax",
        "2:",
        "mov rax, qword ptr [rip + {mmap}@GOTPCREL]",
        "jmp 8f",
        "3:",
        "mov rax, qword ptr [rip + {mprotect}@GOTPCREL]",
        "jmp 25f",
        "4:",
        "mov rax, qword ptr [rip + {munmap}@GOTPCREL]",
        "jmp 25f",
        "5:",
        "mov rax, qword ptr [rip + {execve}@GOTPCREL]",
        "jmp 25f",
        "6:",
        "mov rax, qword ptr [rip + {execveat}@GOTPCREL]",
        "jmp 25f",
        "20:",
        "mov rax, qword ptr [rip + {mremap}@GOTPCREL]",
        "jmp 8f",
        "21:",
        "mov rax, qword ptr [rip + {close}@GOTPCREL]",
        "jmp 25f",
        "22:",
        "mov rax, qword ptr [rip + {close_range}@GOTPCREL]",
        "jmp 25f",
        "23:",
        "mov rax, qword ptr [rip + {dup2}@GOTPCREL]",
        "jmp 25f",
        "24:",
        "mov rax, qword ptr [rip + {dup3}@GOTPCREL]",
        "jmp 25f",
        "26:",
        "mov rax, qword ptr [rip + {prctl}@GOTPCREL]",
        "jmp 25f",
        "27:",
        "mov rax, qword ptr [rip + {seccomp}@GOTPCREL]",
        // Functions of five arguments at most, whose answer is an int.
        "25:",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov rcx, r8",
        "mov r8, r9",
        "sub rsp, 8",
        "call rax",
        "add rsp, 8",
        "cdqe",
        "ret",
        // The arguments behind the number, where a function of six has them.
        "8:",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov rcx, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "jmp rax",
        // Before the original is known: as it does it.
        "7:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 9f",
        "ret",
        "9:",
        "mov rdi, rax",
        "jmp {failed}",
        number_of_mmap = const libc::SYS_mmap,
        number_of_mprotect = const libc::SYS_mprotect,
        number_of_munmap = const libc::SYS_munmap,
        number_of_execve = const libc::SYS_execve,
        number_of_execveat = const libc::SYS_execveat,
        number_of_mremap = const libc::SYS_mremap,
        number_of_close = const libc::SYS_close,
        number_of_close_range = const libc::SYS_close_range,
        number_of_dup2 = const libc::SYS_dup2,
        number_of_dup3 = const libc::SYS_dup3,
        number_of_prctl = const libc::SYS_prctl,
        number_of_seccomp = const libc::SYS_seccomp,
        original = sym ORIGINAL,
        prctl = sym prctl,
        seccomp = sym seccomp,
        mmap = sym mmap,
        mprotect = sym mprotect,
        munmap = sym munmap,
        execve = sym execve,
        execveat = sym execveat,
        mremap = sym mremap,
        close = sym close,
        close_range = sym close_range,
        dup2 = sym dup2,
        dup3 = sym dup3,
        failed = sym failed,
    )
}

/// The answer of a call that has failed with this negative number.
extern "C" fn failed(answer: isize) -> isize {
    libc_answer(Err(-answer as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Syscall = unsafe extern "C" fn(libc::c_long, ...) -> libc::c_long;

    fn function() -> Syscall {
        let address = syscall as *const ();
        // SAFETY: it takes what the original takes.
        unsafe { std::mem::transmute::<*const (), Syscall>(address) }
    }

    fn errno() -> i32 {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
    }

    #[test]
    fn syscall_returns_what_the_original_returns() {
        let call = function();
        for known in [false, true] {
            if known {
                ORIGINAL.store(libc::syscall as *const () as usize, Ordering::Relaxed);
            }
            // SAFETY: it has no argument and no effect.
            let process = unsafe { call(libc::SYS_getpid) };
            assert_eq!(process, std::process::id().into(), "{known}");
            // SAFETY: there is no such descriptor.
            let closed = unsafe { call(libc::SYS_close, -1) };
            assert_eq!((closed, errno()), (-1, libc::EBADF), "{known}");
        }
    }

    #[test]
    fn mapping_calls_by_number_get_their_arguments_in_order() {
        let call = function();
        let (protection, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let null = std::ptr::null_mut::<u8>();
        // SAFETY: a new mapping.
        let at = unsafe {
            call(
                libc::SYS_mmap,
                null,
                4096usize,
                protection,
                flags,
                -1,
                0usize,
            )
        };
        assert!(at > 0 && at % 4096 == 0, "{at:x} {}", errno());
        let page = std::ptr::with_exposed_provenance_mut::<u8>(at as usize);
        // SAFETY: it is mapped to be read.
        assert_eq!(unsafe { page.read_volatile() }, 0);
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the page is this test's.
        let changed = unsafe { call(libc::SYS_mprotect, at, 4096usize, writable) };
        assert_eq!(changed, 0);
        // SAFETY: it may be written now.
        unsafe { page.write_volatile(1) };
        // SAFETY: the page is this test's.
        assert_eq!(unsafe { call(libc::SYS_munmap, at, 4096usize) }, 0);
        // SAFETY: it is not a page's address.
        let failed = unsafe { call(libc::SYS_munmap, at + 1, 4096usize) };
        assert_eq!((failed, errno()), (-1, libc::EINVAL), "a long");
        // SAFETY: it fails.
        let none = unsafe { call(libc::SYS_mmap, null, 0usize, protection, flags, -1, 0usize) };
        assert_eq!((none, errno()), (-1, libc::EINVAL));
    }
}
