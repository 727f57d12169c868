//! Delta records, integrity fields, CRC-64 and cache flush: every mover gives the records and the
//! bytes that the device gives, whatever is wrong with the operands.

use crate::common::ground::{Ground, Modelled, Own, PAGE};
use crate::common::machine::{current, device, queue, world};
use crate::common::operation;
use dray::virt::{Options, VirtualDevice};
use dray::{CpuMover, Operation, drive};
use dray_conformance::Script;
use dray_device::{Capabilities, DeviceConfig, Payload, WorkQueueMode};
use dray_model::ChannelOptions;
use dray_ops::{BlockSize, DestinationDifFlags, DifFlags, SourceDifFlags, Tags, dif_insert};
use dray_spec::{CompletionRecord, Descriptor, DifTags, Flags, GenCap, Status};

/// An operation has two sources or a source and its record, and a destination.
const AREA: u64 = 24 * PAGE;
const SECOND: u64 = 8 * PAGE;
const THIRD: u64 = 16 * PAGE;
const TAGS: DifTags = DifTags {
    reference: 0xffff_fffe,
    app_mask: 0x00ff,
    app: 0x1234,
};

/// What lies at an operation's area before, by address within it.
type Bytes = Vec<(u64, Vec<u8>)>;

/// A device of version 2, on which CRC-64 and DIX are.
fn version_2() -> DeviceConfig {
    let one = device(1, vec![queue(0, WorkQueueMode::Dedicated, 128)]);
    let [low, ..] = one.capabilities.op_cap;
    let gen_cap = GenCap::from_bits(one.capabilities.gen_cap).with_crc64(true);
    DeviceConfig {
        capabilities: Capabilities {
            version: 0x200,
            gen_cap: gen_cap.into_bits(),
            op_cap: [low | 1 << 0x17, 0, 0, 0],
            ..one.capabilities
        },
        ..one
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let value = |n: u64| ((n + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..len as u64).map(value).collect()
}

/// Blocks with right fields, of which one has a wrong byte.
fn protected(size: BlockSize, blocks: usize, flaw: Option<usize>) -> Vec<u8> {
    let data = noise(blocks * size.bytes(), 5);
    let mut bytes = vec![0; blocks * size.protected_bytes()];
    let flags = DifFlags::new().with_block_size(size);
    let tags = Tags {
        reference: TAGS.reference,
        app_mask: TAGS.app_mask,
        app: TAGS.app,
    };
    let how = DestinationDifFlags::new();
    dif_insert(&data, &mut bytes, flags, how, tags).expect("sizes that fit");
    if let Some(at) = flaw {
        bytes[at] ^= 4;
    }
    bytes
}

fn deltas(cases: &mut Vec<(Operation, Bytes)>) {
    for (len, flaws, room) in [
        (8, vec![], 80),
        (64, vec![0, 63], 80),
        (4096, (0..4096).step_by(8).collect::<Vec<usize>>(), 5120),
        (4096, (8..4096).step_by(16).collect(), 1000),
        (4096, vec![4095], 85),
        (20_000, vec![19_999, 4096, 77], 80),
        // Refused: sizes, alignment, a record that is too small.
        (12, vec![], 80),
        (64, vec![1], 79),
        (0, vec![], 80),
    ] {
        let a = noise(len, 1);
        let mut b = a.clone();
        flaws.iter().for_each(|at| b[*at] ^= 0x80);
        let at = cases.len() as u64 * AREA;
        let create = |a, b| Descriptor::create_delta(a, b, len as u32, at + THIRD + 3, room);
        let bytes = vec![(0, a), (SECOND, b)];
        let plain = create(at, at + SECOND);
        cases.push((operation(plain), bytes.clone()));
        let at = cases.len() as u64 * AREA;
        let expects = Descriptor::create_delta(at, at + SECOND, len as u32, at + THIRD, room);
        cases.push((operation(expects.with_expected_result_mask(1)), bytes));
    }
    let entry = |offset: u16| [&offset.to_le_bytes()[..], &[offset as u8; 8]].concat();
    for (offsets, len, bytes) in [
        (vec![0], 8, 10),
        (vec![0, 1, 511], 4096, 30),
        (vec![3, 500], 4096, 29),
        (vec![5, 6, 6], 4096, 30),
        (vec![5, 6, 4], 4096, 30),
        (vec![5, 6, 512], 4096, 30),
        // Refused: less than one entry, sizes, alignment.
        (vec![5], 4096, 9),
        (vec![5], 4095, 10),
        (vec![5], (512 << 10) + 8, 10),
    ] {
        let at = cases.len() as u64 * AREA;
        let record: Vec<u8> = offsets.into_iter().flat_map(entry).collect();
        let operation = Operation::apply_delta(at + 1, at + SECOND, len, bytes);
        cases.push((operation, vec![(1, record)]));
    }
    let at = cases.len() as u64 * AREA;
    cases.push((Operation::apply_delta(at, at + 32, 64, 40), vec![]));
    let at = cases.len() as u64 * AREA;
    cases.push((Operation::create_delta(at, at, 64, at + 56, 80), vec![]));
}

fn integrity(cases: &mut Vec<(Operation, Bytes)>) {
    let (check, make) = (SourceDifFlags::new(), DestinationDifFlags::new());
    for size in BlockSize::ALL {
        let flags = DifFlags::new().with_block_size(size);
        let (data, whole) = (size.bytes(), size.protected_bytes());
        for (blocks, flaw, cut) in [
            (1, None, 0),
            (5, None, 0),
            (3, Some(whole + 7), 0),
            (3, Some(3 * whole - 1), 0),
            (2, Some(data), 0),
            // Refused: no whole block.
            (2, None, 4),
        ] {
            let bytes = protected(size, blocks, flaw);
            let (with, without) = (bytes.len() as u32 - cut, (blocks * data) as u32 - cut);
            for kind in 0..5 {
                let at = cases.len() as u64 * AREA;
                let to = at + THIRD;
                let operation = match kind {
                    0 => Operation::dif_check(at, with, flags, (check, TAGS)),
                    1 => Operation::dif_insert(at, to, without, flags, (make, TAGS)),
                    2 => Operation::dif_strip(at, to, with, flags, (check, TAGS)),
                    3 => {
                        let new = DifTags { app: 9, ..TAGS };
                        Operation::dif_update(at, to, with, flags, (check, TAGS), (make, new))
                    }
                    _ => Operation::dix_generate(at, to, without, flags, (make, TAGS)),
                };
                cases.push((operation, vec![(0, bytes.clone())]));
            }
        }
    }
    let flags = DifFlags::new();
    let at = cases.len() as u64 * AREA;
    let unaligned = Operation::dix_generate(at, at + THIRD + 4, 512, flags, (make, TAGS));
    cases.push((unaligned, vec![]));
    let at = cases.len() as u64 * AREA;
    let overlap = Operation::dif_insert(at, at + 511, 512, flags, (make, TAGS));
    cases.push((overlap, vec![]));
    let at = cases.len() as u64 * AREA;
    let reserved = Descriptor::dif_check(at, 520, 0x10, 0, TAGS);
    cases.push((operation(reserved), vec![]));
}

fn others(cases: &mut Vec<(Operation, Bytes)>) {
    for len in [0, 1, 63, 4096, 20_001] {
        let source = vec![(0, noise(len as usize, 9))];
        let at = cases.len() as u64 * AREA;
        cases.push((Operation::crc64(at, len, 0), source.clone()));
        let at = cases.len() as u64 * AREA;
        let seed = u64::MAX << 7;
        cases.push((
            Operation::copy_crc64(at, at + THIRD, len, seed),
            source.clone(),
        ));
        let at = cases.len() as u64 * AREA;
        cases.push((Operation::cache_flush(at + 1, len), source.clone()));
        for aligned in [8, 4] {
            let at = cases.len() as u64 * AREA;
            let seeded = Descriptor::crc64(at, len, 0).with_crc_seed_address(at + THIRD + aligned);
            let seed = (THIRD + 8, 77u64.to_le_bytes().to_vec());
            cases.push((operation(seeded), [source.clone(), vec![seed]].concat()));
        }
    }
}

/// Operations as for memory at address 0, and what lies there before.
fn cases() -> Vec<(Operation, Bytes)> {
    let mut cases = Vec::new();
    deltas(&mut cases);
    integrity(&mut cases);
    others(&mut cases);
    cases
}

/// The same operation on memory that begins elsewhere.
fn moved(operation: &Operation, base: u64) -> Operation {
    use dray_spec::Opcode::{CacheFlush, CopyCrc, CrcGenerate, CreateDelta, DifCheck};
    let mut d = *operation.descriptor();
    if operation.opcode() != CacheFlush {
        d.address1 += base;
    }
    if !matches!(operation.opcode(), CrcGenerate | DifCheck) {
        d.address2 += base;
    }
    if operation.opcode() == CreateDelta {
        let record = d.delta_record() + base;
        d.operation[..8].copy_from_slice(&record.to_le_bytes());
    }
    if matches!(operation.opcode(), CrcGenerate | CopyCrc)
        && d.flags().contains(Flags::CRC_READ_SEED)
    {
        let seed = d.crc_seed_address() + base;
        d = d.with_crc_seed_address(seed);
    }
    crate::common::operation(d)
}

/// Records of all cases, and all bytes afterwards.
fn carried_out<G: Ground>(
    ground: impl FnOnce(usize) -> G,
    run: impl FnOnce(&mut G, Script) -> Script,
) -> (Vec<CompletionRecord>, Vec<u8>) {
    let cases = cases();
    let mut bytes = noise(cases.len() * AREA as usize, 3);
    for (n, (_, parts)) in cases.iter().enumerate() {
        for (at, part) in parts {
            let start = n * AREA as usize + *at as usize;
            bytes[start..start + part.len()].copy_from_slice(part);
        }
    }
    let mut ground = ground(bytes.len());
    ground.put(&bytes);
    let base = ground.base();
    let operations = cases.iter().map(|(operation, _)| moved(operation, base));
    let script = run(&mut ground, Script::new(operations.collect()));
    let records = script.records.iter().map(|r| r.expect("all have ended"));
    (records.collect(), ground.get())
}

fn modelled(queue: Option<(u16, u16)>, batch: u32) -> (Vec<CompletionRecord>, Vec<u8>) {
    carried_out(
        |len| Modelled::new(world(current(), vec![version_2()], Payload::Moved), len),
        |ground, script| {
            let options = ChannelOptions {
                queue,
                batch,
                depth: 4,
                ..ChannelOptions::default()
            };
            ground.world.open(options).expect("a queue");
            let mut applications = [script];
            ground.world.run(&mut applications).expect("all end");
            let [script] = applications;
            script
        },
    )
}

fn same(found: (Vec<CompletionRecord>, Vec<u8>), who: &str) {
    let (records, bytes) = carried_out(Own::new, |_, mut script| {
        let device = VirtualDevice::start(version_2(), Options::default());
        let device = device.expect("a device that can be enabled");
        drive(&mut script, &mut device.open(0, 16).expect("a queue"));
        script
    });
    for (n, (operation, _)) in cases().iter().enumerate() {
        assert_eq!(
            found.0[n],
            records[n],
            "{n} {:?} {who}",
            operation.descriptor()
        );
    }
    for (n, area) in found.1.chunks(AREA as usize).enumerate() {
        let there = &bytes[n * AREA as usize..][..AREA as usize];
        let at = area.iter().zip(there).position(|(a, b)| a != b);
        assert_eq!(at, None, "{n} {:?} {who}", cases()[n].0.descriptor());
    }
    // Most operations were executed and not refused.
    let ended = |status: Status| records.iter().filter(|r| r.status() == status).count();
    assert!(ended(Status::SUCCESS) > 80, "{}", ended(Status::SUCCESS));
    for status in [
        Status::DIF_ERROR,
        Status::DELTA_OFFSET_ORDER,
        Status::DELTA_OFFSET_RANGE,
        Status::DELTA_RECORD_SIZE,
        Status::SUCCESS_PREDICATE,
        Status::TRANSFER_SIZE,
        Status::ADDRESS_ALIGNMENT,
        Status::OVERLAP,
        Status::NONZERO_RESERVED,
    ] {
        assert!(ended(status) > 0, "nothing ended with {status:?}");
    }
}

#[test]
fn the_cpu_mover_gives_the_results_of_the_device() {
    let found = carried_out(Own::new, |_, mut script| {
        drive(&mut script, &mut CpuMover::new(16));
        script
    });
    same(found, "this core");
}

#[test]
fn the_model_gives_the_results_of_the_virtual_device() {
    for batch in [1, 3] {
        same(modelled(Some((0, 0)), batch), "the model");
    }
}

#[test]
fn the_modelled_core_gives_the_results_of_the_device() {
    same(modelled(None, 1), "the modelled core");
}
