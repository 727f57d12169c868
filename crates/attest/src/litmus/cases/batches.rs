//! Batches: fences, members that fail, the record of the batch.

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::{
    BATCH, FAILED, FENCE, FREE, SIZES, batches_and_translation, batches_of_8, case, crc, new,
    pattern, requested, zeros,
};
use crate::litmus::{Case, Look, Program, Scene};

/// A batch with these members, whose record is 0.
pub(super) fn batch(s: &Scene, list: Vec<Descriptor>) -> Program {
    let batch = Descriptor::batch(s.list(), list.len() as u32);
    Program {
        submitted: vec![requested(batch, s.record(0))],
        list,
        watched: Some(s.record(0)),
        ..Program::default()
    }
}

/// The second of two copies, or another operation, reads what the first has written.
pub(super) fn fences() -> Vec<Case> {
    let mut all = Vec::new();
    for size in SIZES {
        all.push(
            case(
                format!("fence: copy behind a copy of {size}"),
                "3.9",
                FENCE,
                &["new new"],
                move |s| {
                    let first = Descriptor::memmove(s.operand(0), s.operand(1), size);
                    let then = Descriptor::memmove(s.operand(1), s.operand(2), size);
                    Program {
                        before: vec![
                            (s.operand(0), pattern(size)),
                            (s.operand(1), zeros(size)),
                            (s.operand(2), zeros(size)),
                        ],
                        looks: vec![new(s.operand(2), size), new(s.operand(1), size)],
                        ..behind_a_fence(s, first, then)
                    }
                },
            )
            .in_batches(),
        );
        all.push(
            case(
                format!("fence: CRC behind a copy of {size}"),
                "3.9",
                FENCE,
                &["whole"],
                move |s| {
                    let first = Descriptor::memmove(s.operand(0), s.operand(1), size);
                    let then = Descriptor::crc(s.operand(1), size, 0);
                    let mut expected = CompletionRecord::with_status(Status::SUCCESS);
                    expected.set_crc32(crc(&pattern(size)));
                    Program {
                        before: vec![(s.operand(0), pattern(size)), (s.operand(1), zeros(size))],
                        looks: vec![Look::Record {
                            at: s.record(2),
                            expected: Box::new(expected),
                        }],
                        ..behind_a_fence(s, first, then)
                    }
                },
            )
            .in_batches(),
        );
        all.push(
            case(
                format!("fences: three copies in a row of {size}"),
                "3.9",
                FENCE,
                &["new"],
                move |s| {
                    let link = |n: u64| {
                        let copy = Descriptor::memmove(s.operand(n), s.operand(n + 1), size);
                        requested(copy, s.record(n + 1)).with_flags(Flags::FENCE)
                    };
                    Program {
                        before: vec![
                            (s.operand(0), pattern(size)),
                            (s.operand(1), zeros(size)),
                            (s.operand(2), zeros(size)),
                            (s.operand(3), zeros(size)),
                        ],
                        looks: vec![new(s.operand(3), size)],
                        ..batch(s, (0..3).map(link).collect())
                    }
                },
            )
            .in_batches(),
        );
        all.push(
            case(
                format!("no fence: copy behind a copy of {size}"),
                "3.9",
                FREE,
                &[],
                move |s| {
                    let first = Descriptor::memmove(s.operand(0), s.operand(1), size);
                    let then = Descriptor::memmove(s.operand(1), s.operand(2), size);
                    Program {
                        before: vec![
                            (s.operand(0), pattern(size)),
                            (s.operand(1), zeros(size)),
                            (s.operand(2), zeros(size)),
                        ],
                        looks: vec![new(s.operand(2), size)],
                        ..batch(
                            s,
                            vec![requested(first, s.record(1)), requested(then, s.record(2))],
                        )
                    }
                },
            )
            .in_batches(),
        );
    }
    all
}

/// A member that does not succeed, one with a fence, and one behind it.
pub(super) fn failures() -> Vec<Case> {
    type First = fn(&Scene) -> Descriptor;
    let firsts: [(&str, &[&'static str], First); 4] = [
        ("a false predicate", &["05 02 none none old"], |s| {
            Descriptor::compare(s.operand(0), s.operand(1), 64).with_expected_result(0)
        }),
        ("a size of 0", &["05 13 none none old"], |s| {
            Descriptor::memmove(s.operand(0), s.operand(1), 0)
        }),
        ("a batch in the batch", &["05 10 none none old"], |s| {
            Descriptor::batch(s.list(), 2)
        }),
        (
            "a page that is not there",
            &["05 03 none none old", "05 83 none none old"],
            |s| {
                // The first page of no process.
                Descriptor::memmove(0, s.operand(1), 64)
            },
        ),
    ];
    firsts
        .map(|(name, allowed, first)| {
            case(
                format!("fence behind {name}"),
                "3.9",
                FAILED,
                allowed,
                move |s| {
                    let copy = |n| Descriptor::memmove(s.operand(0), s.operand(n), 4096);
                    Program {
                        before: vec![
                            (s.operand(0), pattern(4096)),
                            (s.operand(1), zeros(4096)),
                            (s.operand(2), zeros(4096)),
                        ],
                        looks: vec![
                            Look::Status(s.record(0)),
                            Look::Status(s.record(1)),
                            Look::Status(s.record(2)),
                            Look::Status(s.record(3)),
                            new(s.operand(2), 4096),
                        ],
                        ..batch(
                            s,
                            vec![
                                requested(first(s), s.record(1)),
                                requested(copy(2), s.record(2)).with_flags(Flags::FENCE),
                                requested(copy(2), s.record(3)),
                            ],
                        )
                    }
                },
            )
            .with_needs(match name {
                "a page that is not there" => batches_and_translation,
                _ => batches_of_8,
            })
        })
        .into_iter()
        .collect()
}

/// Records of members, when that of the batch has been seen.
pub(super) fn batches() -> Vec<Case> {
    let all_ended = "01 01 01 01 01 01 01 01 01";
    let mut all: Vec<Case> = SIZES
        .map(|size| {
            case(
                format!("batch of 8 copies of {size}"),
                "3.8",
                BATCH,
                &[all_ended],
                move |s| {
                    let copy = |n: u64| {
                        let copy = Descriptor::memmove(s.operand(0), s.operand(n), size);
                        requested(copy, s.record(n))
                    };
                    Program {
                        before: vec![(s.operand(0), pattern(size))],
                        looks: (0..9).map(|n| Look::Status(s.record(n))).collect(),
                        ..batch(s, (1..9).map(copy).collect())
                    }
                },
            )
            .in_batches()
        })
        .into_iter()
        .collect();
    all.push(
        case(
            "batch: members that ended are counted".to_owned(),
            "8.3.2",
            BATCH,
            &["whole"],
            |s| {
                let noop = |n| requested(Descriptor::noop(), s.record(n));
                let expected = CompletionRecord {
                    bytes_completed: 5,
                    ..CompletionRecord::with_status(Status::SUCCESS)
                };
                Program {
                    looks: vec![Look::Record {
                        at: s.record(0),
                        expected: Box::new(expected),
                    }],
                    ..batch(s, (1..6).map(noop).collect())
                }
            },
        )
        .in_batches(),
    );
    all
}

/// A batch of two, the second of which waits for the first.
fn behind_a_fence(s: &Scene, first: Descriptor, then: Descriptor) -> Program {
    let then = requested(then, s.record(2)).with_flags(Flags::FENCE);
    batch(s, vec![requested(first, s.record(1)), then])
}
