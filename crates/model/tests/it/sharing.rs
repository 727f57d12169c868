//! Several cores and several devices: shared bandwidth, answers in turn, and bursts that do not fit.

use crate::common::busy::Busy;
use crate::common::machine::{device, frozen, frozen_with, one_queue, queue, world};
use crate::common::once::Once;
use dray::Operation;
use dray_clock::Time;
use dray_device::{Payload, WorkQueueConfig, WorkQueueMode};
use dray_model::{ChannelOptions, World};
use dray_platform::{Cache, MemoryLocation, NodeId};

/// Runs `count` operations on each open channel; when the last core is done.
fn all(world: &mut World, channels: usize, count: u64, operation: Operation) -> Vec<Time> {
    let mut applications: Vec<_> = (0..channels)
        .map(|_| Busy::new(count, move |_| operation))
        .collect();
    world.run(&mut applications).expect("all end");
    applications.iter().map(|a| a.last).collect()
}

fn last(times: &[Time]) -> u64 {
    times.iter().map(|t| t.0).max().expect("a core")
}

#[test]
fn enqcmds_of_several_cores_are_answered_one_after_the_other() {
    let platform = frozen();
    let p = platform.parameters();
    for cores in [1, 2, 12] {
        let config = one_queue(4, WorkQueueMode::Shared);
        let mut world = world(platform.clone(), vec![config], Payload::Skipped);
        for _ in 0..cores {
            let options = ChannelOptions {
                depth: 8,
                ..ChannelOptions::default()
            };
            world.open(options).expect("a queue");
        }
        let times = all(&mut world, cores, 400, Operation::noop());
        let each = last(&times) / (400 * cores as u64);
        let cap = p.enqcmd_accept.0;
        let alone = p.enqcmd_period.0 / cores as u64;
        let bound = cap.max(alone);
        // The first and last descriptors' way, and looks in between, come on top.
        assert!(
            each >= bound,
            "{cores} cores: {each} ps each, bound {bound}"
        );
        assert!(
            each < bound * 13 / 10,
            "{cores} cores: {each} ps each, bound {bound}"
        );
        let first = times.iter().map(|t| t.0).min().expect("a core");
        assert!(first * 10 > last(&times) * 9, "{cores} cores: {first} ps");
    }
}

#[test]
fn devices_that_read_one_node_share_its_bandwidth() {
    let platform = frozen_with(&[("node_read", 60.0)]);
    let line_fs = platform.parameters().node_read;
    let took = |devices: u16| {
        let config = one_queue(4, WorkQueueMode::Dedicated);
        let configs = vec![config; devices.into()];
        let mut world = world(platform.clone(), configs, Payload::Skipped);
        let place = MemoryLocation {
            node: NodeId(0),
            cache: Cache::Memory,
        };
        let region = world.memory.allocate(1 << 20, place, false);
        let base = world.memory.region(region).base;
        for device in 0..devices {
            let options = ChannelOptions {
                queue: Some((device, 0)),
                depth: 32,
                ..ChannelOptions::default()
            };
            world.open(options).expect("a queue");
        }
        let copy = Operation::memmove(base, base + (1 << 19), 1 << 16);
        let times = all(&mut world, devices.into(), 300, copy);
        let first = times.iter().map(|t| t.0).min().expect("a core");
        assert!(
            first * 100 > last(&times) * 95,
            "a device gets more: {times:?}"
        );
        last(&times)
    };
    let (one, two, four) = (took(1), took(2), took(4));
    let node = |devices: u64| devices * 300 * 1024 * line_fs / 1000;
    // One device does not reach the bandwidth of the node; four would need twice as much.
    assert!(one > node(1) * 3 / 2);
    assert!(two >= node(2) && two < one * 12 / 10, "{one} {two}");
    assert!(four >= node(4), "{four} {}", node(4));
    assert!(four < node(4) * 103 / 100, "{four} {}", node(4));
}

#[test]
fn cores_with_and_without_a_queue_run_side_by_side() {
    let config = one_queue(2, WorkQueueMode::Dedicated);
    let mut world = world(frozen(), vec![config], Payload::Moved);
    let place = MemoryLocation {
        node: NodeId(0),
        cache: Cache::Memory,
    };
    let region = world.memory.allocate(1 << 16, place, true);
    let base = world.memory.region(region).base;
    for queue in [Some((0, 0)), None] {
        let options = ChannelOptions {
            queue,
            depth: 4,
            ..ChannelOptions::default()
        };
        world.open(options).expect("a queue");
    }
    all(&mut world, 2, 50, Operation::fill(!0, base, 4096));
    let mut bytes = [0; 4097];
    world.memory.read(base, &mut bytes);
    assert!(bytes[..4096].iter().all(|b| *b == 0xff) && bytes[4096] == 0);
}

#[test]
fn a_burst_loses_what_exceeds_the_queue_and_reports_it() {
    let platform = frozen();
    let place = MemoryLocation {
        node: NodeId(0),
        cache: Cache::Memory,
    };
    let fetched = platform.parameters().engine_fetch_ahead + 1;
    for (size, burst) in [(1, 12), (4, 12), (16, 40)] {
        let config = device(1, vec![queue(0, WorkQueueMode::Dedicated, size)]);
        let mut world = world(platform.clone(), vec![config], Payload::Skipped);
        let region = world.memory.allocate(4 << 20, place, false);
        let base = world.memory.region(region).base;
        let options = ChannelOptions {
            depth: burst,
            ..ChannelOptions::default()
        };
        let channel = world.open(options).expect("a queue");
        // Each holds the engine up for longer than the whole burst takes to arrive.
        let copy = Operation::memmove(base, base + (2 << 20), 2 << 20);
        let mut applications = [Once::new(vec![copy; burst as usize])];
        let stalled = world.run(&mut applications).expect_err("some are lost");
        let accepted = u64::from(size) + fetched;
        let lost = u64::from(burst) - accepted;
        assert_eq!((stalled.waiting, stalled.lost), (1, lost));
        assert_eq!(applications[0].seen.len() as u64, accepted);
        let counters = world.channel(channel).counters();
        assert_eq!(
            (counters.submitted, counters.lost),
            (u64::from(burst), lost)
        );
    }
}

/// How long a small copy takes beside a neighbour that copies 1 MiB at a time with an engine of its own, whose group
/// may hold as many read buffers; without a neighbour for none.
fn beside(neighbour: Option<u16>) -> u64 {
    let mut config = device(1, vec![queue(0, WorkQueueMode::Dedicated, 16)]);
    let mut other = config.groups[0].clone();
    other.id = 1;
    other.engines = vec![1];
    other.read_buffers_allowed = neighbour.unwrap_or(96);
    config.groups.push(other);
    config.work_queues.push(WorkQueueConfig {
        group: 1,
        ..queue(1, WorkQueueMode::Dedicated, 16)
    });
    let mut world = world(frozen(), vec![config], Payload::Skipped);
    let place = MemoryLocation {
        node: NodeId(0),
        cache: Cache::Memory,
    };
    let region = world.memory.allocate(4 << 20, place, false);
    let base = world.memory.region(region).base;
    for wq in [0, 1] {
        let options = ChannelOptions {
            queue: Some((0, wq)),
            depth: if wq == 0 { 1 } else { 8 },
            ..ChannelOptions::default()
        };
        world.open(options).expect("a queue");
    }
    let small = Operation::memmove(base, base + 4096, 64);
    let large = Operation::memmove(base + 8192, base + (2 << 20), 1 << 20);
    let counts = [200, if neighbour.is_some() { 20 } else { 1 }];
    let mut applications = [(small, counts[0]), (large, counts[1])]
        .map(|(operation, count)| Busy::new(count, move |_| operation));
    world.run(&mut applications).expect("all end");
    applications[0].last.0 / counts[0]
}

#[test]
fn a_small_copy_waits_at_the_ports_for_the_buffers_that_its_neighbour_may_hold() {
    let (alone, all, half, few) = (
        beside(None),
        beside(Some(96)),
        beside(Some(72)),
        beside(Some(32)),
    );
    assert!(all > alone + 100_000, "{alone} ps alone, {all} beside");
    assert!(
        half < all - 50_000,
        "{half} beside 72 buffers, {all} beside all"
    );
    // So few do not keep the port busy.
    assert!(
        few < alone + 10_000,
        "{few} beside 32 buffers, {alone} alone"
    );
}
