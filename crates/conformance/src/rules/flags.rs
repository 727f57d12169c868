//! Status 0x11: flags that are reserved, unsupported or missing.

use dray_spec::{Descriptor, Flags, Opcode, Status};

use super::case::{Case, Reported, reported, reported_flags};
use super::layout::{DST, LIST, OWN_PASID, RECORD, SRC};
use super::profile::{handle, version_2};
use super::rule::{
    Rule, may_be_member, name_of, valid, valid_one, with_gen_cap, without_flags, without_gen_cap,
};
use dray_device::{DeviceConfig, WorkQueueMode};

pub(super) fn rules() -> Vec<Rule> {
    [
        table(),
        places(),
        capabilities(),
        user_interrupts(),
        traffic_classes(),
        domains(),
        dependencies(),
        required(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every capability that a flag can need.
fn able(config: &mut DeviceConfig) {
    config.capabilities.gen_cap |= version_2().capabilities.gen_cap;
}

/// The same with a queue that allows to block.
fn able_to_block(config: &mut DeviceConfig) {
    able(config);
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
    (Opcode::CreateDelta, "brcs123", 0x00),
    (Opcode::ApplyDelta, "b.cs12.", 0x00),
    (Opcode::TranslationFetch, "b......", 0x01),
    (Opcode::DifCheck, "b...1..", 0x00),
    (Opcode::DifInsert, "b.cs12.", 0x00),
    (Opcode::DifStrip, "b.cs12.", 0x00),
    (Opcode::DifUpdate, "b.cs12.", 0x00),
    (Opcode::DixGenerate, "b.cs12.", 0x00),
    (Opcode::CacheFlush, "b..s.2.", 0x00),
    (Opcode::UpdateWindow, ".......", 0x01),
    (Opcode::InterDomainCopy, "b.cs12.", 0x03),
    (Opcode::InterDomainFill, "b.cs.2.", 0x06),
    (Opcode::InterDomainCompare, "br..12.", 0x03),
    (Opcode::InterDomainComparePattern, "br..1..", 0x01),
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
        // Of the combinations of cache control a flush has only the one with readback (8.3.26).
        if columns.contains('c') || opcode == Opcode::CacheFlush {
            allowed |= Flags::DESTINATION_READBACK.bits();
        }
        // Fence, record, interrupt and their like have rules of their own.
        for bit in 5..24 {
            let flag = Flags::from_bits(1 << bit);
            if allowed & 1 << bit == 0 && flag != Flags::COMPLETION_TC_SELECTOR {
                let case = Case::new(legal.with_flags(flag), reported_flags(flag));
                rule = rule.broken_by(case.on(able));
            }
        }
        if allowed & Flags::BLOCK_ON_FAULT.bits() == 0 {
            let flag = Flags::BLOCK_ON_FAULT;
            let case = Case::new(legal.with_flags(flag), reported_flags(flag));
            rule = rule.broken_by(case.on(able_to_block));
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
                (Opcode::CreateDelta, Flags::CHECK_RESULT) => with.with_expected_result_mask(7),
                (_, Flags::CHECK_RESULT) => with.with_expected_result(1),
                _ => with,
            };
            let device = match *flag {
                Flags::BLOCK_ON_FAULT => able_to_block,
                _ => able,
            };
            let case = Case::new(with, Reported::Status(Status::SUCCESS));
            rule = rule.kept_by(case.on(device));
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
    Case::new(descriptor, Reported::Status(Status::SUCCESS))
}

fn places() -> Vec<Rule> {
    let mut fence = Rule::new("8.1.3", "a fence only in a batch");
    for descriptor in valid() {
        let fenced = descriptor.with_flags(Flags::FENCE);
        fence = fence.broken_by(Case::new(fenced, reported_flags(Flags::FENCE)));
        if may_be_member(&descriptor) {
            fence = fence.kept_by(success(fenced).in_batch());
        }
    }
    vec![fence]
}

/// Flags that a device or a queue has to be able to do.
fn capabilities() -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut needs = |name, descriptor: Descriptor, flag, off, on: fn(&mut DeviceConfig)| {
        let broken = Case::new(descriptor, reported_flags(flag)).on(off);
        let rule = Rule::new("Table 5-4", name).broken_by(broken);
        rules.push(rule.kept_by(success(descriptor).on(on)));
    };
    let memmove = valid_one(Opcode::Memmove);
    let flag = Flags::BLOCK_ON_FAULT;
    let blocking = memmove.with_flags(flag);
    let name = "the queue allows to block";
    needs(name, blocking, flag, |_| {}, able_to_block);
    // With that capability gone a queue that allows it cannot be enabled.
    let incapable: fn(&mut DeviceConfig) = |c| {
        able(c);
        without_gen_cap(c, 0);
    };
    let name = "the device can block";
    needs(name, blocking, flag, incapable, able_to_block);
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
    let flag = Flags::STRICT_ORDERING;
    let ordered = memmove.with_flags(flag);
    needs(
        "the device orders writes to memory",
        ordered,
        flag,
        |c| with_gen_cap(c, 53),
        // What it says of peer devices does not matter: there are none.
        |c| with_gen_cap(c, 54),
    );
    rules.extend(durable_writes());
    let drain = valid_one(Opcode::Drain);
    for (flag, descriptor) in [
        (Flags::DRAIN_READBACK1_VALID, drain.with_readback1(SRC)),
        (Flags::DRAIN_READBACK2_VALID, drain.with_readback2(SRC)),
    ] {
        let name = format!("the device reads {flag:?} back for a drain");
        let broken = Case::new(descriptor, reported_flags(flag));
        let rule = Rule::new("8.3.3", name).broken_by(broken);
        rules.push(rule.kept_by(success(descriptor).on(|c| with_gen_cap(c, 9))));
    }

    let wide = Descriptor::fill_16(1 << 100 | 7, DST, 64).with_completion(RECORD);
    let broken = Case::new(wide, reported_flags(Flags::FILL_PATTERN_16));
    let rule = Rule::new("8.3.5", "the device fills with 16 bytes").broken_by(broken);
    rules.push(rule.kept_by(success(wide).on(|c| with_gen_cap(c, 10))));

    let wide = Descriptor::inter_domain_fill_16(1 << 100 | 7, DST, 64)
        .with_destination_handle(handle::WHOLE)
        .with_completion(RECORD);
    let broken = Case::new(wide, reported_flags(Flags::FILL_PATTERN_16));
    let rule = Rule::new("8.3.29", "the device fills other domains with 16 bytes");
    rules.push(
        rule.broken_by(broken.on(|c| without_gen_cap(c, 10)))
            .allows(wide),
    );

    let strided = valid_one(Opcode::TranslationFetch).with_region_stride(4096);
    let flag = Flags::TRANSLATION_FETCH_USE_STRIDE;
    let broken = Case::new(strided, reported_flags(flag)).on(|c| without_gen_cap(c, 7));
    let rule = Rule::new("8.3.11", "the device fetches with a stride");
    rules.push(rule.broken_by(broken).allows(strided));

    let flag = Flags::UPDATE_WINDOW_SUPPRESS_DRAIN;
    let hasty = valid_one(Opcode::UpdateWindow).with_flags(flag);
    let broken = Case::new(hasty, reported_flags(flag)).on(|c| c.capabilities.id_cap &= !(1 << 25));
    let rule = Rule::new("8.3.27", "the device updates windows without a drain");
    rules.push(rule.broken_by(broken).allows(hasty));

    let batch = valid_one(Opcode::Batch);
    let failed = batch.with_flags(Flags::BATCH_ERROR);
    let broken = Case::new(failed, reported_flags(Flags::BATCH_ERROR));
    let rule = Rule::new("8.3.2", "the device continues batches").broken_by(broken);
    let kept = Case::new(failed, Reported::Status(Status::BATCH_FAIL));
    rules.push(rule.kept_by(kept.on(|c| with_gen_cap(c, 15))));

    let crc = valid_one(Opcode::CrcGenerate);
    let wide = Case::new(crc.with_flags(Flags::CRC_64), reported_flags(Flags::CRC_64));
    let rule = Rule::new("8.3.12", "the device has CRCs of 64 bits").broken_by(wide);
    rules.push(rule.kept_by(success(crc.with_flags(Flags::CRC_64)).on(able)));
    rules
}

/// Cache control 3, from version 3 on (spec Table 8-4).
fn durable_writes() -> [Rule; 3] {
    let memmove = valid_one(Opcode::Memmove);
    let flag = Flags::CACHE_CONTROL_3;
    let durable = memmove.with_flags(flag);
    let read_back = memmove.with_flags(flag | Flags::DESTINATION_READBACK);
    let version_3: fn(&mut DeviceConfig) = |c| c.capabilities.version = 0x300;
    let able: fn(&mut DeviceConfig) = |c| {
        c.capabilities.version = 0x300;
        with_gen_cap(c, 5);
    };
    let reserved = flag | Flags::CACHE_CONTROL;
    let both = reserved | Flags::DESTINATION_READBACK;
    [
        Rule::new("Table 8-4", "the device makes writes durable")
            .broken_by(Case::new(durable, reported_flags(flag)).on(version_3))
            .broken_by(Case::new(durable, reported_flags(flag)).on(|c| with_gen_cap(c, 5)))
            .kept_by(success(durable).on(able)),
        Rule::new(
            "Table 8-4",
            "cache control 3 with readback needs readback alone",
        )
        .broken_by(
            Case::new(read_back, reported_flags(Flags::DESTINATION_READBACK)).on(|c| {
                c.capabilities.version = 0x300;
                without_gen_cap(c, 8);
            }),
        )
        .kept_by(success(read_back).on(version_3)),
        Rule::new("Table 8-4", "cache control 3 is not for the cache")
            .broken_by(Case::new(memmove.with_flags(reserved), reported_flags(reserved)).on(able))
            .broken_by(Case::new(memmove.with_flags(both), reported_flags(reserved)).on(able))
            .kept_by(success(durable).on(able)),
    ]
}

/// Interrupts of descriptors that are not privileged (spec Table 5-4).
fn user_interrupts() -> Vec<Rule> {
    let flag = Flags::REQUEST_COMPLETION_INTERRUPT;
    let mut rule = Rule::new("Table 5-4", "user-mode interrupts are enabled");
    for legal in valid() {
        let asks = legal.with_interrupt(1);
        let off: fn(&mut DeviceConfig) = |c| c.user_interrupts = false;
        let privileged: fn(&mut DeviceConfig) = |c| {
            c.user_interrupts = false;
            c.work_queues[0].privileged = true;
        };
        rule = rule
            .broken_by(Case::new(asks, reported_flags(flag)).on(off))
            .kept_by(success(asks).on(privileged));
        if may_be_member(&legal) {
            rule = rule
                .broken_by(Case::new(asks, reported_flags(flag)).on(off).in_batch())
                .kept_by(success(asks).on(privileged).in_batch());
        }
    }
    let shared: fn(&mut DeviceConfig) = |c| {
        c.user_interrupts = false;
        c.work_queues[0].mode = WorkQueueMode::Shared;
    };
    let asks = valid_one(Opcode::Memmove)
        .with_interrupt(1)
        .with_pasid(OWN_PASID);
    let without_pasid: fn(&mut DeviceConfig) = |c| {
        c.user_interrupts = false;
        c.work_queues[0].pasid = None;
    };
    let rule = rule
        .broken_by(Case::new(asks, reported_flags(flag)).on(shared))
        .kept_by(success(asks.with_privileged()).on(shared))
        .kept_by(success(asks.with_privileged()).on(shared).in_batch())
        .kept_by(success(asks).on(without_pasid));
    vec![rule]
}

/// Classes that no virtual channel carries: TC-A of the group is 1, TC-B is 2 (spec 5.4).
fn traffic_classes() -> Vec<Rule> {
    let only_a: fn(&mut DeviceConfig) = |c| {
        able(c);
        c.groups[0].traffic_classes = [1, 2];
        c.pci.traffic_classes = 1 << 1;
    };
    let only_b: fn(&mut DeviceConfig) = |c| {
        able(c);
        c.groups[0].traffic_classes = [1, 2];
        c.pci.traffic_classes = 1 << 2;
    };
    let bad = reported(Status::TRAFFIC_CLASS);
    let mut rule = Rule::new("5.4", "a virtual channel carries the traffic class");
    for &(opcode, columns, _) in ALLOWED {
        let record = Flags::COMPLETION_TC_SELECTOR;
        let legal = match opcode {
            Opcode::Drain => valid_one(opcode).with_readback1(SRC).with_readback2(SRC),
            Opcode::CrcGenerate | Opcode::CopyCrc => seed_in_memory(valid_one(opcode)),
            _ => valid_one(opcode),
        };
        let selectors = COLUMNS[4..].iter().zip(columns[4..].bytes());
        let selectors = selectors
            .filter(|column| column.1 != b'.')
            .map(|column| *column.0);
        let all = selectors.clone().fold(record, Flags::union);
        rule = rule
            .kept_by(success(legal).on(only_a))
            .kept_by(success(legal.with_flags(all)).on(only_b));
        for selector in selectors {
            rule = rule
                .broken_by(Case::new(legal.with_flags(selector), bad).on(only_a))
                .broken_by(
                    Case::new(without_flags(legal.with_flags(all), selector), bad).on(only_b),
                );
        }
        // No record can be written that would need that class.
        let error = Reported::Error(Status::TRAFFIC_CLASS, 0);
        rule = rule.broken_by(Case::new(legal.with_flags(record), error).on(only_a));
    }
    vec![rule]
}

/// What must be in another domain (spec Table 5-5).
fn domains() -> Vec<Rule> {
    let (source, destination) = (
        Flags::INTER_DOMAIN_ALTERNATE_SOURCE,
        Flags::INTER_DOMAIN_ALTERNATE_DESTINATION,
    );
    let mut rules = Vec::new();
    for (legal, needed) in [
        (
            Descriptor::inter_domain_copy(SRC, DST, 64),
            source | destination,
        ),
        (
            Descriptor::inter_domain_compare(SRC, DST, 64),
            source | destination,
        ),
        (Descriptor::inter_domain_fill(7, DST, 64), destination),
        (Descriptor::inter_domain_compare_pattern(SRC, 7, 64), source),
    ] {
        let legal = legal.with_completion(RECORD);
        let record = Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD;
        let missing = match needed.contains(source | destination) {
            true => needed,
            false => needed.without(record),
        };
        let name = format!("{} needs another domain", name_of(&legal));
        let mut rule =
            Rule::new("Table 5-5", name).broken_by(Case::new(legal, reported_flags(missing)));
        if needed.contains(source) {
            rule = rule.allows(legal.with_source_handle(handle::WHOLE));
        }
        if needed.contains(destination) {
            rule = rule.allows(legal.with_destination_handle(handle::WHOLE));
        }
        rules.push(rule);
    }
    rules
}

/// Flags that need another flag.
fn dependencies() -> Vec<Rule> {
    let noop = Descriptor::noop();
    let lonely = |flag| {
        Case::new(
            noop.with_flags(flag),
            Reported::Error(Status::INVALID_FLAGS, 0),
        )
    };
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
        .broken_by(Case::new(crc, reported_flags(Flags::ADDRESS3_TC_SELECTOR)))
        .allows(seed_in_memory(crc)),
    ];
    for (selector, kept) in [
        (Flags::ADDRESS1_TC_SELECTOR, drain.with_readback1(SRC)),
        (Flags::ADDRESS2_TC_SELECTOR, drain.with_readback2(SRC)),
    ] {
        let name = format!("{selector:?} of a drain needs its readback");
        let broken = Case::new(drain.with_flags(selector), reported_flags(selector));
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
        Opcode::CreateDelta,
        Opcode::CrcGenerate,
        Opcode::CopyCrc,
        Opcode::DifCheck,
        Opcode::DixGenerate,
        Opcode::InterDomainCompare,
        Opcode::InterDomainComparePattern,
    ]
    .map(valid_one)
    {
        let name = format!("{} needs a record", name_of(&legal));
        let unasked = without_flags(legal, record);
        let mut without = without_flags(unasked, Flags::COMPLETION_ADDRESS_VALID);
        without.completion_addr = 0;
        let error = Reported::Error(Status::INVALID_FLAGS, 0);
        let rule = Rule::new("Table 5-5", name)
            .broken_by(Case::new(unasked, reported_flags(record)))
            .broken_by(Case::new(without, error));
        rules.push(rule.allows(legal));
    }
    let interrupt = Flags::REQUEST_COMPLETION_INTERRUPT;
    let mut silent = Descriptor::drain().with_flags(Flags::COMPLETION_ADDRESS_VALID);
    silent.completion_addr = RECORD;
    rules.push(
        Rule::new("Table 5-5", "a drain needs a record or an interrupt")
            .broken_by(Case::new(silent, reported_flags(record | interrupt)))
            .kept_by(Case::new(silent.with_interrupt(3), Reported::Nothing))
            .allows(silent.with_flags(record)),
    );
    let move_alone = Descriptor::memmove(SRC, DST, 64);
    let zero = Descriptor::memmove(SRC, DST, 0);
    let error = Reported::Error(Status::TRANSFER_SIZE, 0);
    rules.push(
        Rule::new("8.1.3", "no completion requested: only errors are reported")
            .broken_by(Case::new(zero, error))
            .kept_by(Case::new(move_alone, Reported::Nothing)),
    );
    rules
}
