//! The filter of system calls: those that map and unmap stop for the supervisor.

use rustix::io::Errno;
use rustix::thread::set_no_new_privs;

use crate::syscall::syscall;

/// `struct seccomp_data`: number, architecture, address, and six arguments of 64 bits.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// Lower half of the fourth argument, the flags of mmap(2).
const FOURTH: u32 = 16 + 3 * 8;

/// `AUDIT_ARCH_X86_64`.
const X86_64: u32 = 0xc000_003e;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const HAS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn step(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Jumps are counted from the next instruction.
static PROGRAM: [libc::sock_filter; 12] = [
    step(LOAD, ARCHITECTURE, 0, 0),
    step(IS, X86_64, 0, 8),
    step(LOAD, NUMBER, 0, 0),
    step(IS, libc::SYS_munmap as u32, 7, 0),
    step(IS, libc::SYS_mprotect as u32, 6, 0),
    step(IS, libc::SYS_mremap as u32, 5, 0),
    step(IS, libc::SYS_mmap as u32, 0, 3),
    // Memory is no portal, but may come in the place of one.
    step(LOAD, FOURTH, 0, 0),
    step(HAS, libc::MAP_FIXED as u32, 2, 0),
    step(HAS, libc::MAP_ANONYMOUS as u32, 0, 1),
    step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    step(RETURN, libc::SECCOMP_RET_TRACE, 0, 0),
];

/// Filters the system calls of this thread, and of all that it becomes and starts.
///
/// Where it takes that, the thread gets no privileges by execve(2) from now on, unless it is to
/// `keep_privileges`.
///
/// # Errors
/// The kernel has no filters, or refuses one.
pub(super) fn install(keep_privileges: bool) -> Result<(), Errno> {
    match filter() {
        // Without no_new_privs only privileged processes may install filters.
        Err(Errno::ACCESS) if !keep_privileges => {
            set_no_new_privs(true)?;
            filter()
        }
        answer => answer,
    }
}

fn filter() -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: PROGRAM.len() as u16,
        filter: PROGRAM.as_ptr().cast_mut(),
    };
    let (option, mode) = (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER);
    let arguments = [
        option as usize,
        mode as usize,
        (&raw const program).addr(),
        0,
        0,
        0,
    ];
    // SAFETY: it reads memory alone, which is a program of the kernel's format.
    let answer = unsafe { syscall(libc::SYS_prctl, arguments) };
    answer.map_err(Errno::from_raw_os_error).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program answers, as the kernel computes it (`Documentation/networking/filter.rst`).
    fn answer(architecture: u32, number: i64, flags: i32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let step = PROGRAM[at];
            let taken = match step.code {
                RETURN => return step.k,
                LOAD => {
                    value = match step.k {
                        NUMBER => number as u32,
                        ARCHITECTURE => architecture,
                        FOURTH => flags as u32,
                        other => panic!("offset {other}"),
                    };
                    0
                }
                IS if value == step.k => step.jt,
                HAS if value & step.k != 0 => step.jt,
                _ => step.jf,
            };
            at += 1 + usize::from(taken);
        }
    }

    #[test]
    fn only_calls_that_change_mappings_are_traced() {
        const NOT: u32 = libc::SECCOMP_RET_ALLOW;
        const STOPS: u32 = libc::SECCOMP_RET_TRACE;
        let anonymous = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
        let cases = [
            (libc::SYS_mmap, libc::MAP_SHARED, STOPS),
            (libc::SYS_mmap, libc::MAP_PRIVATE, STOPS),
            (libc::SYS_mmap, anonymous, NOT),
            (libc::SYS_mmap, anonymous | libc::MAP_FIXED, STOPS),
            (libc::SYS_munmap, 0, STOPS),
            (libc::SYS_mprotect, 0, STOPS),
            (libc::SYS_mremap, 0, STOPS),
            (libc::SYS_read, 0, NOT),
            (libc::SYS_write, libc::MAP_FIXED, NOT),
        ];
        for (number, flags, expected) in cases {
            assert_eq!(answer(X86_64, number, flags), expected, "{number} {flags}");
            assert_eq!(answer(0x4000_0003, number, flags), NOT);
        }
    }
}
