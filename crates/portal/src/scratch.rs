//! The stacks on which the handlers run.
//!
//! The kernel builds a signal frame on the program's alternate stack, if it has one, whose size is the program's
//! choice: below the frame there may be nothing that is ours to write. So [`entry`] writes nothing there. It
//! claims a stack of ours, [`on_stack`] copies the frame to it, works on the copy, and writes it back. A fault of
//! a guarded access ([`guarded`](crate::guarded)) meanwhile comes on the alternate stack as well, at the same
//! place; [`entry`] answers it without a stack.

use std::arch::naked_asm;
use std::mem::{MaybeUninit, offset_of};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::context::SignalInfo;
use crate::guarded::{
    MISSED, dray_portal_guarded_begin, dray_portal_guarded_end, dray_portal_guarded_missed,
};
use crate::process::{PROCESS, Process};
use crate::syscall::syscall;
use crate::trap;

/// Stacks, each a bit of a word. Threads beyond these wait.
const STACKS: usize = 32;
/// Bytes of a stack, as a shift: a copy of the frame, and what the handler needs.
const SHIFT: usize = 16;
/// Longest frame: with the tiles of AMX it has some 11 KiB.
const FRAME: usize = 1 << 14;

/// Address of the stacks; set before the handlers are installed.
static BASE: AtomicUsize = AtomicUsize::new(0);

const GENERAL: usize = offset_of!(libc::ucontext_t, uc_mcontext);
const RAX: usize = GENERAL + 8 * libc::REG_RAX as usize;
const RDX: usize = GENERAL + 8 * libc::REG_RDX as usize;
const RIP: usize = GENERAL + 8 * libc::REG_RIP as usize;
const ERROR: usize = GENERAL + 8 * libc::REG_ERR as usize;
const CODE: usize = offset_of!(SignalInfo, code);
const ADDRESS: usize = offset_of!(SignalInfo, address);
const MASK: usize = offset_of!(SignalInfo, mask);
const CLAIMED: usize = offset_of!(Process, stacks);

/// What follows when the handler has left its stack: the program's handler and the signal that it gets, or
/// nothing if the handler is 0. The signal mask of the program's handler is in the [`SignalInfo`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Follow {
    pub(crate) handler: usize,
    pub(crate) signal: usize,
}

impl Follow {
    /// The interrupted code goes on.
    pub(crate) const NOTHING: Follow = Follow {
        handler: 0,
        signal: 0,
    };
}

/// Maps the stacks, once.
///
/// # Errors
/// The error number of what the kernel refuses.
pub(crate) fn map() -> Result<(), i32> {
    if BASE.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    let bytes = STACKS << SHIFT;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: new pages, wherever there is room.
    let pages = unsafe { syscall(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) }?;
    let order = Ordering::AcqRel;
    if BASE
        .compare_exchange(0, pages, order, Ordering::Acquire)
        .is_err()
    {
        // SAFETY: no other code has these pages.
        let _ = unsafe { syscall(libc::SYS_munmap, [pages, bytes, 0, 0, 0, 0]) };
    }
    Ok(())
}

/// The handler of both signals.
///
/// # Safety
/// Called by the kernel, after [`map`] and [`begin`](crate::process::begin).
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn entry(
    signal: i32,
    info: *mut SignalInfo,
    context: *mut libc::ucontext_t,
) {
    naked_asm!(
        "endbr64",
        // A guarded access that has faulted returns its fault: cause in rax, address in rdx.
        "mov rax, [rdx + {rip}]",
        "lea rcx, [rip + {begin}]",
        "cmp rax, rcx",
        "jb 2f",
        "lea rcx, [rip + {end}]",
        "cmp rax, rcx",
        "jae 2f",
        "mov eax, [rsi + {code}]",
        "test eax, eax",
        "jle 2f",
        "shl rax, 32",
        "mov ecx, [rdx + {error}]",
        "and ecx, 0xffffff",
        "shl rcx, 8",
        "lea rax, [rax + rcx + {missed_bit}]",
        "mov [rdx + {rax}], rax",
        "mov rax, [rsi + {address}]",
        "mov [rdx + {rdx}], rax",
        "lea rax, [rip + {missed}]",
        "mov [rdx + {rip}], rax",
        "ret",
        // Claims a stack: the first bit that is 0.
        "2:",
        "mov r8, [rip + {process}]",
        "3:",
        "mov eax, [r8 + {claimed}]",
        "not eax",
        "bsf ecx, eax",
        "jnz 4f",
        "pause",
        "jmp 3b",
        "4:",
        "lock bts dword ptr [r8 + {claimed}], ecx",
        "jc 3b",
        "lea rax, [rcx + 1]",
        "shl rax, {shift}",
        "add rax, [rip + {base}]",
        // Six words at its top.
        "mov [rax - 8], rsp",
        "mov [rax - 16], rcx",
        "mov [rax - 24], r8",
        "mov [rax - 32], rsi",
        "mov [rax - 40], rdx",
        "mov rcx, rsp",
        "lea rsp, [rax - 48]",
        "call {on_stack}",
        // Follow: rax is the handler, rdx the signal.
        "mov rdi, rdx",
        "mov rsi, [rsp + 16]",
        "mov rdx, [rsp + 8]",
        "mov r8, [rsp + 24]",
        "mov rcx, [rsp + 32]",
        "mov rsp, [rsp + 40]",
        "lock btr dword ptr [r8 + {claimed}], ecx",
        "test rax, rax",
        "jz 5f",
        // rt_sigprocmask(SIG_SETMASK, mask, null, 8), here where a signal that comes of it finds the stack that
        // the program expects. The kernel keeps all registers but rax, rcx, r11.
        "mov r8, rax",
        "mov r9, rdi",
        "mov eax, {sigprocmask}",
        "mov edi, {set}",
        "add rsi, {mask}",
        "movq xmm0, rdx",
        "xor edx, edx",
        "mov r10d, 8",
        "syscall",
        "movq rdx, xmm0",
        "sub rsi, {mask}",
        "mov rdi, r9",
        "jmp r8",
        "5:",
        "ret",
        begin = sym dray_portal_guarded_begin,
        end = sym dray_portal_guarded_end,
        missed = sym dray_portal_guarded_missed,
        missed_bit = const MISSED,
        process = sym PROCESS,
        base = sym BASE,
        claimed = const CLAIMED,
        shift = const SHIFT,
        rip = const RIP,
        rax = const RAX,
        rdx = const RDX,
        error = const ERROR,
        code = const CODE,
        address = const ADDRESS,
        mask = const MASK,
        sigprocmask = const libc::SYS_rt_sigprocmask,
        set = const libc::SIG_SETMASK,
        on_stack = sym on_stack,
    )
}

/// `frame` is the signal frame, which begins with the address that the handler returns to.
unsafe extern "C" fn on_stack(
    signal: i32,
    info: *mut SignalInfo,
    context: *mut libc::ucontext_t,
    frame: *mut u8,
) -> Follow {
    let mut copy = [MaybeUninit::<u8>::uninit(); FRAME];
    let copy = copy.as_mut_ptr().cast::<u8>();
    // SAFETY: the kernel's, for the time of the handler.
    let state = unsafe { (*context).uc_mcontext.fpregs };
    let length = end_of(state, info).wrapping_sub(frame.addr());
    // It is the kernel's, whose size is known from the start (AT_MINSIGSTKSZ).
    if length > FRAME {
        std::process::abort();
    }
    // SAFETY: the frame is so long, and there is room.
    unsafe { std::ptr::copy_nonoverlapping(frame, copy, length) };
    let moved = |address: usize| copy.wrapping_add(address.wrapping_sub(frame.addr()));
    let own_info = moved(info.addr()).cast::<SignalInfo>();
    let own_context = moved(context.addr()).cast::<libc::ucontext_t>();
    if !state.is_null() {
        // SAFETY: the copy of the context.
        unsafe { (*own_context).uc_mcontext.fpregs = moved(state.addr()).cast() };
    }
    // SAFETY: a copy that no other code has.
    let (info, context) = (unsafe { &mut *own_info }, unsafe { &mut *own_context });
    let follow = trap::handle(signal, info, context);
    // SAFETY: as above.
    unsafe { (*own_context).uc_mcontext.fpregs = state };
    // SAFETY: as it was copied.
    unsafe { std::ptr::copy_nonoverlapping(copy, frame, length) };
    follow
}

/// Where a frame ends: behind the state of the vector registers, the highest part, if there is one.
fn end_of(state: *const libc::_libc_fpstate, info: *const SignalInfo) -> usize {
    /// `struct _fpx_sw_bytes` in the last bytes of FXSAVE's 512: `FP_XSTATE_MAGIC1`, and the size of all.
    const SOFTWARE: usize = 464;
    const MAGIC: u32 = 0x4650_5853;
    if state.is_null() {
        return info.wrapping_add(1).addr();
    }
    let words = state.wrapping_byte_add(SOFTWARE).cast::<[u32; 2]>();
    // SAFETY: 512 bytes are there (`struct _fpstate_64`).
    match unsafe { words.read() } {
        [MAGIC, bytes] => state.addr() + bytes as usize,
        _ => state.addr() + size_of::<libc::_libc_fpstate>(),
    }
}
