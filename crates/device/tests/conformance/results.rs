//! Status 0x01, 0x02, 0x05: ends that are no errors of the descriptor.

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use crate::rule::{Case, DST, LIST, RECORD, Rule, SRC, Told, told, with_gen_cap};

pub(crate) fn rules() -> Vec<Rule> {
    [compared(), batches(), faults_behind_differences()]
        .into_iter()
        .flatten()
        .collect()
}

fn record(status: Status, result: u8, bytes: u32) -> Told {
    Told::Record(CompletionRecord {
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
        let case = |d: Descriptor, told| Case::new(d.with_completion(RECORD), told);
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

/// A difference is told, not the fault behind it (spec 8.3.6); a fault before it is.
fn faults_behind_differences() -> Vec<Rule> {
    let end = SRC + 12 * 4096;
    let compare = |a| Descriptor::compare(a, end - 8, 16).with_completion(RECORD);
    let equal = Descriptor::compare(end - 8, end - 8, 16).with_completion(RECORD);
    vec![
        Rule::new("8.3.6", "a difference counts more than a fault behind it")
            .broken_by(Case::new(
                equal,
                Told::Record(CompletionRecord {
                    bytes_completed: 8,
                    fault_address: end,
                    ..CompletionRecord::with_status(Status::PAGE_FAULT)
                }),
            ))
            .kept_by(Case::new(compare(end - 9), record(Status::SUCCESS, 1, 0))),
    ]
}

fn batches() -> Vec<Rule> {
    let batch = Descriptor::batch(LIST, 3).with_completion(RECORD);
    let good = Descriptor::memmove(SRC, DST, 64);
    let refused = Descriptor::memmove(SRC, DST, 0);
    let faulted = Descriptor::memmove(SRC, 0, 64);
    let unequal = Descriptor::compare(SRC, DST + 1, 64)
        .with_completion(RECORD + 32)
        .with_expected_result(0);
    let failed = |processed| record(Status::BATCH_FAIL, 0, processed);
    let mut all = Rule::new("3.8", "all members succeed")
        .kept_by(Case::new(batch, record(Status::SUCCESS, 0, 3)).with_list(&[good; 3]));
    for bad in [refused, faulted, unequal] {
        for place in 0..3 {
            let mut list = [good; 3];
            list[place] = bad;
            let case = Case::new(batch, failed(3));
            // Only the record of the batch is looked at, and nothing of a member without one.
            let list = list.map(|d| match d.completion_addr {
                0 => with_quiet_record(d),
                _ => d,
            });
            all = all.broken_by(case.clone().with_list(&list));
            let told = record(Status::BATCH_FAIL, 1, 3);
            let continuing = Case::new(batch, told).with_list(&list);
            all = all.broken_by(continuing.on(|c| with_gen_cap(c, 15)));
        }
    }

    let bad = with_quiet_record(refused);
    let fenced = good.with_flags(Flags::FENCE);
    let mut unasked = batch;
    unasked.flags_opcode &= !Flags::REQUEST_COMPLETION_RECORD.bits();
    vec![
        all,
        Rule::new("3.9", "behind a failure nothing passes a fence")
            .broken_by(Case::new(batch, failed(1)).with_list(&[bad, fenced, good]))
            .broken_by(Case::new(batch, failed(2)).with_list(&[good, bad, fenced]))
            .broken_by(
                Case::new(
                    batch.with_flags(Flags::BATCH_ERROR),
                    record(Status::BATCH_FAIL, 1, 0),
                )
                .on(|c| with_gen_cap(c, 15))
                .with_list(&[fenced, good, good]),
            )
            .kept_by(
                Case::new(batch, record(Status::SUCCESS, 0, 3)).with_list(&[good, fenced, fenced]),
            )
            .kept_by(Case::new(batch, failed(3)).with_list(&[good, fenced, bad])),
        Rule::new("8.1.3", "a failed batch without request has no record")
            .broken_by(Case::new(unasked, Told::Nothing).with_list(&[good, bad, good]))
            .kept_by(Case::new(batch, failed(3)).with_list(&[good, bad, good]))
            .kept_by(Case::new(unasked, Told::Nothing).with_list(&[good, good, good])),
        Rule::new("5.4", "a batch that is refused runs no member")
            .broken_by(
                Case::new(
                    Descriptor::batch(LIST, 1).with_completion(RECORD),
                    told(Status::DESCRIPTOR_COUNT),
                )
                .with_list(&[good.with_completion(RECORD); 3]),
            )
            .kept_by(Case::new(batch, record(Status::SUCCESS, 0, 3)).with_list(&[good; 3])),
    ]
}

/// Errors are told in a record of its own, beside that of the batch.
fn with_quiet_record(mut descriptor: Descriptor) -> Descriptor {
    descriptor.completion_addr = RECORD + 64;
    descriptor.with_flags(Flags::COMPLETION_ADDRESS_VALID)
}
