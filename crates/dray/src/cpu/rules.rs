//! What the calling core refuses, as a device does: flags and fields that are reserved in an operation.

use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

/// Flags that need no other one.
const PLAIN: Flags = Flags::FENCE
    .union(Flags::BLOCK_ON_FAULT)
    .union(Flags::COMPLETION_ADDRESS_VALID)
    .union(Flags::REQUEST_COMPLETION_RECORD)
    .union(Flags::CACHE_CONTROL);
/// A mover has a completion record for each operation, whether its descriptor says so or not.
const COMPLETES: Flags = Flags::COMPLETION_ADDRESS_VALID.union(Flags::REQUEST_COMPLETION_RECORD);
/// Bytes 8 to 15: the completion address, which a mover's operation does not have yet.
const COMPLETION_ADDRESS: u64 = 0xff00;

/// The operation of a descriptor that the core executes.
///
/// # Errors
/// The record with which a device refuses it (spec 5.4 to 5.6).
#[inline]
pub(super) fn check(d: &Descriptor) -> Result<Opcode, CompletionRecord> {
    let opcode = d.opcode();
    let opcode = opcode.map_err(|_| CompletionRecord::with_status(Status::BAD_OPCODE))?;
    if dray_device::SOFTWARE_OPERATIONS.supports(opcode as u8) {
        check_flags(opcode, d)?;
        let reserved = dray_spec::reserved_bytes(opcode, d.flags()) & !COMPLETION_ADDRESS;
        if has_bytes(d, reserved) {
            return Err(CompletionRecord::with_status(Status::NONZERO_RESERVED));
        }
    }
    dray_device::check_software(d).map_err(CompletionRecord::with_status)
}

/// Whether the operation is a copy with nothing unusual about it, so that no other rule can be broken.
#[inline]
pub(super) fn is_plain_copy(d: &Descriptor) -> bool {
    const OPCODE: u32 = (Opcode::Memmove as u32) << 24;
    let flags_opcode = d.flags_opcode & !PLAIN.bits() == OPCODE;
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

#[inline]
fn check_flags(opcode: Opcode, d: &Descriptor) -> Result<(), CompletionRecord> {
    let flags = d.flags();
    if flags.without(PLAIN).is_empty() && flags.without(dray_spec::allowed_flags(opcode)).is_empty()
    {
        return Ok(());
    }
    let invalid = dray_spec::invalid_flags(opcode, flags.union(COMPLETES));
    match invalid.is_empty() {
        true => Ok(()),
        false => Err(refused(invalid)),
    }
}

#[cold]
fn refused(flags: Flags) -> CompletionRecord {
    let mut record = CompletionRecord::with_status(Status::INVALID_FLAGS);
    record.set_invalid_flags(flags);
    record
}

/// Whether one of the descriptor's bytes 16 to 63 that the mask names is not 0.
#[inline]
fn has_bytes(d: &Descriptor, mask: u64) -> bool {
    let third =
        u64::from(d.size) | u64::from(d.interrupt_handle) << 32 | u64::from(d.reserved) << 48;
    let words = [
        d.address1,
        d.address2,
        third,
        word(&d.operation),
        word(&d.operation[8..]),
        word(&d.operation[16..]),
    ];
    let wrong = |(n, value): (usize, u64)| value & spread((mask >> (16 + 8 * n)) as u8) != 0;
    words.into_iter().enumerate().any(wrong)
}

/// Eight bits as eight bytes of 0 or 0xff.
#[inline]
fn spread(bits: u8) -> u64 {
    // Each bit to the lowest bit of its byte.
    let bits = u64::from(bits);
    let bits = (bits | bits << 28) & 0x0000_000f_0000_000f;
    let bits = (bits | bits << 14) & 0x0003_0003_0003_0003;
    let bits = (bits | bits << 7) & 0x0101_0101_0101_0101;
    bits * 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_bytes() {
        for bits in 0..=u8::MAX {
            let bytes: [u8; 8] = std::array::from_fn(|n| 0xff * (bits >> n & 1));
            assert_eq!(spread(bits), u64::from_le_bytes(bytes), "{bits:#x}");
        }
    }

    #[test]
    fn reserved_bytes_are_found_one_by_one() {
        use zerocopy::IntoBytes;
        for n in 16..64 {
            let mut d = Descriptor::default();
            d.as_mut_bytes()[n] = 1;
            for byte in 16..64 {
                assert_eq!(has_bytes(&d, 1 << byte), byte == n, "{n} {byte}");
            }
        }
    }

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

    #[test]
    fn what_a_device_refuses_is_refused() {
        let copy = Descriptor::memmove(0x1000, 0x2000, 64);
        assert_eq!(check(&copy), Ok(Opcode::Memmove));
        let steered = copy.with_flags(Flags::CACHE_CONTROL | Flags::CACHE_CONTROL_3);
        let refused = check(&steered).expect_err("cache control 101 is reserved");
        assert_eq!(refused.status(), Status::INVALID_FLAGS);
        assert!(refused.invalid_flags().contains(Flags::CACHE_CONTROL_3));
        let reserved = Descriptor {
            reserved: 1,
            ..copy
        };
        let refused = check(&reserved).expect_err("a reserved field");
        assert_eq!(refused.status(), Status::NONZERO_RESERVED);
        let mut seeded = Descriptor::crc(0x1000, 64, 7).with_crc_seed_address(0x2000);
        seeded.operation[0] = 7;
        let refused = check(&seeded).expect_err("two seeds");
        assert_eq!(refused.status(), Status::NONZERO_RESERVED);
        let fetch = check(&Descriptor::translation_fetch(0x1000, 4096));
        let status = fetch.expect_err("only a device has it").status();
        assert_eq!(status, Status::BAD_OPCODE);
    }
}
