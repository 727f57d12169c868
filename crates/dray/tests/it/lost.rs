//! Queues that are lost under channels: excluded from then on, nothing lost, nothing written elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dray::channels::{
    Channels, ChannelsOptions, Excluded, LostQueuePolicy, Member, Outcome, QueueLost, Reason,
    Require,
};
use dray::virt::{Engines, Options, Translation, VirtualDevice, VirtualMover};
use dray::{Channel, CpuMover, Executor, Failure, Mover, Operation, Output, Progress, WaitPolicy};
use dray_device::Access;
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_spec::registers::{Command, CommandRegister};
use dray_spec::{Descriptor, Flags, Status};

use crate::channels::{options, run};
use crate::gate::{Gate, Opener};
use crate::machine::{device, queue};
use crate::memory::{Guarded, PAGE};

const DISABLED: QueueLost = QueueLost::Disabled;

/// A device with a queue, and a channel to it.
fn one(mode: dray_device::WorkQueueMode) -> (VirtualDevice, Member<VirtualMover>) {
    let started = VirtualDevice::start(device(1, vec![queue(0, mode, 16)]), Options::default());
    let started = started.expect("a device that can be enabled");
    let member = member(&started);
    (started, member)
}

fn member(device: &VirtualDevice) -> Member<VirtualMover> {
    Member {
        mover: device.open(0, 16).expect("a queue"),
        numa_node: None,
    }
}

fn command(device: &VirtualDevice, command: Command) {
    let operand = match command {
        Command::DisableWq | Command::ResetWq => CommandRegister::queue(0),
        _ => 0,
    };
    let answer = device.device().command(command, operand);
    assert_eq!(answer, Ok(Ok(0)), "{command:?}");
}

/// Copies of a page each.
fn copies(source: &Guarded, target: &Guarded) -> Vec<Operation> {
    let pages = (source.len() / PAGE) as u64;
    let copy = |n| {
        let offset = n * PAGE as u64;
        Operation::memmove(
            source.address() + offset,
            target.address() + offset,
            PAGE as u32,
        )
    };
    (0..pages).map(copy).collect()
}

fn excluded<M: Mover>(channels: &Channels<M>) -> Vec<Excluded> {
    channels.excluded().collect()
}

const COMMANDS: [Command; 4] = [
    Command::DisableWq,
    Command::ResetWq,
    Command::DisableDevice,
    Command::ResetDevice,
];

#[test]
fn the_queues_that_are_left_do_all_of_it() {
    for mode in [Dedicated, Shared] {
        for lost in COMMANDS {
            let (source, target) = (Guarded::noise(64, 1), Guarded::new(64));
            let (first, second) = (one(mode), one(mode));
            let options = ChannelsOptions {
                require: Require::Device,
                gather_below_bytes: 0,
                ..options()
            };
            let members = [first.1, second.1];
            let mut channels = Channels::new(members, options).expect("channels");
            let copies = copies(&source, &target);
            // Both queues have some.
            for (n, copy) in copies[..32].iter().enumerate() {
                // SAFETY: the buffers outlive the operations, which are waited for.
                unsafe { channels.enqueue(&copy.with_user_data(n as u64)) }.expect("a slot");
            }
            channels.submit();
            command(&first.0, lost);
            let mut seen = [Outcome::default(); 32];
            let mut ended = 0;
            while ended < 32 {
                channels.submit();
                let count = channels.poll_outcomes(&mut seen[ended..]);
                ended += count;
                if count == 0 {
                    std::thread::yield_now();
                }
            }
            for outcome in &seen {
                let copy = &copies[outcome.completion.user_data as usize];
                assert_eq!(outcome.output(copy), Ok(Output::Done), "{lost:?}");
                assert_eq!(outcome.executor(), Executor::Virtual);
                assert_eq!((outcome.core_bytes, outcome.core_reason), (0, None));
            }
            // The rest goes to the other one, whether the loss has been noticed by now or not.
            let outcomes = run(&mut channels, &copies[32..]);
            for outcome in outcomes {
                assert_eq!(outcome.output(&copies[0]), Ok(Output::Done), "{lost:?}");
                assert_eq!(outcome.executor(), Executor::Virtual);
            }
            assert!(*source == *target, "{lost:?}");
            let first = Excluded {
                channel: 0,
                reason: DISABLED,
            };
            assert_eq!(excluded(&channels), [first], "{lost:?}");
        }
    }
}

#[test]
fn an_excluded_queue_stays_excluded_when_it_is_enabled_again() {
    let (source, target) = (Guarded::noise(8, 2), Guarded::new(8));
    let (device, member) = one(Shared);
    command(&device, Command::DisableWq);
    let mut channels = Channels::new([member], options()).expect("channels");
    let outcomes = run(&mut channels, &copies(&source, &target));
    for outcome in outcomes {
        assert_eq!(outcome.core_reason, Some(Reason::QueueLost));
        assert_eq!(outcome.core_bytes, PAGE as u64);
    }
    assert!(*source == *target);
    assert_eq!(device.device().command(Command::EnableWq, 0), Ok(Ok(0)));
    let fill = Operation::fill(0, target.address(), PAGE as u32);
    let outcome = run(&mut channels, &[fill])[0];
    // Known beforehand by now: it never went to a queue.
    assert_eq!(outcome.core_reason, Some(Reason::QueueLost));
    assert_eq!((outcome.moved, outcome.stripes), (0, 0));
    assert_eq!(excluded(&channels).len(), 1);
}

#[test]
fn every_lost_queue_policy_ends_as_it_says() {
    for (lost_queue, require) in [
        (LostQueuePolicy::Other, Require::Any),
        (LostQueuePolicy::Other, Require::Device),
        (LostQueuePolicy::Core, Require::Any),
        (LostQueuePolicy::Error, Require::Any),
        (LostQueuePolicy::Error, Require::Device),
    ] {
        let options = ChannelsOptions {
            lost_queue,
            require,
            ..options()
        };
        let core = lost_queue != LostQueuePolicy::Error && require == Require::Any;
        let (source, target) = (Guarded::noise(40, 3), Guarded::new(40));
        let (device, member) = one(Dedicated);
        command(&device, Command::DisableWq);
        let mut channels = Channels::new([member], options).expect("channels");
        assert_eq!(channels.lost(), None);
        let copies = copies(&source, &target);
        let name = format!("{lost_queue:?} {require:?}");
        // Twice: while the loss is noticed, and when it is known.
        for half in copies.chunks(20) {
            for outcome in run(&mut channels, half) {
                let result = outcome.output(&half[0]);
                match core {
                    true => {
                        assert_eq!(result, Ok(Output::Done), "{name}");
                        assert_eq!(outcome.core_reason, Some(Reason::QueueLost), "{name}");
                    }
                    false => {
                        let reason = DISABLED;
                        assert_eq!(result, Err(Failure::QueueLost { reason }), "{name}");
                        assert_eq!(outcome.core_bytes + outcome.device_bytes, 0, "{name}");
                    }
                }
            }
        }
        assert!(match core {
            true => *source == *target,
            false => target.iter().all(|byte| *byte == 0),
        });
        assert_eq!(channels.lost().is_some(), !core, "{name}");
        assert_eq!(channels.submit(), Progress::Done);
    }
}

/// Polls until so many operations have ended.
fn ended<M: Mover>(mover: &mut M, count: usize) -> Vec<Outcome> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut seen = vec![Outcome::default(); count + 1];
    let mut ended = 0;
    while ended < count {
        mover.submit();
        ended += mover.poll_outcomes(&mut seen[ended..]);
        assert!(Instant::now() < deadline, "{ended} of {count} have ended");
        std::thread::yield_now();
    }
    assert_eq!(mover.poll_outcomes(&mut seen[count..]), 0);
    seen.truncate(count);
    seen
}

/// More than the queue has entries: what it has accepted ends, and so does what it has not, taken back or not.
#[test]
fn all_of_a_mover_whose_device_ends_has_an_end() {
    for withdrawn in [false, true] {
        let (source, target) = (Guarded::noise(20, 9), Guarded::new(20));
        let failing = Failing::default();
        failing.0.store(true, Ordering::SeqCst);
        let config = device(1, vec![queue(0, Dedicated, 16)]);
        let started = VirtualDevice::start_in(config, Options::default(), failing, |_| {});
        let device = started.expect("a device that can be enabled");
        let mut mover = device.open(0, 32).expect("a queue");
        for (n, copy) in copies(&source, &target).iter().enumerate() {
            // SAFETY: the buffers outlive the operations, which are waited for.
            unsafe { mover.enqueue(&copy.with_user_data(n as u64)) }.expect("a slot");
        }
        assert_ne!(mover.submit(), Progress::Done, "the queue has 16 entries");
        if withdrawn {
            assert!(mover.withdraw() >= 4);
        }
        let mut seen: Vec<u64> = ended(&mut mover, 20)
            .iter()
            .map(|outcome| outcome.completion.user_data)
            .collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..20), "{seen:?}");
    }
}

/// A channel whose engine holds what it has, and the way to let it go on.
fn held() -> (VirtualDevice, Channels<VirtualMover>, Opener) {
    let gate = Gate::default();
    // With two engines the dispatcher is none of them, and goes on while they wait.
    let config = device(2, vec![queue(0, Dedicated, 16)]);
    let threads = Options {
        engines: Engines::Threads,
        ..Options::default()
    };
    let started = VirtualDevice::start_in(config, threads, gate.clone(), |_| {});
    let started = started.expect("a device that can be enabled");
    let members = [member(&started)];
    let options = ChannelsOptions {
        gather_below_bytes: 0,
        ..options()
    };
    let channels = Channels::new(members, options).expect("channels");
    (started, channels, Opener(gate))
}

/// Resets the queue while an engine holds descriptors, and then lets it go on.
fn reset_in_flight(device: &VirtualDevice, opener: &Opener) {
    std::thread::scope(|scope| {
        let reset = scope.spawn(|| command(device, Command::ResetWq));
        let is_active = || {
            device
                .device()
                .control(|function, _| function.is_command_active())
        };
        while !is_active().expect("the device goes on") && !reset.is_finished() {
            std::thread::yield_now();
        }
        opener.open();
    });
}

#[test]
fn what_a_reset_has_aborted_is_done_again() {
    let (source, target) = (Guarded::noise(12, 4), Guarded::new(12));
    let (device, mut channels, opener) = held();
    let copies = copies(&source, &target);
    for copy in &copies {
        // SAFETY: the buffers outlive the operations, which are waited for.
        unsafe { channels.enqueue(copy) }.expect("a slot");
    }
    assert_eq!(channels.submit(), Progress::Done);
    reset_in_flight(&device, &opener);
    let mut seen = [Outcome::default(); 12];
    let mut ended = 0;
    while ended < 12 {
        channels.submit();
        ended += channels.poll_outcomes(&mut seen[ended..]);
    }
    assert!(*source == *target);
    let moved = seen.iter().filter(|outcome| outcome.moved > 0);
    let moved: Vec<&Outcome> = moved.collect();
    assert!(!moved.is_empty(), "the reset has aborted nothing");
    for outcome in moved {
        assert_eq!(outcome.core_reason, Some(Reason::QueueLost));
    }
    assert_eq!(excluded(&channels).len(), 1);
}

#[test]
fn a_move_onto_itself_that_was_aborted_is_not_begun_again() {
    let memory = Guarded::noise(16, 5);
    let (device, mut channels, opener) = held();
    // One that the engine holds, and others behind it.
    let fill = Operation::fill(7, memory.address(), 64).with_user_data(0);
    let slide = |n: u64| {
        let at = memory.address() + (2 * n) * PAGE as u64;
        Operation::memmove(at, at + 100, PAGE as u32).with_user_data(n)
    };
    let operations: Vec<Operation> = std::iter::once(fill).chain((1..7).map(slide)).collect();
    for operation in &operations {
        // SAFETY: the memory outlives the operations, which are waited for.
        unsafe { channels.enqueue(operation) }.expect("a slot");
    }
    assert_eq!(channels.submit(), Progress::Done);
    reset_in_flight(&device, &opener);
    let mut seen = [Outcome::default(); 7];
    let mut ended = 0;
    while ended < 7 {
        channels.submit();
        ended += channels.poll_outcomes(&mut seen[ended..]);
    }
    let mut lost = 0;
    for outcome in &seen {
        let n = outcome.completion.user_data as usize;
        match outcome.output(&operations[n]) {
            Ok(Output::Done) if n == 0 => {}
            // It ended before the reset.
            Ok(Output::Done) => assert_eq!(outcome.executor(), Executor::Virtual),
            Err(Failure::QueueLost { reason: DISABLED }) => lost += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(lost > 0, "the reset has aborted nothing");
}

#[test]
fn batches_of_the_caller_end_too() {
    for require in [Require::Any, Require::Device] {
        let (source, target) = (Guarded::noise(8, 6), Guarded::new(8));
        let (device, member) = one(Shared);
        command(&device, Command::DisableWq);
        let options = ChannelsOptions {
            require,
            ..options()
        };
        let mut channels = Channels::new([member], options).expect("channels");
        let copies = copies(&source, &target);
        for round in 0..2 {
            // SAFETY: the buffers outlive the operations, which are waited for.
            unsafe { channels.enqueue_batch(&copies) }.expect("slots");
            let mut seen = [Outcome::default(); 8];
            let mut ended = 0;
            while ended < 8 {
                channels.submit();
                ended += channels.poll_outcomes(&mut seen[ended..]);
            }
            for outcome in &seen {
                let result = outcome.output(&copies[0]);
                // The first one had gone to the queue.
                match round == 1 && require == Require::Any {
                    true => {
                        assert_eq!(result, Ok(Output::Done));
                        assert_eq!(outcome.core_reason, Some(Reason::QueueLost));
                    }
                    false => assert_eq!(result, Err(Failure::QueueLost { reason: DISABLED })),
                }
            }
        }
        assert_eq!(*source == *target, require == Require::Any);
    }
}

#[test]
fn a_member_behind_a_fence_was_not_executed_though_its_queue_is_lost_later() {
    let (source, target) = (Guarded::noise(8, 6), Guarded::new(8));
    let (device, member) = one(Shared);
    let mut channels = Channels::new([member], options()).expect("channels");
    // Noise is not all 0, and the fence holds back what is behind.
    let unexpected = Descriptor::compare_pattern(source.address(), 0, 64)
        .with_flags(Flags::CHECK_RESULT)
        .with_expected_result(0);
    let batch = [
        Operation::try_from(unexpected).expect("an operation"),
        copies(&source, &target)[0].with_fence(),
    ];
    // SAFETY: the buffers outlive the operations, which are waited for.
    unsafe { channels.enqueue_batch(&batch) }.expect("slots");
    while channels.submit() == Progress::Pending {}
    // It waits until the batch has ended.
    command(&device, Command::DisableWq);
    let mut seen = [Outcome::default(); 2];
    let mut ended = 0;
    while ended < 2 {
        ended += channels.poll_outcomes(&mut seen[ended..]);
    }
    assert_eq!(seen[0].completion.status(), Status::SUCCESS_PREDICATE);
    assert_eq!(seen[1].output(&batch[1]), Err(Failure::NotExecuted));
    assert!(target.iter().all(|byte| *byte == 0));
}

/// Memory whose translation fails once it is told to: the thread that asks panics, and its device ends.
#[derive(Clone, Default)]
struct Failing(Arc<AtomicBool>);

impl Translation for Failing {
    fn accessible(&self, _: u64, len: u64, _: Access) -> u64 {
        assert!(!self.0.load(Ordering::SeqCst), "this test fails the device");
        len
    }
}

#[test]
fn a_device_that_fails_is_excluded() {
    let (source, target) = (Guarded::noise(64, 7), Guarded::new(64));
    let failing = Failing::default();
    let config = device(1, vec![queue(0, Dedicated, 16)]);
    let first = VirtualDevice::start_in(config, Options::default(), failing.clone(), |_| {});
    let first = first.expect("a device that can be enabled");
    let second = one(Shared);
    let options = ChannelsOptions {
        gather_below_bytes: 0,
        require: Require::Device,
        ..options()
    };
    let mut channels = Channels::new([second.1, member(&first)], options).expect("channels");
    failing.0.store(true, Ordering::SeqCst);
    let copies = copies(&source, &target);
    let outcomes = run(&mut channels, &copies);
    for outcome in outcomes {
        assert_eq!(outcome.output(&copies[0]), Ok(Output::Done));
    }
    assert!(*source == *target);
    let excluded = excluded(&channels);
    let expected = Excluded {
        channel: 1,
        reason: QueueLost::DeviceEnded,
    };
    assert_eq!(excluded, [expected]);
}

#[test]
fn a_channel_on_a_lost_queue_says_so() {
    let (device, member) = one(Dedicated);
    let mut channel = Channel::new(member.mover);
    command(&device, Command::DisableWq);
    assert_eq!(channel.mover().lost(), Some(DISABLED));
    channel.fill(1, vec![0; 64]).expect("a slot");
    channel.submit();
    // Enabled again, it goes on.
    assert_eq!(device.device().command(Command::EnableWq, 0), Ok(Ok(0)));
    assert_eq!(channel.mover().lost(), None);
    let done = channel.wait(WaitPolicy::Yield, None).expect("it ends");
    assert_eq!(done.result, Ok(Output::Done));
    assert!(done.outcome.retries > 0, "{:?}", done.outcome);
    assert_eq!(CpuMover::new(1).lost(), None);
}
