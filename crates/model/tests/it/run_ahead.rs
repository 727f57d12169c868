//! Members of a batch in closed form take the times that events give each of them.

use dray::Operation;
use dray_device::{Payload, WorkQueueMode};
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::{Cache, MemoryLocation, NodeId};
use dray_spec::{Descriptor, Flags};

use crate::common::busy::Busy;
use crate::common::machine::{device, frozen, queue};
use crate::common::operation;

fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random >> 8
}

/// Copies of a few sizes, mostly like those before; some of nothing, some refused, some fenced, some misaligned.
fn some_operation(base: u64, random: &mut u64) -> Operation {
    let bits = next(random);
    let size = [64, 64, 256, 4096, 65536][bits as usize % 5];
    let from = base + (bits >> 8) % 64 * 4096;
    let to = base + (1 << 20) + (bits >> 16) % 64 * 4096;
    let descriptor = match bits >> 24 & 31 {
        0 => Descriptor::noop(),
        1 => Descriptor::memmove(from, to, 0),
        2 => Descriptor::memmove(from, to + 8, size),
        3 => Descriptor::fill(7, to, size),
        4 => Descriptor::memmove(from, to, size).with_flags(Flags::FENCE),
        _ => Descriptor::memmove(from, to, size),
    };
    operation(descriptor)
}

/// Last time and digest of each of two cores with a queue of their own, on one engine.
fn run(seed: u64, batches: [u32; 2], depth: u32, always_share: bool) -> Vec<(u64, u64)> {
    let options = WorldOptions {
        payload: Payload::Skipped,
        always_share,
    };
    let queues = [0, 1].map(|id| queue(id, WorkQueueMode::Dedicated, 16));
    let devices = vec![device(1, queues.to_vec())];
    let mut world = World::new(frozen(), devices, options).expect("a device");
    let place = MemoryLocation {
        node: NodeId(0),
        cache: Cache::Memory,
    };
    let region = world.memory.allocate(1 << 22, place, false);
    let base = world.memory.region(region).base;
    let mut applications = Vec::new();
    for (wq, batch) in (0..).zip(batches) {
        let options = ChannelOptions {
            queue: Some((0, wq)),
            batch,
            depth,
            ..ChannelOptions::default()
        };
        world.open(options).expect("a queue");
        let mut random = seed ^ u64::from(wq) << 32;
        applications.push(Busy::new(250, move |_| some_operation(base, &mut random)));
    }
    world.run(&mut applications).expect("all end");
    world.settle();
    let ends = applications.iter();
    ends.map(|busy| (busy.last.0, busy.digest)).collect()
}

#[test]
fn members_ahead_take_the_times_of_events() {
    for seed in 1..=40_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let batches = [1, 2].map(|_| [1, 2, 7, 16, 32][next(&mut random) as usize % 5]);
        let depth = [1, 2, 4, 16][next(&mut random) as usize % 4];
        let by_events = run(seed, batches, depth, true);
        let ahead = run(seed, batches, depth, false);
        assert_eq!(
            ahead, by_events,
            "seed {seed}, batches of {batches:?}, depth {depth}"
        );
    }
}
