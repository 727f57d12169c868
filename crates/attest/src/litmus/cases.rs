//! The cases.

mod batches;

use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use super::{Case, Look, Program, Scene};
use crate::target::Target;
use batches::batch;

/// Sizes of operands: less than a line, a page, many pages.
const SIZES: [u32; 3] = [64, 4096, 256 << 10];

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    [
        data_before_record(),
        whole_records(),
        batches::fences(),
        batches::failures(),
        batches::batches(),
        drains(),
        overlaps(),
        unordered(),
        absent_records(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const DATA: &str = "a record is written after the data of its descriptor";
const WHOLE: &str = "a status that is not 0 is seen with the rest of the record";
const FENCE: &str = "a member with a fence begins when all members before it have ended";
const FAILED: &str =
    "behind a member that did not succeed, one with a fence and all after it do not run";
const BATCH: &str = "the record of a batch is written after those of its members";
const DRAIN: &str = "a drain ends when all descriptors before it have ended";
const OVERLAP: &str = "a copy to memory that overlaps its source writes the source as it was";
const FREE: &str = "no order is promised: all that was seen is allowed";
const ABSENT: &str =
    "a record that was not requested is written only where the status says that something is wrong";

/// The queue takes single descriptors of these operations.
fn case(
    name: String,
    section: &'static str,
    rule: &'static str,
    allowed: &[&'static str],
    program: impl Fn(&Scene) -> Program + 'static,
) -> Case {
    Case {
        name,
        section,
        rule,
        allowed: allowed.to_vec(),
        needs: |_| None,
        program: Box::new(program),
    }
}

impl Case {
    fn with_needs(self, needs: fn(&Target) -> Option<&'static str>) -> Case {
        Case { needs, ..self }
    }

    fn in_batches(self) -> Case {
        self.with_needs(batches_of_8)
    }
}

fn batches_of_8(target: &Target) -> Option<&'static str> {
    let most = target.queue().max_batch_size;
    match () {
        () if target.submit_path() == "write" => Some("a portal that can be mapped"),
        () if most < 8 || !target.takes(Opcode::Batch) => Some("batches of 8"),
        () => None,
    }
}

/// Without ATS a device does not learn of a fault: it reads an error (spec 3.13.1).
fn batches_and_translation(target: &Target) -> Option<&'static str> {
    let untranslated = target.queue().ats_disable;
    untranslated
        .then_some("address translation (ATS)")
        .or_else(|| batches_of_8(target))
}

fn requested(descriptor: Descriptor, record: u64) -> Descriptor {
    descriptor.with_completion(record)
}

/// Bytes that differ from those that are there, each from its neighbours.
fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (n ^ n >> 8) as u8 | 1).collect()
}

fn zeros(bytes: u32) -> Vec<u8> {
    vec![0; bytes as usize]
}

fn crc(bytes: &[u8]) -> u32 {
    dray_ops::crc32c(0, bytes, dray_ops::CrcOptions::default())
}

fn new(at: u64, bytes: u32) -> Look {
    Look::Bytes {
        at,
        expected: pattern(bytes),
    }
}

/// Every operation that writes: when its record is seen, all its bytes are.
fn data_before_record() -> Vec<Case> {
    let mut all = Vec::new();
    for size in SIZES {
        all.push(case(
            format!("data before record: copy of {size}"),
            "3.9",
            DATA,
            &["new"],
            move |s| {
                let copy = Descriptor::memmove(s.operand(0), s.operand(1), size);
                written_by(s, copy, size, &[1])
            },
        ));
        all.push(case(
            format!("data before record: fill of {size}"),
            "3.9",
            DATA,
            &["new"],
            move |s| {
                let word = [1; 8];
                let fill = Descriptor::fill(u64::from_le_bytes(word), s.operand(1), size);
                Program {
                    before: vec![(s.operand(1), zeros(size))],
                    submitted: vec![requested(fill, s.record(0))],
                    watched: Some(s.record(0)),
                    looks: vec![Look::Bytes {
                        at: s.operand(1),
                        expected: vec![1; size as usize],
                    }],
                    ..Program::default()
                }
            },
        ));
        all.push(case(
            format!("data before record: copy with CRC of {size}"),
            "3.9",
            DATA,
            &["new"],
            move |s| {
                let copy = Descriptor::copy_crc(s.operand(0), s.operand(1), size, 0);
                written_by(s, copy, size, &[1])
            },
        ));
        all.push(case(
            format!("data before record: dualcast of {size}"),
            "3.9",
            DATA,
            &["new new"],
            move |s| {
                let copy = Descriptor::dualcast(s.operand(0), s.operand(1), s.operand(2), size);
                written_by(s, copy, size, &[1, 2])
            },
        ));
    }
    all
}

fn written_by(s: &Scene, descriptor: Descriptor, size: u32, operands: &[u64]) -> Program {
    let mut before = vec![(s.operand(0), pattern(size))];
    before.extend(operands.iter().map(|n| (s.operand(*n), zeros(size))));
    Program {
        before,
        submitted: vec![requested(descriptor, s.record(0))],
        watched: Some(s.record(0)),
        looks: operands.iter().map(|n| new(s.operand(*n), size)).collect(),
        ..Program::default()
    }
}

/// Fields of a record behind its status.
fn whole_records() -> Vec<Case> {
    let record = |result: u8, bytes: u32| CompletionRecord {
        result,
        bytes_completed: bytes,
        ..CompletionRecord::with_status(Status::SUCCESS)
    };
    let mut all = Vec::new();
    for size in SIZES {
        all.push(case(
            format!("whole record: CRC of {size}"),
            "8.2",
            WHOLE,
            &["whole"],
            move |s| {
                let bytes = pattern(size);
                let mut expected = CompletionRecord::with_status(Status::SUCCESS);
                expected.set_crc32(crc(&bytes));
                watched(s, Descriptor::crc(s.operand(0), size, 0), bytes, expected)
            },
        ));
        all.push(case(
            format!("whole record: difference in the last of {size}"),
            "8.2",
            WHOLE,
            &["whole"],
            move |s| {
                let mut bytes = zeros(size);
                bytes[size as usize - 1] = 7;
                let compare = Descriptor::compare_pattern(s.operand(0), 0, size);
                let mut program = watched(s, compare, bytes, record(1, size - 1));
                // Any offset up to the true one may be said (Table 8-17).
                program.looks = vec![Look::Status(s.record(0))];
                program
            },
        ));
    }
    for case in all
        .iter_mut()
        .filter(|case| case.name.contains("difference"))
    {
        case.allowed = vec!["01"];
    }
    all
}

fn watched(s: &Scene, d: Descriptor, bytes: Vec<u8>, expected: CompletionRecord) -> Program {
    Program {
        before: vec![(s.operand(0), bytes)],
        submitted: vec![requested(d, s.record(0))],
        watched: Some(s.record(0)),
        looks: vec![Look::Record {
            at: s.record(0),
            expected: Box::new(expected),
        }],
        ..Program::default()
    }
}

/// A drain behind copies, and behind batches.
fn drains() -> Vec<Case> {
    let mut all = Vec::new();
    for (copies, allowed) in [
        (1, "01 new"),
        (4, "01 01 01 01 new"),
        (8, "01 01 01 01 01 01 01 01 new"),
    ] {
        for size in SIZES {
            all.push(case(
                format!("drain behind {copies} copies of {size}"),
                "3.12",
                DRAIN,
                &[allowed],
                move |s| {
                    let copy = |n: u64| {
                        let copy = Descriptor::memmove(s.operand(0), s.operand(n), size);
                        requested(copy, s.record(n))
                    };
                    let mut submitted: Vec<Descriptor> = (1..=copies).map(copy).collect();
                    submitted.push(requested(Descriptor::drain(), s.record(0)));
                    let mut looks: Vec<Look> =
                        (1..=copies).map(|n| Look::Status(s.record(n))).collect();
                    looks.push(new(s.operand(copies), size));
                    Program {
                        before: vec![
                            (s.operand(0), pattern(size)),
                            (s.operand(copies), zeros(size)),
                        ],
                        submitted,
                        watched: Some(s.record(0)),
                        looks,
                        ..Program::default()
                    }
                },
            ));
        }
    }
    all.push(
        case(
            "drain behind a batch".to_owned(),
            "3.12",
            DRAIN,
            &["01 01 01"],
            |s| {
                let copy = |n: u64| {
                    let copy = Descriptor::memmove(s.operand(0), s.operand(n), 64 << 10);
                    requested(copy, s.record(n))
                };
                let mut program = batch(s, vec![copy(1), copy(2)]);
                program
                    .submitted
                    .push(requested(Descriptor::drain(), s.record(3)));
                program.watched = Some(s.record(3));
                program.looks = (0..3).map(|n| Look::Status(s.record(n))).collect();
                program
            },
        )
        .in_batches(),
    );
    all
}

/// A copy within one operand.
fn overlaps() -> Vec<Case> {
    let mut all = Vec::new();
    for (from, to) in [(0, 1), (1, 0), (0, 63), (63, 0), (0, 4096), (4096, 0)] {
        all.push(
            case(
                format!("overlap: {from} to {to}"),
                "8.3.4",
                OVERLAP,
                &["new"],
                move |s| {
                    let size = 16 << 10;
                    let mut bytes = zeros(size + 4096);
                    bytes[from as usize..(from + size) as usize].copy_from_slice(&pattern(size));
                    let at = |offset: u32| s.operand(0) + u64::from(offset);
                    Program {
                        before: vec![(s.operand(0), bytes)],
                        submitted: vec![requested(
                            Descriptor::memmove(at(from), at(to), size),
                            s.record(0),
                        )],
                        watched: Some(s.record(0)),
                        looks: vec![new(at(to), size)],
                        ..Program::default()
                    }
                },
            )
            .with_needs(|target| {
                let general = dray_spec::GenCap::from_bits(target.config().capabilities.gen_cap);
                (!general.overlapping_copy()).then_some("copies that may overlap (GENCAP)")
            }),
        );
    }
    all
}

/// Where nothing is promised, what was seen is of use all the same.
fn unordered() -> Vec<Case> {
    let two = |first: u32, second: u32| {
        case(
            format!("no order: copy of {second} behind a copy of {first}"),
            "3.9",
            FREE,
            &[],
            move |s| {
                let copy = |n: u64, size| {
                    let copy = Descriptor::memmove(s.operand(0), s.operand(n), size);
                    requested(copy, s.record(n))
                };
                Program {
                    before: vec![(s.operand(0), pattern(256 << 10))],
                    submitted: vec![copy(1, first), copy(2, second)],
                    watched: Some(s.record(2)),
                    looks: vec![Look::Status(s.record(1))],
                    ..Program::default()
                }
            },
        )
    };
    vec![two(256 << 10, 64), two(64, 256 << 10), two(4096, 4096)]
}

/// Records that were not requested.
fn absent_records() -> Vec<Case> {
    let silent = |mut d: Descriptor, record: u64| {
        d.completion_addr = record;
        d.with_flags(Flags::COMPLETION_ADDRESS_VALID)
    };
    vec![
        case(
            "no record was requested of a copy".to_owned(),
            "8.1.3",
            ABSENT,
            &["none new"],
            move |s| {
                let copy = Descriptor::memmove(s.operand(0), s.operand(1), 4096);
                Program {
                    before: vec![(s.operand(0), pattern(4096)), (s.operand(1), zeros(4096))],
                    submitted: vec![silent(copy, s.record(0))],
                    watched: None,
                    looks: vec![Look::Status(s.record(0)), new(s.operand(1), 4096)],
                    ..Program::default()
                }
            },
        ),
        case(
            "no record was requested of a copy of no bytes".to_owned(),
            "8.1.3",
            ABSENT,
            &["13"],
            move |s| {
                let copy = Descriptor::memmove(s.operand(0), s.operand(1), 0);
                Program {
                    submitted: vec![silent(copy, s.record(0))],
                    watched: Some(s.record(0)),
                    looks: vec![Look::Status(s.record(0))],
                    ..Program::default()
                }
            },
        ),
    ]
}
