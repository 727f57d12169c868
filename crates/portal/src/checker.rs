//! Memory checkers that follow which bytes have been written: valgrind's memcheck and MemorySanitizer.
//!
//! The device writes from another process, which they do not see. What a descriptor writes is reported to them as
//! written when it is submitted.

use std::arch::asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};

use dray_spec::{Descriptor, Opcode};
use zerocopy::transmute;

use crate::guarded::copy_line;
use crate::submit::Words;

const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
const MEMCHECK: u8 = 2;
const MEMORY_SANITIZER: u8 = 3;

static CHECKER: AtomicU8 = AtomicU8::new(UNKNOWN);

/// `RUNNING_ON_VALGRIND` of `valgrind.h`, `VALGRIND_MAKE_MEM_DEFINED` of `memcheck.h`.
const RUNNING_ON_VALGRIND: u64 = 0x1001;
const MAKE_MEM_DEFINED: u64 = (b'M' as u64) << 24 | (b'C' as u64) << 16 | 2;
/// Where MemorySanitizer has the state of a byte: at its address with these bits changed (`msan.h`, x86-64 Linux).
const SHADOW: u64 = 0x5000_0000_0000;
/// A completion record (spec 5.4).
const RECORD: u64 = 32;
/// Flag of the first word: the address of the record is valid (spec 5.1).
const ADDRESSED: u64 = 1 << 34;
/// Descriptors of a batch that are read at most: more than any part takes.
const BATCH: u32 = 1 << 14;

/// Finds out which checker the program runs under. Not in a signal handler.
pub(crate) fn look() {
    if CHECKER.load(Ordering::Relaxed) != UNKNOWN {
        return;
    }
    let found = match client_request(RUNNING_ON_VALGRIND, 0, 0) {
        0 if is_shadow_where_expected() => MEMORY_SANITIZER,
        0 => NONE,
        _ => MEMCHECK,
    };
    CHECKER.store(found, Ordering::Relaxed);
}

/// Reports what a descriptor will write.
#[inline]
pub(crate) fn submitted(words: &Words) {
    if CHECKER.load(Ordering::Relaxed) >= MEMCHECK {
        report(words);
    }
}

#[cold]
fn report(words: &Words) {
    let descriptor: Descriptor = transmute!(*words);
    if descriptor.opcode() == Ok(Opcode::Batch) {
        for member in 0..u64::from(descriptor.size.min(BATCH)) {
            let mut words = [0; 8];
            let from = descriptor.address1.wrapping_add(member * 64);
            // SAFETY: the words are ours; the handlers are installed where there are portals.
            if unsafe { copy_line((&raw mut words).addr() as u64, from) }.is_err() {
                break;
            }
            for (address, bytes) in written(&words) {
                mark(address, bytes);
            }
        }
    }
    for (address, bytes) in written(words) {
        mark(address, bytes);
    }
}

/// What a descriptor writes; nothing is (0, 0). The destination of a delta record has been written before.
fn written(words: &Words) -> [(u64, u64); 3] {
    let descriptor: Descriptor = transmute!(*words);
    let (size, last) = (u64::from(descriptor.size), words[5]);
    let nothing = (0, 0);
    let to = |bytes| (descriptor.address2, bytes);
    // At most one field of 8 bytes for each block of 512.
    let fields = size.div_ceil(512) * 8;
    let [first, second] = match descriptor.opcode() {
        Ok(
            Opcode::Memmove | Opcode::Fill | Opcode::CopyCrc | Opcode::DifStrip | Opcode::DifUpdate,
        ) => [to(size), nothing],
        Ok(Opcode::Dualcast) => [to(size), (last, size)],
        Ok(Opcode::CreateDelta) => [(last, words[6] & u64::from(u32::MAX)), nothing],
        Ok(Opcode::DifInsert) => [to(size + fields), nothing],
        Ok(Opcode::DixGenerate) => [to(fields), nothing],
        _ => [nothing; 2],
    };
    let record = match words[0] & ADDRESSED {
        0 => nothing,
        _ => (descriptor.completion_addr, RECORD),
    };
    [first, second, record]
}

fn mark(address: u64, bytes: u64) {
    match CHECKER.load(Ordering::Relaxed) {
        MEMCHECK if bytes > 0 => {
            client_request(MAKE_MEM_DEFINED, address, bytes);
        }
        MEMORY_SANITIZER => clear_shadow(address, bytes),
        _ => {}
    }
}

/// Makes a request of valgrind's; 0 elsewhere, where the instructions do nothing.
fn client_request(request: u64, first: u64, second: u64) -> u64 {
    let arguments = [request, first, second, 0, 0, 0];
    let mut answer = 0u64;
    // SAFETY: four rotations by 128 bits in all, and an exchange of a register with itself; valgrind takes them
    // for the request that rax points to (`valgrind.h`, amd64).
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// Without a function of MemorySanitizer's: those use vector registers, which a submission keeps.
fn clear_shadow(address: u64, bytes: u64) {
    let shadow = address ^ SHADOW;
    // Memory of the program; addresses beyond have no state.
    if address >> 47 != 0 || bytes >> 47 != 0 {
        return;
    }
    // SAFETY: MemorySanitizer has mapped the state of all memory that a program may have.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") bytes => _,
            inout("rdi") shadow => _,
            in("al") 0u8,
            options(nostack),
        );
    }
}

/// Whether MemorySanitizer is there, and what is done to the state is what it understands.
fn is_shadow_where_expected() -> bool {
    type Poison = unsafe extern "C" fn(*const c_void, usize);
    type Test = unsafe extern "C" fn(*const c_void, usize) -> isize;
    // SAFETY: the names are texts.
    let [poison, test] = [c"__msan_poison", c"__msan_test_shadow"]
        .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
    if poison.is_null() || test.is_null() {
        return false;
    }
    // SAFETY: the functions of `sanitizer/msan_interface.h`.
    let poison = unsafe { std::mem::transmute::<*mut c_void, Poison>(poison) };
    // SAFETY: as above.
    let test = unsafe { std::mem::transmute::<*mut c_void, Test>(test) };
    let bytes = [0u8; 64];
    let place = bytes.as_ptr().cast();
    // SAFETY: bytes of ours.
    unsafe { poison(place, bytes.len()) };
    clear_shadow(place.addr() as u64, bytes.len() as u64);
    // SAFETY: bytes of ours.
    unsafe { test(place, bytes.len()) == -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(opcode: Opcode, last: u64, size: u32) -> Words {
        let opcode = u64::from(opcode as u8) << 56 | ADDRESSED;
        [opcode, 0x40, 0x1000, 0x2000, size.into(), last, 48, 0]
    }

    #[test]
    fn each_operation_is_known_with_what_it_writes() {
        let record = (0x40, 32);
        let none = (0, 0);
        for (opcode, expected) in [
            (Opcode::Memmove, [(0x2000, 1024), none]),
            (Opcode::Fill, [(0x2000, 1024), none]),
            (Opcode::Dualcast, [(0x2000, 1024), (0x3000, 1024)]),
            (Opcode::CreateDelta, [(0x3000, 48), none]),
            (Opcode::DifInsert, [(0x2000, 1040), none]),
            (Opcode::Compare, [none; 2]),
            (Opcode::CrcGenerate, [none; 2]),
        ] {
            let [first, second] = expected;
            let found = written(&words(opcode, 0x3000, 1024));
            assert_eq!(found, [first, second, record], "{}", opcode.name());
        }
    }

    #[test]
    fn a_program_without_a_checker_has_none() {
        look();
        assert_eq!(CHECKER.load(Ordering::Relaxed), NONE);
    }
}
