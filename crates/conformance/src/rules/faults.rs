//! Status 0x03, 0x04, 0x06: page faults, and what is done before them.

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::case::{Case, Reported};
use super::layout::{DST, DST2, HOLE, LIST, READ_ONLY, RECORD, SRC};
use super::profile::profile_of;
use super::rule::{Rule, valid, with_gen_cap};
use dray_device::DeviceConfig;

/// A descriptor that faults after some bytes, the record, and one that just does not.
struct Fault {
    name: &'static str,
    section: &'static str,
    descriptor: Descriptor,
    bytes: u32,
    address: u64,
    write: bool,
    /// Operand identifier (spec Table 8-13).
    operand: u8,
    neighbour: Descriptor,
}

fn faults() -> Vec<Fault> {
    let fault = |name, section, descriptor, bytes, address, write, operand, neighbour| Fault {
        name,
        section,
        descriptor,
        bytes,
        address,
        write,
        operand,
        neighbour,
    };
    let copy = Descriptor::memmove;
    // 5000 bytes up to the end of the second destination, and one more.
    let near = HOLE - 5000;
    let page_before = READ_ONLY + 4096;
    let mut seeded = Descriptor::crc(SRC, 64, 0).with_flags(Flags::CRC_READ_SEED);
    seeded.operation[8..16].copy_from_slice(&HOLE.to_le_bytes());
    let mut legal_seed = seeded;
    legal_seed.operation[8..16].copy_from_slice(&LIST.to_le_bytes());
    vec![
        fault(
            "memmove reads up to a hole",
            "8.3.4",
            copy(near, DST, 5001),
            5000,
            HOLE,
            false,
            1,
            copy(near, DST, 5000),
        ),
        fault(
            "memmove writes up to a hole",
            "8.3.4",
            copy(SRC, near, 5001),
            5000,
            HOLE,
            true,
            3,
            copy(SRC, near, 5000),
        ),
        fault(
            "memmove reads where it may not write",
            "3.13",
            copy(SRC, READ_ONLY, 64),
            0,
            READ_ONLY,
            true,
            3,
            copy(READ_ONLY, DST, 64),
        ),
        fault(
            "memmove, the source ends before the destination",
            "8.3.4",
            copy(HOLE - 40, HOLE - 100, 200),
            40,
            HOLE,
            false,
            1,
            copy(HOLE - 40, HOLE - 100, 40),
        ),
        fault(
            "memmove, the destination ends before the source",
            "8.3.4",
            copy(READ_ONLY, HOLE - 100, 5000),
            100,
            HOLE,
            true,
            3,
            copy(READ_ONLY, HOLE - 100, 100),
        ),
        fault(
            "memmove to right behind the source goes from its start",
            "8.3.4",
            copy(HOLE - 100, HOLE, 100),
            0,
            HOLE,
            true,
            3,
            copy(HOLE - 100, HOLE - 200, 100),
        ),
        fault(
            "fill",
            "8.3.5",
            Descriptor::fill(1, near, 5001),
            5000,
            HOLE,
            true,
            3,
            Descriptor::fill(1, near, 5000),
        ),
        fault(
            "compare, first source",
            "8.3.6",
            Descriptor::compare(near, near, 5001),
            5000,
            HOLE,
            false,
            1,
            Descriptor::compare(near, near, 5000),
        ),
        fault(
            "compare, second source",
            "8.3.6",
            Descriptor::compare(SRC, HOLE, 8),
            0,
            HOLE,
            false,
            2,
            Descriptor::compare(SRC, SRC, 8),
        ),
        fault(
            "compare pattern",
            "8.3.7",
            Descriptor::compare_pattern(page_before, 0, 8),
            0,
            page_before,
            false,
            1,
            Descriptor::compare_pattern(SRC, 0, 8),
        ),
        fault(
            "dualcast, source",
            "8.3.10",
            Descriptor::dualcast(HOLE - 1, DST, DST + 4096, 2),
            1,
            HOLE,
            false,
            1,
            Descriptor::dualcast(HOLE - 1, DST, DST + 4096, 1),
        ),
        fault(
            "dualcast, first destination",
            "8.3.10",
            Descriptor::dualcast(SRC, HOLE - 1, DST - 1, 2),
            1,
            HOLE,
            true,
            3,
            Descriptor::dualcast(SRC, HOLE - 1, DST - 1, 1),
        ),
        fault(
            "dualcast, second destination",
            "8.3.10",
            Descriptor::dualcast(SRC, DST2 - 1, HOLE - 1, 2),
            1,
            HOLE,
            true,
            4,
            Descriptor::dualcast(SRC, DST2 - 1, HOLE - 1, 1),
        ),
        fault(
            "CRC, source",
            "8.3.12",
            Descriptor::crc(HOLE, 8, 0),
            0,
            HOLE,
            false,
            1,
            Descriptor::crc(HOLE - 8, 8, 0),
        ),
        fault(
            "cache flush",
            "8.3.26",
            Descriptor::cache_flush(near, 5001),
            5000,
            HOLE,
            false,
            3,
            Descriptor::cache_flush(READ_ONLY, 4096),
        ),
        fault(
            "translation fetch",
            "8.3.11",
            Descriptor::translation_fetch(HOLE - 1, 4096 + 1),
            0,
            HOLE + 4095,
            false,
            1,
            Descriptor::translation_fetch(HOLE - 4096, 4096),
        ),
        fault(
            "translation fetch with a stride",
            "8.3.11",
            Descriptor::translation_fetch(SRC, 13 * 4096).with_region_stride(8192),
            0,
            HOLE,
            false,
            1,
            // The next stride is behind the hole.
            Descriptor::translation_fetch(SRC + 4096, 14 * 4096).with_region_stride(8192),
        ),
        fault(
            "CRC of 64 bits, seed",
            "8.3.12",
            Descriptor::crc64(SRC, 64, 0).with_crc_seed_address(HOLE),
            0,
            HOLE,
            false,
            2,
            Descriptor::crc64(SRC, 64, 0).with_crc_seed_address(SRC),
        ),
        fault("CRC, seed", "8.3.12", seeded, 0, HOLE, false, 2, legal_seed),
        fault(
            "copy with CRC, destination",
            "8.3.13",
            Descriptor::copy_crc(SRC, READ_ONLY, 8, 0),
            0,
            READ_ONLY,
            true,
            3,
            Descriptor::copy_crc(READ_ONLY, DST, 8, 0),
        ),
    ]
}

/// Moves that go from their end: what counts as done is the last bytes, up to a page that is not
/// there.
fn backward() -> Vec<Rule> {
    let mut rule = Rule::new("8.3.4", "an overlapping move goes from its end")
        .allows(Descriptor::memmove(HOLE - 6000, HOLE - 4100, 4100).with_completion(RECORD));
    let before_src = SRC - 4096;
    for (src, dst, size, bytes, address, write) in [
        // The last page of the destination is not there.
        (HOLE - 6000, HOLE - 4000, 4100, 0, HOLE, true),
        // The destination can only be read.
        (READ_ONLY, READ_ONLY + 8, 64, 0, READ_ONLY + 8, true),
        // The last page of both is there; the source before it is not.
        (SRC - 16, SRC - 8, 108, 92, SRC - 8, false),
        // The destination before it is not; a step ends where the page of the source does.
        (
            RECORD + 100,
            RECORD + 5100,
            8000,
            812,
            before_src + 904,
            true,
        ),
    ] {
        let mut record = fault_record(Status::PAGE_FAULT, bytes, address, write);
        record.result = 1;
        let descriptor = Descriptor::memmove(src, dst, size).with_completion(RECORD);
        rule = rule.broken_by(Case::new(descriptor, Reported::Record(record)));
    }
    vec![rule]
}

fn fault_record(status: Status, bytes: u32, address: u64, write: bool) -> CompletionRecord {
    let mut record = CompletionRecord::with_status(match write {
        true => status.with_write_fault(),
        false => status,
    });
    record.bytes_completed = bytes;
    record.fault_address = address;
    record
}

pub(super) fn rules() -> Vec<Rule> {
    let version2: fn(&mut DeviceConfig) = |config| {
        with_gen_cap(config, 11);
        with_gen_cap(config, 12);
    };
    let wide: fn(&mut DeviceConfig) = |config| with_gen_cap(config, 11);
    let blocking: fn(&mut DeviceConfig) = |config| {
        with_gen_cap(config, 11);
        config.work_queues[0].block_on_fault = true;
    };
    let mut rules = Vec::new();
    for fault in faults() {
        let descriptor = fault.descriptor.with_completion(RECORD);
        let mut partial = fault_record(Status::PAGE_FAULT, fault.bytes, fault.address, fault.write);
        let refused = Status::PAGE_FAULT_INVALID_RESPONSE;
        let mut refused = fault_record(refused, fault.bytes, fault.address, fault.write);
        let mut named = partial;
        named.fault_info = fault.operand << 1;
        if profile_of(&descriptor).capabilities.version >= 0x200 {
            partial = named;
            refused.fault_info = named.fault_info;
        }
        let case = |record: CompletionRecord, descriptor: Descriptor| {
            Case::new(descriptor, Reported::Record(record))
        };
        let rule = Rule::new(fault.section, fault.name)
            .broken_by(case(partial, descriptor).on(wide))
            .broken_by(case(partial, descriptor).on(wide).in_batch())
            .broken_by(case(named, descriptor).on(version2))
            .broken_by(case(refused, descriptor.with_flags(Flags::BLOCK_ON_FAULT)).on(blocking));
        let neighbour = fault.neighbour.with_completion(RECORD);
        rules.push(rule.kept_by(Case::new(neighbour, Reported::Status(Status::SUCCESS)).on(wide)));
    }
    rules.extend(backward());
    rules.extend(lists());
    rules.extend(readbacks());
    rules.extend(records());
    rules
}

/// Explicit readbacks of a drain (spec 3.12).
fn readbacks() -> Vec<Rule> {
    let able: fn(&mut DeviceConfig) = |config| {
        with_gen_cap(config, 9);
        with_gen_cap(config, 12);
    };
    let drain = Descriptor::drain().with_completion(RECORD);
    let success = |d| Case::new(d, Reported::Status(Status::SUCCESS)).on(able);
    let fault = |d, address, operand: u8| {
        let mut record = fault_record(Status::READBACK_PAGE_FAULT, 0, address, false);
        record.fault_info = operand << 1;
        Case::new(d, Reported::Record(record)).on(able)
    };
    let alone = Descriptor::drain().with_readback1(HOLE).with_interrupt(1);
    let error = Reported::Error(Status::READBACK_PAGE_FAULT, HOLE);
    vec![
        Rule::new("8.3.3", "the readback addresses of a drain are there")
            .broken_by(fault(drain.with_readback1(HOLE), HOLE, 1))
            .broken_by(fault(drain.with_readback2(HOLE), HOLE, 2))
            .broken_by(fault(
                drain.with_readback1(SRC).with_readback2(HOLE),
                HOLE,
                2,
            ))
            .broken_by(Case::new(alone, error).on(able))
            .kept_by(success(drain.with_readback1(SRC).with_readback2(READ_ONLY))),
    ]
}

/// Status 0x1a: nowhere to write the record (spec 3.13.3).
fn records() -> Vec<Rule> {
    let mut rule = Rule::new("3.13.3", "the page of the record can be written");
    for legal in valid() {
        for address in [HOLE, READ_ONLY] {
            let error =
                Reported::Error(Status::COMPLETION_ADDRESS_FAULT.with_write_fault(), address);
            let case = Case::new(legal.with_completion(address), error);
            rule = rule.broken_by(case.anywhere());
        }
        rule = rule.allows(legal);
    }
    vec![rule]
}

fn lists() -> Vec<Rule> {
    let last = LIST + 4096 - 2 * 64;
    let batch = |list, count| Descriptor::batch(list, count).with_completion(RECORD);
    let fault = fault_record(Status::BATCH_PAGE_FAULT, 0, HOLE, false);
    let mut partial = fault_record(Status::BATCH_PAGE_FAULT, 2, LIST + 4096, false);
    let half = Case::new(batch(last, 3), Reported::Record(partial));
    partial.result = 1;
    let bad = [
        Descriptor::fill(0, DST, 0).with_completion(RECORD + 64),
        Descriptor::noop(),
    ];
    let failed = Case::new(batch(last, 3), Reported::Record(partial)).with_list(&bad);
    let mut unreadable = fault_record(Status::BATCH_PAGE_FAULT, 0, HOLE, false);
    unreadable.result = 1;
    let continued = batch(HOLE, 2).with_flags(Flags::BATCH_ERROR);
    let continued = Case::new(continued, Reported::Record(unreadable));
    let mut alone = Descriptor::batch(HOLE, 2);
    alone.flags_opcode &= !0xff;
    vec![
        Rule::new("8.3.2", "the list can be read")
            .broken_by(Case::new(batch(HOLE, 2), Reported::Record(fault)))
            .broken_by(Case::new(
                alone,
                Reported::Error(Status::BATCH_PAGE_FAULT, HOLE),
            ))
            .broken_by(half)
            .allows(batch(last, 2)),
        Rule::new("8.3.2", "beside a fault, the result reports failures")
            .broken_by(failed.on(|c| with_gen_cap(c, 15)))
            .broken_by(continued.on(|c| with_gen_cap(c, 15)))
            .allows(batch(last, 2)),
    ]
}
