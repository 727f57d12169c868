//! Answers of devices that are rare: a batch whose list cannot be read, a fault behind the last byte, a queue that
//! never has room for a batch.

use dray::channels::{
    Channels, ChannelsError, ChannelsOptions, FullQueuePolicy, Member, Outcome, PageFaultPolicy,
};
use dray::pages::{PageCopy, PageListOptions, copy_page_lists};
use dray::{
    Capabilities, ChannelError, CpuMover, Executor, Failure, Mover, Operation, Output, Request,
    task,
};
use dray_spec::{CompletionRecord, Flags, Status};

use crate::channels::options;
use crate::manual::Manual;
use crate::memory::{Guarded, PAGE};

fn channels(mover: &Manual, options: ChannelsOptions) -> Channels<Manual> {
    let member = Member {
        mover: mover.clone(),
        numa_node: None,
    };
    Channels::new([member], options).expect("channels")
}

/// Fills of a page each, enqueued one by one.
fn fill_pages(channels: &mut Channels<Manual>, target: &Guarded) -> Vec<Operation> {
    let pages = 0..(target.len() / PAGE) as u64;
    let fill = |n| Operation::fill(u64::MAX, target.address() + n * PAGE as u64, PAGE as u32);
    let fills: Vec<Operation> = pages.map(fill).collect();
    for fill in &fills {
        // SAFETY: the memory outlives the operations, which are waited for.
        unsafe { channels.enqueue(fill) }.expect("a slot");
    }
    fills
}

#[test]
fn operations_that_were_gathered_go_alone_when_the_list_cannot_be_read() {
    let mover = Manual::new(16, 16);
    let mut channels = channels(&mover, options());
    let target = Guarded::new(4);
    let fills = fill_pages(&mut channels, &target);
    channels.submit();
    // The device says how many descriptors of the list it has executed, and those were none of these.
    let mut record = CompletionRecord::with_status(Status::BATCH_PAGE_FAULT);
    record.bytes_completed = 2;
    for _ in &fills {
        mover.end(record);
    }
    let mut ended = [Outcome::default(); 5];
    assert_eq!(channels.poll_outcomes(&mut ended), 0, "they are done again");
    assert_eq!(mover.execute_all(), fills.len());
    assert_eq!(channels.poll_outcomes(&mut ended), fills.len());
    for (outcome, fill) in ended.iter().zip(&fills) {
        assert_eq!(outcome.output(fill), Ok(Output::Done));
        assert_eq!(outcome.device_bytes, PAGE as u64);
        assert!(!outcome.gathered);
    }
    assert!(target.iter().all(|byte| *byte == 0xff));
    // Alone it is what the device says of it.
    // SAFETY: as above.
    unsafe { channels.enqueue(&fills[0]) }.expect("a slot");
    channels.submit();
    mover.end(record);
    assert_eq!(channels.poll_outcomes(&mut ended), 1);
    let status = Status::BATCH_PAGE_FAULT;
    assert_eq!(ended[0].output(&fills[0]), Err(Failure::Status { status }));
    assert_eq!(ended[0].device_bytes, 0);
}

#[test]
fn a_fault_of_which_nothing_is_left_is_not_resumed() {
    for page_fault in [
        PageFaultPolicy::TouchAndResume { most: 64 },
        PageFaultPolicy::FinishOnCore,
    ] {
        let mover = Manual::new(4, 4);
        let options = ChannelsOptions {
            page_fault,
            ..options()
        };
        let mut channels = channels(&mover, options);
        let target = Guarded::new(1);
        let fills = fill_pages(&mut channels, &target);
        channels.submit();
        let mut record = CompletionRecord::with_status(Status::PAGE_FAULT);
        record.bytes_completed = PAGE as u32;
        record.fault_address = target.address();
        mover.end(record);
        let mut ended = [Outcome::default()];
        assert_eq!(channels.poll_outcomes(&mut ended), 1, "{page_fault:?}");
        let fault = ended[0].output(&fills[0]);
        assert!(matches!(fault, Err(Failure::PageFault { .. })), "{fault:?}");
        assert_eq!(ended[0].device_bytes, PAGE as u64);
        assert_eq!((ended[0].core_bytes, mover.enqueued()), (0, 1));
    }
}

#[test]
fn a_batch_that_a_full_queue_gives_back_ends_as_full() {
    for full_queue in [FullQueuePolicy::Core, FullQueuePolicy::Error] {
        let mover = Manual::new(16, 0);
        let options = ChannelsOptions {
            full_queue,
            ..options()
        };
        let mut channels = channels(&mover, options);
        let target = Guarded::new(1);
        let fill = Operation::fill(u64::MAX, target.address(), 64);
        // SAFETY: the memory outlives the operations, which are waited for.
        unsafe { channels.enqueue_batch(&[fill; 3]) }.expect("slots");
        for _ in 0..70 {
            channels.submit();
        }
        let mut ended = [Outcome::default(); 4];
        assert_eq!(channels.poll_outcomes(&mut ended), 3);
        for outcome in &ended[..3] {
            assert_eq!(outcome.output(&fill), Err(Failure::QueueFull));
            assert!(!outcome.withdrawn);
            assert_eq!((outcome.stripes, outcome.core_bytes), (0, 0));
            assert_eq!(outcome.executor(), Executor::Virtual);
        }
        assert!(target.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn batches_of_the_caller_block_on_faults_too() {
    let mover = Manual::new(4, 4);
    let options = ChannelsOptions {
        page_fault: PageFaultPolicy::BlockOnFault,
        ..options()
    };
    let mut channels = channels(&mover, options);
    let target = Guarded::new(1);
    let fill = Operation::fill(u64::MAX, target.address(), 64);
    // SAFETY: the memory outlives the operations, which are waited for.
    unsafe { channels.enqueue_batch(&[fill; 2]) }.expect("slots");
    // SAFETY: as above.
    unsafe { channels.enqueue(&fill) }.expect("a slot");
    channels.submit();
    let in_flight = mover.in_flight();
    assert_eq!(in_flight.len(), 3);
    for operation in in_flight {
        let flags = operation.descriptor().flags();
        assert!(flags.contains(Flags::BLOCK_ON_FAULT));
    }
    mover.execute_all();
    assert_eq!(channels.poll_outcomes(&mut [Outcome::default(); 4]), 3);
}

#[test]
fn slots_times_stripes_have_a_limit() {
    let refused = |channels: usize, max_stripes: usize| {
        let members = (0..channels).map(|_| Member {
            mover: CpuMover::new(1),
            numa_node: None,
        });
        let options = ChannelsOptions {
            slots: 1 << 19,
            max_stripes,
            ..options()
        };
        Channels::new(members, options).err()
    };
    let error = refused(3, 3).expect("too many");
    assert_eq!(
        error,
        ChannelsError::Count {
            what: "slots times stripes",
            asked: 3 << 19,
            most: 1 << 20,
        }
    );
    assert_eq!(
        error.to_string(),
        "1572864 slots times stripes are outside 1 to 1048576"
    );
    // Stripes are no more than channels.
    assert_eq!(refused(1, 1024), None);
    let none = refused(1, 0).expect("too few").to_string();
    assert_eq!(none, "0 stripes are outside 1 to 1024");
}

#[test]
fn a_mover_without_slots_is_refused_or_left_out() {
    let member = Member {
        mover: CpuMover::new(0),
        numa_node: None,
    };
    let refused = Channels::new([member], options()).err();
    let Some(ChannelsError::Count { what, asked: 0, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(what, "slots of a channel");
    // A page list does not wait for it.
    let (source, target) = (Guarded::noise(16, 1), Guarded::new(16));
    let list = [PageCopy {
        source: source.address(),
        destination: target.address(),
        bytes: source.len() as u64,
    }];
    let mut movers = [CpuMover::new(0)];
    // SAFETY: the memory is this test's own.
    let counts = unsafe { copy_page_lists(&mut movers, &list, &PageListOptions::default()) };
    let counts = counts.expect("the core has copied it");
    assert_eq!(counts.after_failure_bytes, source.len() as u64);
    assert!(*source == *target);
    // Nor does a future.
    let (client, driver) = task::channel(CpuMover::new(0));
    let future = std::pin::pin!(client.request(Request::fill(0, vec![0; 8])));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(Err(rejected)) => {
            assert_eq!(rejected.error, ChannelError::Closed.into());
        }
        other => panic!("{other:?}"),
    }
    driver.run();
}

#[test]
fn no_batch_is_larger_than_a_channel_has_slots() {
    let mover = Manual::new(4, 4);
    let channels = channels(&mover, options());
    let Capabilities { max_batch, .. } = channels.capabilities();
    assert_eq!(max_batch, 4);
}
