//! One operation, executed on the calling core: what it does is what a device does.

use dray_device::{AllAccessible, CAN_FLUSH, PLAIN_FLAGS, Payload, ProcessMemory, Translation};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use crate::checked::Checked;

/// Makes the page of `addr` present.
///
/// # Safety
/// As [`Mover::touch`].
pub(crate) unsafe fn touch(addr: u64, write: bool) {
    let byte = addr as *mut u8;
    // SAFETY: the caller promises that the byte is mapped.
    let value = unsafe { byte.read_volatile() };
    if write {
        // SAFETY: the caller promises that the byte is writable and that nothing else writes it.
        unsafe { byte.write_volatile(value) };
    }
}

/// Executes an operation outside a batch.
///
/// # Safety
/// As [`execute`].
pub(crate) unsafe fn execute_single(descriptor: &Descriptor, checked: bool) -> CompletionRecord {
    if descriptor.flags().contains(Flags::FENCE) {
        let mut record = CompletionRecord::with_status(Status::INVALID_FLAGS);
        record.set_invalid_flags(Flags::FENCE);
        return record;
    }
    // SAFETY: the caller's promise is the same.
    unsafe { execute(descriptor, checked) }
}

/// Executes an operation on this process's memory. `checked`: what the core cannot access ends it with a page
/// fault, after the bytes before; otherwise with a signal.
///
/// # Safety
/// The operation's addresses must be valid for what it does unless it is `checked`, and nothing else may access
/// them meanwhile.
#[inline(always)]
pub(super) unsafe fn execute(d: &Descriptor, checked: bool) -> CompletionRecord {
    if checked {
        // SAFETY: the caller's promise is the same.
        return unsafe { execute_checked(d) };
    }
    if is_plain_copy(d) {
        // The usual case, of which nothing else is to be checked.
        let (from, to) = (d.address1 as *const u8, d.address2 as *mut u8);
        // SAFETY: both runs are valid, and `copy` allows them to overlap.
        unsafe { std::ptr::copy(from, to, d.size as usize) };
        return CompletionRecord::with_status(Status::SUCCESS);
    }
    // SAFETY: the caller's promise is the same.
    unsafe { execute_on(d, AllAccessible) }
}

/// Executes an operation as far as the core can access its memory.
///
/// # Safety
/// Nothing else may access what the operation accesses meanwhile.
#[inline(never)]
unsafe fn execute_checked(d: &Descriptor) -> CompletionRecord {
    // A core cannot wait until a page can be accessed.
    let resolved = d.flags_opcode & !Flags::BLOCK_ON_FAULT.bits();
    let d = Descriptor {
        flags_opcode: resolved,
        ..*d
    };
    // SAFETY: the caller's promise is the same.
    unsafe { execute_on(&d, Checked) }
}

/// Executes an operation as far as `space` says that it can be accessed.
///
/// # Safety
/// What `space` calls accessible must be valid for what the operation does, and nothing else may access it
/// meanwhile.
#[inline(never)]
unsafe fn execute_on(d: &Descriptor, space: impl Translation) -> CompletionRecord {
    let opcode = match dray_device::check_software(d) {
        Ok(opcode) => opcode,
        Err(refused) => return refused.outcome().record,
    };
    if opcode == Opcode::CacheFlush && !CAN_FLUSH {
        return CompletionRecord::with_status(Status::BAD_OPCODE);
    }
    // SAFETY: the caller's promise is the same.
    let mut memory = unsafe { ProcessMemory::new(space) };
    dray_device::execute(opcode, d, &mut memory, Payload::Moved).record
}

/// Whether the operation is a copy with nothing unusual about it, so that no rule can be broken.
#[inline]
fn is_plain_copy(d: &Descriptor) -> bool {
    const OPCODE: u32 = (Opcode::Memmove as u32) << 24;
    let flags_opcode = d.flags_opcode & !PLAIN_FLAGS.bits() == OPCODE;
    // Word by word: the descriptor was just stored, and a load over two stores waits for both.
    let operation = word(&d.operation) | word(&d.operation[8..]) | word(&d.operation[16..]);
    let reserved = u64::from(d.reserved) | u64::from(d.interrupt_handle);
    flags_opcode && d.size > 0 && reserved | operation == 0
}

/// The first eight bytes.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let word = bytes.first_chunk();
    word.map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_copy_is_one() {
        let copy = Descriptor::memmove(0x1000, 0x2000, 64);
        assert!(is_plain_copy(&copy));
        assert!(is_plain_copy(&copy.with_flags(Flags::BLOCK_ON_FAULT)));
        for other in [
            Descriptor::memmove(0x1000, 0x2000, 0),
            Descriptor::fill(0, 0x2000, 64),
            copy.with_flags(Flags::CHECK_RESULT),
            copy.with_flags(Flags::from_bits(1 << 6)),
            Descriptor {
                reserved: 1,
                ..copy
            },
            Descriptor {
                operation: [1; 24],
                ..copy
            },
            Descriptor {
                interrupt_handle: 1,
                ..copy
            },
        ] {
            assert!(!is_plain_copy(&other), "{other:?}");
        }
    }
}
