//! Status 0x11: flags that are reserved, unsupported or missing.

use dray_device::DeviceConfig;
use dray_spec::{Descriptor, Flags, Opcode, Status};

use crate::rule::{
    Case, DST, LIST, RECORD, Rule, SRC, Told, told_flags, valid, valid_one, with_gen_cap,
    without_gen_cap,
};

pub(crate) fn rules() -> Vec<Rule> {
    [
        table(),
        places(),
        capabilities(),
        dependencies(),
        required(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every capability and every leave that a flag can need.
fn able(config: &mut DeviceConfig) {
    for bit in [0, 1, 2, 8, 9, 10, 11, 15] {
        with_gen_cap(config, bit);
    }
    config.work_queues[0].block_on_fault = true;
}

/// Allowed flags by operation, of those that not all operations allow: block on fault, check
/// result, cache control, strict ordering, address 1 to 3 traffic class (spec Table 5-3), and the
/// bits 23:16 that section 8.3 defines.
const ALLOWED: &[(Opcode, &str, u32)] = &[
    (Opcode::Noop, ".......", 0x00),
    (Opcode::Batch, "....1..", 0x01),
    (Opcode::Drain, "....12.", 0x0f),
    (Opcode::Memmove, "b.cs12.", 0x00),
    (Opcode::Fill, "b.cs.2.", 0x04),
    (Opcode::Compare, "br..12.", 0x00),
    (Opcode::ComparePattern, "br..1..", 0x00),
    (Opcode::Dualcast, "b.cs123", 0x00),
    (Opcode::CrcGenerate, "b...1.3", 0x0f),
    (Opcode::CopyCrc, "b.cs123", 0x0f),
];

const COLUMNS: [Flags; 7] = [
    Flags::BLOCK_ON_FAULT,
    Flags::CHECK_RESULT,
    Flags::CACHE_CONTROL,
    Flags::STRICT_ORDERING,
    Flags::ADDRESS1_TC_SELECTOR,
    Flags::ADDRESS2_TC_SELECTOR,
    Flags::ADDRESS3_TC_SELECTOR,
];

/// Each operation, with each flag that it does not allow, on a device that can do everything.
fn table() -> Vec<Rule> {
    let rule = |&(opcode, columns, specific): &(Opcode, &str, u32)| {
        let legal = valid_one(opcode);
        let mut rule = Rule::new("Table 5-3", format!("flags of {opcode}")).allows(legal);
        let allowed = COLUMNS.iter().zip(columns.bytes()).filter(|c| c.1 != b'.');
        let mut allowed = allowed.fold(specific << 16, |all, c| all | c.0.bits());
        if columns.contains('c') {
            allowed |= Flags::DESTINATION_READBACK.bits();
        }
        // Fence, record, interrupt and their like have rules of their own.
        for bit in 5..24 {
            let flag = Flags::from_bits(1 << bit);
            if allowed & 1 << bit == 0 && flag != Flags::COMPLETION_TC_SELECTOR {
                let case = Case::new(legal.with_flags(flag), told_flags(flag));
                rule = rule.broken_by(case.on(able));
            }
        }
        if allowed & Flags::BLOCK_ON_FAULT.bits() == 0 {
            let flag = Flags::BLOCK_ON_FAULT;
            let case = Case::new(legal.with_flags(flag), told_flags(flag));
            rule = rule.broken_by(case.on(able));
        }
        for flag in COLUMNS.iter().filter(|f| allowed & f.bits() != 0) {
            let with = legal.with_flags(*flag);
            let with = match (opcode, *flag) {
                (Opcode::CrcGenerate | Opcode::CopyCrc, Flags::ADDRESS3_TC_SELECTOR) => {
                    seed_in_memory(with)
                }
                (Opcode::Drain, Flags::ADDRESS1_TC_SELECTOR) => with.with_readback1(SRC),
                (Opcode::Drain, _) => with.with_readback2(SRC),
                // The buffers differ, and that is what is expected.
                (_, Flags::CHECK_RESULT) => with.with_expected_result(1),
                _ => with,
            };
            let case = Case::new(with, Told::Status(Status::SUCCESS));
            rule = rule.kept_by(case.on(able));
        }
        rule
    };
    ALLOWED.iter().map(rule).collect()
}

/// The seed of a CRC comes from the list page.
fn seed_in_memory(mut descriptor: Descriptor) -> Descriptor {
    descriptor.operation[8..16].copy_from_slice(&LIST.to_le_bytes());
    descriptor.with_flags(Flags::CRC_READ_SEED)
}

fn success(descriptor: Descriptor) -> Case {
    Case::new(descriptor, Told::Status(Status::SUCCESS))
}

fn places() -> Vec<Rule> {
    let mut fence = Rule::new("8.1.3", "a fence only in a batch");
    for descriptor in valid() {
        let fenced = descriptor.with_flags(Flags::FENCE);
        fence = fence.broken_by(Case::new(fenced, told_flags(Flags::FENCE)));
        if !matches!(descriptor.opcode(), Ok(Opcode::Batch | Opcode::Drain)) {
            fence = fence.kept_by(success(fenced).in_batch());
        }
    }
    vec![fence]
}

/// Flags that a device or a queue has to be able to do.
fn capabilities() -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut needs = |name, descriptor: Descriptor, flag, off, on: fn(&mut DeviceConfig)| {
        let broken = Case::new(descriptor, told_flags(flag)).on(off);
        let rule = Rule::new("Table 5-4", name).broken_by(broken);
        rules.push(rule.kept_by(success(descriptor).on(on)));
    };
    let memmove = valid_one(Opcode::Memmove);
    let flag = Flags::BLOCK_ON_FAULT;
    let blocking = memmove.with_flags(flag);
    needs("the queue allows to block", blocking, flag, |_| {}, able);
    let incapable: fn(&mut DeviceConfig) = |c| {
        able(c);
        without_gen_cap(c, 0);
    };
    needs("the device can block", blocking, flag, incapable, able);
    let flag = Flags::CACHE_CONTROL;
    let cached = memmove.with_flags(flag);
    needs(
        "the device has cache control",
        cached,
        flag,
        |c| without_gen_cap(c, 2),
        |_| {},
    );
    let flag = Flags::DESTINATION_READBACK;
    let read_back = memmove.with_flags(flag);
    needs(
        "the device reads back",
        read_back,
        flag,
        |c| without_gen_cap(c, 8),
        |_| {},
    );
    let both = memmove.with_flags(Flags::CACHE_CONTROL | flag);
    needs(
        "both, if one is lacking",
        both,
        flag,
        |c| without_gen_cap(c, 8),
        |_| {},
    );
    let drain = valid_one(Opcode::Drain);
    for (flag, descriptor) in [
        (Flags::DRAIN_READBACK1_VALID, drain.with_readback1(SRC)),
        (Flags::DRAIN_READBACK2_VALID, drain.with_readback2(SRC)),
    ] {
        let name = format!("the device reads {flag:?} back for a drain");
        let broken = Case::new(descriptor, told_flags(flag));
        let rule = Rule::new("8.3.3", name).broken_by(broken);
        rules.push(rule.kept_by(success(descriptor).on(|c| with_gen_cap(c, 9))));
    }

    let wide = Descriptor::fill_16(1 << 100 | 7, DST, 64).with_completion(RECORD);
    let broken = Case::new(wide, told_flags(Flags::FILL_PATTERN_16));
    let rule = Rule::new("8.3.5", "the device fills with 16 bytes").broken_by(broken);
    rules.push(rule.kept_by(success(wide).on(|c| with_gen_cap(c, 10))));

    let batch = valid_one(Opcode::Batch);
    let failed = batch.with_flags(Flags::BATCH_ERROR);
    let broken = Case::new(failed, told_flags(Flags::BATCH_ERROR));
    let rule = Rule::new("8.3.2", "the device continues batches").broken_by(broken);
    let kept = Case::new(failed, Told::Status(Status::BATCH_FAIL));
    rules.push(rule.kept_by(kept.on(|c| with_gen_cap(c, 15))));

    let crc = valid_one(Opcode::CrcGenerate);
    let wide = Case::new(crc.with_flags(Flags::CRC_64), told_flags(Flags::CRC_64));
    let rule = Rule::new("8.3.12", "the device has CRCs of 64 bits").broken_by(wide);
    rules.push(rule.kept_by(success(crc.with_flags(Flags::CRC_64)).on(able)));
    rules
}

/// Flags that need another flag.
fn dependencies() -> Vec<Rule> {
    let noop = Descriptor::noop();
    let lonely = |flag| Case::new(noop.with_flags(flag), Told::Error(Status::INVALID_FLAGS, 0));
    let drain = valid_one(Opcode::Drain);
    let crc = valid_one(Opcode::CrcGenerate).with_flags(Flags::ADDRESS3_TC_SELECTOR);
    let mut rules = vec![
        Rule::new("8.1.3", "a record needs an address")
            .broken_by(lonely(Flags::REQUEST_COMPLETION_RECORD))
            .allows(noop.with_completion(RECORD)),
        Rule::new("8.1.3", "the traffic class of a record needs an address")
            .broken_by(lonely(Flags::COMPLETION_TC_SELECTOR))
            .allows(
                noop.with_completion(RECORD)
                    .with_flags(Flags::COMPLETION_TC_SELECTOR),
            ),
        Rule::new(
            "8.1.3",
            "the traffic class of a seed needs a seed in memory",
        )
        .broken_by(Case::new(crc, told_flags(Flags::ADDRESS3_TC_SELECTOR)))
        .allows(seed_in_memory(crc)),
    ];
    for (selector, kept) in [
        (Flags::ADDRESS1_TC_SELECTOR, drain.with_readback1(SRC)),
        (Flags::ADDRESS2_TC_SELECTOR, drain.with_readback2(SRC)),
    ] {
        let name = format!("{selector:?} of a drain needs its readback");
        let broken = Case::new(drain.with_flags(selector), told_flags(selector));
        let kept = success(kept.with_flags(selector));
        let rule = Rule::new("8.3.3", name).broken_by(broken);
        rules.push(rule.kept_by(kept.on(able)));
    }
    rules
}

fn required() -> Vec<Rule> {
    let record = Flags::REQUEST_COMPLETION_RECORD;
    let mut rules = Vec::new();
    for legal in [
        Opcode::Compare,
        Opcode::ComparePattern,
        Opcode::CrcGenerate,
        Opcode::CopyCrc,
    ]
    .map(valid_one)
    {
        let name = format!("{:?} needs a record", legal.opcode());
        let mut unasked = legal;
        unasked.flags_opcode &= !record.bits();
        let mut without = unasked;
        without.flags_opcode &= !Flags::COMPLETION_ADDRESS_VALID.bits();
        without.completion_addr = 0;
        let error = Told::Error(Status::INVALID_FLAGS, 0);
        let rule = Rule::new("Table 5-5", name)
            .broken_by(Case::new(unasked, told_flags(record)))
            .broken_by(Case::new(without, error));
        rules.push(rule.allows(legal));
    }
    let interrupt = Flags::REQUEST_COMPLETION_INTERRUPT;
    let mut silent = Descriptor::drain().with_flags(Flags::COMPLETION_ADDRESS_VALID);
    silent.completion_addr = RECORD;
    rules.push(
        Rule::new("Table 5-5", "a drain needs a record or an interrupt")
            .broken_by(Case::new(silent, told_flags(record | interrupt)))
            .kept_by(Case::new(silent.with_interrupt(3), Told::Nothing))
            .allows(silent.with_flags(record)),
    );
    let move_alone = Descriptor::memmove(SRC, DST, 64);
    let zero = Descriptor::memmove(SRC, DST, 0);
    let error = Told::Error(Status::TRANSFER_SIZE, 0);
    rules.push(
        Rule::new("8.1.3", "who asks for nothing is told nothing but errors")
            .broken_by(Case::new(zero, error))
            .kept_by(Case::new(move_alone, Told::Nothing)),
    );
    rules
}
