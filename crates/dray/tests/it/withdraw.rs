//! Operations that are taken back from channels: each comes back once, as withdrawn, and is counted once.

use dray::channels::{Channels, ChannelsOptions, Choice, FullQueuePolicy, Member, Outcome, Reason};
use dray::{Executor, Failure, Mover, Operation, Output, Progress};
use dray_spec::{CompletionRecord, Status};

use crate::channels::options;
use crate::manual::Manual;
use crate::memory::{Guarded, PAGE};

fn channels(movers: &[Manual], options: ChannelsOptions) -> Channels<Manual> {
    let members = movers.iter().map(|mover| Member {
        mover: mover.clone(),
        numa_node: None,
    });
    Channels::new(members, options).expect("channels")
}

/// Lets the devices go on until so many operations have ended.
fn finish(channels: &mut Channels<Manual>, movers: &[Manual], count: usize) -> Vec<Outcome> {
    let mut ended = vec![Outcome::default(); count + 1];
    let mut found = 0;
    for _ in 0..1000 {
        found += channels.poll_outcomes(&mut ended[found..]);
        for mover in movers {
            mover.execute_all();
        }
        channels.submit();
    }
    assert_eq!(found, count, "each ends once");
    ended.truncate(count);
    ended
}

/// Fills that are named by the page that they begin at, and their pages.
struct Fills {
    target: Guarded,
    all: Vec<Operation>,
    pages: usize,
}

impl Fills {
    fn new(pages: usize) -> Fills {
        Fills {
            target: Guarded::new(pages),
            all: Vec::new(),
            pages: 0,
        }
    }

    fn next(&mut self, bytes: usize) -> Operation {
        let at = self.target.address() + (self.pages * PAGE) as u64;
        let fill = Operation::fill(u64::MAX, at, bytes as u32).with_user_data(self.pages as u64);
        self.pages += bytes.div_ceil(PAGE);
        self.all.push(fill);
        fill
    }
}

#[test]
fn what_is_withdrawn_comes_back_once_and_is_counted_once() {
    for full_queue in [
        FullQueuePolicy::Wait,
        FullQueuePolicy::Core,
        FullQueuePolicy::Error,
    ] {
        // From a few submissions to so many that the queues count as full.
        for (room, submissions) in [(0, 1), (0, 64), (0, 65), (1, 1), (3, 65), (5, 1), (64, 1)] {
            let movers = [0, 1].map(|_| Manual::new(16, room));
            let options = ChannelsOptions {
                full_queue,
                choice: Choice::Threshold {
                    device_from_bytes: 1024,
                },
                ..options()
            };
            let mut channels = channels(&movers, options);
            let mut fills = Fills::new(512);
            let put = |channels: &mut Channels<Manual>, fill: Operation| {
                // SAFETY: the memory outlives the operations, which are waited for.
                unsafe { channels.enqueue(&fill) }.expect("a slot");
            };
            for bytes in [64 * PAGE, 50 * PAGE, 512].into_iter().chain([PAGE; 8]) {
                put(&mut channels, fills.next(bytes));
            }
            let batch = [0; 3].map(|_| fills.next(PAGE));
            // SAFETY: as above.
            unsafe { channels.enqueue_batch(&batch) }.expect("slots");
            for _ in 0..submissions {
                channels.submit();
            }
            // Not handed over at all: to a device, and to the core.
            for bytes in [64 * PAGE, PAGE, 100] {
                put(&mut channels, fills.next(bytes));
            }
            let enqueued = [&movers[0], &movers[1]].map(Manual::enqueued);
            let withdrawn = channels.withdraw();
            assert!(withdrawn >= 3, "what was not handed over");
            assert_eq!(channels.withdraw(), 0, "all was taken back");
            let name = format!("{full_queue:?}, {room} entries, {submissions} submissions");
            let outcomes = finish(&mut channels, &movers, fills.all.len());
            assert_eq!([&movers[0], &movers[1]].map(Manual::enqueued), enqueued);
            let mut seen: Vec<u64> = outcomes.iter().map(|o| o.completion.user_data).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), fills.all.len(), "{name}: all have ended");
            let back = outcomes.iter().filter(|outcome| outcome.withdrawn);
            assert_eq!(back.count(), withdrawn, "{name}");
            for outcome in &outcomes {
                let page = outcome.completion.user_data;
                let mut fills_ = fills.all.iter();
                let fill = fills_.find(|fill| fill.user_data() == page).expect("one");
                let start = page as usize * PAGE;
                let bytes = &fills.target[start..start + fill.len() as usize];
                let written = bytes.iter().filter(|byte| **byte == 0xff).count() as u64;
                assert_eq!(outcome.device_bytes + outcome.core_bytes, written, "{name}");
                if outcome.withdrawn {
                    assert_eq!(outcome.output(fill), Err(Failure::NotExecuted), "{name}");
                    assert_eq!((outcome.core_bytes, outcome.core_reason), (0, None));
                    assert!(!outcome.queue_was_full && outcome.queue_lost.is_none());
                    let before = outcome.completion.record.bytes_completed;
                    assert!(bytes[..before as usize].iter().all(|byte| *byte == 0xff));
                } else if outcome.queue_was_full {
                    assert_eq!(outcome.output(fill), Err(Failure::QueueFull), "{name}");
                    assert_eq!(full_queue, FullQueuePolicy::Error);
                } else {
                    assert_eq!(outcome.output(fill), Ok(Output::Done), "{name}");
                }
            }
            assert_eq!(channels.submit(), Progress::Done);
            assert!(channels.idle_movers().is_some(), "{name}");
        }
    }
}

#[test]
fn an_operation_of_which_one_stripe_was_accepted_is_withdrawn_once() {
    let movers = [Manual::new(4, 4), Manual::new(4, 0)];
    let mut channels = channels(&movers, options());
    let source = Guarded::noise(64, 1);
    let target = Guarded::new(64);
    let copy = Operation::memmove(source.address(), target.address(), 64 * PAGE as u32);
    // SAFETY: the memory outlives the operation, which is waited for.
    unsafe { channels.enqueue(&copy) }.expect("a slot");
    assert_eq!(channels.submit(), Progress::Pending);
    assert_eq!(movers[0].in_flight().len(), 1);
    assert_eq!(channels.withdraw(), 1);
    let mut ended = [Outcome::default()];
    assert_eq!(
        channels.poll_outcomes(&mut ended),
        0,
        "a device has a part of it"
    );
    let outcome = finish(&mut channels, &movers, 1)[0];
    assert_eq!(outcome.output(&copy), Err(Failure::NotExecuted));
    assert_eq!(outcome.completion.record.bytes_completed, 32 * PAGE as u32);
    assert_eq!(
        (outcome.device_bytes, outcome.stripes),
        (32 * PAGE as u64, 1)
    );
    assert_eq!(outcome.executor(), Executor::Virtual);
    assert!(outcome.withdrawn && target[..32 * PAGE] == source[..32 * PAGE]);
    assert!(target[32 * PAGE..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_part_of_a_withdrawn_operation_does_not_go_on() {
    // Descriptors of 64 KiB: each stripe is two of them.
    let movers = [4, 0].map(|room| Manual::new(4, room).with_max_transfer(64 << 10));
    let mut channels = channels(&movers, options());
    let target = Guarded::new(64);
    let fill = Operation::fill(u64::MAX, target.address(), 64 * PAGE as u32);
    // SAFETY: the memory outlives the operation, which is waited for.
    unsafe { channels.enqueue(&fill) }.expect("a slot");
    channels.submit();
    assert_eq!(channels.withdraw(), 1);
    let outcome = finish(&mut channels, &movers, 1)[0];
    assert_eq!(outcome.device_bytes, 64 << 10);
    assert_eq!(outcome.completion.record.bytes_completed, 64 << 10);
    assert_eq!(outcome.completion.status(), Status::NONE);
    assert_eq!(movers[0].enqueued(), 1);
}

#[test]
fn a_stripe_that_no_queue_has_accepted_is_not_counted() {
    for full_queue in [FullQueuePolicy::Core, FullQueuePolicy::Error] {
        for is_full in [true, false] {
            let movers = [Manual::new(4, 4), Manual::new(4, 0)];
            movers[1].set_full(is_full);
            let options = ChannelsOptions {
                full_queue,
                ..options()
            };
            let mut channels = channels(&movers, options);
            let target = Guarded::new(64);
            let fill = Operation::fill(u64::MAX, target.address(), 64 * PAGE as u32);
            // SAFETY: the memory outlives the operation, which is waited for.
            unsafe { channels.enqueue(&fill) }.expect("a slot");
            for _ in 0..70 {
                channels.submit();
            }
            let outcome = finish(&mut channels, &movers, 1)[0];
            assert_eq!(outcome.stripes, 1, "{full_queue:?} {outcome:?}");
            assert_eq!(outcome.device_bytes, 32 * PAGE as u64);
            match full_queue {
                FullQueuePolicy::Core => {
                    assert_eq!(outcome.output(&fill), Ok(Output::Done));
                    assert_eq!(outcome.core_reason, Some(Reason::QueueFull));
                    assert_eq!(outcome.core_bytes, 32 * PAGE as u64);
                }
                _ => assert_eq!(outcome.output(&fill), Err(Failure::QueueFull)),
            }
        }
    }
}

#[test]
fn a_stripe_that_ends_after_its_operation_was_withdrawn_goes_nowhere_else() {
    let mut fault = CompletionRecord::with_status(Status::PAGE_FAULT.with_write_fault());
    fault.bytes_completed = PAGE as u32;
    for is_lost in [false, true] {
        let movers = [Manual::new(4, 4), Manual::new(4, 0)];
        let mut channels = channels(&movers, options());
        let target = Guarded::new(64);
        fault.fault_address = target.address() + PAGE as u64;
        let fill = Operation::fill(u64::MAX, target.address(), 64 * PAGE as u32);
        // SAFETY: the memory outlives the operation, which is waited for.
        unsafe { channels.enqueue(&fill) }.expect("a slot");
        channels.submit();
        assert_eq!(channels.withdraw(), 1);
        match is_lost {
            true => {
                movers[0].lose();
                movers[0].end(CompletionRecord::default());
            }
            false => movers[0].end(fault),
        }
        let outcome = finish(&mut channels, &movers, 1)[0];
        assert_eq!(outcome.output(&fill), Err(Failure::NotExecuted));
        assert_eq!(
            (outcome.moved, outcome.core_bytes, outcome.resumed_faults),
            (0, 0, 0)
        );
        let done = if is_lost { 0 } else { PAGE as u32 };
        assert_eq!(outcome.completion.record.bytes_completed, done);
        assert_eq!(movers[0].enqueued(), 1, "it was resumed");
        assert!(target.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn what_was_withdrawn_before_it_was_submitted_names_no_core() {
    let movers = [Manual::new(4, 4)];
    let mut channels = channels(&movers, options());
    let target = Guarded::new(1);
    let fill = Operation::fill(u64::MAX, target.address(), PAGE as u32);
    // SAFETY: the memory outlives the operation, which is withdrawn.
    unsafe { channels.enqueue(&fill) }.expect("a slot");
    assert_eq!(channels.withdraw(), 1);
    let mut ended = [Outcome::default()];
    assert_eq!(channels.poll_outcomes(&mut ended), 1);
    assert_eq!(ended[0].executor(), Executor::Virtual);
    assert_eq!((ended[0].stripes, ended[0].core_reason), (0, None));
}
