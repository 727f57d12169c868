//! What the recorder knows of each thread, in memory that a thread has from its beginning: a library that is loaded with
//! the program has its part of the static block of thread-local memory (ELF, initial exec), which needs no call.

use std::arch::{asm, global_asm};
use std::sync::atomic::{Ordering, compiler_fence};

use dray_recording::Cursor;

/// Of one thread. All zero at its beginning.
#[repr(C)]
pub(super) struct State {
    /// It is in use: a signal handler that calls finds it so.
    busy: u32,
    /// Calls that have begun.
    pub(super) count: u32,
    /// The process that the rest is of: a child of fork has its parent's bytes.
    pub(super) process: u32,
    pub(super) cursor: Cursor,
    /// When its last call had been recorded, in cycles; 0: none was.
    pub(super) last_end: u64,
    /// CPU time of the thread when it was read last, and when that was, in cycles.
    pub(super) cpu_ns: u64,
    pub(super) cpu_at: u64,
}

/// Bytes that the block below has.
const ROOM: usize = 128;
const _: () = assert!(size_of::<State>() <= ROOM);

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".p2align 6",
    ".globl dray_recording_state",
    ".hidden dray_recording_state",
    ".type dray_recording_state, @object",
    ".size dray_recording_state, 128",
    "dray_recording_state:",
    ".zero 128",
    ".text",
);

fn place() -> *mut State {
    let place: usize;
    // SAFETY: it reads the thread pointer (psABI, 3.4.6), and the offset that the loader has written.
    unsafe {
        asm!(
            "mov {place}, qword ptr fs:[0]",
            "add {place}, qword ptr [rip + dray_recording_state@GOTTPOFF]",
            place = out(reg) place,
            options(nostack, readonly, pure),
        );
    }
    std::ptr::with_exposed_provenance_mut(place)
}

/// Uses the state of this thread; `None` if the thread is using it already, and this is a signal handler.
#[inline]
pub(super) fn with_state<R>(visit: impl FnOnce(&mut State) -> R) -> Option<R> {
    let place = place();
    // SAFETY: the thread's own memory; a signal handler that reads it meanwhile comes to its end first.
    let busy = unsafe { &raw mut (*place).busy };
    // SAFETY: as above.
    if unsafe { busy.read_volatile() } != 0 {
        return None;
    }
    // SAFETY: as above.
    unsafe { busy.write_volatile(1) };
    compiler_fence(Ordering::SeqCst);
    // SAFETY: it is not in use, and zero is a value of each field.
    let result = visit(unsafe { &mut *place });
    compiler_fence(Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { busy.write_volatile(0) };
    Some(result)
}
