//! Who executed an operation and why is in its result, however it was asked for.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use dray::channels::{
    Channels, ChannelsOptions, Choice, CostModel, FullQueuePolicy, Member, PageFaultPolicy, Reason,
};
use dray::virt::{Options, VirtualDevice};
use dray::{
    Channel, Completed, CpuMover, Executor, Mover, Outcome, Output, Request, WaitPolicy, task,
};
use dray_device::WorkQueueMode::Shared;
use dray_spec::registers::{Command, CommandRegister};

use crate::channels::{members, options};
use crate::machine::{device, queue};
use crate::policies::FirstTouch;
use crate::silent::Silent;

const BYTES: usize = 64 << 10;

/// The result of an operation on a channel.
fn pushed<M: Mover>(mover: M, request: Request<Vec<u8>>) -> Completed<Vec<u8>> {
    let mut channel = Channel::new(mover);
    channel.push(request.with_user_data(5)).expect("a slot");
    channel.wait(WaitPolicy::Yield, None).expect("it ends")
}

/// The result of a future.
fn awaited<M: Mover>(mover: M, request: Request<Vec<u8>>) -> Completed<Vec<u8>> {
    let (client, driver) = task::channel(mover);
    let mut driver = pin!(driver);
    let mut future = client.request(request);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let _ = driver.as_mut().poll(&mut context);
        if let Poll::Ready(done) = pin!(&mut future).poll(&mut context) {
            let done = done.expect("it succeeds");
            return Completed {
                ticket: done.outcome.completion.ticket,
                user_data: done.user_data,
                result: Ok(done.output),
                executor: done.executor,
                outcome: done.outcome,
                buffers: done.buffers,
            };
        }
        std::thread::yield_now();
    }
}

fn copy() -> Request<Vec<u8>> {
    Request::copy(vec![7; BYTES], vec![0; BYTES])
}

/// Both ways give the same, for movers that are made alike.
fn same<M: Mover>(make: impl Fn() -> M) -> Outcome {
    let [one, other] = [pushed(make(), copy()), awaited(make(), copy())];
    let last = other.outcome;
    for done in [&one, &other] {
        assert_eq!(done.result, Ok(Output::Done));
        assert_eq!(done.buffers.destination, Some(vec![7; BYTES]));
        assert_eq!(done.executor, done.outcome.executor());
        assert_eq!(done.user_data, done.outcome.completion.user_data);
        let all = done.outcome.core_bytes + done.outcome.device_bytes;
        assert_eq!(all, BYTES as u64, "{:?}", done.outcome);
        assert_eq!(done.outcome.core_reason, last.core_reason);
        assert_eq!(done.outcome.stripes, last.stripes);
    }
    assert_eq!(one.user_data, 5);
    last
}

fn chosen(choice: Choice) -> Outcome {
    same(|| {
        let options = ChannelsOptions {
            choice,
            ..options()
        };
        Channels::new(members(2, 8), options).expect("channels")
    })
}

#[test]
fn each_choice_is_in_the_result() {
    let device = chosen(Choice::Device);
    assert_eq!((device.core_reason, device.stripes), (None, 1));
    assert_eq!(device.executor(), Executor::Virtual);
    let core = |outcome: Outcome, reason| {
        assert_eq!(outcome.core_reason, Some(reason));
        assert_eq!(outcome.executor(), Executor::Cpu);
        assert_eq!(outcome.core_bytes, BYTES as u64);
    };
    core(chosen(Choice::Core), Reason::Chosen);
    let device_from_bytes = BYTES as u32 + 1;
    core(
        chosen(Choice::Threshold { device_from_bytes }),
        Reason::BelowThreshold,
    );
    let slow = CostModel {
        device_latency_ns: 1e9,
        ..CostModel::default()
    };
    core(chosen(Choice::Cost(slow)), Reason::Faster);
    let without = || Channels::<CpuMover>::new([], options()).expect("the core");
    core(same(without), Reason::NoDevice);
}

#[test]
fn one_mover_says_who_it_is() {
    let core = same(|| CpuMover::new(4));
    assert_eq!(core.core_reason, Some(Reason::Chosen));
    let started = VirtualDevice::start(device(1, vec![queue(0, Shared, 16)]), Options::default());
    let started = started.expect("a device that can be enabled");
    let device = same(|| started.open(0, 4).expect("a queue"));
    assert_eq!((device.core_reason, device.stripes), (None, 1));
}

/// A queue that takes nothing.
fn disabled() -> VirtualDevice {
    let started = VirtualDevice::start(device(1, vec![queue(0, Shared, 16)]), Options::default());
    let started = started.expect("a device that can be enabled");
    let answer = started
        .device()
        .command(Command::DisableWq, CommandRegister::queue(0));
    assert_eq!(answer, Ok(Ok(0)));
    started
}

#[test]
fn a_full_and_a_lost_queue_are_in_the_result() {
    let device = disabled();
    let full = same(|| {
        let mover = Silent(device.open(0, 4).expect("a queue"));
        let options = ChannelsOptions {
            full_queue: FullQueuePolicy::Core,
            ..options()
        };
        let member = Member {
            mover,
            numa_node: None,
        };
        Channels::new([member], options).expect("channels")
    });
    assert_eq!(full.core_reason, Some(Reason::QueueFull));
    assert!(full.retries > 0, "{full:?}");
    let lost = same(|| {
        let member = Member {
            mover: device.open(0, 4).expect("a queue"),
            numa_node: None,
        };
        Channels::new([member], options()).expect("channels")
    });
    assert_eq!(lost.core_reason, Some(Reason::QueueLost));
    assert_eq!(lost.moved, 1);
}

#[test]
fn page_faults_are_in_the_result() {
    let faulting = |page_fault| {
        same(|| {
            let space = FirstTouch::everywhere();
            let config = device(1, vec![queue(0, Shared, 16)]);
            let started = VirtualDevice::start_in(config, Options::default(), space, |_| {});
            let started = started.expect("a device that can be enabled");
            let member = Member {
                mover: started.open(0, 4).expect("a queue"),
                numa_node: None,
            };
            let options = ChannelsOptions {
                page_fault,
                ..options()
            };
            Channels::new([member], options).expect("channels")
        })
    };
    let resumed = faulting(PageFaultPolicy::TouchAndResume { most: 1000 });
    assert_eq!(resumed.core_reason, None);
    assert!(resumed.resumed_faults >= 16, "{resumed:?}");
    let finished = faulting(PageFaultPolicy::FinishOnCore);
    assert_eq!(finished.core_reason, Some(Reason::PageFault));
}
