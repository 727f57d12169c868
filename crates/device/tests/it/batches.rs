//! Batches: fences, counts, what is reported, and what a stale handle can do.

use crate::common::manual_runner::{ManualRunner, batch, noop, records};
use crate::common::profile::{one_group, queue};
use dray_device::{DescriptorResult, Effect, ListRead, Member, Work, WorkKind, WorkQueueMode};
use dray_spec::{Descriptor, Flags, Status};

const SUCCESS: Status = Status::SUCCESS;

fn runner() -> ManualRunner {
    let queues = vec![queue(0, WorkQueueMode::Dedicated, 16)];
    ManualRunner::new(one_group(4, queues))
}

fn fenced(n: u64) -> Descriptor {
    noop(n).with_flags(Flags::FENCE)
}

#[test]
fn a_fence_waits_for_all_earlier_members_and_holds_all_later_ones() {
    let mut runner = runner();
    runner.write(0, &batch(1, 4));
    let id = runner.take_batch(0, &[noop(11), noop(12), fenced(13), noop(14)]);
    let (first, second) = (runner.member(id), runner.member(id));
    assert_eq!(runner.device.next_member(id), Member::Fenced);
    runner.done(&first);
    assert_eq!(runner.device.next_member(id), Member::Fenced);
    runner.done(&second);
    let (third, fourth) = (runner.member(id), runner.member(id));
    assert_eq!(runner.device.next_member(id), Member::None);
    assert_eq!(runner.descriptor(&third), fenced(13));
    // Behind a fence that has passed there is no order again.
    assert_eq!(runner.done(&fourth), [(14, SUCCESS)]);
    assert_eq!(runner.done(&third), [(13, SUCCESS), (1, SUCCESS)]);
}

#[test]
fn a_fence_on_the_first_member_waits_for_nothing() {
    let mut runner = runner();
    runner.write(0, &batch(1, 2));
    let id = runner.take_batch(0, &[fenced(11), noop(12)]);
    let member = runner.member(id);
    assert_eq!(runner.descriptor(&member), fenced(11));
    let member = runner.member(id);
    assert_eq!(runner.descriptor(&member), noop(12));
}

#[test]
fn whatever_is_not_success_stops_at_the_fence() {
    for status in [
        Status::SUCCESS_PREDICATE,
        Status::PAGE_FAULT,
        Status::PAGE_FAULT.with_write_fault(),
        Status::BAD_OPCODE,
    ] {
        let mut runner = runner();
        runner.write(0, &batch(1, 5));
        let list = [
            noop(11),
            noop(12),
            fenced(13).with_interrupt(3),
            noop(14),
            noop(15),
        ];
        let id = runner.take_batch(0, &list);
        let (first, second) = (runner.member(id), runner.member(id));
        assert_eq!(runner.ended(&first, status), [(11, status)]);
        assert_eq!(runner.device.next_member(id), Member::Fenced);
        // The rest has no record and no interrupt; the batch counts what was processed.
        let effects = runner.effects(&second, &DescriptorResult::status(SUCCESS));
        assert_eq!(records(&effects), [(12, SUCCESS), (1, Status::BATCH_FAIL)]);
        assert_eq!(effects.len(), 2);
        let Effect::Record { record, .. } = effects[1] else {
            panic!("the record of the batch");
        };
        assert_eq!(record.descriptors_completed(), 2);
        assert_eq!(runner.device.next_member(id), Member::None);
    }
}

#[test]
fn without_a_fence_a_failure_stops_nobody() {
    let mut runner = runner();
    runner.write(0, &batch(1, 3));
    let id = runner.take_batch(0, &[noop(11), noop(12), noop(13)]);
    let first = runner.member(id);
    runner.ended(&first, Status::PAGE_FAULT);
    let (second, third) = (runner.member(id), runner.member(id));
    assert_eq!(runner.done(&second), [(12, SUCCESS)]);
    assert_eq!(
        runner.done(&third),
        [(13, SUCCESS), (1, Status::BATCH_FAIL)]
    );
}

#[test]
fn a_failure_behind_a_fence_stops_only_at_the_next_one() {
    let mut runner = runner();
    runner.write(0, &batch(1, 4));
    let id = runner.take_batch(0, &[noop(11), fenced(12), noop(13), fenced(14)]);
    let first = runner.member(id);
    runner.done(&first);
    let second = runner.member(id);
    runner.ended(&second, Status::PAGE_FAULT);
    let third = runner.member(id);
    assert_eq!(
        runner.done(&third),
        [(13, SUCCESS), (1, Status::BATCH_FAIL)]
    );
}

#[test]
fn members_are_checked_one_by_one() {
    let mut runner = runner();
    runner.write(0, &batch(1, 3));
    let nested = batch(12, 2);
    let id = runner.take_batch(0, &[noop(11), nested, Descriptor::fill(0, 0, 0)]);
    let members: Vec<Work> = (0..3).map(|_| runner.member(id)).collect();
    let status = |work: &Work| match work.kind {
        WorkKind::Reject(rejection) => rejection.status,
        _ => SUCCESS,
    };
    let found: Vec<Status> = members.iter().map(status).collect();
    assert_eq!(found, [SUCCESS, Status::BAD_OPCODE, Status::TRANSFER_SIZE]);
    runner.done(&members[0]);
    runner.ended(&members[1], Status::BAD_OPCODE);
    // A member without an address for its record ends in a software error.
    let effects = runner.effects(
        &members[2],
        &DescriptorResult::status(Status::TRANSFER_SIZE),
    );
    let Effect::SoftwareError {
        status: Status::TRANSFER_SIZE,
        wq: 0,
        address: 0,
        origin: Some(origin),
        ..
    } = effects[0]
    else {
        panic!("{:?}", effects[0]);
    };
    assert_eq!((origin.operation, origin.member), (4, Some(2)));
    assert_eq!(records(&effects), [(1, Status::BATCH_FAIL)]);
}

#[test]
fn batches_on_several_engines_do_not_mix() {
    let mut runner = runner();
    for n in 1..=3 {
        runner.write(0, &batch(n, 3));
    }
    let ids = [1, 2, 3].map(|n| {
        let list = [noop(10 * n), noop(10 * n + 1), fenced(10 * n + 2)];
        runner.take_batch(n as u16, &list)
    });
    let pairs = ids.map(|id| [runner.member(id), runner.member(id)]);
    // The second one fails.
    runner.ended(&pairs[1][0], Status::PAGE_FAULT);
    runner.done(&pairs[2][1]);
    runner.done(&pairs[0][0]);
    assert_eq!(
        runner.done(&pairs[1][1]),
        [(21, SUCCESS), (2, Status::BATCH_FAIL)]
    );
    assert_eq!(runner.device.next_member(ids[0]), Member::Fenced);
    assert_eq!(runner.device.next_member(ids[2]), Member::Fenced);
    runner.done(&pairs[2][0]);
    runner.done(&pairs[0][1]);
    for n in [2, 0] {
        let last = runner.member(ids[n]);
        let n = n as u64 + 1;
        assert_eq!(runner.done(&last), [(10 * n + 2, SUCCESS), (n, SUCCESS)]);
    }
}

#[test]
fn a_failed_batch_that_asked_for_no_record_has_none() {
    for flags in [Flags::EMPTY, Flags::COMPLETION_ADDRESS_VALID] {
        let mut runner = runner();
        let mut quiet = Descriptor::batch(0x1000, 2)
            .with_flags(flags)
            .with_interrupt(4);
        quiet.completion_addr = 32 * u64::from(!flags.is_empty());
        runner.write(0, &quiet);
        let id = runner.take_batch(0, &[noop(11), noop(12)]);
        let (first, second) = (runner.member(id), runner.member(id));
        runner.ended(&first, Status::PAGE_FAULT);
        let effects = runner.effects(&second, &DescriptorResult::status(SUCCESS));
        assert_eq!(records(&effects), [(12, SUCCESS)]);
        assert_eq!(effects[1..], [Effect::Interrupt { handle: 4 }]);
    }
}

#[test]
fn a_list_that_cannot_be_read_ends_the_batch_where_it_is() {
    let mut runner = runner();
    runner.write(0, &batch(1, 4));
    runner.write(0, &batch(2, 4));
    let (none, half) = (runner.take(0), runner.take(1));
    let mut effects = Vec::new();
    runner
        .device
        .list_read(none.id, &[], ListRead::until(0x1000), &mut effects);
    assert_eq!(records(&effects), [(1, Status::BATCH_PAGE_FAULT)]);
    effects.clear();
    let list = [noop(11), noop(12)];
    runner
        .device
        .list_read(half.id, &list, ListRead::until(0x1080), &mut effects);
    assert_eq!(effects, []);
    let (first, second) = (runner.member(half.id), runner.member(half.id));
    assert_eq!(runner.device.next_member(half.id), Member::None);
    runner.done(&first);
    let effects = runner.effects(&second, &DescriptorResult::status(SUCCESS));
    let Effect::Record { record, .. } = effects[1] else {
        panic!("the record of the batch");
    };
    assert_eq!(record.status(), Status::BATCH_PAGE_FAULT);
    assert_eq!(record.descriptors_completed(), 2);
    assert_eq!(record.fault_address, 0x1080);
}

#[test]
fn behind_a_failed_fence_the_unread_rest_of_the_list_does_not_matter() {
    let mut runner = runner();
    runner.write(0, &batch(1, 4));
    let work = runner.take(0);
    let list = [noop(11), fenced(12)];
    let mut effects = Vec::new();
    runner
        .device
        .list_read(work.id, &list, ListRead::until(0x1080), &mut effects);
    let first = runner.member(work.id);
    let reported = runner.ended(&first, Status::PAGE_FAULT);
    assert_eq!(
        reported,
        [(11, Status::PAGE_FAULT), (1, Status::BATCH_FAIL)]
    );
}

#[test]
fn a_stale_handle_reaches_nothing() {
    let mut runner = runner();
    runner.write(0, &batch(1, 2));
    let old = runner.take_batch(0, &[noop(11), fenced(12)]);
    let first = runner.member(old);
    runner.ended(&first, Status::PAGE_FAULT);
    // The places of the batch and of its member are taken by the next ones.
    runner.write(0, &batch(2, 2));
    let id = runner.take_batch(0, &[noop(21), noop(22)]);
    assert_eq!(runner.device.next_member(old), Member::None);
    assert_eq!(runner.done(&first), []);
    assert_eq!(runner.fetched(old, &[noop(99)]), []);
    // Nor does one that is given twice what it can take once.
    assert_eq!(runner.fetched(id, &[noop(99)]), []);
    let (first, second) = (runner.member(id), runner.member(id));
    assert_eq!(runner.done(&first), [(21, SUCCESS)]);
    assert_eq!(runner.done(&first), []);
    assert_eq!(runner.done(&second), [(22, SUCCESS), (2, SUCCESS)]);
    assert_eq!(runner.fetched(second.id, &[noop(99)]), []);
}

#[test]
fn a_batch_that_its_runner_ends_early_takes_its_members_along() {
    let mut runner = runner();
    runner.write(0, &batch(1, 2));
    let work = runner.take(0);
    runner.fetched(work.id, &[noop(11), noop(12)]);
    let member = runner.member(work.id);
    let error = Status::HARDWARE_ERROR_READ;
    assert_eq!(runner.ended(&work, error), [(1, error)]);
    assert_eq!(runner.device.next_member(work.id), Member::None);
    assert_eq!(runner.done(&member), [(11, SUCCESS)]);
    // Its place is clean for the next one.
    runner.write(0, &batch(2, 2));
    let id = runner.take_batch(0, &[noop(21), noop(22)]);
    let (first, second) = (runner.member(id), runner.member(id));
    runner.done(&first);
    assert_eq!(runner.done(&second), [(22, SUCCESS), (2, SUCCESS)]);
}
