//! Devices that stop, with work under way or asleep, and devices that break.

use std::sync::atomic::Ordering;
use std::thread;

use crate::common::{
    HELD, Records, TRAP, address, config, hold, insist, portal, queue, start, ways,
};
use dray_device::{Submission, WorkQueueMode};
use dray_realtime::{Engines, Options, RealtimeDevice, Stop, Stopped};
use dray_spec::{Descriptor, Flags, Status};

use WorkQueueMode::{Dedicated, Shared};

#[test]
fn draining_ends_all_that_was_accepted() {
    for (engines, options) in ways() {
        let (device, _) = start(config(engines, vec![queue(0, Shared, 64)]), options);
        let records = Records::new(300);
        let portal = portal(&device, 0, true);
        let mut accepted = Vec::new();
        thread::scope(|scope| {
            let client = scope.spawn(|| {
                for n in 0..300 {
                    let noop = Descriptor::noop().with_completion(records.address(n));
                    // Also into the middle of its end.
                    if portal.enqueue(&noop) == Submission::Accepted {
                        accepted.push(n);
                    }
                }
            });
            while device.occupancy(0) == Some(0) && !client.is_finished() {
                thread::yield_now();
            }
            device.stop(Stop::Drain).expect("no failure");
        });
        assert!(!accepted.is_empty());
        for n in 0..300 {
            let expected = match accepted.contains(&n) {
                true => Status::SUCCESS,
                false => Status::NONE,
            };
            assert_eq!(records.status(n), expected, "descriptor {n}");
        }
    }
}

#[test]
fn aborting_drops_what_has_not_been_started_and_waits_for_what_has() {
    for (engines, options) in ways() {
        let (device, witness) = start(config(engines, vec![queue(0, Dedicated, 16)]), options);
        let records = Records::new(16);
        let mut sink = [0; 64];
        let portal = portal(&device, 0, true);
        hold(&portal, &witness, &mut sink, 1);
        // What is behind it in the same engine, and what other engines cannot end either.
        let dst = sink.as_mut_ptr().expose_provenance() as u64;
        for n in 0..16 {
            let copy = Descriptor::memmove(address(&HELD), dst, 64);
            insist(&portal, &copy.with_completion(records.address(n)));
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                while portal.submit(&Descriptor::noop()) != Submission::Ignored {
                    thread::yield_now();
                }
                witness.open_gate();
            });
            device.stop(Stop::Abort).expect("no failure");
        });
        let written = witness.records.lock().expect("not poisoned").len();
        let reported = (0..16).filter(|n| records.status(*n) != Status::NONE);
        assert_eq!(reported.count(), written);
        assert_eq!(witness.held.load(std::sync::atomic::Ordering::SeqCst), 0);
    }
}

#[test]
fn a_device_without_work_ends_awake_or_asleep() {
    for (engines, options) in ways() {
        for on_drop in [Stop::Drain, Stop::Abort] {
            let options = Options { on_drop, ..options };
            let (device, _) = start(config(engines, vec![queue(0, Shared, 1)]), options);
            let portal = portal(&device, 0, true);
            drop(device);
            assert_eq!(portal.enqueue(&Descriptor::noop()), Submission::Retry);
        }
    }
}

#[test]
fn a_panic_in_an_engine_ends_its_descriptor_and_halts_the_device() {
    let blocks = [false, true];
    for ((engines, options), blocks) in blocks
        .iter()
        .flat_map(|b| ways().into_iter().map(move |w| (w, *b)))
    {
        let mut queue = queue(0, Dedicated, 16);
        queue.block_on_fault = blocks;
        let (device, _) = start(config(engines, vec![queue]), options);
        let records = Records::new(2);
        let portal = portal(&device, 0, true);
        let mut sink = [0_u8; 64];
        let dst = sink.as_mut_ptr().expose_provenance() as u64;
        let copy = Descriptor::memmove(address(&TRAP), dst, 64);
        let copy = match blocks {
            true => copy.with_flags(Flags::BLOCK_ON_FAULT),
            false => copy,
        };
        insist(&portal, &copy.with_completion(records.address(0)));
        assert_eq!(records.wait(0).status(), Status::HARDWARE_ERROR_READ);
        assert_eq!(portal.submit(&Descriptor::noop()), Submission::Ignored);
        let failure = device.failure().expect("a panic").clone();
        assert!(failure.message.contains("a trap in memory"), "{failure}");
        let engine = failure.thread.starts_with("dray-engine");
        let threads = match options.engines {
            Engines::Threads => true,
            Engines::ThreadsThatWait => blocks,
            Engines::Dispatcher => false,
        };
        assert_eq!(engine, engines > 1 && threads, "{options:?}");
        assert_eq!(device.stop(Stop::Drain), Err(failure));
    }
}

#[test]
fn a_panic_in_the_dispatcher_leaves_nobody_waiting() {
    for (engines, options) in ways() {
        let (device, _) = start(config(engines, vec![queue(0, Dedicated, 16)]), options);
        let answer = match options.engines {
            Engines::Threads => device.control(|_, _| -> u8 { panic!("on request") }),
            Engines::ThreadsThatWait | Engines::Dispatcher => {
                device.inspect(|_| -> u8 { panic!("on request") })
            }
        };
        assert_eq!(answer, Err(Stopped));
        let again = device.inspect(|function| function.device().occupancy(0));
        assert!(again.is_err() || device.failure().is_some());
        let failure = device.stop(Stop::Drain).expect_err("a panic");
        assert_eq!(
            failure.to_string(),
            "the device has halted: dray-dispatcher panicked: on request"
        );
    }
}

/// Also what was in the rings, in the queues and with engines when it panicked.
#[test]
fn a_panic_in_the_dispatcher_ends_all_that_was_accepted() {
    for (engines, options) in ways() {
        let (device, witness) = start(config(engines, vec![queue(0, Dedicated, 64)]), options);
        let records = Records::new(32);
        let mut sink = [0; 64];
        let portal = portal(&device, 0, true);
        witness.trap.store(records.address(0), Ordering::SeqCst);
        hold(&portal, &witness, &mut sink, 1);
        for n in 0..32 {
            insist(
                &portal,
                &Descriptor::noop().with_completion(records.address(n)),
            );
        }
        witness.open_gate();
        let failure = device.stop(Stop::Drain).expect_err("a panic");
        assert_eq!(failure.thread, "dray-dispatcher");
        assert_eq!(records.status(0), Status::NONE, "it cannot be written");
        let reported: Vec<Status> = (1..32).map(|n| records.status(n)).collect();
        assert!(!reported.contains(&Status::NONE), "{reported:?}");
        if engines == 1 {
            assert!(
                reported.contains(&Status::HARDWARE_ERROR_READ),
                "{reported:?}"
            );
        }
    }
}

/// A submission from within waits for ever where the rings are held.
#[test]
fn whoever_reads_holds_no_ring_and_sees_what_was_submitted_before() {
    for (engines, options) in ways() {
        let (device, _) = start(config(engines, vec![queue(3, Shared, 16)]), options);
        let portal = portal(&device, 3, true);
        let inside = portal.clone();
        let answer = device.inspect(move |_| inside.enqueue(&Descriptor::noop()));
        assert_eq!(answer, Ok(Submission::Accepted));
        device.stop(Stop::Drain).expect("no failure");
    }
    // Nothing takes what waits: each engine has one descriptor, and is held up.
    let options = Options {
        engines: Engines::Threads,
        engine_depth: 1,
        ..Options::default()
    };
    let (device, witness) = start(config(2, vec![queue(0, Dedicated, 16)]), options);
    let portal = portal(&device, 0, true);
    let mut sink = [0; 64 * 2];
    hold(&portal, &witness, &mut sink, 2);
    for waiting in 1..=8 {
        insist(&portal, &Descriptor::noop());
        let occupancy = device.inspect(|function| function.device().occupancy(0));
        assert_eq!(occupancy, Ok(Some(waiting)));
    }
    witness.open_gate();
}

#[test]
fn handles_ask_the_device_itself_also_while_it_sleeps() {
    for (engines, options) in ways() {
        let (device, _) = start(config(engines, vec![queue(3, Shared, 16)]), options);
        let ask = |device: &RealtimeDevice, n: u32| match n % 2 {
            0 => device.control(|function, _| function.device().occupancy(3)),
            _ => device.inspect(|function| function.device().occupancy(3)),
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!((0..50).all(|n| ask(&device, n) == Ok(Some(0)))));
            }
        });
    }
}
