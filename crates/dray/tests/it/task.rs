//! Futures of operations: without a runtime, on a thread, dropped in flight, refused.

use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};

use dray::virt::{Options, VirtualDevice};
use dray::{
    Channel, ChannelError, CpuMover, Failure, Mover, Output, PageBuffer, Request, WaitPolicy, task,
};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_ops::{DestinationDifFlags, DifFlags, SourceDifFlags};
use dray_spec::DifTags;

use crate::machine::{device, queue};

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

fn started(mode: dray_device::WorkQueueMode) -> VirtualDevice {
    let started = VirtualDevice::start(device(1, vec![queue(0, mode, 16)]), Options::default());
    started.expect("a device that can be enabled")
}

#[test]
fn futures_wait_for_slots_and_all_end() {
    for mode in [Dedicated, Shared] {
        let device = started(mode);
        let (client, driver) = task::channel(device.open(0, 4).expect("a queue"));
        let driver = std::thread::spawn(move || driver.run());
        let threads: Vec<_> = (0..4_u8)
            .map(|n| {
                let client = client.clone();
                std::thread::spawn(move || {
                    for _ in 0..50 {
                        let copy = Request::copy(vec![n; 3000], vec![0; 3000]);
                        let done = block_on(client.request(copy)).expect("it is taken");
                        assert_eq!(done.output, Output::Done);
                        assert_eq!(done.buffers.destination, Some(vec![n; 3000]));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        drop(client);
        driver.join().expect("the driver ends with its clients");
    }
}

#[test]
fn futures_get_slots_in_the_order_in_which_they_asked() {
    let (client, mut driver) = task::channel(CpuMover::new(1));
    let mut context = Context::from_waker(Waker::noop());
    let mut next = 0;
    let mut new = || {
        next += 1;
        (next, Box::pin(client.request(Request::fill(0, vec![0; 8]))))
    };
    let mut futures = Vec::new();
    let mut ended = Vec::new();
    while ended.len() < 20 {
        // The newest asks first, in every round.
        futures.push(new());
        for n in (0..futures.len()).rev() {
            let (number, future) = &mut futures[n];
            if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
                assert!(done.is_ok());
                ended.push(*number);
                drop(futures.remove(n));
            }
        }
        let _ = std::pin::Pin::new(&mut driver).poll(&mut context);
    }
    assert!(ended.iter().copied().eq(1..=20), "{ended:?}");
}

#[test]
fn a_future_that_is_dropped_leaves_its_buffers_until_the_device_is_done() {
    let device = started(Dedicated);
    let (client, mut driver) = task::channel(device.open(0, 4).expect("a queue"));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        let mut future = Box::pin(client.request(Request::fill(1, vec![0; 100_000])));
        assert!(future.as_mut().poll(&mut context).is_pending());
        // Handed over, and then no future waits for it.
        assert!(
            std::pin::Pin::new(&mut driver)
                .poll(&mut context)
                .is_pending()
        );
        drop(future);
    }
    // All cells are free again: four operations at once.
    let futures = (0..4).map(|_| client.request(Request::crc32c(vec![0; 64], 0)));
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut left = 4;
    while left > 0 {
        let _ = std::pin::Pin::new(&mut driver).poll(&mut context);
        futures.retain_mut(|future| match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => {
                assert!(done.is_ok());
                left -= 1;
                false
            }
            Poll::Pending => true,
        });
    }
    assert_eq!(device.device().lost(0), Some(0));
}

#[test]
fn what_a_driver_leaves_behind_comes_back() {
    let (client, driver) = task::channel(CpuMover::new(2));
    drop(driver);
    let refused = block_on(client.request(Request::crc32c(vec![1; 8], 0))).expect_err("no driver");
    assert_eq!(refused.error, ChannelError::Closed.into());
    assert_eq!(refused.buffers.source, Some(vec![1; 8]));
    // In flight when the driver ends: it is answered all the same.
    let device = started(Shared);
    let (client, mut driver) = task::channel(device.open(0, 4).expect("a queue"));
    let mut context = Context::from_waker(Waker::noop());
    let mut future = Box::pin(client.request(Request::fill(1, vec![0; 8])));
    assert!(future.as_mut().poll(&mut context).is_pending());
    let _ = std::pin::Pin::new(&mut driver).poll(&mut context);
    drop(driver);
    let done = block_on(future).expect("it was taken");
    assert_eq!(done.buffers.destination, Some(vec![1, 0, 0, 0, 0, 0, 0, 0]));
    // What the channel does not take says why, and leaves room for others.
    let (client, driver) = task::channel(CpuMover::new(1));
    let driver = std::thread::spawn(move || driver.run());
    for _ in 0..3 {
        let uneven = Request::copy(vec![1; 3], vec![2; 4]);
        let refused = block_on(client.request(uneven)).expect_err("other lengths");
        let lengths = ChannelError::Lengths {
            first: 3,
            second: 4,
        };
        assert_eq!(refused.error, lengths.into());
    }
    drop(client);
    driver.join().expect("it ends");
}

#[test]
fn the_example_with_tokio_runs() {
    // Cargo builds examples before it runs tests.
    let test = std::env::current_exe().expect("a path");
    let directory = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("a directory");
    let output = Command::new(directory.join("examples/tokio_copy")).output();
    let output = output.expect("the example was built");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "64 buffers copied, 0 of them by a device; refused: buffers of 3 and 4 bytes for one operation\n"
    );
}

/// One operation on a channel, to its end.
fn one<M: Mover, B: dray::Buffer + std::fmt::Debug>(
    channel: &mut Channel<M, B>,
    request: Request<B>,
) -> dray::Completed<B> {
    channel.push(request).expect("it is taken");
    channel.wait(WaitPolicy::Yield, None).expect("it ends")
}

fn dif_and_dualcast<M: Mover>(mover: M) {
    let mut channel: Channel<M, PageBuffer> = Channel::new(mover);
    let data = |byte: u8, len: usize| {
        let mut buffer = PageBuffer::zeroed(len);
        buffer.fill(byte);
        buffer
    };
    let flags = DifFlags::from_bits(0);
    let tags = DifTags {
        reference: 7,
        app_mask: 0,
        app: 9,
    };
    let made = (DestinationDifFlags::from_bits(0), tags);
    let checked = (SourceDifFlags::from_bits(0), tags);
    let insert = Request::dif_insert(data(5, 4 * 512), data(0, 4 * 520), flags, made);
    let done = one(&mut channel, insert);
    let next = DifTags {
        reference: 11,
        ..tags
    };
    let (source, destination) = (None, Some(next));
    assert_eq!(
        done.result,
        Ok(Output::Tags {
            source,
            destination
        })
    );
    let protected = done.buffers.destination.expect("it comes back");
    let check = one(&mut channel, Request::dif_check(protected, flags, checked));
    assert!(check.result.is_ok(), "{:?}", check.result);
    let protected = check.buffers.source.expect("it comes back");
    let strip = Request::dif_strip(protected, data(0, 4 * 512), flags, checked);
    let done = one(&mut channel, strip);
    let stripped = done.buffers.destination.expect("it comes back");
    assert!(stripped.iter().all(|byte| *byte == 5));
    let mut protected = done.buffers.source.expect("it comes back");
    protected[2 * 520 + 3] ^= 1;
    let update = Request::dif_update(protected, data(0, 4 * 520), flags, checked, made);
    let bad = one(&mut channel, update).result;
    let bytes_completed = 2 * 520;
    assert_eq!(
        bad,
        Err(Failure::Dif {
            status: 1,
            bytes_completed
        })
    );
    let done = one(
        &mut channel,
        Request::dualcast(data(3, 100), data(0, 100), data(0, 100)),
    );
    assert_eq!(done.result, Ok(Output::Done));
    let copies = [done.buffers.destination, done.buffers.second];
    let copied = |copy: &Option<PageBuffer>| copy.as_ref().is_some_and(|copy| **copy == [3; 100]);
    assert!(copies.iter().all(copied));
    // What does not fit is refused, with the buffers.
    let short = Request::dif_insert(data(5, 512), data(0, 512), flags, made);
    let rejected = channel.push(short).expect_err("no room for the field");
    assert_eq!(
        rejected.error,
        ChannelError::Lengths {
            first: 520,
            second: 512
        }
    );
    let uneven = Request::dif_strip(data(5, 100), data(0, 100), flags, checked);
    let rejected = channel.push(uneven).expect_err("no whole block");
    assert_eq!(
        rejected.error,
        ChannelError::Blocks {
            len: 100,
            block: 520
        }
    );
}

#[test]
fn integrity_fields_and_deltas_are_typed() {
    dif_and_dualcast(CpuMover::new(4));
    let device = started(Dedicated);
    dif_and_dualcast(device.open(0, 4).expect("a queue"));
    let mut channel = Channel::new(device.open(0, 4).expect("a queue"));
    let mut new = vec![0_u8; 4096];
    new[800] = 1;
    let done = one(
        &mut channel,
        Request::create_delta(vec![0; 4096], new, vec![0; 160]),
    );
    let overflow_at = None;
    let record_bytes = 10;
    assert_eq!(
        done.result,
        Ok(Output::Delta {
            record_bytes,
            overflow_at
        })
    );
    let record = done.buffers.second.expect("it comes back");
    let apply = Request::apply_delta(record, record_bytes, vec![0; 4096]);
    let done = one(&mut channel, apply);
    assert_eq!(done.buffers.destination.expect("it comes back")[800], 1);
    let beyond = Request::apply_delta(vec![0; 80], 81, vec![0; 4096]);
    let rejected = channel.push(beyond).expect_err("the record is shorter");
    assert!(matches!(rejected.error, ChannelError::Lengths { .. }));
}

#[test]
fn a_batch_is_submitted_whole_or_comes_back() {
    let device = started(Shared);
    let mut channel = Channel::new(device.open(0, 4).expect("a queue"));
    for _ in 0..20 {
        let mut batch = channel.batch();
        batch
            .push(Request::fill(u64::MAX, vec![0; 64]).with_user_data(1))
            .expect("room");
        let compare = Request::compare(vec![1; 8], vec![2; 8]).with_user_data(2);
        batch.push(compare).expect("room");
        batch
            .push(Request::noop().with_fence().with_user_data(3))
            .expect("room");
        assert_eq!(batch.len(), 3);
        batch.submit().expect("slots");
        let mut seen = [false; 4];
        for _ in 0..3 {
            let done = channel.wait(WaitPolicy::Yield, None).expect("it ends");
            seen[done.user_data as usize] = true;
            assert!(done.result.is_ok());
        }
        assert_eq!(seen, [false, true, true, true]);
    }
    // No room: three are in flight.
    for _ in 0..3 {
        channel.fill(0, vec![0; 8]).expect("a slot");
    }
    let mut batch = channel.batch();
    batch.push(Request::fill(1, vec![1; 8])).expect("a slot");
    let refused = batch
        .push(Request::fill(1, vec![2; 8]))
        .expect_err("no slot");
    assert!(matches!(refused.error, ChannelError::Full(_)));
    assert_eq!(refused.buffers.destination, Some(vec![2; 8]));
    let back = batch.take();
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].destination, Some(vec![1; 8]));
    // One that is forgotten is not executed, and takes nothing away.
    let mut batch = channel.batch();
    batch.push(Request::fill(1, vec![1; 8])).expect("a slot");
    std::mem::forget(batch);
    assert_eq!(channel.in_flight(), 3);
    for _ in 0..3 {
        channel.wait(WaitPolicy::Yield, None).expect("it ends");
    }
    drop(channel.batch());
    assert_eq!(channel.in_flight(), 0);
}

#[test]
fn a_channel_on_a_queue_that_is_disabled_gives_everything_back() {
    use dray_spec::registers::{Command, CommandRegister};
    let device = started(Shared);
    let disabled = device
        .device()
        .command(Command::DisableWq, CommandRegister::queue(0));
    assert_eq!(disabled, Ok(Ok(0)));
    let mut channel = Channel::new(device.open(0, 4).expect("a queue"));
    channel.fill(1, vec![0; 64]).expect("a slot");
    channel.submit();
    assert_eq!(channel.withdraw(), 1);
    let done = channel.wait(WaitPolicy::Yield, None).expect("it ends");
    assert_eq!(done.result, Err(Failure::NotExecuted));
    assert_eq!(done.buffers.destination, Some(vec![0; 64]));
    // Dropped with operations that no driver takes: it does not wait for them.
    channel.fill(1, vec![0; 64]).expect("a slot");
    channel.submit();
    drop(channel);
}
