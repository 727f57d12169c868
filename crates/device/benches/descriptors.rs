//! What a descriptor costs in the device itself: submitted, taken, checked, ended.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dray_device::{
    DescriptorResult, Device, DeviceConfig, ListRead, Member, Portal, WorkKind, WorkQueueConfig,
    WorkQueueMode,
};
use dray_spec::{Descriptor, Status};

const PORTAL: Portal = Portal {
    wq: 0,
    limited: true,
};

fn device(queues: u16) -> Device {
    let work_queue = |id| WorkQueueConfig {
        threshold: 0,
        max_batch_size: 1024,
        ..WorkQueueConfig::new(id, WorkQueueMode::Dedicated, 128 / queues)
    };
    let config = DeviceConfig::sapphire_rapids(4, (0..queues).map(work_queue).collect());
    Device::new(config).expect("a configuration that can be enabled")
}

fn single(c: &mut Criterion) {
    let mut group = c.benchmark_group("single");
    group.throughput(Throughput::Elements(1));
    for queues in [1, 4] {
        let mut device = device(queues);
        let mut effects = Vec::new();
        let copy = Descriptor::memmove(0x10_0000, 0x20_0000, 4096).with_completion(0x1000);
        let success = DescriptorResult::status(Status::SUCCESS);
        group.bench_function(format!("copy, {queues} queues"), |b| {
            b.iter(|| {
                device.write_posted(PORTAL, black_box(&copy));
                let work = device.take(0).expect("what was just written");
                device.done(work.id, &success, &mut effects);
                black_box(&effects);
                effects.clear();
            });
        });
    }
    group.finish();
}

fn batch(c: &mut Criterion) {
    let mut group = c.benchmark_group("batch");
    for count in [4_u32, 64] {
        group.throughput(Throughput::Elements(count.into()));
        let mut device = device(1);
        let mut effects = Vec::new();
        let batch = Descriptor::batch(0x40_0000, count).with_completion(0x1000);
        let copy = Descriptor::memmove(0x10_0000, 0x20_0000, 4096).with_completion(0x2000);
        let list = vec![copy; count as usize];
        let success = DescriptorResult::status(Status::SUCCESS);
        group.bench_function(format!("{count} copies"), |b| {
            b.iter(|| {
                device.write_posted(PORTAL, black_box(&batch));
                let work = device.take(0).expect("what was just written");
                assert!(matches!(work.kind, WorkKind::FetchList { .. }));
                device.list_read(work.id, &list, ListRead::default(), &mut effects);
                while let Member::Work(member) = device.next_member(work.id) {
                    device.done(member.id, &success, &mut effects);
                }
                black_box(&effects);
                effects.clear();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, single, batch);
criterion_main!(benches);
