//! Operations that no device executes: sizes, alignments, overlaps, flags, reserved fields.

use dray_spec::{Descriptor, DifTags, Flags, Status};

use crate::movers::trial::{Plan, Trial, addresses};

const LEN: u32 = 4096;

fn refused(
    operation: &'static str,
    case: &str,
    status: Status,
    descriptor: impl Fn([u64; 4]) -> Descriptor + 'static,
) -> Trial {
    Trial {
        operation,
        case: format!("{case}: {}", status.name()),
        plan: Box::new(move |base| Plan::refused(status, descriptor(addresses(base)))),
        hidden: None,
    }
}

pub(super) fn trials() -> Vec<Trial> {
    [sizes(), places(), deltas(), integrity(), fields()]
        .into_iter()
        .flatten()
        .collect()
}

/// One of each, with a size.
fn sized(operation: &str, a: [u64; 4], len: u32) -> Descriptor {
    let tags = DifTags::default();
    match operation {
        "memmove" => Descriptor::memmove(a[0], a[1], len),
        "fill" => Descriptor::fill(1, a[0], len),
        "compare" => Descriptor::compare(a[0], a[1], len),
        "compare_pattern" => Descriptor::compare_pattern(a[0], 1, len),
        "dualcast" => Descriptor::dualcast(a[0], a[1], a[2], len),
        "crc" => Descriptor::crc(a[0], len, 0),
        "copy_crc" => Descriptor::copy_crc(a[0], a[1], len, 0),
        "cache_flush" => Descriptor::cache_flush(a[0], len),
        "create_delta" => Descriptor::create_delta(a[0], a[1], len, a[2], 80),
        "apply_delta" => Descriptor::apply_delta(a[0], a[1], len, 80),
        "dif_check" => Descriptor::dif_check(a[0], len, 0, 0, tags),
        "dif_insert" => Descriptor::dif_insert(a[0], a[1], len, 0, 0, tags),
        "dif_strip" => Descriptor::dif_strip(a[0], a[1], len, 0, 0, tags),
        "dif_update" => Descriptor::dif_update(a[0], a[1], len, 0, (0, tags), (0, tags)),
        "dix_generate" => Descriptor::dix_generate(a[0], a[1], len, 0, 0, tags),
        _ => Descriptor::noop(),
    }
}

/// Every operation with operands.
const SIZED: [&str; 15] = [
    "memmove",
    "fill",
    "compare",
    "compare_pattern",
    "dualcast",
    "crc",
    "copy_crc",
    "cache_flush",
    "create_delta",
    "apply_delta",
    "dif_check",
    "dif_insert",
    "dif_strip",
    "dif_update",
    "dix_generate",
];

/// A size that the operation takes: whole words, or whole blocks.
fn valid(operation: &str) -> u32 {
    match operation {
        "noop" => 0,
        "dif_check" | "dif_strip" | "dif_update" => 8 * 520,
        _ => LEN,
    }
}

fn sizes() -> Vec<Trial> {
    let zero = SIZED.map(|operation| {
        let case = "no bytes";
        refused(operation, case, Status::TRANSFER_SIZE, move |a| {
            sized(operation, a, 0)
        })
    });
    zero.into()
}

/// Where operands lie.
fn places() -> Vec<Trial> {
    let overlap = "overlapping buffers";
    vec![
        refused("copy_crc", overlap, Status::OVERLAP, |a| {
            Descriptor::copy_crc(a[0], a[0] + 64, LEN, 0)
        }),
        refused("dualcast", overlap, Status::OVERLAP, |a| {
            Descriptor::dualcast(a[0], a[0] + 2048, a[1] + 2048, LEN)
        }),
        refused(
            "dualcast",
            "overlapping destinations",
            Status::OVERLAP,
            |a| Descriptor::dualcast(a[0], a[1], a[1], LEN),
        ),
        refused(
            "dualcast",
            "destinations that differ in bits 11:0",
            Status::DUALCAST_ALIGNMENT,
            |a| Descriptor::dualcast(a[0], a[1], a[2] + 64, LEN),
        ),
        refused(
            "crc",
            "a seed that is not aligned",
            Status::ADDRESS_ALIGNMENT,
            |a| Descriptor::crc(a[0], LEN, 0).with_crc_seed_address(a[1] + 2),
        ),
        refused(
            "copy_crc",
            "a seed that is not aligned",
            Status::ADDRESS_ALIGNMENT,
            |a| Descriptor::copy_crc(a[0], a[1], LEN, 0).with_crc_seed_address(a[2] + 2),
        ),
        refused(
            "dix_generate",
            "a destination that is not aligned",
            Status::ADDRESS_ALIGNMENT,
            |a| Descriptor::dix_generate(a[0], a[1] + 4, LEN, 0, 0, DifTags::default()),
        ),
    ]
}

fn deltas() -> Vec<Trial> {
    let alignment = Status::ADDRESS_ALIGNMENT;
    vec![
        refused(
            "create_delta",
            "a size that is no multiple of 8",
            alignment,
            |a| Descriptor::create_delta(a[0], a[1], LEN + 4, a[2], 80),
        ),
        refused(
            "create_delta",
            "a source that is not aligned",
            alignment,
            |a| Descriptor::create_delta(a[0] + 4, a[1], LEN, a[2], 80),
        ),
        refused(
            "create_delta",
            "more than 512 KiB",
            Status::TRANSFER_SIZE,
            |a| Descriptor::create_delta(a[0], a[1], (512 << 10) + 8, a[2], 80),
        ),
        refused(
            "create_delta",
            "a record of 70 bytes",
            Status::DELTA_RECORD_SIZE,
            |a| Descriptor::create_delta(a[0], a[1], LEN, a[2], 70),
        ),
        refused(
            "create_delta",
            "a record on a source",
            Status::OVERLAP,
            |a| Descriptor::create_delta(a[0], a[1], LEN, a[1] + 64, 80),
        ),
        refused(
            "apply_delta",
            "a size that is no multiple of 8",
            alignment,
            |a| Descriptor::apply_delta(a[0], a[1], LEN + 4, 80),
        ),
        refused(
            "apply_delta",
            "a destination that is not aligned",
            alignment,
            |a| Descriptor::apply_delta(a[0], a[1] + 4, LEN, 80),
        ),
        refused(
            "apply_delta",
            "a record of no bytes",
            Status::DELTA_RECORD_SIZE,
            |a| Descriptor::apply_delta(a[0], a[1], LEN, 0),
        ),
        refused(
            "apply_delta",
            "a record on the destination",
            Status::OVERLAP,
            |a| Descriptor::apply_delta(a[0] + 64, a[0], LEN, 80),
        ),
    ]
}

fn integrity() -> Vec<Trial> {
    let names = [
        "dif_check",
        "dif_insert",
        "dif_strip",
        "dif_update",
        "dix_generate",
    ];
    let mut trials: Vec<Trial> = Vec::new();
    for name in names {
        trials.push(refused(
            name,
            "a part of a block",
            Status::TRANSFER_SIZE,
            move |a| sized(name, a, valid(name) + 8),
        ));
        trials.push(refused(
            name,
            "a reserved bit of the DIF flags",
            Status::NONZERO_RESERVED,
            move |a| {
                let mut d = sized(name, a, valid(name));
                d.operation[2] = 0x80;
                d
            },
        ));
        if name != "dif_check" {
            trials.push(refused(
                name,
                "overlapping buffers",
                Status::OVERLAP,
                move |a| sized(name, [a[0], a[0] + 512, a[2], a[3]], valid(name)),
            ));
        }
    }
    trials
}

/// Flags and a field that are reserved.
fn fields() -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in ["noop"].into_iter().chain(SIZED) {
        let invalid = Status::INVALID_FLAGS;
        let reserved = Flags::from_bits(1 << 6);
        trials.push(refused(name, "a reserved flag", invalid, move |a| {
            sized(name, a, valid(name)).with_flags(reserved)
        }));
        let other = match name {
            "fill" | "crc" | "copy_crc" => Flags::CHECK_RESULT,
            _ => Flags::FILL_PATTERN_16,
        };
        trials.push(refused(
            name,
            "a flag of another operation",
            invalid,
            move |a| sized(name, a, valid(name)).with_flags(other),
        ));
        let nonzero = Status::NONZERO_RESERVED;
        trials.push(refused(name, "a reserved field", nonzero, move |a| {
            let mut d = sized(name, a, valid(name));
            d.reserved = 1;
            d
        }));
    }
    trials
}
