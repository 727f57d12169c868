//! Status 0x12, 0x18, 0x1b, 0x1c: reserved fields and addresses that are not aligned.

use dray_spec::{Descriptor, Flags, Opcode, Status};
use zerocopy::IntoBytes;

use dray_device::DeviceConfig;

use super::case::{Case, Reported, reported};
use super::layout::{DELTA, DST, DST2, LIST, RECORD, SRC};
use super::rule::{Rule, may_be_member, unchecked, valid, valid_one, with_gen_cap, without_flags};

/// Reserved bytes, first and last (spec Table 5-3, with 8.3 where a flag frees some).
const RESERVED: &[(Opcode, &[(usize, usize)])] = &[
    (Opcode::Noop, &[(16, 35), (38, 63)]),
    (Opcode::Batch, &[(24, 31), (38, 63)]),
    (Opcode::Drain, &[(16, 31), (32, 35), (38, 63)]),
    (Opcode::Memmove, &[(38, 63)]),
    (Opcode::Fill, &[(38, 63)]),
    (Opcode::Compare, &[(38, 39), (41, 63)]),
    (Opcode::ComparePattern, &[(38, 39), (41, 63)]),
    (Opcode::Dualcast, &[(38, 39), (48, 63)]),
    (Opcode::CrcGenerate, &[(24, 31), (38, 39), (44, 63)]),
    (Opcode::CopyCrc, &[(38, 39), (44, 63)]),
    (Opcode::CreateDelta, &[(38, 39), (52, 55), (57, 63)]),
    (Opcode::ApplyDelta, &[(38, 39), (44, 63)]),
    (Opcode::TranslationFetch, &[(24, 31), (38, 63)]),
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
    // Bytes 62 and 63 are reserved without the flag of the second handle.
    (Opcode::InterDomainCopy, &[(38, 59), (62, 63)]),
    (Opcode::InterDomainFill, &[(38, 61)]),
    (Opcode::InterDomainCompare, &[(38, 39), (41, 61)]),
    (
        Opcode::InterDomainComparePattern,
        &[(38, 39), (41, 59), (62, 63)],
    ),
];

pub(super) fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = RESERVED.iter().map(reserved).collect();
    rules.extend(bits());
    rules.extend(freed());
    rules.extend(aligned());
    rules
}

fn with_byte(descriptor: Descriptor, byte: usize) -> Descriptor {
    let mut changed = descriptor;
    changed.as_mut_bytes()[byte] |= 1 << (byte % 8);
    changed
}

fn reserved(&(opcode, ranges): &(Opcode, &[(usize, usize)])) -> Rule {
    let legal = valid_one(opcode);
    let bad = reported(Status::NONZERO_RESERVED);
    let mut rule = Rule::new("Table 5-3", format!("reserved bytes of {opcode}")).allows(legal);
    for byte in ranges.iter().flat_map(|&(first, last)| first..=last) {
        rule = rule.broken_by(Case::new(with_byte(legal, byte), bad));
    }
    // What is not reserved may hold anything, here what makes no difference. The interrupt
    // handle, bytes 36 and 37, has a rule of its own.
    use Opcode::{Compare, ComparePattern, InterDomainCompare, InterDomainComparePattern};
    if matches!(
        opcode,
        Compare | ComparePattern | InterDomainCompare | InterDomainComparePattern
    ) {
        rule = rule.allows(with_byte(legal, 40));
    }
    // PASID, privilege and what lies between them do not count on a dedicated queue (spec 8.1.1).
    (0..4).fold(rule, |rule, byte| rule.allows(with_byte(legal, byte)))
}

/// Bits that are reserved in bytes that are not.
fn bits() -> Vec<Rule> {
    let bad = reported(Status::NONZERO_RESERVED);
    let mut dif = Rule::new("8.3.17.1", "reserved bits of DIF flags");
    let mut destination = Rule::new("8.3.17.3", "reserved bits of destination DIF flags");
    let with_bit = |mut d: Descriptor, byte: usize, bit: u8| {
        d.operation[byte] |= 1 << bit;
        d
    };
    let makers = [Opcode::DifInsert, Opcode::DifUpdate, Opcode::DixGenerate];
    let checkers = [Opcode::DifCheck, Opcode::DifStrip];
    for opcode in makers.into_iter().chain(checkers) {
        let legal = valid_one(opcode);
        for bit in 4..8 {
            dif = dif.broken_by(Case::new(with_bit(legal, 2, bit), bad));
        }
        dif = dif.allows(with_bit(with_bit(legal, 2, 2), 2, 3));
    }
    for legal in makers.map(valid_one) {
        for bit in 0..3 {
            destination = destination.broken_by(Case::new(with_bit(legal, 1, bit), bad));
        }
        for bit in 3..8 {
            destination = destination.allows(with_bit(legal, 1, bit));
        }
    }
    let update = valid_one(Opcode::UpdateWindow);
    let mut window = Rule::new("8.3.27", "reserved bits of window flags").allows(update);
    for bit in 4..8 {
        window = window.broken_by(Case::new(with_bit(update, 21, bit), bad));
    }
    vec![dif, destination, window]
}

/// Fields that a flag makes valid.
fn freed() -> Vec<Rule> {
    let bad = reported(Status::NONZERO_RESERVED);
    let success = |d: Descriptor| Case::new(d, Reported::Status(Status::SUCCESS));
    let mut address = Rule::new("8.1.4", "no completion address without its flag");
    let mut handle = Rule::new("8.1.8", "no interrupt handle without its flag");
    for legal in valid() {
        let handled = legal.with_interrupt(5);
        let mut unasked = legal;
        unasked.interrupt_handle = 5;
        handle = handle.broken_by(Case::new(unasked, bad)).allows(handled);
    }
    let mut addressed = Descriptor::memmove(SRC, DST, 64);
    addressed.completion_addr = RECORD;
    let error = Reported::Error(Status::NONZERO_RESERVED, 0);
    address = address.broken_by(Case::new(addressed, error));
    address = address.allows(
        addressed.with_flags(Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD),
    );

    let mut rules = vec![address, handle];
    let legal = valid_one(Opcode::Drain);
    for (byte, flag, drain) in [
        (16, Flags::DRAIN_READBACK1_VALID, legal.with_readback1(SRC)),
        (24, Flags::DRAIN_READBACK2_VALID, legal.with_readback2(SRC)),
    ] {
        let drain = without_flags(drain, flag);
        let rule = Rule::new("8.3.3", format!("readback at byte {byte} needs its flag"));
        let rule = rule.broken_by(Case::new(drain, bad));
        rules.push(rule.kept_by(success(drain.with_flags(flag)).on(|c| with_gen_cap(c, 9))));
    }
    let wide = with_byte(valid_one(Opcode::Fill), 44);
    let kept = success(wide.with_flags(Flags::FILL_PATTERN_16));
    rules.push(
        Rule::new("8.3.5", "the upper pattern needs its flag")
            .broken_by(Case::new(wide, bad).on(|c| with_gen_cap(c, 10)))
            .kept_by(kept.on(|c| with_gen_cap(c, 10))),
    );
    let fetch = valid_one(Opcode::TranslationFetch);
    let strided = fetch.with_region_stride(4096);
    rules.push(
        Rule::new("8.3.11", "a stride needs its flag")
            .broken_by(Case::new(
                without_flags(strided, Flags::TRANSLATION_FETCH_USE_STRIDE),
                bad,
            ))
            .allows(strided),
    );
    let misaligned = reported(Status::ADDRESS_ALIGNMENT);
    let mut stride = Rule::new("5.4", "a stride is a power of 2 from 4096 on");
    for bad in [0, 1, 2048, 4095, 4097, 6144, u32::MAX] {
        stride = stride.broken_by(Case::new(fetch.with_region_stride(bad), misaligned));
    }
    for good in [4096, 8192, 1 << 31] {
        stride = stride.allows(fetch.with_region_stride(good));
    }
    rules.push(stride);
    for opcode in [Opcode::CrcGenerate, Opcode::CopyCrc] {
        let legal = valid_one(opcode);
        let mut at = legal;
        at.operation[8..16].copy_from_slice(&LIST.to_le_bytes());
        let read = at.with_flags(Flags::CRC_READ_SEED);
        rules.push(
            Rule::new("8.3.12", format!("{opcode}: a seed or its address"))
                .broken_by(Case::new(at, bad))
                .broken_by(Case::new(with_byte(read, 40), bad))
                .allows(with_byte(legal, 40))
                .allows(read),
        );
        let mut odd = read;
        odd.operation[8] = 2;
        rules.push(
            Rule::new(
                "8.3.12",
                format!("{opcode}: the address of a seed is aligned"),
            )
            .broken_by(Case::new(odd, reported(Status::ADDRESS_ALIGNMENT)))
            .allows(read),
        );
        let wide = |at: u64| {
            legal
                .with_flags(Flags::CRC_64)
                .with_crc_seed_address(LIST + at)
        };
        let able: fn(&mut DeviceConfig) = |c| with_gen_cap(c, 11);
        let mut narrow = legal;
        narrow.operation[4] = 1;
        rules.push(
            Rule::new(
                "8.3.12",
                format!("{opcode}: 64 bits have a seed of 8 bytes"),
            )
            .broken_by(Case::new(narrow, bad))
            .broken_by(Case::new(wide(4), reported(Status::ADDRESS_ALIGNMENT)).on(able))
            .kept_by(success(narrow.with_flags(Flags::CRC_64)).on(able))
            .kept_by(success(wide(8)).on(able)),
        );
    }
    rules
}

fn aligned() -> Vec<Rule> {
    let mut record = Rule::new("8.1.4", "records are aligned");
    for legal in valid() {
        for off in [1, 16] {
            let odd = legal.with_completion(RECORD + off);
            let error = Reported::Error(Status::COMPLETION_ADDRESS_ALIGNMENT, RECORD + off);
            record = record.broken_by(Case::new(odd, error));
            // Nothing else counts then, least of all an interrupt.
            record = record.broken_by(Case::new(odd.with_interrupt(1), error));
        }
        record = record.allows(legal);
    }
    for legal in valid().into_iter().filter(may_be_member) {
        let odd = legal.with_completion(RECORD + 8);
        let error = Reported::Error(Status::COMPLETION_ADDRESS_ALIGNMENT, RECORD + 8);
        record = record.broken_by(Case::new(odd, error).in_batch());
    }

    let batch = |list| Descriptor::batch(list, 2).with_completion(RECORD);
    let mut list = Rule::new("8.3.2", "descriptor lists are aligned").allows(batch(LIST + 64));
    for off in [1, 8, 32, 63] {
        let bad = reported(Status::DESCRIPTOR_LIST_ALIGNMENT);
        list = list.broken_by(Case::new(batch(LIST + off), bad));
    }
    let mut rules = vec![record, list];
    rules.extend(eights());
    rules
}

/// What is aligned to 8 bytes (spec Table 5-6, 0x1c).
fn eights() -> Vec<Rule> {
    let bad = reported(Status::ADDRESS_ALIGNMENT);
    let create = |a, b, size| Descriptor::create_delta(a, b, size, DST2 + 1, 80);
    let apply = |dst, size| Descriptor::apply_delta(DELTA, dst, size, 10);
    let dix = |dst| Descriptor::dix_generate(SRC, dst, 512, 0, 0, unchecked());
    let case = |d: Descriptor| Case::new(d.with_completion(RECORD), bad);
    let mut delta = Rule::new("8.3.8", "sources and size of a delta are aligned")
        .allows(create(SRC, DST, 64).with_completion(RECORD));
    let mut applied = Rule::new("8.3.9", "destination and size of a delta are aligned")
        .allows(apply(DST, 64).with_completion(RECORD));
    let mut fields =
        Rule::new("8.3.18", "fields apart are aligned").allows(dix(DST).with_completion(RECORD));
    for off in [1, 2, 4, 7] {
        delta = delta
            .broken_by(case(create(SRC + off, DST, 64)))
            .broken_by(case(create(SRC, DST + off, 64)))
            .broken_by(case(create(SRC, DST, 64 + off as u32)));
        applied = applied
            .broken_by(case(apply(DST + off, 64)))
            .broken_by(case(apply(DST, 64 + off as u32)));
        fields = fields.broken_by(case(dix(DST + off)));
    }
    vec![delta, applied, fields]
}
