//! Flags that need a capability of the device.

use dray_device::{DeviceConfig, WorkQueueMode};
use dray_spec::{Descriptor, Flags, Opcode, Status};

use super::{able, able_to_block, success};
use crate::rules::case::{Case, Reported, reported_flags};
use crate::rules::layout::{DST, OWN_PASID, RECORD, SRC};
use crate::rules::profile::handle;
use crate::rules::rule::{Rule, may_be_member, valid, valid_one, with_gen_cap, without_gen_cap};

/// Flags that a device or a queue has to be able to do.
pub(super) fn capabilities() -> Vec<Rule> {
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
pub(super) fn user_interrupts() -> Vec<Rule> {
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
