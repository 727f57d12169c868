//! Which queue gets which operation, and in how many descriptors.

use dray::channels::{Channels, ChannelsOptions, Member, Outcome};
use dray::{Mover, Operation, Output, Progress};
use dray_spec::{CompletionRecord, Status};

use crate::channels::options;
use crate::manual::{Manual, execute};
use crate::memory::{Guarded, PAGE};

fn channels(
    movers: &[Manual],
    nodes: impl Fn(usize) -> Option<u32>,
    options: ChannelsOptions,
) -> Channels<Manual> {
    let members = movers.iter().enumerate().map(|(n, mover)| Member {
        mover: mover.clone(),
        numa_node: nodes(n),
    });
    Channels::new(members, options).expect("channels")
}

fn fill(target: &Guarded, page: usize, pages: usize) -> Operation {
    let at = target.address() + (page * PAGE) as u64;
    Operation::fill(u64::MAX, at, (pages * PAGE) as u32).with_user_data(page as u64)
}

fn put(channels: &mut Channels<Manual>, operation: &Operation) {
    // SAFETY: the tests' memory outlives the operations, which are waited for.
    unsafe { channels.enqueue(operation) }.expect("a slot");
}

/// How many descriptors each queue has.
fn in_flight(movers: &[Manual]) -> Vec<usize> {
    movers.iter().map(|mover| mover.in_flight().len()).collect()
}

fn finish(channels: &mut Channels<Manual>, movers: &[Manual], count: usize) -> Vec<Outcome> {
    let mut ended = vec![Outcome::default(); count + 1];
    let mut found = 0;
    for _ in 0..100 {
        channels.submit();
        for mover in movers {
            mover.execute_all();
        }
        found += channels.poll_outcomes(&mut ended[found..]);
    }
    assert_eq!(found, count);
    ended.truncate(count);
    ended
}

#[test]
fn the_queue_with_the_fewest_bytes_is_next() {
    let movers = [0, 1].map(|_| Manual::new(8, 8));
    let options = ChannelsOptions {
        max_stripes: 1,
        gather_below_bytes: 0,
        ..options()
    };
    let mut channels = channels(&movers, |_| None, options);
    let target = Guarded::new(64);
    // 16 pages on the first, then 4 and 8 and 4 on the second, and again the first.
    for (n, (pages, expected)) in [
        (16, [1, 0]),
        (4, [1, 1]),
        (8, [1, 2]),
        (4, [1, 3]),
        (1, [2, 3]),
    ]
    .into_iter()
    .enumerate()
    {
        put(&mut channels, &fill(&target, n, pages));
        channels.submit();
        assert_eq!(in_flight(&movers), expected, "{pages} pages");
    }
    // The first one ends: it has one page left, and the second 16.
    movers[0].end(execute(&movers[0].in_flight()[0]));
    assert_eq!(channels.poll_outcomes(&mut [Outcome::default(); 2]), 1);
    for pages in [8, 7] {
        put(&mut channels, &fill(&target, 32, pages));
    }
    channels.submit();
    assert_eq!(in_flight(&movers), [3, 3]);
    // Both have 16 pages.
    put(&mut channels, &fill(&target, 48, 1));
    channels.submit();
    assert_eq!(in_flight(&movers), [4, 3]);
    finish(&mut channels, &movers, 7);
}

#[test]
fn a_remote_queue_is_next_when_the_local_one_has_so_many_bytes_more() {
    let movers = [0, 1].map(|_| Manual::new(8, 8));
    let options = ChannelsOptions {
        local_node: Some(1),
        remote_bytes: 8 * PAGE as u64,
        max_stripes: 1,
        gather_below_bytes: 0,
        ..ChannelsOptions::default()
    };
    // The local one is the second that was given, and the first of the channels.
    let mut channels = channels(&movers, |n| Some(n as u32), options);
    let target = Guarded::new(16);
    for (n, expected) in [[0, 1], [0, 2], [0, 3], [1, 3], [1, 4]]
        .into_iter()
        .enumerate()
    {
        put(&mut channels, &fill(&target, n, 4));
        channels.submit();
        assert_eq!(in_flight(&movers), expected);
    }
    finish(&mut channels, &movers, 5);
}

#[test]
fn small_operations_go_in_batches_of_at_most_so_many_and_half_the_slots() {
    let target = Guarded::new(40);
    for (slots, max_gathered, batches) in [
        (64, 32, vec![32, 8]),
        (64, 8, vec![8; 5]),
        // Two batches are in flight.
        (20, 32, vec![10, 10]),
    ] {
        let movers = [Manual::new(slots, slots)];
        let options = ChannelsOptions {
            max_gathered,
            ..options()
        };
        let mut channels = channels(&movers, |_| None, options);
        let fills: Vec<Operation> = (0..40).map(|page| fill(&target, page, 1)).collect();
        for fill in &fills {
            put(&mut channels, fill);
        }
        let submitted = channels.submit();
        let all = batches.iter().sum::<usize>() == fills.len();
        assert_eq!(submitted == Progress::Done, all);
        assert_eq!(movers[0].batches(), batches);
        let outcomes = finish(&mut channels, &movers, fills.len());
        assert!(outcomes.iter().all(|outcome| outcome.gathered));
    }
    assert!(target.iter().all(|byte| *byte == 0xff));
}

#[test]
fn an_operation_has_as_many_stripes_as_it_is_large_and_there_are_queues() {
    let target = Guarded::new(256);
    let movers = [0; 4].map(|_| Manual::new(8, 8));
    for (max_stripes, pages, stripes) in
        [(8, 31, 1), (8, 32, 2), (8, 48, 3), (8, 256, 4), (2, 256, 2)]
    {
        let options = ChannelsOptions {
            max_stripes,
            ..options()
        };
        let mut channels = channels(&movers, |_| None, options);
        // More than there is room for at once: all that an operation had is free again.
        for _ in 0..300 {
            let whole = fill(&target, 0, pages);
            put(&mut channels, &whole);
            channels.submit();
            let parts: Vec<Operation> = movers.iter().flat_map(Manual::in_flight).collect();
            assert_eq!(parts.len(), stripes, "{pages} pages");
            let bytes: u32 = parts.iter().map(Operation::len).sum();
            assert_eq!(bytes, whole.len());
            for mover in &movers {
                for _ in mover.in_flight() {
                    mover.end(CompletionRecord::with_status(Status::SUCCESS));
                }
            }
            let mut ended = [Outcome::default()];
            assert_eq!(channels.poll_outcomes(&mut ended), 1);
            assert_eq!(ended[0].output(&whole), Ok(Output::Done));
            assert_eq!(ended[0].stripes, stripes as u32);
        }
    }
}

/// Lengths of what a queue has.
fn lengths(mover: &Manual) -> Vec<u32> {
    mover.in_flight().iter().map(Operation::len).collect()
}

#[test]
fn a_tail_shorter_than_the_pattern_is_a_descriptor_of_its_own() {
    for tail in 1..16 {
        let mover = Manual::new(4, 4).with_max_transfer(PAGE as u64);
        let movers = [mover.clone()];
        let mut channels = channels(&movers, |_| None, options());
        let target = Guarded::new(2);
        let len = PAGE + tail;
        put(
            &mut channels,
            &Operation::fill(0x0807_0605_0403_0201, target.address(), len as u32),
        );
        channels.submit();
        assert_eq!(lengths(&mover), [PAGE as u32]);
        mover.execute_all();
        let mut ended = [Outcome::default()];
        assert_eq!(channels.poll_outcomes(&mut ended), 0);
        channels.submit();
        assert_eq!(lengths(&mover), [tail as u32]);
        let outcome = finish(&mut channels, &movers, 1)[0];
        assert_eq!(outcome.completion.status(), Status::SUCCESS);
        let expected = |n: usize| if n < len { n as u8 % 8 + 1 } else { 0 };
        assert!((0..2 * PAGE).all(|n| target[n] == expected(n)), "{tail}");
    }
}

#[test]
fn the_offset_of_a_difference_behind_a_fault_is_that_of_the_operation() {
    let mover = Manual::new(4, 4);
    let movers = [mover.clone()];
    let mut channels = channels(&movers, |_| None, options());
    let mut source = Guarded::new(2);
    source[PAGE + 2] = 1;
    let compare = Operation::compare_pattern(source.address(), 0, PAGE as u32 + 4);
    put(&mut channels, &compare);
    channels.submit();
    let mut fault = CompletionRecord::with_status(Status::PAGE_FAULT);
    fault.bytes_completed = PAGE as u32;
    fault.fault_address = source.address() + PAGE as u64;
    mover.end(fault);
    let mut ended = [Outcome::default()];
    assert_eq!(channels.poll_outcomes(&mut ended), 0);
    channels.submit();
    assert_eq!(lengths(&mover), [4]);
    let outcome = finish(&mut channels, &movers, 1)[0];
    let difference = Some(PAGE as u32 + 2);
    assert_eq!(
        outcome.output(&compare),
        Ok(Output::Compared { difference })
    );
}
