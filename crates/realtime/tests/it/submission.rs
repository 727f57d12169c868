//! Many clients at once: each accepted descriptor ends once, and each refusal is right.

use std::collections::HashSet;
use std::thread;

use crate::common::{Records, config, hold, insist, portal, queue, start, ways};
use dray_device::{Submission, WorkQueueMode};
use dray_realtime::{Engines, Options, Stop};
use dray_spec::{Descriptor, Status};

use WorkQueueMode::{Dedicated, Shared};

/// Four threads, each with `each` copies of its own, into a queue of `size` entries.
fn contend(mode: WorkQueueMode, size: u16, engines: u16, options: Options) {
    const THREADS: usize = 4;
    let each = 500;
    let (device, witness) = start(config(engines, vec![queue(0, mode, size)]), options);
    let records = Records::new(THREADS * each);
    let sources: Vec<u64> = (0..(THREADS * each) as u64).map(|n| n ^ 0x5a5a).collect();
    let mut targets = vec![0_u64; THREADS * each];
    let into = (&raw mut targets[0]).expose_provenance() as u64;
    let from = sources.as_ptr().expose_provenance() as u64;
    let refused: u64 = thread::scope(|scope| {
        let client = |client: usize| {
            let (portal, records) = (portal(&device, 0, true), &records);
            scope.spawn(move || {
                let mut refused = 0;
                for n in client * each..(client + 1) * each {
                    let at = n as u64 * 8;
                    let copy = Descriptor::memmove(from + at, into + at, 8);
                    refused += insist(&portal, &copy.with_completion(records.address(n)));
                }
                refused
            })
        };
        let clients: Vec<_> = (0..THREADS).map(client).collect();
        let ended = clients.into_iter().map(|c| c.join().expect("no panic"));
        ended.sum()
    });
    let lost = match mode {
        Dedicated => refused,
        Shared => 0,
    };
    assert_eq!(device.lost(0), Some(lost));
    device.stop(Stop::Drain).expect("no failure");
    assert!((0..THREADS * each).all(|n| records.status(n) == Status::SUCCESS));
    assert_eq!(targets, sources);
    let written = witness.records.lock().expect("not poisoned");
    assert_eq!(written.len(), THREADS * each, "records written");
    assert_eq!(written.iter().collect::<HashSet<_>>().len(), THREADS * each);
}

#[test]
fn what_many_threads_submit_ends_once_each() {
    for (engines, options) in ways() {
        for mode in [Dedicated, Shared] {
            for size in [1, 5, 128] {
                contend(mode, size, engines, options);
            }
        }
    }
}

#[test]
fn a_queue_takes_what_it_has_entries_for_and_not_one_more() {
    for (engines, options) in ways() {
        for mode in [Dedicated, Shared] {
            // An engine takes no more than it is held up by.
            let options = Options {
                engine_depth: 1,
                ..options
            };
            let holding = match options.engines {
                Engines::Threads => usize::from(engines),
                Engines::ThreadsThatWait | Engines::Dispatcher => 1,
            };
            let (device, witness) = start(config(engines, vec![queue(0, mode, 13)]), options);
            let mut sink = [0; 256];
            let portal = portal(&device, 0, true);
            hold(&portal, &witness, &mut sink, holding);
            let noop = Descriptor::noop();
            let accepted: usize = thread::scope(|scope| {
                let client = |_| {
                    let portal = portal.clone();
                    scope.spawn(move || {
                        let answers = (0..50).map(|_| portal.submit(&noop));
                        answers.filter(|a| *a == Submission::Accepted).count()
                    })
                };
                let clients: Vec<_> = (0..4).map(client).collect();
                let ended = clients.into_iter().map(|c| c.join().expect("no panic"));
                ended.sum()
            });
            assert_eq!(accepted, 13, "{mode:?}, {engines} engines, {options:?}");
            assert_eq!(device.occupancy(0), Some(13));
            let lost = if mode == Dedicated { 200 - 13 } else { 0 };
            assert_eq!(device.lost(0), Some(lost));
            witness.open_gate();
            let occupancy = || device.occupancy(0);
            while occupancy() != Some(0) {
                thread::yield_now();
            }
            device.stop(Stop::Drain).expect("no failure");
            let overflows = witness.errors();
            assert!(
                overflows
                    .iter()
                    .all(|status| *status == Status::WQ_OVERFLOW)
            );
            assert_eq!(overflows.is_empty(), mode == Shared);
        }
    }
}

#[test]
fn the_limited_portal_of_a_shared_queue_stops_at_the_threshold() {
    let mut wq = queue(0, Shared, 6);
    wq.threshold = 4;
    let (device, witness) = start(config(1, vec![wq]), Options::default());
    let mut sink = [0; 64];
    let (limited, unlimited) = (portal(&device, 0, true), portal(&device, 0, false));
    hold(&limited, &witness, &mut sink, 1);
    let noop = Descriptor::noop();
    let answers = |portal: &dray_realtime::MappedPortal| {
        let answers: Vec<_> = (0..6).map(|_| portal.enqueue(&noop)).collect();
        answers
            .iter()
            .filter(|a| **a == Submission::Accepted)
            .count()
    };
    assert_eq!(
        [answers(&limited), answers(&unlimited), answers(&limited)],
        [4, 2, 0]
    );
    // A posted write to a shared queue is nothing, ENQCMD to a dedicated one finds none.
    assert_eq!(unlimited.write_posted(&noop), Submission::Ignored);
    witness.open_gate();
    device.stop(Stop::Drain).expect("no failure");
    assert_eq!(limited.submit(&noop), Submission::Retry);
}

#[test]
fn queues_of_a_group_are_served_by_their_priority() {
    let mut queues = vec![queue(0, Dedicated, 40), queue(1, Shared, 40)];
    (queues[0].priority, queues[1].priority) = (1, 3);
    let (device, witness) = start(config(1, queues), Options::default());
    let mut sink = [0; 64];
    hold(&portal(&device, 0, true), &witness, &mut sink, 1);
    let records = Records::new(80);
    for n in 0..80 {
        let noop = Descriptor::noop().with_completion(records.address(n));
        insist(&portal(&device, (n % 2) as u16, true), &noop);
    }
    witness.open_gate();
    device.stop(Stop::Drain).expect("no failure");
    let written = witness.records.lock().expect("not poisoned");
    let of_second = |address: &&u64| (**address - records.address(0)) / 32 % 2 == 1;
    // The engine had spent the first queue's turn on what it was held up by.
    let served = written[..40].iter().filter(of_second).count();
    assert!((30..=31).contains(&served), "{served} of 40");
    assert_eq!(written.len(), 80);
}
