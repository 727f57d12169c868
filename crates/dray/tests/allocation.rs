//! Nothing is allocated on the path of an operation.

#[path = "../../../tests/counting_allocator.rs"]
mod counting_allocator;

use std::pin::Pin;
use std::task::{Context, Waker};

use counting_allocator::counted;
use dray::channels::{Channels, ChannelsOptions, Member};
use dray::task::{self, Handle};
use dray::virt::{Options, VirtualDevice};
use dray::{Channel, Completion, CpuMover, Mover, Operation, Progress, WaitPolicy};
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

/// Twice the slots, so that half of them wait.
#[test]
fn handles_allocate_nothing() {
    let device = device();
    let (submitter, mut driver) = task::share(device.open(0, 8).expect("a queue"));
    let mut context = Context::from_waker(Waker::noop());
    let handles: Vec<Handle> = (0..16).map(|_| Handle::new()).collect();
    let mut buffers = vec![[0_u8; 64]; 16];
    let mut ended = [std::ptr::null_mut(); 16];
    submitter.event().expect("a descriptor");
    let mut rounds = |rounds: usize| {
        for _ in 0..rounds {
            for (handle, buffer) in handles.iter().zip(&mut buffers) {
                let at = buffer.as_mut_ptr().expose_provenance() as u64;
                let fill = Operation::fill(u64::MAX, at, 64);
                // SAFETY: handles and buffers stay, and all end in this round.
                unsafe { submitter.start(handle, fill.into(), true) }.expect("it starts");
            }
            let mut count = 0;
            while count < handles.len() {
                assert!(Pin::new(&mut driver).poll(&mut context).is_pending());
                std::thread::yield_now();
                count += submitter.take_ended(&mut ended);
            }
        }
    };
    // What the driver keeps of operations that have begun.
    rounds(1);
    assert_eq!(counted(|| rounds(100)), 0);
    assert_eq!(buffers, [[255; 64]; 16]);
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
