//! Status 0x11: flags that are reserved, unsupported or missing.

mod allowed;
mod capabilities;

use dray_spec::{Descriptor, Flags, Opcode, Status};

use allowed::{ALLOWED, COLUMNS, seed_in_memory};

use super::case::{Case, Reported, reported, reported_flags};
use super::layout::{DST, RECORD, SRC};
use super::profile::{handle, version_2};
use super::rule::{Rule, may_be_member, name_of, valid, valid_one, without_flags};
use dray_device::DeviceConfig;

pub(super) fn rules() -> Vec<Rule> {
    [
        allowed::table(),
        places(),
        capabilities::capabilities(),
        capabilities::user_interrupts(),
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
