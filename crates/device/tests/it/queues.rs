//! Portals, work queues, priorities and drains.

use crate::common::manual_runner::{ManualRunner, batch, drain, noop};
use crate::common::profile::{one_group, queue};
use dray_device::{DeviceConfig, Effect, GroupConfig, Portal, Submission, WorkKind, WorkQueueMode};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use Submission::{Accepted, Ignored, Lost, Retry};
use WorkQueueMode::{Dedicated, Shared};

const SUCCESS: Status = Status::SUCCESS;

fn runner(mode: WorkQueueMode, size: u16) -> ManualRunner {
    ManualRunner::new(one_group(2, vec![queue(0, mode, size)]))
}

#[test]
fn a_write_to_a_full_dedicated_queue_is_lost_and_told() {
    let mut runner = runner(Dedicated, 2);
    assert_eq!(runner.write(0, &noop(1)), Accepted);
    assert_eq!(runner.write(0, &noop(2)), Accepted);
    assert_eq!(runner.write(0, &noop(3)), Lost);
    let overflow = Effect::SoftwareError {
        status: Status::WQ_OVERFLOW,
        wq: 0,
        address: 0,
        origin: None,
        record: CompletionRecord::default(),
    };
    assert_eq!(runner.device.take_errors(), [overflow]);
    assert_eq!(runner.device.take_errors(), []);
    // What was lost never comes back.
    for n in [1, 2] {
        let work = runner.take(0);
        assert_eq!(runner.done(&work), [(n, SUCCESS)]);
    }
    assert_eq!(runner.device.take(0), None);
}

#[test]
fn a_flood_of_lost_writes_does_not_fill_the_memory() {
    let mut runner = runner(Dedicated, 1);
    for _ in 0..10_000 {
        runner.write(0, &noop(1));
    }
    assert_eq!(runner.device.take_errors().len(), 4096);
}

#[test]
fn a_dedicated_queue_has_no_threshold_on_either_portal() {
    let mut config = one_group(1, vec![queue(0, Dedicated, 4)]);
    config.work_queues[0].threshold = 0;
    for limited in [true, false] {
        let mut runner = ManualRunner::new(config.clone());
        let portal = Portal { wq: 0, limited };
        for n in 0..4 {
            assert_eq!(runner.device.write_posted(portal, &noop(n)), Accepted);
        }
        assert_eq!(runner.device.write_posted(portal, &noop(4)), Lost);
    }
}

#[test]
fn a_shared_queue_stops_at_the_threshold_or_at_its_size() {
    let mut config = one_group(1, vec![queue(0, Shared, 4)]);
    config.work_queues[0].threshold = 2;
    let mut runner = ManualRunner::new(config);
    assert_eq!(runner.enqueue(0, &noop(1)), Accepted);
    assert_eq!(runner.enqueue(0, &noop(2)), Accepted);
    assert_eq!(runner.enqueue(0, &noop(3)), Retry);
    assert_eq!(runner.enqueue_unlimited(0, &noop(4)), Accepted);
    assert_eq!(runner.enqueue_unlimited(0, &noop(5)), Accepted);
    assert_eq!(runner.enqueue_unlimited(0, &noop(6)), Retry);
    // The limited portal opens only below the threshold.
    for _ in 0..2 {
        runner.take(0);
        assert_eq!(runner.enqueue(0, &noop(7)), Retry);
    }
    runner.take(0);
    assert_eq!(runner.enqueue(0, &noop(8)), Accepted);
    assert_eq!(runner.device.take_errors(), []);
}

#[test]
fn a_threshold_of_nothing_closes_the_limited_portal_and_one_too_high_is_the_size() {
    for (threshold, room) in [(0, 0), (9, 3)] {
        let mut config = one_group(1, vec![queue(0, Shared, 3)]);
        config.work_queues[0].threshold = threshold;
        let mut runner = ManualRunner::new(config);
        for n in 0..room {
            assert_eq!(runner.enqueue(0, &noop(n)), Accepted);
        }
        assert_eq!(runner.enqueue(0, &noop(9)), Retry);
    }
}

#[test]
fn the_wrong_way_in_is_ignored_or_answered_with_retry() {
    let mut runner = ManualRunner::new(one_group(
        1,
        vec![queue(0, Dedicated, 4), queue(3, Shared, 4)],
    ));
    assert_eq!(runner.enqueue(0, &noop(1)), Retry);
    assert_eq!(runner.enqueue_unlimited(0, &noop(1)), Retry);
    assert_eq!(runner.write(3, &noop(1)), Ignored);
    // Queues that are not enabled, and portals that no queue has.
    for wq in [1, 7, 8, u16::MAX] {
        assert_eq!(runner.enqueue(wq, &noop(1)), Retry);
        assert_eq!(runner.write(wq, &noop(1)), Ignored);
        assert_eq!(runner.device.occupancy(wq), None);
        assert_eq!(runner.device.engines_of(wq), []);
    }
    assert_eq!(runner.device.occupancy(0), Some(0));
    assert_eq!(runner.device.occupancy(3), Some(0));
    assert_eq!(runner.device.take_errors(), []);
    assert_eq!(runner.device.take(0), None);
}

#[test]
fn an_entry_is_free_as_soon_as_an_engine_takes_it() {
    let mut runner = runner(Dedicated, 1);
    runner.write(0, &noop(1));
    assert_eq!(runner.device.occupancy(0), Some(1));
    let first = runner.take(0);
    assert_eq!(runner.device.occupancy(0), Some(0));
    assert_eq!(runner.write(0, &noop(2)), Accepted);
    assert_eq!(runner.write(0, &noop(3)), Lost);
    assert_eq!(runner.done(&first), [(1, SUCCESS)]);
    assert_eq!(runner.device.occupancy(0), Some(1));
}

#[test]
fn priorities_share_the_engines_and_nobody_starves() {
    let mut config = one_group(2, vec![queue(0, Dedicated, 60), queue(1, Dedicated, 60)]);
    config.work_queues[0].priority = 2;
    config.work_queues[1].priority = 6;
    let mut runner = ManualRunner::new(config);
    for n in 0..60 {
        runner.write(0, &noop(n));
        runner.write(1, &noop(100 + n));
    }
    let order: Vec<bool> = (0..16)
        .map(|n| {
            let work = runner.take(n % 2);
            runner.descriptor(&work).completion_addr >= 100 * 32
        })
        .collect();
    // In turn while both have credit, then the one that still has some (spec 4.1).
    let turn = [false, true, false, true, true, true, true, true];
    assert_eq!(order, [turn, turn].concat());
}

#[test]
fn an_engine_serves_its_group_alone() {
    let group = |id, engines: &[u16]| GroupConfig {
        id,
        engines: engines.to_vec(),
        ..GroupConfig::default()
    };
    let mut config = DeviceConfig {
        groups: vec![group(2, &[3]), group(0, &[1, 0])],
        ..one_group(1, vec![queue(5, Dedicated, 4), queue(1, Shared, 4)])
    };
    config.work_queues[0].group = 2;
    let mut runner = ManualRunner::new(config);
    assert_eq!(runner.device.engines_of(5), [3]);
    assert_eq!(runner.device.engines_of(1), [1, 0]);
    runner.write(5, &noop(5));
    runner.enqueue(1, &noop(1));
    // One engine is in no group, one is not there at all.
    for idle in [2, 4, u16::MAX] {
        assert_eq!(runner.device.take(idle), None);
    }
    let work = runner.take(0);
    assert_eq!(runner.descriptor(&work), noop(1));
    assert_eq!(runner.device.take(1), None);
    let work = runner.take(3);
    assert_eq!(runner.descriptor(&work), noop(5));
}

#[test]
fn a_drain_on_an_empty_queue_is_work_like_any_other() {
    let mut runner = runner(Shared, 4);
    runner.enqueue(0, &drain(1));
    let work = runner.take(0);
    assert_eq!(work.kind, WorkKind::Execute(Opcode::Drain));
    assert_eq!(runner.done(&work), [(1, SUCCESS)]);
}

#[test]
fn a_drain_ends_with_the_last_of_what_was_before_it_and_waits_for_nothing_else() {
    let mut runner = ManualRunner::new(one_group(
        2,
        vec![queue(0, Dedicated, 8), queue(1, Dedicated, 8)],
    ));
    runner.write(1, &noop(90));
    let elsewhere = runner.take(0);
    for descriptor in [noop(1), noop(2), drain(3), noop(4)] {
        runner.write(0, &descriptor);
    }
    let (first, second, behind) = (runner.take(0), runner.take(1), runner.take(0));
    assert_eq!(runner.descriptor(&behind), noop(4));
    assert_eq!(runner.device.occupancy(0), Some(0));
    assert_eq!(runner.done(&second), [(2, SUCCESS)]);
    // What is behind it may pass it, and does not end it.
    assert_eq!(runner.done(&behind), [(4, SUCCESS)]);
    assert_eq!(runner.done(&first), [(1, SUCCESS), (3, SUCCESS)]);
    assert_eq!(runner.done(&elsewhere), [(90, SUCCESS)]);
}

#[test]
fn a_drain_waits_for_a_failure_and_for_what_is_refused() {
    let mut runner = runner(Dedicated, 8);
    runner.write(0, &noop(1));
    runner.write(0, &noop(2).with_flags(Flags::FENCE));
    runner.write(0, &drain(3));
    let (first, refused) = (runner.take(0), runner.take(0));
    assert_eq!(runner.device.take(0), None);
    let WorkKind::Reject(rejection) = refused.kind else {
        panic!("a fence outside a batch");
    };
    assert_eq!(
        runner.ended(&first, Status::PAGE_FAULT),
        [(1, Status::PAGE_FAULT)]
    );
    let mut reported = Vec::new();
    runner
        .device
        .done(refused.id, &rejection.outcome(), &mut reported);
    let reported = crate::common::manual_runner::records(&reported);
    assert_eq!(reported, [(2, Status::INVALID_FLAGS), (3, SUCCESS)]);
}

#[test]
fn drains_end_in_order_each_with_what_it_waited_for() {
    let mut runner = runner(Dedicated, 16);
    for descriptor in [
        noop(1),
        drain(2),
        noop(3),
        drain(4),
        drain(5),
        noop(6),
        drain(7),
    ] {
        runner.write(0, &descriptor);
    }
    let (one, three, six) = (runner.take(0), runner.take(1), runner.take(0));
    assert_eq!(runner.device.take(1), None);
    assert_eq!(runner.done(&three), [(3, SUCCESS)]);
    assert_eq!(
        runner.done(&one),
        [(1, SUCCESS), (2, SUCCESS), (4, SUCCESS), (5, SUCCESS)]
    );
    assert_eq!(runner.done(&six), [(6, SUCCESS), (7, SUCCESS)]);
}

#[test]
fn a_drain_on_an_engine_holds_the_next_one_back() {
    let mut runner = runner(Dedicated, 4);
    runner.write(0, &drain(1));
    runner.write(0, &drain(2));
    let first = runner.take(0);
    assert_eq!(runner.device.take(1), None);
    assert_eq!(runner.done(&first), [(1, SUCCESS), (2, SUCCESS)]);
}

#[test]
fn a_drain_waits_for_a_batch_and_all_its_members() {
    let mut runner = runner(Dedicated, 8);
    runner.write(0, &batch(1, 2));
    runner.write(0, &drain(2));
    let work = runner.take(0);
    assert_eq!(runner.device.take(0), None);
    assert_eq!(runner.fetched(work.id, &[noop(11), noop(12)]), []);
    let (first, second) = (runner.member(work.id), runner.member(work.id));
    assert_eq!(runner.done(&second), [(12, SUCCESS)]);
    assert_eq!(
        runner.done(&first),
        [(11, SUCCESS), (1, SUCCESS), (2, SUCCESS)]
    );
}

#[test]
fn a_drain_that_is_refused_waits_for_nothing() {
    let mut runner = runner(Dedicated, 4);
    runner.write(0, &noop(1));
    let mut silent = drain(2);
    silent.flags_opcode &= !Flags::REQUEST_COMPLETION_RECORD.bits();
    runner.write(0, &silent);
    runner.take(0);
    assert!(matches!(runner.take(0).kind, WorkKind::Reject(_)));
}

#[test]
fn a_drain_may_ask_for_an_interrupt_alone() {
    let mut runner = runner(Dedicated, 4);
    runner.write(0, &noop(1));
    runner.write(0, &Descriptor::drain().with_interrupt(9));
    let first = runner.take(0);
    assert_eq!(runner.device.take(0), None);
    let effects = runner.effects(&first, &dray_device::DescriptorResult::status(SUCCESS));
    assert_eq!(effects.len(), 2);
    assert_eq!(effects[1], Effect::Interrupt { handle: 9 });
}

#[test]
fn a_drain_of_a_shared_queue_waits_for_its_pasid_alone() {
    let mut runner = runner(Shared, 8);
    let of = |descriptor: Descriptor, pasid| descriptor.with_pasid(pasid);
    for descriptor in [
        of(noop(1), 1),
        of(noop(2), 2),
        of(drain(3), 1),
        of(drain(4), 3),
    ] {
        runner.enqueue(0, &descriptor);
    }
    let (first, second) = (runner.take(0), runner.take(1));
    // Nothing of PASID 3 is there, that of PASID 1 waits.
    let third = runner.take(0);
    assert_eq!(runner.descriptor(&third).completion_addr, 4 * 32);
    assert_eq!(runner.done(&third), [(4, Status::SUCCESS)]);
    assert_eq!(runner.done(&second), [(2, Status::SUCCESS)]);
    assert_eq!(
        runner.done(&first),
        [(1, Status::SUCCESS), (3, Status::SUCCESS)]
    );
}
