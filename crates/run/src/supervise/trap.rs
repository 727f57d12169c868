//! SIGSEGV and SIGILL of a supervised program: its submissions, and its own faults.
//!
//! The waits end at once here. UMWAIT and TPAUSE may end whenever the processor likes (SDM, volume
//! 2), and the stop has taken longer than most of them would; the supervisor serves all threads and
//! must wait for none.

use std::io;

use dray_portal::Registers;
use dray_portal::decode::{Decoded, LONGEST, Mnemonic, Segment};
use dray_realtime::Origin;
use dray_spec::Descriptor;
use zerocopy::{FromZeros, IntoBytes};

use super::ptrace::{self, SignalInfo, Tid};
use super::space::{Page, Space};
use super::{cpuid, plain};

/// `si_code` of SIGSEGV: nothing there; not allowed; said by the kernel, for general protection.
const NOTHING_THERE: i32 = 1;
const NOT_ALLOWED: i32 = 2;
pub(super) const PROTECTION: i32 = 0x80;

/// What becomes of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The instruction has been carried out.
    Done,
    /// The program gets it.
    Deliver(i32),
}

/// A fault that the instruction would have raised where the device is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fault {
    code: i32,
    address: u64,
}

const GENERAL_PROTECTION: Fault = Fault {
    code: PROTECTION,
    address: 0,
};

/// Answers SIGSEGV or SIGILL.
///
/// # Errors
/// The tracee has been killed.
pub(super) fn answer(tid: Tid, space: &Space, signal: i32) -> io::Result<Verdict> {
    let info = ptrace::signal_info(tid)?;
    if signal == libc::SIGSEGV && cpuid::can_fault_cpuid() && cpuid::answer(tid, info.code)? {
        return Ok(Verdict::Done);
    }
    // A program without portals, or with those of the preload library, handles its faults itself.
    if !space.is_used() {
        return Ok(Verdict::Deliver(signal));
    }
    let refused = signal == libc::SIGSEGV && info.code == NOT_ALLOWED;
    let page = refused.then(|| space.find(info.address)).flatten();
    if matches!(page, Some(Page::Parents)) {
        return fault(tid, missing(info.address));
    }
    let unknown = signal == libc::SIGILL || info.code == PROTECTION;
    if info.code <= 0 || page.is_none() && !unknown {
        return Ok(Verdict::Deliver(signal));
    }
    let mut registers = ptrace::registers(tid)?;
    let mut bytes = [0; LONGEST];
    ptrace::read_memory(tid, registers.rip, &mut bytes);
    let Some(decoded) = Decoded::new(&bytes, registers.rip) else {
        return match page {
            Some(_) => match plain::access(tid, &mut registers, &bytes)? {
                true => Ok(Verdict::Done),
                false => Ok(Verdict::Deliver(signal)),
            },
            None => Ok(Verdict::Deliver(signal)),
        };
    };
    match emulate(tid, space, &decoded, &registers) {
        Ok(flags) => {
            registers.eflags = flags;
            registers.rip += u64::from(decoded.length);
            ptrace::set_registers(tid, &registers)?;
            Ok(Verdict::Done)
        }
        Err(raised) => fault(tid, raised),
    }
}

fn missing(address: u64) -> Fault {
    Fault {
        code: NOTHING_THERE,
        address,
    }
}

fn fault(tid: Tid, fault: Fault) -> io::Result<Verdict> {
    ptrace::set_signal_info(tid, &SignalInfo::fault(fault.code, fault.address))?;
    Ok(Verdict::Deliver(libc::SIGSEGV))
}

/// Carries out one of the six; the flags after it.
fn emulate(
    tid: Tid,
    space: &Space,
    decoded: &Decoded,
    saved: &libc::user_regs_struct,
) -> Result<u64, Fault> {
    let mut registers = general(saved);
    let operand = decoded.operand(&registers);
    match (decoded.kind, decoded.source) {
        (Mnemonic::Movdir64b | Mnemonic::Enqcmd, Some(source)) => {
            let from = source.address_with(&registers, |segment| match segment {
                Segment::Flat => 0,
                Segment::Fs => saved.fs_base,
                Segment::Gs => saved.gs_base,
            });
            let origin = Origin {
                thread: tid as u32,
                site: saved.rip,
                stack: saved.rsp,
                frame: saved.rbp,
                record: None,
                at: dray_realtime::Moment::default(),
            };
            let accepted = write_line(&origin, space, decoded.kind, operand, from)?;
            if let Some(accepted) = accepted {
                registers.set_arithmetic(if accepted { 0 } else { dray_portal::ZF });
            }
        }
        (Mnemonic::Umonitor, _) => {
            if ptrace::read_memory(tid, operand, &mut [0]) == 0 {
                return Err(missing(operand));
            }
        }
        // Other states are reserved.
        (Mnemonic::Umwait | Mnemonic::Tpause, _) if operand <= 1 => registers.set_arithmetic(0),
        _ => return Err(GENERAL_PROTECTION),
    }
    Ok(registers.flags)
}

/// Writes 64 bytes; for ENQCMD, whether they were accepted.
fn write_line(
    origin: &Origin,
    space: &Space,
    kind: Mnemonic,
    to: u64,
    from: u64,
) -> Result<Option<bool>, Fault> {
    if !to.is_multiple_of(64) {
        return Err(GENERAL_PROTECTION);
    }
    let tid = origin.thread as Tid;
    let mut descriptor = Descriptor::new_zeroed();
    let got = ptrace::read_memory(tid, from, descriptor.as_mut_bytes());
    if got < size_of::<Descriptor>() {
        return Err(missing(from.wrapping_add(got as u64)));
    }
    // The processor fills in PASID and privilege, and refuses what is there already (SDM, ENQCMD).
    if kind == Mnemonic::Enqcmd && descriptor.pasid_priv != 0 {
        return Err(GENERAL_PROTECTION);
    }
    match (space.find(to), kind) {
        (Some(Page::Parents), _) => Err(missing(to)),
        (Some(Page::Portal { writable, .. }), _) if !writable => Err(Fault {
            code: NOT_ALLOWED,
            address: to,
        }),
        (Some(Page::Portal { portal, .. }), Mnemonic::Enqcmd) => {
            Ok(Some(portal.enqueue(descriptor, origin)))
        }
        (Some(Page::Portal { portal, .. }), _) => {
            portal.post(&descriptor, origin);
            Ok(None)
        }
        // Memory is no device that could accept it: nothing is written.
        (None, Mnemonic::Enqcmd) => match ptrace::read_memory(tid, to, &mut [0]) {
            0 => Err(missing(to)),
            _ => Ok(Some(false)),
        },
        (None, _) => match ptrace::write_memory(tid, to, descriptor.as_bytes()) {
            0 => Err(missing(to)),
            _ => Ok(None),
        },
    }
}

/// The general registers by their numbers in the encoding.
fn general(saved: &libc::user_regs_struct) -> Registers {
    let s = saved;
    Registers {
        general: [
            s.rax, s.rcx, s.rdx, s.rbx, s.rsp, s.rbp, s.rsi, s.rdi, s.r8, s.r9, s.r10, s.r11,
            s.r12, s.r13, s.r14, s.r15,
        ],
        flags: s.eflags,
    }
}
