//! The way of each descriptor, for a listener that asks for it.

use std::collections::HashSet;
use std::thread;

use crate::common::{Records, Witness, config, hold, insist, portal, queue, start, ways};
use dray_device::{Submission, WorkId, WorkQueueMode};
use dray_realtime::{Event, Options, Stop};
use dray_spec::registers::Command;
use dray_spec::{Descriptor, Opcode, Status};

use WorkQueueMode::{Dedicated, Shared};

/// Every way to run, with steps.
fn stepped() -> impl Iterator<Item = (u16, Options)> {
    let ways = ways().into_iter();
    ways.map(|(engines, options)| {
        let steps = true;
        (engines, Options { steps, ..options })
    })
}

/// What was reported, checked: each descriptor has a beginning, and one end after it.
fn reported(witness: &Witness) -> Vec<Event> {
    let events = witness.events.lock().expect("no thread panics with it");
    let mut alive = HashSet::<WorkId>::new();
    for event in events.iter() {
        match event {
            Event::Accepted { id, .. } => assert!(alive.insert(*id), "{event:?}"),
            Event::Started { id, batch, .. } => match batch {
                Some(batch) => {
                    assert!(alive.contains(batch), "{event:?}");
                    assert!(alive.insert(*id), "{event:?}");
                }
                None => assert!(alive.contains(id), "{event:?}"),
            },
            Event::Ended { id, .. } => assert!(alive.remove(id), "{event:?}"),
            _ => {}
        }
    }
    assert!(alive.is_empty(), "without an end: {alive:?}");
    events.clone()
}

#[test]
fn descriptors_batches_and_their_members_have_a_beginning_and_an_end() {
    for (engines, options) in stepped() {
        let (device, witness) = start(config(engines, vec![queue(0, Dedicated, 16)]), options);
        let portal = portal(&device, 0, false);
        let records = Records::new(2);
        let list = [Descriptor::noop(); 3];
        let list = list.as_ptr().expose_provenance() as u64;
        let batch = Descriptor::batch(list, 3).with_completion(records.address(0));
        insist(&portal, &batch);
        records.wait(0);
        let drain = Descriptor::drain().with_completion(records.address(1));
        insist(&portal, &drain);
        records.wait(1);
        device.stop(Stop::Drain).expect("no failure");
        let events = reported(&witness);
        let accepted = events.iter().filter_map(|event| match event {
            Event::Accepted { descriptor, .. } => descriptor.opcode().ok(),
            _ => None,
        });
        assert_eq!(accepted.collect::<Vec<_>>(), [Opcode::Batch, Opcode::Drain]);
        let members = events.iter().filter(|event| {
            matches!(event, Event::Started { batch: Some(_), descriptor, .. }
                if descriptor.opcode() == Ok(Opcode::Noop))
        });
        assert_eq!(members.count(), 3);
        let ends = events.iter().filter_map(|event| match event {
            Event::Ended { record, .. } => Some(record.expect("there is no abort").status()),
            _ => None,
        });
        assert_eq!(ends.collect::<Vec<_>>(), [Status::SUCCESS; 5]);
    }
}

#[test]
fn what_is_given_up_ends_without_a_record() {
    for (engines, options) in stepped() {
        let (device, witness) = start(config(engines, vec![queue(0, Dedicated, 16)]), options);
        let portal = portal(&device, 0, false);
        let mut into = [0; 64];
        hold(&portal, &witness, &mut into, 1);
        for _ in 0..5 {
            insist(&portal, &Descriptor::noop());
        }
        thread::scope(|scope| {
            scope.spawn(|| device.command(Command::AbortAll, 0));
            witness.open_gate();
        });
        device.stop(Stop::Drain).expect("no failure");
        let events = reported(&witness);
        let is_abandoned = |event: &&Event| matches!(event, Event::Abandoned { .. });
        let given_up = |event: &&Event| matches!(event, Event::Ended { record: None, .. });
        assert_eq!(
            events.iter().filter(is_abandoned).count(),
            events.iter().filter(given_up).count()
        );
    }
}

#[test]
fn nobody_is_told_who_has_not_asked() {
    for (engines, options) in ways() {
        let (device, witness) = start(config(engines, vec![queue(0, Dedicated, 16)]), options);
        insist(&portal(&device, 0, false), &Descriptor::noop());
        device.stop(Stop::Drain).expect("no failure");
        assert_eq!(*witness.events.lock().expect("not poisoned"), []);
    }
}

#[test]
fn a_full_shared_queue_counts_what_it_puts_off() {
    let (engines, options) = ways()[0];
    let (device, witness) = start(config(engines, vec![queue(0, Shared, 4)]), options);
    let portal = portal(&device, 0, true);
    let mut into = [0; 64];
    hold(&portal, &witness, &mut into, 1);
    let answers = (0..10).map(|_| portal.submit(&Descriptor::noop()));
    let retries = answers.filter(|a| *a == Submission::Retry).count();
    assert!(retries >= 5, "{retries}");
    assert_eq!(device.retried(0), Some(retries as u64));
    assert_eq!((device.lost(0), device.retried(100)), (Some(0), None));
    witness.open_gate();
    device.stop(Stop::Drain).expect("no failure");
}
