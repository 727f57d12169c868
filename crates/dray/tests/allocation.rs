//! Nothing is allocated on the path of an operation.

#[path = "../../../tests/counting_allocator.rs"]
mod counting_allocator;

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use counting_allocator::counted;
use dray::channels::{Channels, ChannelsOptions, Member};
use dray::virt::{Options, VirtualDevice};
use dray::{Channel, Completion, CpuMover, Mover, Operation, Progress, Request, WaitPolicy, task};
use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

fn device() -> VirtualDevice {
    let queue = WorkQueueConfig {
        max_transfer_size: 1 << 20,
        ..WorkQueueConfig::new(0, WorkQueueMode::Dedicated, 32)
    };
    let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
    VirtualDevice::start(config, Options::default()).expect("a device that can be enabled")
}

/// Singles and batches, each to its end.
fn rounds(mover: &mut impl Mover) {
    let batch = [Operation::noop(); 8];
    let mut ended = [Completion::default(); 16];
    for _ in 0..100 {
        for _ in 0..8 {
            // SAFETY: a NOOP has no operands.
            unsafe { mover.enqueue(&Operation::noop()) }.expect("a slot");
        }
        // SAFETY: as above.
        unsafe { mover.enqueue_batch(&batch) }.expect("slots");
        let mut left = 16;
        while left > 0 {
            let progress = mover.submit();
            left -= mover.poll(&mut ended);
            if progress == Progress::Pending || left > 0 {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn movers_allocate_nothing() {
    let mut core = CpuMover::new(32);
    assert_eq!(counted(|| rounds(&mut core)), 0, "the core");
    let device = device();
    let mut mover = device.open(0, 32).expect("a queue");
    assert_eq!(counted(|| rounds(&mut mover)), 0, "the virtual device");
    let reused = counted(|| drop(vec![0_u8; 16]));
    assert_eq!(reused, 1, "the counter counts");
}

#[test]
fn channels_allocate_nothing() {
    let device = device();
    let mut channel = Channel::new(device.open(0, 8).expect("a queue"));
    let mut buffers = Some((vec![1_u8; 4096], vec![0_u8; 4096]));
    let count = counted(|| {
        for _ in 0..100 {
            let (source, destination) = buffers.take().expect("they came back");
            channel.copy(source, destination).expect("a slot");
            let done = channel.wait(WaitPolicy::Yield, None).expect("it ends");
            buffers = done.buffers.source.zip(done.buffers.destination);
        }
    });
    assert_eq!(count, 0);
    let (source, destination) = buffers.expect("they came back");
    assert_eq!(source, destination);
}

#[test]
fn futures_allocate_nothing() {
    let device = device();
    let (client, mut driver) = task::channel(device.open(0, 8).expect("a queue"));
    let mut context = Context::from_waker(Waker::noop());
    let mut buffers = Some((vec![1_u8; 4096], vec![0_u8; 4096]));
    let count = counted(|| {
        for _ in 0..100 {
            let (source, destination) = buffers.take().expect("they came back");
            let mut future = client.request(Request::copy(source, destination));
            let done = loop {
                if let Poll::Ready(done) = Pin::new(&mut future).poll(&mut context) {
                    break done.expect("it is taken");
                }
                let _ = Pin::new(&mut driver).poll(&mut context);
                std::thread::yield_now();
            };
            buffers = done.buffers.source.zip(done.buffers.destination);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn channels_over_several_queues_allocate_nothing() {
    let device = device();
    let mover = device.open(0, 32).expect("a queue");
    let member = Member {
        mover,
        numa_node: None,
    };
    let options = ChannelsOptions {
        slots: 32,
        ..ChannelsOptions::default()
    };
    let mut channels = Channels::new([member], options).expect("channels");
    assert_eq!(counted(|| rounds(&mut channels)), 0);
}

#[test]
fn futures_that_wait_for_a_slot_allocate_nothing() {
    let (client, mut driver) = task::channel(CpuMover::new(1));
    let mut context = Context::from_waker(Waker::noop());
    let mut buffers: Vec<Option<Vec<u8>>> = (0..2).map(|_| Some(vec![0; 64])).collect();
    let count = counted(|| {
        for _ in 0..100 {
            // One has the slot, one waits for it, and one waits and is dropped.
            let mut next = |n: usize| {
                let buffer = buffers[n].take().expect("it came back");
                client.request(Request::fill(1, buffer))
            };
            let mut both = [next(0), next(1)];
            let mut given_up = client.request(Request::noop());
            for future in both.iter_mut().chain([&mut given_up]) {
                assert!(Pin::new(future).poll(&mut context).is_pending());
            }
            drop(given_up);
            for (n, future) in both.iter_mut().enumerate() {
                let done = loop {
                    let _ = Pin::new(&mut driver).poll(&mut context);
                    if let Poll::Ready(done) = Pin::new(&mut *future).poll(&mut context) {
                        break done.expect("it is taken");
                    }
                };
                buffers[n] = done.buffers.destination;
            }
        }
    });
    assert_eq!(count, 0);
}
