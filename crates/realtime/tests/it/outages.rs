//! An adversary that takes queue or device away: what was accepted has a record or is given up, and what comes back works.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{EventLog, Records, Witness, config, portal, queue, start, start_function};
use dray_device::{Portal, Submission, WorkQueueMode};
use dray_realtime::{Event, MappedPortal, Options, RealtimeDevice, Stop};
use dray_spec::registers::{
    self as at, Command, DeviceState, ErrorHead, EvlStatus, ResetType, WorkQueueState,
};
use dray_spec::{CompletionRecord, Descriptor, Status};
use zerocopy::{FromBytes, IntoBytes};

use WorkQueueMode::{Dedicated, Shared};

/// No test waits longer.
const AT_MOST: Duration = Duration::from_secs(10);

fn options(chaos: &str) -> Options {
    Options {
        chaos: Some(chaos.parse().unwrap()),
        steps: true,
        ..Options::default()
    }
}

fn ends(witness: &Witness) -> Vec<Option<Status>> {
    let events = witness.events.lock().unwrap();
    let ends = events.iter().filter_map(|event| match event {
        Event::Ended { record, .. } => Some(record.map(|record| record.status())),
        _ => None,
    });
    ends.collect()
}

/// Completion addresses of descriptors that were given up.
fn abandoned(witness: &Witness) -> HashSet<u64> {
    let events = witness.events.lock().unwrap();
    let given_up = events.iter().filter_map(|event| match event {
        Event::Abandoned { completion, .. } => *completion,
        _ => None,
    });
    given_up.collect()
}

/// Submits `count` descriptors, each until it is accepted. How often the queue took none at all.
fn submit(portal: &MappedPortal, records: &Records, count: usize) -> u64 {
    let since = Instant::now();
    let mut closed = 0;
    for n in 0..count {
        let noop = Descriptor::noop().with_completion(records.address(n));
        while portal.submit(&noop) != Submission::Accepted {
            closed += u64::from(!portal.is_enabled());
            assert!(since.elapsed() < AT_MOST, "the queue does not come back");
            std::thread::yield_now();
        }
    }
    closed
}

/// Runs 120 descriptors. Those without a record, and whether the queue was ever closed.
fn outage(chaos: &str, mode: WorkQueueMode) -> (usize, bool) {
    let (device, witness) = start(config(2, vec![queue(0, mode, 16)]), options(chaos));
    let portal = portal(&device, 0, mode == Shared);
    let records = Records::new(120);
    let closed = submit(&portal, &records, 120);
    device.stop(Stop::Drain).unwrap();
    let given_up = abandoned(&witness);
    for n in 0..120 {
        let expected = match given_up.contains(&records.address(n)) {
            true => Status::NONE,
            false => Status::SUCCESS,
        };
        assert_eq!(records.status(n), expected, "{chaos}, {n}");
    }
    (given_up.len(), closed > 0)
}

#[test]
fn a_queue_that_is_disabled_ends_what_it_has_and_comes_back() {
    for mode in [Dedicated, Shared] {
        let runs = (0..8).map(|seed| outage(&format!("{seed}:disable+delay"), mode));
        let runs: Vec<_> = runs.collect();
        assert!(runs.iter().all(|(lost, _)| *lost == 0), "{runs:?}");
        assert!(runs.iter().any(|(_, closed)| *closed), "{runs:?}");
    }
}

#[test]
fn aborted_descriptors_have_no_record_and_those_after_them_do() {
    for mode in [Dedicated, Shared] {
        let runs = (0..8).map(|seed| outage(&format!("{seed}:abort+delay+record"), mode));
        let runs: Vec<_> = runs.collect();
        assert!(runs.iter().any(|(lost, _)| *lost > 0), "{runs:?}");
        assert!(runs.iter().all(|(lost, closed)| *lost < 120 && !closed));
    }
}

#[test]
fn a_device_that_halts_is_reset_and_its_queues_are_enabled_again() {
    for mode in [Dedicated, Shared] {
        let runs = (0..8).map(|seed| outage(&format!("{seed}:halt+delay+lines+record"), mode));
        let runs: Vec<_> = runs.collect();
        assert!(runs.iter().any(|(lost, _)| *lost > 0), "{runs:?}");
        assert!(runs.iter().any(|(_, closed)| *closed), "{runs:?}");
    }
}

/// State, reset type, and that of the queue.
fn state(device: &RealtimeDevice) -> (DeviceState, ResetType, Option<WorkQueueState>) {
    let state = device.inspect(|function| {
        (
            function.state(),
            function.reset_type(),
            function.queue_state(0),
        )
    });
    state.unwrap()
}

/// A device that has halted after some of 120 descriptors: with one of the first seeds.
fn halted(kinds: &str, options: Options) -> (RealtimeDevice, Arc<Witness>, Records) {
    let since = Instant::now();
    for seed in 0.. {
        let chaos = Some(format!("{seed}:{kinds}").parse().unwrap());
        let options = Options { chaos, ..options };
        let (device, witness) = start(config(1, vec![queue(0, Shared, 128)]), options);
        let records = Records::new(120);
        let portal = portal(&device, 0, true);
        for n in 0..120 {
            portal.submit(&Descriptor::noop().with_completion(records.address(n)));
        }
        while records.status(119) == Status::NONE {
            if state(&device).0 == DeviceState::Halted {
                return (device, witness, records);
            }
            assert!(since.elapsed() < AT_MOST, "no halt");
        }
    }
    unreachable!("there is a next seed")
}

#[test]
fn a_dead_device_stays_so_and_can_be_stopped() {
    let (device, witness, records) = halted("dead", Options::default());
    let warm = (
        DeviceState::Halted,
        ResetType::Warm,
        Some(WorkQueueState::Enabled),
    );
    assert_eq!(state(&device), warm);
    let reset = device.command(Command::ResetDevice, 0).unwrap();
    assert_eq!(reset.map_err(|error| error.0), Err(5));
    let portal = portal(&device, 0, true);
    assert_eq!(portal.submit(&Descriptor::noop()), Submission::Retry);
    assert_eq!(state(&device), warm);
    device.stop(Stop::Drain).unwrap();
    let lost = abandoned(&witness).len();
    let none = (0..120).filter(|n| records.status(*n) == Status::NONE);
    assert!(lost > 0 && none.count() >= lost);
}

#[test]
fn a_driver_of_its_own_resets_the_device_itself() {
    let driven = Options {
        driven: true,
        ..Options::default()
    };
    // Its queues are disabled by nobody else.
    let (device, ..) = halted("halt+disable+abort", driven);
    let halted = (
        DeviceState::Halted,
        ResetType::Command,
        Some(WorkQueueState::Enabled),
    );
    assert_eq!(state(&device), halted);
    assert_eq!(device.command(Command::ResetDevice, 0), Ok(Ok(0)));
    let disabled = Some(WorkQueueState::Disabled);
    assert_eq!(
        state(&device),
        (DeviceState::Disabled, ResetType::Command, disabled)
    );
    device.stop(Stop::Drain).unwrap();
}

/// How 128 descriptors end that are submitted at one moment.
fn trace(chaos: &str) -> Vec<Option<Status>> {
    let (device, witness) = start(config(4, vec![queue(0, Dedicated, 128)]), options(chaos));
    let portal = Portal {
        wq: 0,
        limited: false,
    };
    let records = Records::new(128);
    let noops = (0..128).map(|n| Descriptor::noop().with_completion(records.address(n)));
    let noops: Vec<Descriptor> = noops.collect();
    // Held until all of them are in the queue.
    let all = device.control(move |function, _| {
        let mut answers = noops.iter().map(|noop| function.submit(portal, noop));
        answers.all(|answer| answer == Submission::Accepted)
    });
    assert_eq!(all, Ok(true));
    let since = Instant::now();
    while ends(&witness).len() < 128 {
        assert!(since.elapsed() < AT_MOST);
        std::thread::yield_now();
    }
    device.stop(Stop::Drain).unwrap();
    ends(&witness)
}

#[test]
fn the_same_seed_takes_the_same_descriptors_away() {
    let mut lost = 0;
    for seed in 0..6 {
        let chaos = format!("{seed}:outages");
        let one = trace(&chaos);
        assert_eq!(one, trace(&chaos), "{chaos}");
        lost += one.iter().filter(|end| end.is_none()).count();
    }
    assert!(lost > 0);
}

/// A driver that reads the event log: entries from `head` on, which it copies to where they belong.
fn serve(device: &RealtimeDevice, log: &EventLog) -> u64 {
    let status = device.inspect(|function| function.read64(at::EVLSTATUS));
    let status = EvlStatus::from(status.unwrap());
    let (mut head, mut served) = (u64::from(status.head()), 0);
    while head != u64::from(status.tail()) {
        let entry = log.entry(head);
        let error = ErrorHead::from_bits(entry[0]).error();
        assert_eq!(error, Status::COMPLETION_ADDRESS_FAULT.0);
        let record = CompletionRecord::read_from_bytes(entry[4..].as_bytes()).unwrap();
        assert_eq!(record.status(), Status::SUCCESS);
        let place = std::ptr::with_exposed_provenance_mut::<CompletionRecord>(entry[2] as usize);
        // SAFETY: it is that of a descriptor of this test, and the device has left it to its driver.
        unsafe { place.write_volatile(record) };
        head = (head + 1) % 64;
        served += 1;
    }
    let written = device.control(move |function, effects| {
        function.write32(at::EVLSTATUS, head as u32, effects);
    });
    assert_eq!(written, Ok(()));
    served
}

#[test]
fn a_full_event_log_holds_the_device_up_until_its_driver_reads_it() {
    let since = Instant::now();
    let (mut overflows, mut all) = (0, 0);
    for seed in 0.. {
        let log = EventLog::new();
        let (device, _) = start_function(log.function(), options(&format!("{seed}:log")));
        for (command, operand) in [(Command::EnableDevice, 0), (Command::EnableWq, 0)] {
            assert_eq!(device.command(command, operand), Ok(Ok(0)));
        }
        let records = Records::new(128);
        let portal = portal(&device, 0, false);
        let mut served = 0;
        let mut serve_full_log = |served: &mut u64| {
            if device.inspect(|function| function.is_blocked()).unwrap() {
                overflows += 1;
                *served += serve(&device, &log);
            }
            assert!(
                since.elapsed() < AT_MOST,
                "seed {seed}: {served} served, {:?}",
                device.inspect(|function| (
                    function.is_blocked(),
                    function.read64(at::EVLSTATUS),
                    function.device().occupancy(0)
                ))
            );
        };
        for n in 0..128 {
            let noop = Descriptor::noop().with_completion(records.address(n));
            while portal.submit(&noop) != Submission::Accepted {
                serve_full_log(&mut served);
            }
        }
        // All is in records, in the log or behind it.
        while (0..128).any(|n| records.status(n) == Status::NONE) {
            serve_full_log(&mut served);
            if device.occupancy(0) == Some(0) {
                served += serve(&device, &log);
            }
        }
        for n in 0..128 {
            assert_eq!(records.status(n), Status::SUCCESS, "seed {seed}, {n}");
        }
        assert_eq!(served % 64, 0, "rows of 64");
        device.stop(Stop::Drain).unwrap();
        all += served;
        if overflows > 0 && all > 64 {
            return;
        }
    }
}
