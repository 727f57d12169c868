//! Descriptors that no driver writes: none of them panics, hangs or writes elsewhere.

use crate::common::in_place::execute_both_ways;
use crate::common::profile::{one_group, queue};
use dray_conformance::Runner;
use dray_conformance::rules::{PAGE, Page, Pages};
use dray_device::{Access, DeviceConfig, IdptEntry, Memory, Payload, WorkQueueMode, execute};
use dray_ops::BlockSize;
use dray_spec::registers::{IdptAccess, IdptControl};
use dray_spec::{Descriptor, DifTags, Flags, Opcode, Status, reserved_bytes};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use zerocopy::FromBytes;

/// The same cases on every machine.
fn try_cases<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> TestCaseResult) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(strategy, test).expect("no case fails");
}

/// Everything on: as much as possible gets past the checks.
fn permissive() -> DeviceConfig {
    let mut config = one_group(2, vec![queue(0, WorkQueueMode::Dedicated, 8)]);
    config.capabilities.gen_cap = u64::MAX;
    config.capabilities.op_cap = [u64::MAX; 4];
    config.capabilities.max_transfer_size = 1 << 31;
    config.capabilities.max_batch_size = 1 << 15;
    let whole = IdptEntry {
        control: IdptControl::new().with_usable(true).with_allow_update(true),
        access: IdptAccess::new().with_read(true).with_write(true),
        ..IdptEntry::default()
    };
    config.idpt.entries = vec![whole; 4];
    let queue = &mut config.work_queues[0];
    queue.max_transfer_size = 1 << 31;
    queue.max_batch_size = 1 << 15;
    queue.block_on_fault = true;
    config
}

/// A few pages at the start, in the middle or at the end of the address space.
fn memory() -> impl Strategy<Value = Pages> {
    let bases = [0, 0x1000, 1 << 47, (4 * PAGE).wrapping_neg()];
    let page = prop_oneof![
        Just(Page::Hole),
        Just(Page::ReadOnly),
        Just(Page::ReadWrite),
        Just(Page::ReadWrite),
    ];
    (
        prop::sample::select(bases.to_vec()),
        prop::collection::vec(page, 4),
    )
        .prop_map(|(base, pages)| Pages::new(base, pages))
}

/// Numbers at the edges of things.
fn edge() -> impl Strategy<Value = u64> {
    let centres = [
        0,
        32,
        64,
        PAGE,
        4 * PAGE,
        1 << 31,
        1 << 32,
        1 << 47,
        1 << 63,
    ];
    let near = (prop::sample::select(centres.to_vec()), 0..130_u64);
    prop_oneof![
        3 => near.prop_map(|(centre, near)| centre.wrapping_add(near).wrapping_sub(65)),
        1 => (0..5 * PAGE).prop_map(u64::wrapping_neg),
        1 => 0..5 * PAGE,
        1 => any::<u64>(),
    ]
}

/// Fields at their edges; what the operation leaves reserved is 0 seven times of eight.
fn crafted() -> impl Strategy<Value = [u8; 64]> {
    let zeroed = prop_oneof![7 => Just(true), 1 => Just(false)];
    (fields(), zeroed).prop_map(|(mut bytes, zeroed)| {
        let flags = Flags::from_bits(u32::from_le_bytes([bytes[4], bytes[5], bytes[6], 0]));
        if let (Ok(opcode), true) = (Opcode::try_from(bytes[7]), zeroed) {
            let reserved = reserved_bytes(opcode, flags);
            for byte in (0..64).filter(|n| reserved >> n & 1 == 1) {
                bytes[byte] = 0;
            }
        }
        bytes
    })
}

/// With an opcode that is there and flags that are mostly allowed.
fn fields() -> impl Strategy<Value = [u8; 64]> {
    let opcode = prop_oneof![5 => 0..0x12_u8, 5 => 0x12..0x27_u8, 1 => any::<u8>()];
    let flags = prop_oneof![Just(0x0c_u32), Just(0x0e), Just(0x00), any::<u32>()];
    let tail = prop_oneof![4 => Just(0), 1 => any::<u64>()];
    let fields = (edge(), edge(), edge(), edge(), edge(), tail);
    (opcode, flags, fields).prop_map(|(opcode, flags, (record, a, b, size, c, tail))| {
        let mut bytes = [0; 64];
        bytes[4..8].copy_from_slice(&(flags & 0xff_ffff | u32::from(opcode) << 24).to_le_bytes());
        let record = if flags & 4 == 0 { 0 } else { record & !31 };
        bytes[8..16].copy_from_slice(&record.to_le_bytes());
        bytes[16..24].copy_from_slice(&a.to_le_bytes());
        bytes[24..32].copy_from_slice(&b.to_le_bytes());
        bytes[32..36].copy_from_slice(&(size as u32).to_le_bytes());
        match opcode {
            7 => {
                bytes[40..48].copy_from_slice(&c.to_le_bytes());
                bytes[48..52].copy_from_slice(&(80 + (tail as u32 & 0xfff)).to_le_bytes());
            }
            8 => bytes[40..44].copy_from_slice(&(c as u32 & 0xfff).to_le_bytes()),
            // Flags of both sides where they are, a few blocks, tags that check nothing.
            0x12..=0x17 => {
                let (source, destination) = (
                    opcode != 0x13 && opcode != 0x17,
                    !matches!(opcode, 0x12 | 0x14),
                );
                bytes[40] = if source { c as u8 } else { 0 };
                bytes[41] = if destination { tail as u8 & 0xf8 } else { 0 };
                bytes[42] = (c >> 8) as u8 & 0x0f;
                let block = BlockSize::from_bits(bytes[42]);
                let step = if source {
                    block.protected_bytes()
                } else {
                    block.bytes()
                };
                let blocks = 1 + size % 20;
                bytes[32..36].copy_from_slice(&(step as u32 * blocks as u32).to_le_bytes());
                if source {
                    bytes[52..54].copy_from_slice(&[0xff; 2]);
                }
                return bytes;
            }
            9.. => bytes[40..48].copy_from_slice(&(c & !0xfff | b & 0xfff).to_le_bytes()),
            _ => {}
        }
        if opcode != 7 {
            bytes[48..56].copy_from_slice(&tail.to_le_bytes());
        }
        bytes
    })
}

fn random() -> impl Strategy<Value = [u8; 64]> {
    prop::array::uniform32(any::<u16>()).prop_map(|words| {
        let mut bytes = [0; 64];
        for (to, word) in bytes.chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    })
}

fn descriptor() -> impl Strategy<Value = Descriptor> {
    let bytes = prop_oneof![1 => random(), 4 => crafted()];
    bytes.prop_map(|bytes| Descriptor::read_from_bytes(&bytes).expect("64 bytes"))
}

/// Where a descriptor may write, as inclusive ranges.
fn targets(d: &Descriptor) -> Vec<(u64, u64)> {
    let range = |start: u64| {
        (
            start,
            start.saturating_add(u64::from(d.size).saturating_sub(1)),
        )
    };
    match d.opcode() {
        Ok(
            Opcode::Memmove
            | Opcode::Fill
            | Opcode::CopyCrc
            | Opcode::ApplyDelta
            | Opcode::DifUpdate,
        ) => vec![range(d.address2)],
        Ok(Opcode::CreateDelta) => {
            let (start, size) = (d.delta_record(), u64::from(d.max_delta_size()));
            vec![(start, start.saturating_add(size.saturating_sub(1)))]
        }
        Ok(opcode @ (Opcode::DifInsert | Opcode::DifStrip | Opcode::DixGenerate)) => {
            let block = BlockSize::from_bits(d.dif_flags());
            let (data, protected) = (block.bytes() as u64, block.protected_bytes() as u64);
            let size = u64::from(d.size);
            let written = match opcode {
                Opcode::DifInsert => size / data * protected,
                Opcode::DifStrip => size / protected * data,
                _ => size / data * 8,
            };
            vec![(
                d.address2,
                d.address2.saturating_add(written.saturating_sub(1)),
            )]
        }
        Ok(Opcode::Dualcast) => vec![range(d.address2), range(d.destination2())],
        _ => Vec::new(),
    }
}

#[test]
fn any_64_bytes_end_in_a_record_or_an_error_and_write_nowhere_else() {
    let strategy = (memory(), descriptor(), any::<bool>());
    try_cases(8000, &strategy, |(memory, d, skipped)| {
        let mut runner = Runner::new(permissive(), memory);
        if skipped {
            runner.payload = Payload::Skipped;
        }
        let before = runner.memory.clone();
        runner.submit(0, &d);
        runner.run();
        prop_assert_eq!(runner.device.occupancy(0), Some(0));
        if d.opcode() == Ok(Opcode::Batch) {
            // Its members write where they like.
            return Ok(());
        }
        let reported = runner.records.len() + runner.errors.len();
        let asked = d.flags().contains(Flags::REQUEST_COMPLETION_RECORD);
        prop_assert!(reported <= 1 && (reported == 1 || !asked));
        let mut allowed = targets(&d);
        allowed.extend(
            runner
                .records
                .iter()
                .map(|(at, _)| (*at, at.saturating_add(31))),
        );
        for n in 0..4 * PAGE {
            let at = before.base() + n;
            if runner.memory.peek(at, 1) != before.peek(at, 1) {
                prop_assert!(
                    allowed
                        .iter()
                        .any(|(first, last)| (*first..=*last).contains(&at))
                );
                prop_assert_eq!(before.page(at), Page::ReadWrite);
            }
        }
        Ok(())
    });
}

#[test]
fn any_list_of_any_members_ends() {
    let list = prop::collection::vec(descriptor(), 1..20);
    let strategy = (memory(), list, 0..4 * PAGE / 64, edge());
    try_cases(4000, &strategy, |(mut memory, list, place, count)| {
        let at = memory.base() + place * 64;
        let room = (4 * PAGE - place * 64) / 64;
        memory.poke_list(at, &list[..list.len().min(room as usize)]);
        let count = if count % 2 == 0 {
            list.len() as u32
        } else {
            count as u32 % 4096
        };
        let batch = Descriptor::batch(at, count).with_flags(Flags::COMPLETION_ADDRESS_VALID);
        let mut runner = Runner::new(permissive(), memory);
        runner.submit(0, &batch.with_interrupt(7));
        runner.run();
        // Its record goes to address 0, where a page need not be.
        let unrecorded = runner.errors.iter().any(|(status, at)| {
            (*status, *at) == (Status::COMPLETION_ADDRESS_FAULT.with_write_fault(), 0)
        });
        prop_assert!(runner.interrupts.contains(&7) || unrecorded);
        prop_assert_eq!(runner.device.take(0), None);
        Ok(())
    });
}

/// `execute` is there for others too, who may not have asked for the checks.
#[test]
fn execution_without_checks_does_not_panic_either() {
    let strategy = (memory(), descriptor(), 0..0x40_u8);
    try_cases(8000, &strategy, |(mut memory, d, code)| {
        if let Ok(opcode) = Opcode::try_from(code) {
            let outcome = execute_both_ways(opcode, &d, &mut memory, Payload::Moved);
            prop_assert!(outcome.record.status() != Status::NONE);
        }
        Ok(())
    });
}

/// Everything is there and nothing is stored.
struct Endless;

impl Memory for Endless {
    fn accessible(&self, _: u64, len: u64, _: Access) -> u64 {
        len
    }

    fn read(&self, _: u64, _: &mut [u8]) {
        panic!("a skipped payload was read");
    }

    fn write(&mut self, _: u64, _: &[u8]) {
        panic!("a skipped payload was written");
    }
}

#[test]
fn four_gibibytes_of_skipped_payload_are_nothing() {
    let size = u32::MAX;
    for (opcode, d) in [
        (Opcode::Memmove, Descriptor::memmove(0, 1 << 40, size)),
        (Opcode::Memmove, Descriptor::memmove(0, 4096, size)),
        (Opcode::Fill, Descriptor::fill(1, 0, size)),
        (Opcode::Compare, Descriptor::compare(0, 1 << 40, size)),
        (
            Opcode::ComparePattern,
            Descriptor::compare_pattern(0, 1, size),
        ),
        (
            Opcode::Dualcast,
            Descriptor::dualcast(0, 1 << 40, 1 << 41, size),
        ),
        (Opcode::CrcGenerate, Descriptor::crc(0, size, 0)),
        (Opcode::CopyCrc, Descriptor::copy_crc(0, 1 << 40, size, 0)),
        (
            Opcode::CreateDelta,
            Descriptor::create_delta(0, 1 << 40, size, 1 << 41, size),
        ),
        (
            Opcode::ApplyDelta,
            Descriptor::apply_delta(0, 1 << 40, size, size),
        ),
        (
            Opcode::DifInsert,
            Descriptor::dif_insert(0, 1 << 40, size, 0, 0, DifTags::default()),
        ),
        (
            Opcode::DifCheck,
            Descriptor::dif_check(0, size, 0, 0, DifTags::default()),
        ),
        (Opcode::CacheFlush, Descriptor::cache_flush(0, size)),
        (
            Opcode::TranslationFetch,
            Descriptor::translation_fetch(0, size),
        ),
    ] {
        let outcome = execute(opcode, &d, &mut Endless, Payload::Skipped);
        assert_eq!(outcome.record.status(), Status::SUCCESS, "{opcode}");
    }
}

#[test]
fn nothing_wraps_behind_the_last_address() {
    let last = Pages::new(PAGE.wrapping_neg(), vec![Page::ReadWrite]);
    let start = 64_u64.wrapping_neg();
    for size in [64, 65, 4096, u32::MAX] {
        for (opcode, d) in [
            (
                Opcode::Memmove,
                Descriptor::memmove(start, PAGE.wrapping_neg(), size),
            ),
            (
                Opcode::Memmove,
                Descriptor::memmove(PAGE.wrapping_neg(), start, size),
            ),
            (Opcode::Memmove, Descriptor::memmove(start - 1, start, size)),
            (Opcode::Fill, Descriptor::fill(1, start, size)),
            (Opcode::Compare, Descriptor::compare(start, start, size)),
            (Opcode::CrcGenerate, Descriptor::crc(start, size, 0)),
        ] {
            let record = execute(opcode, &d, &mut last.clone(), Payload::Moved).record;
            match size {
                64 => assert_eq!(record.status(), Status::SUCCESS, "{opcode}"),
                _ => {
                    assert_eq!(record.status().code(), Status::PAGE_FAULT.0, "{opcode}");
                    assert_eq!(last.page(record.fault_address), Page::Hole, "{opcode}");
                    assert!(record.bytes_completed <= 64, "{opcode}");
                }
            }
        }
    }
}

#[test]
fn even_memory_without_holes_ends_at_the_last_address() {
    let start = 64_u64.wrapping_neg();
    for (opcode, d) in [
        (Opcode::Memmove, Descriptor::memmove(start, 0, 65)),
        (Opcode::Memmove, Descriptor::memmove(0, start, 65)),
        (Opcode::Fill, Descriptor::fill(1, start, 65)),
        (Opcode::Compare, Descriptor::compare(0, start, 65)),
        (Opcode::CopyCrc, Descriptor::copy_crc(0, start, 65, 0)),
    ] {
        let record = execute(opcode, &d, &mut Endless, Payload::Skipped).record;
        assert_eq!(record.status().code(), Status::PAGE_FAULT.0, "{opcode}");
        assert_eq!(
            (record.bytes_completed, record.fault_address),
            (64, 0),
            "{opcode}"
        );
    }
    // From its end such a move does not even begin.
    let d = Descriptor::memmove(start - 1, start, 65);
    let record = execute(Opcode::Memmove, &d, &mut Endless, Payload::Skipped).record;
    assert_eq!(record.status(), Status::PAGE_FAULT.with_write_fault());
    assert_eq!((record.bytes_completed, record.result), (0, 1));
}
