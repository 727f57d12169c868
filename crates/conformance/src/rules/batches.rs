//! Status 0x05: batches whose members fail.

use dray_spec::{Descriptor, Flags, Status};

use super::case::{Case, Reported, reported};
use super::layout::{DST, LIST, RECORD, SRC};
use super::results::record;
use super::rule::{Rule, with_gen_cap, without_flags};

pub(super) fn rules() -> Vec<Rule> {
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
            let reported = record(Status::BATCH_FAIL, 1, 3);
            let continuing = Case::new(batch, reported).with_list(&list);
            all = all.broken_by(continuing.on(|c| with_gen_cap(c, 15)));
        }
    }

    let bad = with_quiet_record(refused);
    let fenced = good.with_flags(Flags::FENCE);
    let unasked = without_flags(batch, Flags::REQUEST_COMPLETION_RECORD);
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
            .broken_by(Case::new(unasked, Reported::Nothing).with_list(&[good, bad, good]))
            .kept_by(Case::new(batch, failed(3)).with_list(&[good, bad, good]))
            .kept_by(Case::new(unasked, Reported::Nothing).with_list(&[good, good, good])),
        Rule::new("5.4", "a batch that is refused runs no member")
            .broken_by(
                Case::new(
                    Descriptor::batch(LIST, 1).with_completion(RECORD),
                    reported(Status::DESCRIPTOR_COUNT),
                )
                .with_list(&[good.with_completion(RECORD); 3]),
            )
            .kept_by(Case::new(batch, record(Status::SUCCESS, 0, 3)).with_list(&[good; 3])),
    ]
}

/// Errors are reported in a record of its own, beside that of the batch.
fn with_quiet_record(mut descriptor: Descriptor) -> Descriptor {
    descriptor.completion_addr = RECORD + 64;
    descriptor.with_flags(Flags::COMPLETION_ADDRESS_VALID)
}
