//! Execution against the oracle, on random descriptors and memory with holes.

use crate::common::cases;
use crate::common::in_place::execute_both_ways;
use crate::common::oracle::{End, expected_end};
use crate::common::profile::{one_group, queue};
use dray_conformance::Runner;
use dray_conformance::rules::{PAGE, Page, Pages};
use dray_device::{DescriptorResult, Payload, WorkQueueMode, execute};
use dray_spec::{Descriptor, Flags, Opcode, Status};
use proptest::collection::vec;
use proptest::prelude::*;

const PAGES: u64 = 8;

/// Memory that ends with the last address there is, or somewhere in the middle.
fn memory() -> impl Strategy<Value = Pages> {
    let page = prop_oneof![
        1 => Just(Page::Hole),
        1 => Just(Page::ReadOnly),
        8 => Just(Page::ReadWrite),
    ];
    let base = prop_oneof![
        4 => Just(0x7f00_0000_0000),
        1 => Just(0),
        1 => Just((PAGES * PAGE).wrapping_neg()),
    ];
    (base, vec(page, PAGES as usize), 0..4_u8).prop_map(|(base, pages, period)| {
        let mut memory = Pages::new(base, pages);
        // Few values, so that comparisons are equal for a while.
        if period > 0 {
            let bytes: Vec<u8> = (0..PAGES * PAGE).map(|n| n as u8 % period).collect();
            memory.poke(base, &bytes);
        }
        memory
    })
}

/// Offsets from the start of the memory, often near the ends of pages, and past the ends of all.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..PAGES * PAGE,
        4 => (0..=PAGES, 0..32_u64).prop_map(|(page, near)| (page * PAGE + near).wrapping_sub(16)),
        1 => any::<u64>(),
    ]
}

fn size() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..100_u32, 3 => 4000..4200_u32, 2 => 1..20_000_u32]
}

/// Operation, three offsets, size, operation-specific flags, bytes 40 to 47.
#[derive(Debug, Clone)]
struct Seed {
    opcode: Opcode,
    offsets: [u64; 3],
    size: u32,
    specific: u32,
    value: u64,
}

fn seed() -> impl Strategy<Value = Seed> {
    let opcode = prop_oneof![
        3 => Just(Opcode::Memmove),
        1 => Just(Opcode::Fill),
        1 => Just(Opcode::Compare),
        1 => Just(Opcode::ComparePattern),
        1 => Just(Opcode::Dualcast),
        1 => Just(Opcode::CrcGenerate),
        1 => Just(Opcode::CopyCrc),
    ];
    let offsets = [offset().boxed(), offset().boxed(), offset().boxed()];
    let value = prop_oneof![Just(0), Just(0x0101_0101_0101_0101), any::<u64>()];
    (opcode, offsets, size(), 0..8_u32, value).prop_map(
        |(opcode, offsets, size, specific, value)| Seed {
            opcode,
            offsets,
            size,
            specific,
            value,
        },
    )
}

const RECORD: u64 = 0x20;

fn descriptor(base: u64, seed: &Seed) -> Descriptor {
    let [a, b, c] = seed.offsets.map(|offset| base.wrapping_add(offset));
    let (size, value) = (seed.size, seed.value);
    let d = match seed.opcode {
        Opcode::Fill if seed.specific & 4 != 0 => {
            Descriptor::fill_16(u128::from(value) << 64 | u128::from(a), b, size)
        }
        Opcode::Fill => Descriptor::fill(value, b, size),
        Opcode::Compare => Descriptor::compare(a, b, size),
        Opcode::ComparePattern => Descriptor::compare_pattern(a, value, size),
        Opcode::Dualcast => Descriptor::dualcast(a, b, c & !0xfff | b & 0xfff, size),
        Opcode::CrcGenerate => Descriptor::crc(a, size, value as u32),
        Opcode::CopyCrc => Descriptor::copy_crc(a, b, size, value as u32),
        _ => Descriptor::memmove(a, b, size),
    };
    let d = d.with_completion(RECORD);
    match seed.opcode {
        Opcode::Compare | Opcode::ComparePattern if seed.specific & 1 == 1 => {
            d.with_expected_result((seed.specific >> 1) as u8)
        }
        Opcode::CrcGenerate | Opcode::CopyCrc => {
            let mut d = d.with_flags(Flags::from_bits(seed.specific << 16));
            if d.flags().contains(Flags::CRC_READ_SEED) {
                d.operation[..8].fill(0);
                d.operation[8..16].copy_from_slice(&(c & !3).to_le_bytes());
            }
            d
        }
        _ => d,
    }
}

/// The outcome, as far as the specification fixes it.
fn end_of(d: &Descriptor, outcome: &DescriptorResult) -> End {
    let record = &outcome.record;
    let status = record.status();
    let has_crc = matches!(d.opcode(), Ok(Opcode::CrcGenerate | Opcode::CopyCrc));
    match status.code() {
        1 | 2 => End::Done {
            predicate: status == Status::SUCCESS,
            result: record.result,
            bytes: record.bytes_completed,
            crc: has_crc.then(|| record.crc32()),
        },
        _ => {
            assert_eq!(status.code(), Status::PAGE_FAULT.0);
            let bytes = record.bytes_completed;
            End::Fault {
                bytes,
                page: record.fault_address & !0xfff,
                write: status.is_write_fault(),
                backward: record.result == 1,
                crc: (has_crc && bytes > 0).then(|| record.crc32()),
            }
        }
    }
}

/// Whether the device takes the descriptor, and what comes of it.
fn accepted(d: &Descriptor) -> bool {
    let mut config = one_group(1, vec![queue(0, WorkQueueMode::Dedicated, 1)]);
    config.capabilities.gen_cap |= 1 << 10;
    let mut runner = Runner::new(config, Pages::new(0, vec![Page::ReadWrite]));
    runner.payload = Payload::Skipped;
    runner.submit(0, d);
    runner.run();
    let (_, record) = runner.records[0];
    record.status().code() < 0x10
}

proptest! {
    #![proptest_config(cases(2000))]

    /// Results, faults and every byte of the memory: inside the destination and outside of it.
    #[test]
    fn execution_does_what_the_specification_says(memory in memory(), base in any::<bool>(), seed in seed()) {
        let start = if base { memory.base() } else { memory.base().wrapping_add(PAGE) };
        let d = descriptor(start, &seed);
        prop_assume!(accepted(&d));
        let (mut ours, mut theirs) = (memory.clone(), memory.clone());
        let outcome = execute_both_ways(seed.opcode, &d, &mut ours, Payload::Moved);
        let expected = expected_end(&d, &mut theirs);
        prop_assert_eq!(end_of(&d, &outcome), expected);
        prop_assert!(ours == theirs, "memory differs");
    }

    /// Without its payload a descriptor faults where it faults with it, and touches nothing.
    #[test]
    fn a_skipped_payload_faults_all_the_same(memory in memory(), seed in seed()) {
        let d = descriptor(memory.base(), &seed);
        prop_assume!(accepted(&d));
        let mut moved = memory.clone();
        let with = execute_both_ways(seed.opcode, &d, &mut moved, Payload::Moved).record;
        let mut untouched = memory.clone();
        let without = execute_both_ways(seed.opcode, &d, &mut untouched, Payload::Skipped).record;
        prop_assert!(untouched == memory, "memory differs");
        // A difference that is found saves from the fault behind it.
        if with.result == 0 || seed.opcode == Opcode::Memmove {
            prop_assert_eq!(without.status, with.status);
            prop_assert_eq!(without.bytes_completed, with.bytes_completed);
            prop_assert_eq!(without.fault_address, with.fault_address);
        }
    }

    /// What is left after a fault, carried out when the page is there, makes the same memory as if
    /// it had been there (spec 8.3.4).
    #[test]
    fn a_move_is_resumed_from_its_record(memory in memory(), seed in seed()) {
        let room = PAGES * PAGE - u64::from(seed.size);
        let offsets = seed.offsets.map(|offset| offset % room);
        let seed = Seed { opcode: Opcode::Memmove, offsets, ..seed };
        let whole = Pages::new(memory.base(), vec![Page::ReadWrite; PAGES as usize]);
        let mut d = descriptor(memory.base(), &seed);
        let mut expected = whole.clone();
        let faulted = matches!(expected_end(&d, &mut expected), End::Fault { .. });
        prop_assert!(!faulted, "all pages are there");
        let mut holes = memory.clone();
        holes.poke(memory.base(), whole.peek(memory.base(), (PAGES * PAGE) as usize));
        let record = execute(Opcode::Memmove, &d, &mut holes, Payload::Moved).record;
        let mut resumed = whole;
        resumed.poke(memory.base(), holes.peek(memory.base(), (PAGES * PAGE) as usize));
        if record.status() != Status::SUCCESS {
            if record.result == 0 {
                d.address1 += u64::from(record.bytes_completed);
                d.address2 += u64::from(record.bytes_completed);
            }
            d.size -= record.bytes_completed;
            let rest = execute(Opcode::Memmove, &d, &mut resumed, Payload::Moved);
            prop_assert_eq!(rest.record.status(), Status::SUCCESS);
        }
        prop_assert!(resumed == expected, "memory differs");
    }
}

/// The sheet of the specification's sizes and the operations' own are one.
#[test]
fn blocks_of_dif_are_as_large_for_the_specification_as_for_the_operations() {
    use dray_ops::{BlockSize, DIF_BYTES};
    for size in BlockSize::ALL {
        let of = |opcode| dray_spec::dif::block_bytes(opcode, size.into_bits());
        let (data, protected) = (size.bytes(), size.protected_bytes());
        assert_eq!(of(Opcode::DifInsert), (data, protected));
        assert_eq!(of(Opcode::DifStrip), (protected, data));
        assert_eq!(of(Opcode::DixGenerate), (data, DIF_BYTES));
    }
}
