//! Who called the function that submits: return addresses, by the unwind tables.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::sync::OnceLock;

use super::runtime::function;
use crate::registers::Registers;
use crate::submit::Caller;

/// Callers that are found at most.
const CALLERS: usize = 32;

type Step = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Walk = unsafe extern "C" fn(Step, *mut c_void) -> c_int;
type Ip = unsafe extern "C" fn(*mut c_void) -> usize;

/// The functions of `unwind.h` in the program, which the runtime brings.
static UNWINDER: OnceLock<Option<(Walk, Ip)>> = OnceLock::new();

fn unwinder() -> Option<(Walk, Ip)> {
    // SAFETY: the function of this name has this type.
    let walk: Walk = unsafe { function(c"_Unwind_Backtrace") }?;
    // SAFETY: as above.
    let ip: Ip = unsafe { function(c"_Unwind_GetIP") }?;
    Some((walk, ip))
}

/// `_URC_NO_REASON` and `_URC_NORMAL_STOP` of `unwind.h`.
const GO_ON: c_int = 0;
const STOP: c_int = 4;

/// Where the unwinder goes on after [`walk_from`].
#[repr(C)]
struct Program {
    registers: Registers,
    site: u64,
}

// The numbers in `walk_from`.
const _: () = assert!(offset_of!(Program, registers) == 0 && offset_of!(Program, site) == 136);

/// Return addresses, the innermost first.
pub(super) struct Callers {
    site: u64,
    /// The site was among the frames.
    begun: bool,
    found: usize,
    addresses: [u64; CALLERS],
    ip: Ip,
}

impl Callers {
    /// Those of the function that submits; `None` without an unwinder.
    pub(super) fn of(caller: Caller<'_>) -> Option<Callers> {
        let (walk, ip) = *UNWINDER.get_or_init(unwinder).as_ref()?;
        let mut callers = Callers {
            site: caller.site,
            begun: false,
            found: 0,
            addresses: [0; CALLERS],
            ip,
        };
        let program = Program {
            registers: caller.registers.clone(),
            site: caller.site,
        };
        // SAFETY: the step is for these callers; the registers are the program's at the site.
        unsafe { walk_from(&program, walk, step, (&raw mut callers).cast()) };
        Some(callers)
    }

    pub(super) fn innermost_first(&self) -> &[u64] {
        &self.addresses[..self.found]
    }
}

unsafe extern "C" fn step(context: *mut c_void, callers: *mut c_void) -> c_int {
    // SAFETY: those of `of`, for the time of its call.
    let callers = unsafe { &mut *callers.cast::<Callers>() };
    // SAFETY: the unwinder's own.
    let address = unsafe { (callers.ip)(context) } as u64;
    if !callers.begun {
        callers.begun = address == callers.site;
        return GO_ON;
    }
    let Some(place) = callers.addresses.get_mut(callers.found) else {
        return STOP;
    };
    *place = address;
    callers.found += 1;
    GO_ON
}

/// Calls `walk(step, callers)` with unwind tables that say: called by the program at its site.
#[unsafe(naked)]
unsafe extern "C" fn walk_from(_: &Program, walk: Walk, step: Step, callers: *mut c_void) {
    naked_asm!(
        ".cfi_startproc",
        // The site is an instruction, and no return address.
        ".cfi_signal_frame",
        // At the call rbp is the first argument. CFA, the stack pointer of the program: *(rbp + 32).
        ".cfi_escape 0x0f, 3, 0x76, 0x20, 0x06",
        // rbx at rbp + 24, rbp at rbp + 40, r12 to r15 from rbp + 96 on, and rip at rbp + 136.
        ".cfi_escape 0x10, 3, 2, 0x76, 0x18",
        ".cfi_escape 0x10, 6, 2, 0x76, 0x28",
        ".cfi_escape 0x10, 12, 3, 0x76, 0xe0, 0x00",
        ".cfi_escape 0x10, 13, 3, 0x76, 0xe8, 0x00",
        ".cfi_escape 0x10, 14, 3, 0x76, 0xf0, 0x00",
        ".cfi_escape 0x10, 15, 3, 0x76, 0xf8, 0x00",
        ".cfi_escape 0x10, 16, 3, 0x76, 0x88, 0x01",
        "endbr64",
        "push rbp",
        "mov rbp, rdi",
        "mov rax, rsi",
        "mov rdi, rdx",
        "mov rsi, rcx",
        "call rax",
        "pop rbp",
        "ret",
        ".cfi_endproc",
    )
}
