//! The record that a thread is about to read, and that was empty when this library looked.
//!
//! Between the look and the thread's own read the device may write to it. Whether it did shows when the thread comes here
//! again: where the record is still empty, the thread has read it so.

use std::arch::{asm, global_asm};

use super::records::find;

// A variable of each thread that a few instructions reach: the library is loaded with the program (ELF TLS, initial exec).
global_asm!(
    ".pushsection .tbss, \"awT\", @nobits",
    ".globl dray_tsan_pending",
    ".hidden dray_tsan_pending",
    ".type dray_tsan_pending, @object",
    ".size dray_tsan_pending, 8",
    ".balign 8",
    "dray_tsan_pending:",
    ".zero 8",
    ".popsection",
);

/// Sets the address of this thread's record, 0 for none; what it was.
fn replace(address: u64) -> u64 {
    let old;
    // SAFETY: the variable is this thread's.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + dray_tsan_pending@GOTTPOFF]",
            "xchg {value}, qword ptr fs:[{place}]",
            place = out(reg) _,
            value = inout(reg) address => old,
            options(nostack, preserves_flags),
        );
    }
    old
}

/// This thread is about to read the record at this address.
pub(super) fn set(address: u64) {
    if let Some(record) = find(address) {
        record.begin_poll();
        replace(address);
    }
}

/// This thread has read its record: it is seen if it has been written to meanwhile.
pub(super) extern "C" fn resolve() {
    let address = replace(0);
    let Some(record) = find(address).filter(|_| address != 0) else {
        return;
    };
    // SAFETY: there are records where there are portals, and handlers with them.
    if unsafe { record.is_written(address) } {
        record.seen();
    }
    record.end_poll();
}
