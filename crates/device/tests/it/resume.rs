//! What is left after a page fault, carried out when the page is there, makes the same bytes and the
//! same result as if it had been there (spec 8.3).

use crate::common::cases;
use crate::common::in_place::execute_both_ways;
use dray_conformance::rules::{PAGE, Page, Pages};
use dray_device::Payload;
use dray_spec::{CompletionRecord, Descriptor, DifTags, Flags, Opcode, Status};
use proptest::prelude::*;

const BASE: u64 = 0x10_0000;
/// Source, second source and destination, eight pages each.
const SRC: u64 = BASE;
const SRC2: u64 = BASE + 8 * PAGE;
const DST: u64 = BASE + 16 * PAGE;
const PAGES: usize = 24;
const ALL: usize = PAGES * PAGE as usize;

/// An operation, where its operands start within a page, how much of it there is, and a number.
#[derive(Debug, Clone)]
struct Seed {
    kind: u8,
    src: u64,
    dst: u64,
    size: u32,
    value: u64,
}

fn seed() -> impl Strategy<Value = Seed> {
    let near = || prop_oneof![0..PAGE, PAGE - 64..PAGE];
    (0..14_u8, near(), near(), 1..20_000_u32, any::<u64>()).prop_map(
        |(kind, src, dst, size, value)| Seed {
            kind,
            src,
            dst,
            size,
            value,
        },
    )
}

fn tags(value: u64) -> DifTags {
    DifTags {
        reference: value as u32,
        app_mask: (value >> 32) as u16 & 0xff,
        app: (value >> 48) as u16 & 0xff00,
    }
}

/// Source flags that check nothing but count.
fn unchecked(value: u64) -> u8 {
    0x60 | value as u8 & 0x90
}

fn descriptor(seed: &Seed) -> Descriptor {
    let (src, dst) = (SRC + seed.src, DST + seed.dst);
    let (size, value) = (seed.size, seed.value);
    let blocks = 1 + size / 4200;
    let (eight, src8, dst8) = (size.next_multiple_of(8), src & !7, dst & !7);
    let source = DifTags {
        app_mask: 0xffff,
        ..tags(value)
    };
    let made = value as u8 & 0x90;
    match seed.kind {
        0 => Descriptor::memmove(src, dst, size),
        1 => Descriptor::fill(value, dst, size),
        2 => Descriptor::fill_16(u128::from(value) << 64 | u128::from(!value), dst, size),
        3 => Descriptor::compare(src, SRC2 + seed.src, size),
        4 => Descriptor::crc(src, size, value as u32),
        5 => Descriptor::copy_crc64(src, dst, size, value),
        6 => Descriptor::copy_crc(src, dst, size, value as u32)
            .with_flags(Flags::CRC_BYPASS_INVERSION | Flags::CRC_BYPASS_DATA_REFLECTION),
        7 => Descriptor::dif_check(src, 520 * blocks, 0, unchecked(value), source),
        8 => Descriptor::dif_insert(src, dst, 4096 * blocks, 2, made, tags(value)),
        9 => Descriptor::dif_strip(src, dst, 4112 * blocks, 3, unchecked(value), source),
        10 => {
            let destination = (made, tags(!value));
            Descriptor::dif_update(
                src,
                dst,
                528 * blocks,
                1,
                (unchecked(value), source),
                destination,
            )
        }
        11 => Descriptor::dix_generate(src, dst8, 512 * blocks, 0, made, tags(value)),
        12 => Descriptor::create_delta(src8, (SRC2 + seed.src) & !7, eight, dst, 30_000),
        _ => Descriptor::apply_delta(src, dst8, 16_384, 10 * (1 + size / 20)),
    }
}

/// The bytes, and which pages there are.
fn memory(d: &Descriptor, seed: &Seed, holes: u32) -> (Pages, Pages) {
    let mut whole = Pages::new(BASE, vec![Page::ReadWrite; PAGES]);
    // The second source is the first with some differences.
    let source = whole.peek(SRC, 8 * PAGE as usize).to_vec();
    whole.poke(SRC2, &source);
    if d.opcode() == Ok(Opcode::CreateDelta) {
        for n in 0..seed.value % 400 {
            whole.poke(SRC2 + (n * 56 + seed.value % 48) % (7 * PAGE), &[n as u8]);
        }
    }
    if d.opcode() == Ok(Opcode::ApplyDelta) {
        let count = d.delta_record_size() / 10;
        let step = (2048 / count.max(1)).max(1);
        for n in 0..count.min(2048) {
            let mut entry = ((n * step) as u16).to_le_bytes().to_vec();
            entry.extend([n as u8; 8]);
            whole.poke(d.address1 + u64::from(n) * 10, &entry);
        }
    }
    let page = |n: usize| match holes >> n & 1 {
        1 => Page::Hole,
        _ => Page::ReadWrite,
    };
    let mut holed = Pages::new(BASE, (0..PAGES).map(page).collect());
    holed.poke(BASE, whole.peek(BASE, ALL));
    (whole, holed)
}

/// The rest of a descriptor (spec 8.3.4 to 8.3.18).
fn rest(d: &Descriptor, record: &CompletionRecord) -> Descriptor {
    let done = record.bytes_completed;
    let mut rest = *d;
    let opcode = d.opcode().expect("an operation");
    if opcode == Opcode::ApplyDelta {
        rest.address1 += u64::from(done);
        let left = d.delta_record_size() - done;
        rest.operation[..4].copy_from_slice(&left.to_le_bytes());
        return rest;
    }
    rest.size -= done;
    let (block, protected) = match d.dif_flags() & 3 {
        0 => (512, 520),
        1 => (520, 528),
        2 => (4096, 4104),
        _ => (4104, 4112),
    };
    match opcode {
        Opcode::Fill => {
            let size = if d.flags().contains(Flags::FILL_PATTERN_16) {
                16
            } else {
                8
            };
            let mut pattern = d.address1.to_le_bytes().to_vec();
            pattern.extend(d.pattern_high().to_le_bytes());
            pattern.truncate(size);
            pattern.rotate_left(done as usize % size);
            rest.address1 = u64::from_le_bytes(pattern[..8].try_into().expect("8 bytes"));
            rest.operation[..size - 8].copy_from_slice(&pattern[8..]);
            rest.address2 += u64::from(done);
        }
        Opcode::Memmove | Opcode::Compare => {
            rest.address1 += u64::from(done);
            rest.address2 += u64::from(done);
        }
        Opcode::CrcGenerate | Opcode::CopyCrc => {
            rest.address1 += u64::from(done);
            if opcode == Opcode::CopyCrc {
                rest.address2 += u64::from(done);
            }
            if done > 0 {
                let size = if d.flags().contains(Flags::CRC_64) {
                    8
                } else {
                    4
                };
                rest.operation[..size].copy_from_slice(&record.operation[..size]);
            }
        }
        _ => {
            let (from, to) = match opcode {
                Opcode::DifCheck => (protected, 0),
                Opcode::DifInsert => (block, protected),
                Opcode::DifStrip => (protected, block),
                Opcode::DifUpdate => (protected, protected),
                _ => (block, 8),
            };
            rest.address1 += u64::from(done);
            rest.address2 += u64::from(done / from * to);
            let makes = !matches!(opcode, Opcode::DifCheck | Opcode::DifStrip);
            let checks = !matches!(opcode, Opcode::DifInsert | Opcode::DixGenerate);
            if checks {
                rest.operation[8..16].copy_from_slice(&record.operation[..8]);
            }
            if makes {
                rest.operation[16..].copy_from_slice(&record.operation[8..]);
            }
        }
    }
    rest
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn the_rest_after_a_fault_completes_the_whole(seed in seed(), holes in 0..1_u32 << PAGES) {
        let d = descriptor(&seed);
        prop_assume!(d.opcode() != Ok(Opcode::CreateDelta));
        let opcode = d.opcode().expect("an operation");
        let (whole, holed) = memory(&d, &seed, holes);
        let mut at_once = whole.clone();
        let expected = execute_both_ways(opcode, &d, &mut at_once, Payload::Moved).record;
        prop_assert!(expected.status().is_success(), "{expected:?}");
        let mut parts = holed;
        let mut record = execute_both_ways(opcode, &d, &mut parts, Payload::Moved).record;
        let faulted = !record.status().is_success();
        let mut resumed = whole;
        resumed.poke(BASE, parts.peek(BASE, ALL));
        if faulted {
            prop_assert_eq!(record.status().code(), Status::PAGE_FAULT.0);
            let rest = rest(&d, &record);
            let completed = record.bytes_completed;
            record = execute_both_ways(opcode, &rest, &mut resumed, Payload::Moved).record;
            if opcode == Opcode::Compare && record.result == 1 {
                record.bytes_completed += completed;
            }
        }
        prop_assert_eq!(record, expected);
        prop_assert_eq!(resumed.first_difference(&at_once), None);
    }

    /// The parts of a delta record count from where their part starts; merged, they are the whole.
    #[test]
    fn the_parts_of_a_delta_record_make_the_whole(seed in seed(), holes in 0..1_u32 << PAGES) {
        let d = descriptor(&Seed { kind: 12, ..seed.clone() });
        let (whole, holed) = memory(&d, &seed, holes);
        let mut at_once = whole.clone();
        let opcode = Opcode::CreateDelta;
        let expected = execute_both_ways(opcode, &d, &mut at_once, Payload::Moved).record;
        prop_assume!(expected.result < 2);
        let mut parts = holed;
        let record = execute_both_ways(opcode, &d, &mut parts, Payload::Moved).record;
        prop_assume!(!record.status().is_success());
        let (done, used) = (record.bytes_completed, record.delta_record_size());
        prop_assert_eq!(record.result, u8::from(used > 0));
        prop_assert_eq!((done % 8, used % 10), (0, 0));
        let mut resumed = whole;
        resumed.poke(BASE, parts.peek(BASE, ALL));
        let rest = Descriptor::create_delta(
            d.address1 + u64::from(done),
            d.address2 + u64::from(done),
            d.size - done,
            d.delta_record() + u64::from(used),
            d.max_delta_size() - used,
        );
        let last = execute_both_ways(opcode, &rest, &mut resumed, Payload::Moved).record;
        prop_assert_eq!(used + last.delta_record_size(), expected.delta_record_size());
        let size = expected.delta_record_size() as usize;
        let mut merged = resumed.peek(d.delta_record(), size).to_vec();
        for entry in merged[used as usize..].chunks_exact_mut(10) {
            let offset = u16::from_le_bytes([entry[0], entry[1]]) + (done / 8) as u16;
            entry[..2].copy_from_slice(&offset.to_le_bytes());
        }
        prop_assert_eq!(&merged, at_once.peek(d.delta_record(), size));
    }
}
