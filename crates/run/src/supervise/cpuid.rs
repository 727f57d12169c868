//! CPUID of supervised programs, where the processor can fault it: the program sees the instructions that the
//! session executes.
//!
//! `arch_prctl(ARCH_SET_CPUID, 0)` is for the thread that calls it, and execve(2) ends its effect (Linux 4.12): a
//! tracee makes the call at its entry, by eight bytes that stand there for that time, and stops when it is done. From then on CPUID raises
//! SIGSEGV, which stops the tracee, and the supervisor answers with its own processor's words.

use std::arch::x86_64::{__cpuid_count, CpuidResult};
use std::io;
use std::sync::OnceLock;

use super::ptrace::{self, Tid};
use super::trap::PROTECTION;
use crate::cpu;

/// `/proc/cpuinfo`'s flag of a processor that faults CPUID.
const FAULTS: &str = "cpuid_fault";
/// `ARCH_SET_CPUID` of `asm/prctl.h`; 0 makes CPUID fault.
const ARCH_SET_CPUID: u64 = 0x1012;
/// `mov eax, SYS_arch_prctl; syscall; nop`: one word of ptrace(2).
const CALL: [u8; 8] = [0xb8, libc::SYS_arch_prctl as u8, 0, 0, 0, 0x0f, 0x05, 0x90];
/// Bytes of the first two.
const CALLED: u64 = 7;
/// CPUID.
const CPUID: [u8; 2] = [0x0f, 0xa2];
/// The code segment of a 64-bit program.
const CODE_64: u64 = 0x33;
/// Leaf and subleaf of the instructions, and their bits in ECX: WAITPKG, MOVDIR64B, ENQCMD (SDM, CPUID).
const LEAF: (u32, u32) = (7, 0);
const INSTRUCTIONS: u32 = 1 << 5 | 1 << 28 | 1 << 29;

/// Whether this processor can fault CPUID, as its kernel says: then supervised programs see the session's instructions.
pub fn can_fault_cpuid() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    *POSSIBLE.get_or_init(|| cpu::shown().split_whitespace().any(|word| word == FAULTS))
}

/// A tracee that makes the call at its entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    registers: libc::user_regs_struct,
    word: u64,
}

/// Has a tracee that has just executed a program make the call as soon as it goes on, until a call is done; `None` where
/// it cannot.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn begin(tid: Tid) -> io::Result<Option<Request>> {
    let registers = ptrace::registers(tid)?;
    if registers.cs != CODE_64 {
        return Ok(None);
    }
    let Ok(word) = ptrace::word(tid, registers.rip) else {
        return Ok(None);
    };
    // Without memory for its own copy of the page CPUID stays the machine's.
    if ptrace::set_word(tid, registers.rip, u64::from_le_bytes(CALL)).is_err() {
        return Ok(None);
    }
    let mut asking = registers;
    (asking.rdi, asking.rsi) = (ARCH_SET_CPUID, 0);
    ptrace::set_registers(tid, &asking)?;
    Ok(Some(Request { registers, word }))
}

/// Whether the call is done, where a call of the tracee is: then the program is as it was before it. The answer of the
/// call does not matter: where it is an error CPUID is the machine's.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn end(tid: Tid, request: Request) -> io::Result<bool> {
    let entry = request.registers.rip;
    if ptrace::registers(tid)?.rip != entry.wrapping_add(CALLED) {
        return Ok(false);
    }
    ptrace::set_word(tid, entry, request.word)?;
    let mut registers = request.registers;
    // What execve(2) leaves there; and no call is restarted.
    (registers.rax, registers.orig_rax) = (0, u64::MAX);
    ptrace::set_registers(tid, &registers)?;
    Ok(true)
}

/// Answers CPUID at which a tracee has stopped with SIGSEGV of this code. Whether it was one.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn answer(tid: Tid, code: i32) -> io::Result<bool> {
    if code != PROTECTION {
        return Ok(false);
    }
    let mut registers = ptrace::registers(tid)?;
    let mut bytes = [0; CPUID.len()];
    ptrace::read_memory(tid, registers.rip, &mut bytes);
    if bytes != CPUID {
        return Ok(false);
    }
    execute(&mut registers);
    ptrace::set_registers(tid, &registers)?;
    Ok(true)
}

/// CPUID on these registers, with the instructions of the session.
fn execute(registers: &mut libc::user_regs_struct) {
    let asked = (registers.rax as u32, registers.rcx as u32);
    let mut answer: CpuidResult = __cpuid_count(asked.0, asked.1);
    if asked == LEAF {
        answer.ecx |= INSTRUCTIONS;
    }
    registers.rax = answer.eax.into();
    registers.rbx = answer.ebx.into();
    registers.rcx = answer.ecx.into();
    registers.rdx = answer.edx.into();
    registers.rip += CPUID.len() as u64;
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus, Stdio};

    use super::super::ptrace::Event;
    use super::*;

    #[test]
    fn the_answer_is_the_processors_with_the_instructions_of_the_session() {
        for (leaf, subleaf, added) in [(0, 0, 0), (1, 0, 0), (7, 0, INSTRUCTIONS), (7, 1, 0)] {
            // SAFETY: zeros are registers.
            let mut registers: libc::user_regs_struct =
                unsafe { MaybeUninit::zeroed().assume_init() };
            let high = 0xffff_ffff_0000_0000;
            (registers.rax, registers.rcx) = (high | leaf, high | subleaf);
            (registers.rbx, registers.rip) = (high, 0x40_0000);
            execute(&mut registers);
            let machine = __cpuid_count(leaf as u32, subleaf as u32);
            // The number of the processor in leaf 1, EBX, may change between two calls.
            assert_eq!(registers.rax, u64::from(machine.eax), "leaf {leaf}");
            assert_eq!(registers.rcx, u64::from(machine.ecx | added), "leaf {leaf}");
            assert_eq!(registers.rdx, u64::from(machine.edx), "leaf {leaf}");
            assert_eq!(
                (registers.rbx & high, registers.rip),
                (0, 0x40_0002),
                "leaf {leaf}"
            );
        }
    }

    /// Runs a program whose entry makes the call, on a processor that may know it or not; how it ended, how
    /// often it executed a program, and how often the call was seen to be done.
    fn run(program: &str) -> (ExitStatus, u32, u32) {
        // It waits for its standard input, and is traced by then.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("read line; exec {program}")]);
        #[expect(clippy::zombie_processes, reason = "waitpid(2) below waits for it")]
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell");
        let tid = child.id() as Tid;
        ptrace::seize(tid).expect("a child of this process");
        drop(child.stdin.take());
        // The execution of the shell itself may still be to come.
        let (mut request, mut executed, mut done, mut status) = (None, 0, 0, None);
        while status.is_none() {
            let mut raw = 0;
            // SAFETY: the status is ours.
            let waited = unsafe { libc::waitpid(tid, &raw mut raw, libc::__WALL) };
            assert_eq!(waited, tid);
            let signal = match ptrace::event(tid, raw) {
                Event::Ended => {
                    status = Some(ExitStatus::from_raw(raw));
                    continue;
                }
                Event::Executed(_) => {
                    request = begin(tid).expect("a tracee");
                    assert!(request.is_some());
                    executed += 1;
                    0
                }
                Event::SystemCallDone => {
                    // The first that is done is execve(2).
                    if let Some(made) = request
                        && end(tid, made).expect("a tracee")
                    {
                        request = None;
                        done += 1;
                    }
                    0
                }
                Event::Signal(libc::SIGSEGV) => {
                    let info = ptrace::signal_info(tid).expect("a signal");
                    assert!(answer(tid, info.code).expect("a tracee"), "{info:?}");
                    0
                }
                Event::Signal(signal) => signal,
                _ => 0,
            };
            let go_on = match request {
                Some(_) => ptrace::go_on_until_call,
                None => ptrace::go_on,
            };
            go_on(tid, signal).expect("a tracee that has stopped");
        }
        (status.expect("an end"), executed, done)
    }

    #[test]
    fn a_program_runs_on_from_its_entry_as_if_nothing_had_been_there() {
        for (program, code) in [("/bin/true", 0), ("/bin/sh -c 'exit 7'", 7)] {
            let (status, executed, done) = run(program);
            assert_eq!(status.code(), Some(code), "{program}: {status}");
            assert!(executed >= 1 && done == executed, "{executed}, {done}");
        }
    }
}
