//! How fast the model is: modelled descriptors a second on one core, without moving bytes.
//!
//! `cargo bench -p dray-figures --bench model`

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dray_device::Payload;
use dray_idxd::Profile;
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::{Cache, MemoryLocation, NodeId, builtin};

use dray::{Application, Completion, Mover, Next, Operation, Progress};

/// Keeps the queue full of copies.
struct Copies {
    src: u64,
    dst: u64,
    size: u32,
    left: u64,
    open: u64,
    seen: Vec<Completion>,
}

impl Application for Copies {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        self.open -= mover.poll(&mut self.seen) as u64;
        while self.left > 0 {
            let copy = Operation::memmove(self.src, self.dst, self.size);
            // SAFETY: modelled memory checks itself.
            if unsafe { mover.enqueue(&copy) }.is_err() {
                break;
            }
            self.left -= 1;
            self.open += 1;
        }
        match mover.submit() {
            Progress::Pending => Next::Again,
            Progress::Done if self.left == 0 && self.open == 0 => Next::Done,
            Progress::Done => Next::Wait,
        }
    }
}

const DESCRIPTORS: u64 = 200_000;

fn run(profile: &str, batch: u32, size: u32) {
    let platform = Arc::new(builtin("spr-2s").expect("built in"));
    let configs = Profile::named(profile)
        .and_then(|p| p.devices())
        .expect("a profile of the grammar");
    let options = WorldOptions {
        payload: Payload::Skipped,
        ..WorldOptions::default()
    };
    let mut world = World::new(platform, configs, options).expect("a valid device");
    world.open(ChannelOptions {
        depth: 128 / batch,
        batch,
        ..ChannelOptions::default()
    });
    let place = MemoryLocation {
        node: NodeId(0),
        cache: Cache::Memory,
    };
    let src = world.memory.allocate(size.into(), place, false);
    let dst = world.memory.allocate(size.into(), place, false);
    let (src, dst) = (world.memory.region(src).base, world.memory.region(dst).base);
    let copies = Copies {
        src,
        dst,
        size,
        left: DESCRIPTORS,
        open: 0,
        seen: vec![Completion::default(); 128],
    };
    world.run(&mut [copies]).expect("runs to its end");
    assert_eq!(world.descriptors(), DESCRIPTORS);
}

fn model(c: &mut Criterion) {
    let mut group = c.benchmark_group("modelled descriptors");
    group.throughput(Throughput::Elements(DESCRIPTORS));
    group.sample_size(20);
    group.bench_function("4 KiB copies, dedicated, 1 engine", |b| {
        b.iter(|| run("1e1w-d", 1, 4096));
    });
    group.bench_function("4 KiB copies, shared, 1 engine", |b| {
        b.iter(|| run("1e1w-s", 1, 4096));
    });
    group.bench_function("4 KiB copies, dedicated, 4 engines", |b| {
        b.iter(|| run("4e1w-d", 1, 4096));
    });
    group.bench_function("4 KiB copies, batches of 32, 4 engines", |b| {
        b.iter(|| run("4e1w-d", 32, 4096));
    });
    group.finish();
}

criterion_group!(benches, model);
criterion_main!(benches);
