//! A completion that does not come: a deadline says so, nothing is given back before, nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dray::channels::{Channels, ChannelsOptions, Member, Require};
use dray::virt::{Engines, Options, VirtualDevice};
use dray::{
    Buffer, Channel, ChannelError, Completion, Mover, Operation, Output, Progress, Request,
    WaitError, WaitPolicy, task, wait,
};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_spec::Status;

use crate::gate::{Gate, Opener};
use crate::machine::{device, queue};

const AFTER: Duration = Duration::from_millis(2);

/// Devices whose engines hold what they have: with threads of their own, and without.
fn held() -> impl Iterator<Item = (VirtualDevice, Gate)> {
    let ways = [Engines::Threads, Engines::Dispatcher].map(|e| [Dedicated, Shared].map(|m| (e, m)));
    ways.into_iter().flatten().map(|(engines, mode)| {
        let gate = Gate::default();
        let options = Options {
            engines,
            ..Options::default()
        };
        let config = device(1, vec![queue(0, mode, 8)]);
        let started = VirtualDevice::start_in(config, options, gate.clone(), |_| {});
        (started.expect("a device that can be enabled"), gate)
    })
}

#[test]
fn a_channel_keeps_the_buffers_of_what_an_engine_holds() {
    for (device, gate) in held() {
        let mut channel = Channel::new(device.open(0, 8).expect("a queue"));
        let opener = Opener(gate);
        for n in 0..4 {
            channel
                .copy(vec![n; 4096], vec![0xff; 4096])
                .expect("a slot");
        }
        while channel.submit() == Progress::Pending {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            let waited = channel.wait(WaitPolicy::Yield, Some(AFTER));
            assert!(
                matches!(waited, Err(WaitError::Deadline { after }) if after == AFTER),
                "{waited:?}"
            );
        }
        assert!(channel.poll().is_none());
        // The device has them: they cannot be taken back.
        assert_eq!((channel.withdraw(), channel.in_flight()), (0, 4));
        opener.open();
        let mut seen = [false; 4];
        for _ in 0..4 {
            let done = channel.wait(WaitPolicy::Yield, None).expect("it ends");
            assert_eq!(done.result, Ok(Output::Done));
            assert_eq!(done.buffers.source, done.buffers.destination);
            let byte = done.buffers.source.expect("a source")[0];
            assert!(!std::mem::replace(&mut seen[usize::from(byte)], true));
        }
        let nothing = channel.wait(WaitPolicy::Yield, Some(AFTER));
        assert!(matches!(nothing, Err(WaitError::Nothing)), "{nothing:?}");
    }
}

#[test]
fn channels_wait_for_what_an_engine_holds() {
    for (device, gate) in held() {
        // Freed when the device is done with them, in whatever way this ends.
        let (source, target) = (vec![7_u8; 3 * 4096], vec![0_u8; 3 * 4096]);
        let members = [0].map(|wq| Member {
            mover: device.open(wq, 8).expect("a queue"),
            numa_node: None,
        });
        let options = ChannelsOptions {
            require: Require::Device,
            gather_below_bytes: 0,
            ..ChannelsOptions::default()
        };
        let mut channels = Channels::new(members, options).expect("channels");
        let opener = Opener(gate);
        let from = source.as_ptr().expose_provenance() as u64;
        let to = target.as_ptr().expose_provenance() as u64;
        for n in 0..3 {
            let copy = Operation::memmove(from + n * 4096, to + n * 4096, 4096);
            // SAFETY: both buffers outlive the operations, which are waited for.
            unsafe { channels.enqueue(&copy.with_user_data(n)) }.expect("a slot");
        }
        let mut ended = [Completion::default(); 4];
        for _ in 0..3 {
            let waited = wait(&mut channels, &mut ended, WaitPolicy::Yield, Some(AFTER));
            assert_eq!(waited, Err(WaitError::Deadline { after: AFTER }));
        }
        assert_eq!(channels.withdraw(), 0);
        opener.open();
        let mut seen = [false; 3];
        while seen.iter().any(|seen| !seen) {
            let count = wait(&mut channels, &mut ended, WaitPolicy::Yield, None).expect("it ends");
            for completion in &ended[..count] {
                assert_eq!(completion.status(), Status::SUCCESS);
                assert!(!std::mem::replace(
                    &mut seen[completion.user_data as usize],
                    true
                ));
            }
        }
        assert!(source == target);
    }
}

/// Bytes that count how many of their kind were freed.
#[derive(Debug)]
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: the bytes are those of a vector that it owns.
unsafe impl Buffer for Counted {
    fn stable_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn dropping_a_channel_ends_and_frees_nothing_that_an_engine_holds() {
    for (device, gate) in held() {
        let opener = Opener(gate);
        let freed = Arc::new(AtomicUsize::new(0));
        let buffer = || Counted(vec![1; 4096], freed.clone());
        let mover = device.open(0, 8).expect("a queue").with_drop_timeout(AFTER);
        let mut channel = Channel::new(mover).with_drop_timeout(AFTER);
        for _ in 0..4 {
            channel.copy(buffer(), buffer()).expect("a slot");
        }
        while channel.submit() == Progress::Pending {
            std::thread::yield_now();
        }
        drop(channel);
        // The device, which goes on, and its other users.
        drop(device);
        assert_eq!(freed.load(Ordering::SeqCst), 0);
        opener.open();
        assert_eq!(freed.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn no_future_waits_for_ever_for_a_driver_that_has_ended() {
    for (device, gate) in held() {
        let _opener = Opener(gate);
        let mover = device.open(0, 2).expect("a queue").with_drop_timeout(AFTER);
        let (client, driver) = task::channel(mover);
        let mut driver = Box::pin(driver.with_drop_timeout(AFTER));
        let mut context = Context::from_waker(Waker::noop());
        // Two that the device holds, and one that waits for a slot.
        let futures = [7, 8, 9].map(|byte| {
            let mut future = Box::pin(client.request(Request::copy(vec![byte; 64], vec![0; 64])));
            assert!(future.as_mut().poll(&mut context).is_pending());
            let _ = driver.as_mut().poll(&mut context);
            future
        });
        drop(driver);
        let ended = futures.map(|mut future| match future.as_mut().poll(&mut context) {
            Poll::Ready(Err(rejected)) => (rejected.error, rejected.buffers.source),
            other => panic!("{other:?}"),
        });
        let held = (ChannelError::InFlight.into(), None);
        let waiting = (ChannelError::Closed.into(), Some(vec![9; 64]));
        assert_eq!(ended, [held.clone(), held, waiting]);
    }
}
