use super::*;
use crate::Descriptor;
use std::vec::Vec;
use zerocopy::IntoBytes;

/// Spec Table 5-3 in letters: f fence, b block on fault, k check result, c cache control,
/// r readback, s strict ordering, 1 2 3 traffic class selectors; then bits 23:16.
const TABLE: [(Opcode, &str, u32); 24] = [
    (Opcode::Noop, "f", 0),
    (Opcode::Batch, "1", 0x1),
    (Opcode::Drain, "12", 0xf),
    (Opcode::Memmove, "fbcrs12", 0),
    (Opcode::Fill, "fbcrs2", 0x4),
    (Opcode::Compare, "fbk12", 0),
    (Opcode::ComparePattern, "fbk1", 0),
    (Opcode::CreateDelta, "fbkcrs123", 0),
    (Opcode::ApplyDelta, "fbcrs12", 0),
    (Opcode::Dualcast, "fbcrs123", 0),
    (Opcode::TranslationFetch, "fb", 0x1),
    (Opcode::CrcGenerate, "fb13", 0xf),
    (Opcode::CopyCrc, "fbcrs123", 0xf),
    (Opcode::DifCheck, "fb1", 0),
    (Opcode::DifInsert, "fbcrs12", 0),
    (Opcode::DifStrip, "fbcrs12", 0),
    (Opcode::DifUpdate, "fbcrs12", 0),
    (Opcode::DixGenerate, "fbcrs12", 0),
    (Opcode::CacheFlush, "fbrs2", 0),
    (Opcode::UpdateWindow, "", 0x1),
    (Opcode::InterDomainCopy, "fbcrs12", 0x3),
    (Opcode::InterDomainFill, "fbcrs2", 0x6),
    (Opcode::InterDomainCompare, "fbk12", 0x3),
    (Opcode::InterDomainComparePattern, "fbk1", 0x1),
];

#[test]
fn allowed_flags_are_those_of_the_table() {
    assert_eq!(TABLE.map(|row| row.0).as_slice(), Opcode::ALL);
    for (opcode, letters, operation_bits) in TABLE {
        let letters = letters.chars().fold(0, |bits, letter| {
            // Cache control 3 goes with cache control 1 (spec Table 8-4).
            let bits = if letter == 'c' { bits | 1 << 5 } else { bits };
            let bit = match letter {
                'f' => 0,
                'b' => 1,
                'k' => 7,
                'c' => 8,
                '1' => 9,
                '2' => 10,
                '3' => 11,
                's' => 13,
                'r' => 14,
                _ => panic!("{letter}"),
            };
            bits | 1 << bit
        });
        let common = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 12;
        let expected = Flags::from_bits(letters | common | operation_bits << 16);
        assert_eq!(allowed_flags(opcode), expected, "{opcode}");
    }
}

#[test]
fn what_is_required_is_allowed() {
    for &opcode in Opcode::ALL {
        let required = required_flags(opcode);
        assert!(allowed_flags(opcode).contains(required.all.union(required.any)));
        assert_eq!(
            invalid_flags(opcode, required.all),
            Flags::EMPTY,
            "{opcode}"
        );
    }
}

#[test]
fn operations_with_a_result_need_a_record() {
    let record = Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD;
    for &opcode in Opcode::ALL {
        let needs = matches!(
            opcode as u8,
            0x05 | 0x06 | 0x07 | 0x10 | 0x11 | 0x12 | 0x17 | 0x25 | 0x26
        );
        assert_eq!(
            required_flags(opcode).all.contains(record),
            needs,
            "{opcode}"
        );
    }
    let crc = required_flags(Opcode::CrcGenerate);
    assert!(crc.met_by(record | Flags::FENCE));
    assert!(!crc.met_by(Flags::COMPLETION_ADDRESS_VALID));
    assert!(required_flags(Opcode::Memmove).met_by(Flags::EMPTY));
}

#[test]
fn drain_needs_a_record_or_an_interrupt() {
    let drain = required_flags(Opcode::Drain);
    assert!(!drain.met_by(Flags::COMPLETION_ADDRESS_VALID));
    assert!(drain.met_by(Flags::REQUEST_COMPLETION_INTERRUPT));
    assert!(drain.met_by(Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD));
}

#[test]
fn inter_domain_operations_need_an_alternate_pasid() {
    let record = Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD;
    let (source, destination) = (ALTERNATE_SOURCE, ALTERNATE_DESTINATION);
    let met = |opcode| {
        [Flags::EMPTY, source, destination, source | destination]
            .map(|flags| required_flags(opcode).met_by(record | flags))
    };
    assert_eq!(met(Opcode::InterDomainCopy), [false, true, true, true]);
    assert_eq!(met(Opcode::InterDomainFill), [false, false, true, true]);
    assert_eq!(met(Opcode::InterDomainCompare), [false, true, true, true]);
    assert_eq!(
        met(Opcode::InterDomainComparePattern),
        [false, true, false, true]
    );
}

#[test]
fn invalid_flags_names_what_is_wrong() {
    let valid = Flags::COMPLETION_ADDRESS_VALID;
    let record = valid | Flags::REQUEST_COMPLETION_RECORD;
    let cases = [
        (Opcode::Memmove, record | Flags::FENCE, Flags::EMPTY),
        (
            Opcode::Noop,
            record | Flags::BLOCK_ON_FAULT,
            Flags::BLOCK_ON_FAULT,
        ),
        (
            Opcode::Memmove,
            record | Flags::CHECK_RESULT,
            Flags::CHECK_RESULT,
        ),
        (Opcode::Batch, record | Flags::FENCE, Flags::FENCE),
        (
            Opcode::Memmove,
            Flags::REQUEST_COMPLETION_RECORD,
            Flags::REQUEST_COMPLETION_RECORD,
        ),
        (
            Opcode::Memmove,
            Flags::COMPLETION_TC_SELECTOR,
            Flags::COMPLETION_TC_SELECTOR,
        ),
        (
            Opcode::Memmove,
            valid | Flags::COMPLETION_TC_SELECTOR,
            Flags::EMPTY,
        ),
        (Opcode::CrcGenerate, record | A3, A3),
        (
            Opcode::CrcGenerate,
            record | A3 | Flags::CRC_READ_SEED,
            Flags::EMPTY,
        ),
        (
            Opcode::Drain,
            record | A1 | A2 | Flags::DRAIN_READBACK2_VALID,
            A1,
        ),
        (
            Opcode::Memmove,
            Flags::from_bits(1 << 6 | 1 << 20),
            Flags::from_bits(1 << 6 | 1 << 20),
        ),
    ];
    for (opcode, flags, invalid) in cases {
        assert_eq!(
            invalid_flags(opcode, flags),
            invalid,
            "{opcode} with {flags:?}"
        );
    }
}

/// Spec 8.3: reserved ranges above byte 15 without any flag, as first and last byte.
const RESERVED_RANGES: [(Opcode, &[(u32, u32)]); 24] = [
    (Opcode::Noop, &[(16, 35), (38, 63)]),
    (Opcode::Batch, &[(24, 31), (38, 63)]),
    (Opcode::Drain, &[(16, 35), (38, 63)]),
    (Opcode::Memmove, &[(38, 63)]),
    (Opcode::Fill, &[(38, 63)]),
    (Opcode::Compare, &[(38, 39), (41, 63)]),
    (Opcode::ComparePattern, &[(38, 39), (41, 63)]),
    (Opcode::CreateDelta, &[(38, 39), (52, 55), (57, 63)]),
    (Opcode::ApplyDelta, &[(38, 39), (44, 63)]),
    (Opcode::Dualcast, &[(38, 39), (48, 63)]),
    (Opcode::TranslationFetch, &[(24, 31), (38, 63)]),
    (Opcode::CrcGenerate, &[(24, 31), (38, 39), (44, 63)]),
    (Opcode::CopyCrc, &[(38, 39), (44, 63)]),
    (
        Opcode::DifCheck,
        &[(24, 31), (38, 39), (41, 41), (43, 47), (56, 63)],
    ),
    (Opcode::DifInsert, &[(38, 40), (43, 55)]),
    (Opcode::DifStrip, &[(38, 39), (41, 41), (43, 47), (56, 63)]),
    (Opcode::DifUpdate, &[(38, 39), (43, 47)]),
    (Opcode::DixGenerate, &[(38, 40), (43, 55)]),
    (Opcode::CacheFlush, &[(16, 23), (38, 63)]),
    (Opcode::UpdateWindow, &[(32, 35), (38, 60)]),
    (Opcode::InterDomainCopy, &[(38, 59)]),
    (Opcode::InterDomainFill, &[(38, 61)]),
    (Opcode::InterDomainCompare, &[(38, 39), (41, 59)]),
    (
        Opcode::InterDomainComparePattern,
        &[(38, 39), (41, 59), (62, 63)],
    ),
];

/// Numbers of the bytes in a mask.
fn places(mask: u64) -> Vec<u32> {
    (0..64).filter(|place| mask >> place & 1 == 1).collect()
}

#[test]
fn reserved_bytes_are_those_of_the_operation() {
    let flags = Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_INTERRUPT;
    assert_eq!(RESERVED_RANGES.map(|row| row.0).as_slice(), Opcode::ALL);
    for (opcode, ranges) in RESERVED_RANGES {
        let expected: Vec<u32> = ranges
            .iter()
            .flat_map(|&(first, last)| first..=last)
            .collect();
        // A handle whose flag is not set is reserved as well: below.
        let domains = match opcode {
            Opcode::InterDomainCopy | Opcode::InterDomainCompare => {
                ALTERNATE_SOURCE | ALTERNATE_DESTINATION
            }
            _ => Flags::EMPTY,
        };
        let reserved = reserved_bytes(opcode, flags | domains);
        assert_eq!(places(reserved), expected, "{opcode}");
        let without = reserved_bytes(opcode, domains) ^ reserved;
        assert_eq!(places(without), [8, 9, 10, 11, 12, 13, 14, 15, 36, 37]);
    }
}

#[test]
fn flags_move_the_reserved_bytes() {
    let change = |opcode, flags: Flags| {
        let (before, after) = (
            reserved_bytes(opcode, Flags::EMPTY),
            reserved_bytes(opcode, flags),
        );
        (places(before & !after), places(after & !before))
    };
    let range = |first: u32, last: u32| (first..=last).collect::<Vec<_>>();
    let none = Vec::new;
    for opcode in [Opcode::Fill, Opcode::InterDomainFill] {
        assert_eq!(
            change(opcode, Flags::FILL_PATTERN_16),
            (range(40, 47), none())
        );
    }
    for opcode in [Opcode::InterDomainCopy, Opcode::InterDomainCompare] {
        assert_eq!(change(opcode, ALTERNATE_SOURCE), (range(60, 61), none()));
        assert_eq!(
            change(opcode, ALTERNATE_DESTINATION),
            (range(62, 63), none())
        );
    }
    for opcode in [Opcode::CrcGenerate, Opcode::CopyCrc] {
        assert_eq!(change(opcode, Flags::CRC_64), (range(44, 47), none()));
        assert_eq!(
            change(opcode, Flags::CRC_READ_SEED),
            (range(48, 55), range(40, 43))
        );
        assert_eq!(
            change(opcode, Flags::CRC_READ_SEED | Flags::CRC_64),
            (range(48, 55), range(40, 43))
        );
    }
    assert_eq!(
        change(Opcode::Drain, Flags::DRAIN_READBACK1_VALID),
        (range(16, 23), none())
    );
    assert_eq!(
        change(Opcode::Drain, Flags::DRAIN_READBACK2_VALID),
        (range(24, 31), none())
    );
    assert_eq!(
        change(
            Opcode::TranslationFetch,
            Flags::TRANSLATION_FETCH_USE_STRIDE
        ),
        (range(48, 51), none())
    );
    // The same bit 16 means nothing to memmove.
    assert_eq!(
        change(Opcode::Memmove, Flags::CRC_READ_SEED),
        (none(), none())
    );
}

#[test]
fn constructors_keep_the_rules() {
    let all = u64::MAX;
    let descriptors = [
        Descriptor::noop().with_completion(all),
        Descriptor::batch(all, 16).with_completion(all),
        Descriptor::drain().with_completion(all),
        Descriptor::memmove(all, all, u32::MAX),
        Descriptor::fill(all, all, u32::MAX).with_interrupt(u16::MAX),
        Descriptor::fill_16(u128::MAX, all, u32::MAX),
        Descriptor::compare(all, all, u32::MAX)
            .with_completion(all)
            .with_expected_result(1),
        Descriptor::compare_pattern(all, all, u32::MAX).with_completion(all),
        Descriptor::create_delta(all, all, u32::MAX, all, u32::MAX)
            .with_completion(all)
            .with_expected_result_mask(7),
        Descriptor::apply_delta(all, all, u32::MAX, u32::MAX),
        Descriptor::dualcast(all, all, all, u32::MAX),
        Descriptor::crc(all, u32::MAX, u32::MAX).with_completion(all),
        Descriptor::copy_crc(all, all, u32::MAX, u32::MAX).with_completion(all),
        Descriptor::cache_flush(all, u32::MAX),
    ];
    for descriptor in descriptors {
        let (opcode, flags) = (descriptor.opcode().unwrap(), descriptor.flags());
        assert_eq!(invalid_flags(opcode, flags), Flags::EMPTY, "{descriptor:?}");
        assert!(required_flags(opcode).met_by(flags), "{descriptor:?}");
        let reserved = reserved_bytes(opcode, flags);
        for (place, &byte) in descriptor.as_bytes().iter().enumerate() {
            assert!(
                byte == 0 || reserved >> place & 1 == 0,
                "byte {place} of {descriptor:?}"
            );
        }
    }
}
