//! Status 0x13, 0x14, 0x16, 0x17: sizes, counts and buffers that are in each other's way.

use dray_device::DeviceConfig;
use dray_spec::{Descriptor, Opcode, Status};

use crate::rule::{
    Case, DST, DST2, LIST, RECORD, Rule, SRC, Told, told, valid, with_gen_cap, without_gen_cap,
};

pub(crate) fn rules() -> Vec<Rule> {
    [sizes(), counts(), overlaps()]
        .into_iter()
        .flatten()
        .collect()
}

/// Queue and device have limits of their own; the smaller one counts.
const LIMITS: [fn(&mut DeviceConfig); 2] = [
    |config| config.work_queues[0].max_transfer_size = 8192,
    |config| config.capabilities.max_transfer_size = 8192,
];

fn sizes() -> Vec<Rule> {
    let bad = told(Status::TRANSFER_SIZE);
    let sized = |mut descriptor: Descriptor, size| {
        descriptor.size = size;
        descriptor
    };
    let rule = |legal: Descriptor| {
        let name = format!("size of {:?}", legal.opcode());
        let mut rule = Rule::new("8.1.7", name)
            .broken_by(Case::new(sized(legal, 0), bad))
            .broken_by(Case::new(sized(legal, u32::MAX), bad))
            .broken_by(Case::new(sized(legal, (2 << 20) + 1), bad))
            .allows(sized(legal, 1));
        for limit in LIMITS {
            let most = Case::new(sized(legal, 8192), Told::Status(Status::SUCCESS));
            rule = rule
                .broken_by(Case::new(sized(legal, 8193), bad).on(limit))
                .kept_by(most.on(limit));
        }
        rule
    };
    let sizeless = [Opcode::Noop, Opcode::Batch, Opcode::Drain].map(Ok);
    let all = valid().into_iter();
    all.filter(|d| !sizeless.contains(&d.opcode()))
        .map(rule)
        .collect()
}

fn counts() -> Vec<Rule> {
    let bad = told(Status::DESCRIPTOR_COUNT);
    let batch = |count| Descriptor::batch(LIST, count).with_completion(RECORD);
    let success = |count| Case::new(batch(count), Told::Status(Status::SUCCESS));
    let mut limits = Rule::new("8.3.2", "a batch has no more members than the limit");
    let limit: [fn(&mut DeviceConfig); 2] = [
        |config| config.work_queues[0].max_batch_size = 16,
        |config| config.capabilities.max_batch_size = 16,
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
    let bad = told(Status::OVERLAP);
    let unable: fn(&mut DeviceConfig) = |config| without_gen_cap(config, 1);
    let memmove = |dst| Descriptor::memmove(SRC + 4096, dst, 4096).with_completion(RECORD);
    let copy_crc = |dst| Descriptor::copy_crc(SRC + 4096, dst, 4096, 0).with_completion(RECORD);
    let mut moved = Rule::new("8.3.4", "memmove needs leave for buffers that overlap");
    let mut copied = Rule::new("8.3.13", "copy with CRC: buffers do not overlap");
    for dst in [SRC + 1, SRC + 4096, SRC + 8191] {
        let success = Case::new(memmove(dst), Told::Status(Status::SUCCESS));
        moved = moved
            .broken_by(Case::new(memmove(dst), bad).on(unable))
            .kept_by(success);
        copied = copied.broken_by(Case::new(copy_crc(dst), bad));
    }
    for dst in [SRC, SRC + 8192] {
        let success = Case::new(memmove(dst), Told::Status(Status::SUCCESS));
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
        pages = pages.broken_by(Case::new(apart(off), told(Status::DUALCAST_ALIGNMENT)));
    }
    vec![moved, copied, cast, pages]
}
