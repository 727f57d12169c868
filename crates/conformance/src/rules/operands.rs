//! Status 0x13, 0x14, 0x16, 0x17: sizes, counts and buffers that are in each other's way.

use dray_spec::{Descriptor, Opcode, Status};

use super::case::{Case, Reported, reported};
use super::layout::{DELTA, DST, DST2, LIST, RECORD, SRC};
use super::rule::{Rule, UNCHECKED, name_of, unchecked, valid, with_gen_cap, without_gen_cap};
use dray_device::DeviceConfig;

pub(super) fn rules() -> Vec<Rule> {
    [
        sizes(),
        blocks(),
        regions(),
        deltas(),
        counts(),
        overlaps(),
        integrity_overlaps(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Queue and device have limits of their own; a queue's is not above the device's.
const LIMITS: [fn(&mut DeviceConfig); 2] = [
    |config| config.work_queues[0].max_transfer_size = 8192,
    |config| {
        config.capabilities.max_transfer_size = 8192;
        config.work_queues[0].max_transfer_size = 8192;
    },
];

fn sizes() -> Vec<Rule> {
    let bad = reported(Status::TRANSFER_SIZE);
    let sized = |mut descriptor: Descriptor, size| {
        descriptor.size = size;
        descriptor
    };
    let rule = |legal: Descriptor| {
        let name = format!("size of {}", name_of(&legal));
        let unit = unit_of(&legal);
        let above = |limit: u32| limit / unit * unit + unit;
        let mut rule = Rule::new("8.1.7", name)
            .broken_by(Case::new(sized(legal, 0), bad))
            .broken_by(Case::new(sized(legal, u32::MAX / unit * unit), bad))
            .broken_by(Case::new(sized(legal, above(2 << 20)), bad))
            .allows(sized(legal, unit.max(least_of(&legal))));
        for limit in LIMITS {
            let most = sized(legal, 8192 / unit * unit);
            let most = Case::new(most, Reported::Status(Status::SUCCESS));
            rule = rule
                .broken_by(Case::new(sized(legal, above(8192)), bad).on(limit))
                .kept_by(most.on(limit));
        }
        rule
    };
    let sizeless = [
        Opcode::Noop,
        Opcode::Batch,
        Opcode::Drain,
        Opcode::TranslationFetch,
        Opcode::UpdateWindow,
    ]
    .map(Ok);
    let all = valid().into_iter();
    all.filter(|d| !sizeless.contains(&d.opcode()))
        .map(rule)
        .collect()
}

/// What sizes of the operation are multiples of.
fn unit_of(descriptor: &Descriptor) -> u32 {
    match descriptor.opcode() {
        Ok(Opcode::CreateDelta | Opcode::ApplyDelta) => 8,
        Ok(Opcode::DifCheck | Opcode::DifStrip | Opcode::DifUpdate) => 520,
        Ok(Opcode::DifInsert | Opcode::DixGenerate) => 512,
        _ => 1,
    }
}

/// The smallest size with which the valid descriptor does something: its delta is at word 1.
fn least_of(descriptor: &Descriptor) -> u32 {
    match descriptor.opcode() {
        Ok(Opcode::ApplyDelta) => 16,
        _ => 1,
    }
}

/// Sizes that are no whole number of blocks.
fn blocks() -> Vec<Rule> {
    let bad = reported(Status::TRANSFER_SIZE);
    let mut rule = Rule::new("8.3.14", "a transfer with fields is whole blocks");
    for (code, block) in (0..).zip([512, 520, 4096, 4104]) {
        let tags = unchecked();
        let check = |size| Descriptor::dif_check(SRC, size, code, UNCHECKED, tags);
        let strip = |size| Descriptor::dif_strip(SRC, DST, size, code, UNCHECKED, tags);
        let insert = |size| Descriptor::dif_insert(SRC, DST, size, code, 0, tags);
        let dix = |size| Descriptor::dix_generate(SRC, DST, size, code, 0, tags);
        let update =
            |size| Descriptor::dif_update(SRC, DST, size, code, (UNCHECKED, tags), (0, tags));
        let with = block + 8;
        for d in [
            check(with),
            strip(with),
            insert(block),
            dix(block),
            update(with),
        ] {
            rule = rule.allows(d.with_completion(RECORD));
        }
        for off in [1, with / 2, with - 1] {
            for d in [check(with + off), strip(off), update(2 * with - off)] {
                rule = rule.broken_by(Case::new(d.with_completion(RECORD), bad));
            }
        }
        for off in [1, 8, block - 1] {
            for d in [insert(block + off), dix(off)] {
                rule = rule.broken_by(Case::new(d.with_completion(RECORD), bad));
            }
        }
    }
    vec![rule]
}

/// Regions of a translation fetch, which no limit of transfers concerns.
fn regions() -> Vec<Rule> {
    let bad = reported(Status::TRANSFER_SIZE);
    let fetch = |at, size| Descriptor::translation_fetch(at, size).with_completion(RECORD);
    let fault = Reported::Status(Status::PAGE_FAULT);
    vec![
        Rule::new("8.3.11", "a region is not empty")
            .broken_by(Case::new(fetch(SRC, 0), bad))
            .kept_by(Case::new(fetch(SRC, u32::MAX), fault))
            .allows(fetch(SRC, 1)),
        Rule::new("8.3.11", "a region does not wrap")
            .broken_by(Case::new(fetch(u64::MAX, 2), bad))
            .broken_by(Case::new(fetch(u64::MAX - 4095, 4097), bad))
            .kept_by(Case::new(fetch(u64::MAX, 1), fault))
            .kept_by(Case::new(fetch(u64::MAX - 4095, 4096), fault)),
    ]
}

/// Sizes of delta records and of what they describe (spec 5.4).
fn deltas() -> Vec<Rule> {
    let create =
        |size, max| Descriptor::create_delta(SRC, SRC, size, DST2, max).with_completion(RECORD);
    let apply = |size, record| {
        let descriptor = Descriptor::apply_delta(DELTA, DST, size, record);
        descriptor.with_completion(RECORD)
    };
    let success = |d| Case::new(d, Reported::Status(Status::SUCCESS));
    let fault = |d| Case::new(d, Reported::Status(Status::PAGE_FAULT));
    let size = reported(Status::TRANSFER_SIZE);
    let record = reported(Status::DELTA_RECORD_SIZE);
    // Nothing of the record lies in what it describes.
    let largest = Descriptor::create_delta(SRC, SRC, 0x8_0000, LIST, 80);
    let applied = Descriptor::apply_delta(LIST, DST, 0x8_0000, 10);
    let limit: fn(&mut DeviceConfig) = |c| c.work_queues[0].max_transfer_size = 4096;
    vec![
        Rule::new("8.3.8", "a delta describes at most 512 KiB")
            .broken_by(Case::new(create(0x8_0008, 80), size))
            .broken_by(Case::new(apply(0x8_0008, 10), size))
            .kept_by(fault(largest.with_completion(RECORD)))
            .kept_by(success(applied.with_completion(RECORD)).with_bytes(LIST, &[1, 0])),
        Rule::new(
            "5.4",
            "a record to create has room for a line, and not more than the limit",
        )
        .broken_by(Case::new(create(64, 0), record))
        .broken_by(Case::new(create(64, 79), record))
        .broken_by(Case::new(create(64, 4097), record).on(limit))
        .broken_by(Case::new(create(64, (2 << 20) + 1), record))
        .kept_by(success(create(64, 80)))
        .kept_by(success(create(64, 89)))
        .kept_by(success(create(64, 4096)).on(limit)),
        Rule::new(
            "5.4",
            "a record to apply has an entry, and not more than the limit",
        )
        .broken_by(Case::new(apply(64, 0), record))
        .broken_by(Case::new(apply(64, 9), record))
        .broken_by(Case::new(apply(64, 4097), record).on(limit))
        .kept_by(success(apply(64, 10)))
        .kept_by(success(apply(64, 19))),
    ]
}

/// Buffers of operations whose result has another size than their source.
fn integrity_overlaps() -> Vec<Rule> {
    let bad = reported(Status::OVERLAP);
    let tags = unchecked();
    let mut rules = Vec::new();
    let insert = |dst| Descriptor::dif_insert(SRC + 4096, dst, 1024, 0, 0, tags);
    let strip = |dst| Descriptor::dif_strip(SRC + 4096, dst, 1040, 0, UNCHECKED, tags);
    let update =
        |dst| Descriptor::dif_update(SRC + 4096, dst, 1040, 0, (UNCHECKED, tags), (0, tags));
    let dix = |dst| Descriptor::dix_generate(SRC + 4096, dst, 1024, 0, 0, tags);
    let create = |record| Descriptor::create_delta(SRC + 4096, DST, 1024, record, 800);
    let create2 = |record| Descriptor::create_delta(DST, SRC + 4096, 1024, record, 800);
    let apply = |dst| Descriptor::apply_delta(DELTA, dst, 64, 10);
    let src = SRC + 4096;
    let mut rule =
        |name: &str, make: &dyn Fn(u64) -> Descriptor, broken: [u64; 3], legal: [u64; 2]| {
            let mut rule = Rule::new("5.4", format!("{name}: buffers do not overlap"));
            for at in broken {
                rule = rule.broken_by(Case::new(make(at).with_completion(RECORD), bad));
            }
            for at in legal {
                rule = rule.allows(make(at).with_completion(RECORD));
            }
            rules.push(rule);
        };
    rule(
        "dif_insert",
        &insert,
        [src - 1039, src, src + 1023],
        [src - 1040, src + 1024],
    );
    rule(
        "dif_strip",
        &strip,
        [src - 1023, src, src + 1039],
        [src - 1024, src + 1040],
    );
    rule(
        "dif_update",
        &update,
        [src - 1039, src, src + 1039],
        [src - 1040, src + 1040],
    );
    rule(
        "dix_generate",
        &dix,
        [src - 8, src, src + 1016],
        [src - 16, src + 1024],
    );
    rule(
        "create_delta, source 1",
        &create,
        [src - 799, src, src + 1023],
        [src - 800, src + 1024],
    );
    rule(
        "create_delta, source 2",
        &create2,
        [src - 799, src, src + 1023],
        [src - 800, src + 1024],
    );
    rule(
        "apply_delta",
        &apply,
        [DELTA - 56, DELTA, DELTA + 8],
        [DELTA + 16, DST],
    );
    rules
}

fn counts() -> Vec<Rule> {
    let bad = reported(Status::DESCRIPTOR_COUNT);
    let batch = |count| Descriptor::batch(LIST, count).with_completion(RECORD);
    let success = |count| Case::new(batch(count), Reported::Status(Status::SUCCESS));
    let mut limits = Rule::new("8.3.2", "a batch has no more members than the limit");
    let limit: [fn(&mut DeviceConfig); 2] = [
        |config| config.work_queues[0].max_batch_size = 16,
        |config| {
            config.capabilities.max_batch_size = 16;
            config.work_queues[0].max_batch_size = 16;
        },
    ];
    for limit in limit {
        limits = limits
            .broken_by(Case::new(batch(17), bad).on(limit))
            .broken_by(Case::new(batch(u32::MAX), bad).on(limit))
            .kept_by(success(16).on(limit));
    }
    vec![
        limits,
        Rule::new("8.3.2", "a batch has a member")
            .broken_by(Case::new(batch(0), bad))
            .broken_by(Case::new(batch(0), bad).on(|c| with_gen_cap(c, 52)))
            .kept_by(success(1).on(|c| with_gen_cap(c, 52))),
        Rule::new("8.3.2", "a batch has two, unless the device takes one")
            .broken_by(Case::new(batch(1), bad))
            .kept_by(success(1).on(|c| with_gen_cap(c, 52)))
            .kept_by(success(2)),
    ]
}

fn overlaps() -> Vec<Rule> {
    let bad = reported(Status::OVERLAP);
    let unable: fn(&mut DeviceConfig) = |config| without_gen_cap(config, 1);
    let memmove = |dst| Descriptor::memmove(SRC + 4096, dst, 4096).with_completion(RECORD);
    let copy_crc = |dst| Descriptor::copy_crc(SRC + 4096, dst, 4096, 0).with_completion(RECORD);
    let mut moved = Rule::new("8.3.4", "memmove needs leave for buffers that overlap");
    let mut copied = Rule::new("8.3.13", "copy with CRC: buffers do not overlap");
    for dst in [SRC + 1, SRC + 4096, SRC + 8191] {
        let success = Case::new(memmove(dst), Reported::Status(Status::SUCCESS));
        moved = moved
            .broken_by(Case::new(memmove(dst), bad).on(unable))
            .kept_by(success);
        copied = copied.broken_by(Case::new(copy_crc(dst), bad));
    }
    for dst in [SRC, SRC + 8192] {
        let success = Case::new(memmove(dst), Reported::Status(Status::SUCCESS));
        moved = moved.kept_by(success.on(unable));
        copied = copied.allows(copy_crc(dst));
    }

    let dualcast = |src, dst1, dst2| {
        let descriptor = Descriptor::dualcast(src, dst1, dst2, 4096);
        descriptor.with_completion(RECORD)
    };
    let mut cast = Rule::new("8.3.10", "dualcast: buffers do not overlap").allows(dualcast(
        SRC,
        SRC + 4096,
        SRC + 8192,
    ));
    for (src, dst1, dst2) in [
        (SRC + 4095, SRC, DST2),
        (SRC, SRC, DST2),
        (SRC, DST, DST),
        (DST2 + 1, DST, DST2),
        (DST + 4095, DST, DST2),
        (SRC, SRC + 4095, DST2 + 4095),
        (SRC, DST + 4095, SRC + 4095),
    ] {
        cast = cast.broken_by(Case::new(dualcast(src, dst1, dst2), bad));
    }
    let apart = |off| Descriptor::dualcast(SRC, DST, DST2 + off, 64).with_completion(RECORD);
    let mut pages = Rule::new("8.3.10", "dualcast: destinations agree in bits 11:0")
        .allows(apart(0))
        .allows(apart(4096));
    for off in [1, 2, 4, 64, 2048, 4095, 4097] {
        pages = pages.broken_by(Case::new(apart(off), reported(Status::DUALCAST_ALIGNMENT)));
    }
    vec![moved, copied, cast, pages]
}
