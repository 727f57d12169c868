//! The handler of SIGSEGV and SIGILL.
//!
//! A submission raises SIGSEGV with a page fault at the portal's page, which nothing may access.
//! Where the processor lacks the instruction it raises SIGILL before; one that has ENQCMD but no
//! PASID raises SIGSEGV with general protection. All that is not ours goes to the program.

use crate::chain::{self, Action, SYNCHRONOUS};
use crate::context::{Context, SignalInfo};
use crate::decode::{Decoded, LONGEST, Mnemonic};
use crate::emulate::{LineWrite, write_line};
use crate::guarded::{self, Fault, GP, PF};
use crate::process::{self, process};
use crate::registers::ZF;
use crate::scratch::{self, Follow};
use crate::site::{self, State};
use crate::stub::INVALID;
use crate::submit::Caller;
use crate::syscall::give_way;
use crate::{next, patch, plain, wait};

/// Invalid opcode.
const UD: u64 = 6;

/// Why the handlers cannot be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// The kernel refuses the pages for the table of portals.
    #[error("no memory for the table of portals: error {errno} (it needs Linux 4.14 or later)")]
    Memory {
        /// Error number.
        errno: i32,
    },
    /// The kernel refuses the handler.
    #[error("signal {signal} cannot be handled")]
    Signal {
        /// Which.
        signal: i32,
    },
}

/// Puts the handlers in place, or back in place if the program has replaced them by a way that is
/// not interposed; its own actions for the signals are stored.
///
/// # Errors
/// The kernel refuses something.
pub fn install() -> Result<(), InstallError> {
    let memory = |errno| InstallError::Memory { errno };
    process::begin().map_err(memory)?;
    scratch::map().map_err(memory)?;
    // The decoder builds its tables now, and not in the handler.
    let first = Decoded::new(&[0x66, 0x0f, 0x38, 0xf8, 0x02], 0);
    debug_assert!(first.is_some());
    for signal in [libc::SIGSEGV, libc::SIGILL] {
        let refused = InstallError::Signal { signal };
        let old = next::action(signal).ok_or(refused)?;
        if is_handler(old.sa_sigaction) {
            continue;
        }
        chain::replace(signal, Some(Action::from_libc(&old)));
        let ours = Action {
            handler: scratch::entry as *const () as usize,
            flags: libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER,
            // Nothing asynchronous comes between the parts of a patch; a fault within may.
            mask: !(SYNCHRONOUS | chain::bit(libc::SIGBUS)),
        };
        if !next::set_action(signal, &ours.to_libc()) {
            return Err(refused);
        }
    }
    crate::syscall::mask_signals(libc::SIG_UNBLOCK, SYNCHRONOUS);
    Ok(())
}

/// Whether this is the address of the handler.
pub(crate) fn is_handler(address: usize) -> bool {
    address == scratch::entry as *const () as usize
}

/// Whether the handlers are in place, and what the program says about their signals is to be kept.
pub(crate) fn is_installed() -> bool {
    process().is_some() && !process::is_guest()
}

/// What the handler did.
enum Verdict {
    /// The instruction was carried out, or is to be executed again.
    Done,
    /// It is the program's own fault: this one, which need not be the one that was signalled.
    Fault(Fault),
    /// Not ours.
    Foreign,
}

/// Answers a signal that is no fault of a guarded access.
pub(crate) fn handle(signal: i32, info: &mut SignalInfo, context: &mut libc::ucontext_t) -> Follow {
    let mut context = Context(context);
    let verdict = match info.code > 0 {
        true => answer(&mut context, info),
        false => Verdict::Foreign,
    };
    match verdict {
        Verdict::Done => Follow::NOTHING,
        Verdict::Fault(fault) => {
            context.set_fault(&fault);
            *info = SignalInfo::of(&fault);
            chain::pass(libc::SIGSEGV, info, &context)
        }
        Verdict::Foreign => chain::pass(signal, info, &context),
    }
}

fn answer(context: &mut Context<'_>, info: &SignalInfo) -> Verdict {
    let exception = context.exception();
    let portal = exception == PF && process().is_some_and(|p| p.table.find(info.address).is_some());
    // A page fault elsewhere may come from one of the emulated instructions as well, but then it is the
    // program's own fault, with the address from the kernel.
    if !portal && exception != UD && exception != GP {
        return Verdict::Foreign;
    }
    if exception == UD
        && let Some(site) = site::trapped(context.rip())
    {
        context.set_rip(site.address());
        return emulate(context, site.decoded());
    }
    let mut bytes = [0; LONGEST];
    let Some(bytes) = fetch(context.rip(), &mut bytes) else {
        return Verdict::Foreign;
    };
    if let Some(decoded) = Decoded::new(&bytes[..], context.rip()) {
        let address = context.rip();
        let verdict = emulate(context, &decoded);
        if matches!(verdict, Verdict::Done) {
            remember(address, &decoded, bytes);
        }
        return verdict;
    }
    if let Some(site) = site::at(context.rip()) {
        // Another thread is patching the site: this one finishes it and executes the result.
        if bytes[0] == INVALID {
            match process() {
                Some(process) => patch::patch(process, site),
                None => return Verdict::Foreign,
            }
            give_way();
            return Verdict::Done;
        }
        // It has been patched between the trap and now.
        let replacement = site.replacement();
        if replacement.is_some_and(|text| bytes.starts_with(text.bytes())) {
            return Verdict::Done;
        }
    }
    match portal && plain::access(context, &bytes[..]) {
        true => Verdict::Done,
        false => Verdict::Foreign,
    }
}

/// Number of the stack pointer.
const RSP: u8 = 4;

/// Has the site patched that was just met, or found.
pub(crate) fn remember(address: u64, decoded: &Decoded, bytes: &[u8; LONGEST]) {
    if decoded.kind == Mnemonic::Enqcmds {
        return;
    }
    // A jump would save registers on a stack that is the portal.
    if decoded.register == RSP {
        return;
    }
    let (Some(process), Some(site)) = (process(), site::enter(address, decoded, bytes)) else {
        return;
    };
    // Text that is as it was where it had been patched: the same library, loaded anew.
    if site.state() == State::Patched {
        site.set_state(State::Fresh);
    }
    patch::patch(process, site);
}

/// The bytes at `address`, as many as can be read; behind them zeros.
fn fetch(address: u64, bytes: &mut [u8; LONGEST]) -> Option<&[u8; LONGEST]> {
    // SAFETY: this is the handler.
    if unsafe { guarded::read(address, bytes) }.is_err() {
        bytes.fill(0);
        let page = (4096 - address % 4096) as usize;
        // SAFETY: as above.
        unsafe { guarded::read(address, bytes.get_mut(..page)?) }.ok()?;
    }
    Some(bytes)
}

fn emulate(context: &mut Context<'_>, decoded: &Decoded) -> Verdict {
    let mut registers = context.registers();
    let operand = decoded.operand(&registers);
    let result = match (decoded.kind, decoded.source) {
        (Mnemonic::Movdir64b | Mnemonic::Enqcmd | Mnemonic::Enqcmds, Some(source)) => {
            let from = source.address(&registers);
            let caller = Caller {
                site: context.rip(),
                registers: &registers,
            };
            // SAFETY: this is the handler, and the program executes this instruction.
            let written = unsafe { write_line(decoded.kind, operand, from, caller) };
            match written {
                LineWrite::Silent => Ok(()),
                LineWrite::Answered { accepted } => {
                    registers.set_arithmetic(if accepted { 0 } else { ZF });
                    Ok(())
                }
                LineWrite::Fault(fault) => Err(fault),
            }
        }
        // SAFETY: this is the handler.
        (Mnemonic::Umonitor, _) => unsafe { wait::monitor(operand) },
        // SAFETY: this is the handler.
        (Mnemonic::Umwait, _) => unsafe { wait::umwait(&mut registers, operand) },
        (Mnemonic::Tpause, _) => wait::tpause(&mut registers, operand),
        (_, None) => return Verdict::Foreign,
    };
    match result {
        Ok(()) => {
            context.set_registers(&registers);
            let next = context.rip() + u64::from(decoded.length);
            context.set_rip(next);
            Verdict::Done
        }
        Err(fault) => Verdict::Fault(fault),
    }
}
