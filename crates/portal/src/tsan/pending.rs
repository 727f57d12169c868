//! The record that a thread is about to read, and that was empty when this library looked.
//!
//! Between the look and the thread's own read the device may write to it. Whether it did shows when the thread comes here
//! again: where it reads the record once more, and that is still empty, it has read it so. Where it goes on to other memory an
//! empty record says nothing, for the program may have cleared it by code that is not instrumented (memset): it stays polled.

use std::arch::{asm, global_asm};

use super::records::{RECORD, Record, find};

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

/// This thread is about to read this record, which is at this address.
pub(super) fn set(address: u64, record: &Record) {
    // A handler of a signal may have come between.
    resolve(address);
    record.begin_poll();
    replace(address);
}

/// This thread has read its record, and goes on to another address: it is seen if it has been written to meanwhile.
pub(super) extern "C" fn resolve(next: u64) {
    let address = replace(0);
    let Some(record) = find(address) else {
        return;
    };
    // SAFETY: there are records where there are portals, and handlers with them.
    let written = unsafe { record.is_written(address) };
    if written {
        record.seen();
    }
    if written || next & !(RECORD - 1) == address {
        record.end_poll();
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::with_records;
    use super::super::records::{Reach, may_have_been_seen};
    use super::*;

    #[test]
    fn a_record_stays_polled_where_the_thread_goes_on_with_it_empty() {
        #[repr(align(32))]
        struct Aligned([u8; 64]);
        crate::trap::install().expect("handlers");
        let memory = std::hint::black_box(Aligned([0; 64]));
        let at = memory.0.as_ptr().addr() as u64;
        with_records(&[(at, 3000, Reach::Submission)], || {
            let record = find(at).expect("entered");
            set(at, record);
            assert!(may_have_been_seen(3000));
            resolve(at + 4);
            assert!(!may_have_been_seen(3000), "it was read as empty");
            set(at, record);
            set(at, record);
            resolve(at);
            assert!(!may_have_been_seen(3000), "one poll at a time");
            set(at, record);
            resolve(at + RECORD);
            assert!(may_have_been_seen(3000), "it may have been cleared");
        });
    }
}
