//! Ordinary loads and stores at a portal, by a supervised program.

use std::io;
use std::mem::zeroed;

use super::ptrace::{self, Tid};

type Saved = libc::user_regs_struct;
/// A register among those.
type RegisterOf = fn(&mut Saved) -> &mut u64;

/// Where a signal frame has a register, and where ptrace(2) has it.
const REGISTERS: [(i32, RegisterOf); 18] = [
    (libc::REG_RAX, |r| &mut r.rax),
    (libc::REG_RCX, |r| &mut r.rcx),
    (libc::REG_RDX, |r| &mut r.rdx),
    (libc::REG_RBX, |r| &mut r.rbx),
    (libc::REG_RSP, |r| &mut r.rsp),
    (libc::REG_RBP, |r| &mut r.rbp),
    (libc::REG_RSI, |r| &mut r.rsi),
    (libc::REG_RDI, |r| &mut r.rdi),
    (libc::REG_R8, |r| &mut r.r8),
    (libc::REG_R9, |r| &mut r.r9),
    (libc::REG_R10, |r| &mut r.r10),
    (libc::REG_R11, |r| &mut r.r11),
    (libc::REG_R12, |r| &mut r.r12),
    (libc::REG_R13, |r| &mut r.r13),
    (libc::REG_R14, |r| &mut r.r14),
    (libc::REG_R15, |r| &mut r.r15),
    (libc::REG_RIP, |r| &mut r.rip),
    (libc::REG_EFL, |r| &mut r.eflags),
];

/// Carries out the instruction in `bytes`, which has faulted at a portal. Whether it could.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn access(tid: Tid, saved: &mut Saved, bytes: &[u8]) -> io::Result<bool> {
    // SAFETY: zeros are such a state.
    let mut vectors: libc::_libc_fpstate = unsafe { zeroed() };
    ptrace::vectors(tid, &mut vectors)?;
    // SAFETY: zeros are a frame: numbers, and pointers that are null.
    let mut frame: libc::ucontext_t = unsafe { zeroed() };
    frame.uc_mcontext.fpregs = &raw mut vectors;
    for (index, place) in REGISTERS {
        frame.uc_mcontext.gregs[index as usize] = *place(saved) as i64;
    }
    // SAFETY: the frame is whole, and what it points at outlives the call.
    if !unsafe { dray_portal::access_portal(&mut frame, bytes) } {
        return Ok(false);
    }
    for (index, place) in REGISTERS {
        *place(saved) = frame.uc_mcontext.gregs[index as usize] as u64;
    }
    ptrace::set_vectors(tid, &vectors)?;
    ptrace::set_registers(tid, saved)?;
    Ok(true)
}
