//! Status 0x01, 0x02: ends that are no errors of the descriptor.

use dray_spec::{CompletionRecord, Descriptor, Status};

use super::case::{Case, Reported};
use super::layout::{RECORD, SRC};
use super::rule::Rule;

pub(super) fn rules() -> Vec<Rule> {
    [compared(), faults_behind_differences()]
        .into_iter()
        .flatten()
        .collect()
}

pub(super) fn record(status: Status, result: u8, bytes: u32) -> Reported {
    Reported::Record(CompletionRecord {
        result,
        bytes_completed: bytes,
        ..CompletionRecord::with_status(status)
    })
}

/// Spec Table 8-17, for both comparisons; "broken" is what ends with 0x02.
fn compared() -> Vec<Rule> {
    let same = Descriptor::compare(SRC, SRC, 1000);
    let other = Descriptor::compare(SRC, SRC + 1, 1000);
    // The first byte of the source is 0xb0, the next is not 0.
    let pattern = Descriptor::compare_pattern(SRC, 0xb0, 1);
    let no_pattern = Descriptor::compare_pattern(SRC, 0xb0, 8);
    let (yes, no) = (Status::SUCCESS, Status::SUCCESS_PREDICATE);
    let mut rules = Vec::new();
    for (name, same, other, first) in [
        ("compare: predicate", same, other, 0),
        ("compare pattern: predicate", pattern, no_pattern, 1),
    ] {
        let case = |d: Descriptor, reported| Case::new(d.with_completion(RECORD), reported);
        let mut rule = Rule::new("Table 8-17", name)
            .kept_by(case(same, record(yes, 0, 0)))
            .kept_by(case(other, record(yes, 1, first)));
        // Bits 7:1 of the expected result do not count.
        for high in [0, 0xfe] {
            let expect_same = |d: Descriptor| d.with_expected_result(high);
            let expect_other = |d: Descriptor| d.with_expected_result(high | 1);
            rule = rule
                .kept_by(case(expect_same(same), record(yes, 0, 0)))
                .broken_by(case(expect_same(other), record(no, 1, first)))
                .broken_by(case(expect_other(same), record(no, 0, 0)))
                .kept_by(case(expect_other(other), record(yes, 1, first)));
        }
        // Without the flag the expected result does not count either.
        let mut unchecked = other;
        unchecked.operation[0] = 0;
        rules.push(rule.kept_by(case(unchecked, record(yes, 1, first))));
    }
    rules
}

/// A difference is reported, not the fault behind it (spec 8.3.6); a fault before it is.
fn faults_behind_differences() -> Vec<Rule> {
    let end = SRC + 12 * 4096;
    let compare = |a| Descriptor::compare(a, end - 8, 16).with_completion(RECORD);
    let equal = Descriptor::compare(end - 8, end - 8, 16).with_completion(RECORD);
    vec![
        Rule::new("8.3.6", "a difference counts more than a fault behind it")
            .broken_by(Case::new(
                equal,
                Reported::Record(CompletionRecord {
                    bytes_completed: 8,
                    fault_address: end,
                    ..CompletionRecord::with_status(Status::PAGE_FAULT)
                }),
            ))
            .kept_by(Case::new(compare(end - 9), record(Status::SUCCESS, 1, 0))),
    ]
}
