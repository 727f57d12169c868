//! Once it has seen as much at a time as it ever will, the device allocates nothing.

#[allow(dead_code, reason = "every test binary uses its part of it")]
#[path = "it/common/mod.rs"]
mod common;

#[path = "../../../tests/counting_allocator.rs"]
mod counting_allocator;

use common::manual_runner::{batch, drain, noop};
use common::profile::{one_group, queue};
use counting_allocator::counted;
use dray_device::{
    DescriptorResult, Device, Effect, ListRead, Member, Portal, Work, WorkKind, WorkQueueMode,
};
use dray_spec::{Descriptor, Flags, Status};

const PORTAL: Portal = Portal {
    wq: 0,
    limited: true,
};

/// Single descriptors, good and refused, a batch that passes its fence, one that does not, a drain.
fn round(device: &mut Device, list: &[Descriptor], effects: &mut Vec<Effect>) {
    let success = DescriptorResult::status(Status::SUCCESS);
    for descriptor in [
        noop(1),
        batch(2, 4),
        Descriptor::fill(0, 0, 0).with_completion(32),
        drain(3),
        batch(4, 4),
    ] {
        device.write_posted(PORTAL, &descriptor);
    }
    let mut taken: [Option<Work>; 4] = [None; 4];
    for (place, engine) in taken.iter_mut().zip([0, 1, 0, 1]) {
        *place = device.take(engine);
    }
    for (n, work) in (0..).zip(taken.into_iter().flatten()) {
        match work.kind {
            WorkKind::Execute(_) => device.done(work.id, &success, effects),
            WorkKind::Reject(rejection) => device.done(work.id, &rejection.outcome(), effects),
            WorkKind::FetchList { .. } => {
                device.list_read(work.id, list, ListRead::default(), effects);
                while let Member::Work(member) = device.next_member(work.id) {
                    let fault = DescriptorResult::page_fault(0, 0, false);
                    let outcome = if n == 3 { &fault } else { &success };
                    device.done(member.id, outcome, effects);
                }
            }
        }
    }
    // Noop, five ends of the first batch, the refusal, the drain, two ends of the second batch.
    assert_eq!(effects.len(), 10);
    effects.clear();
}

#[test]
fn a_descriptor_costs_no_allocation() {
    let config = one_group(2, vec![queue(0, WorkQueueMode::Dedicated, 8)]);
    let mut device = Device::new(config).expect("a configuration that can be enabled");
    let list = [
        noop(11),
        noop(12).with_flags(Flags::FENCE),
        noop(13),
        noop(14),
    ];
    let mut effects = Vec::with_capacity(16);
    round(&mut device, &list, &mut effects);
    let allocated = counted(|| {
        for _ in 0..1000 {
            round(&mut device, &list, &mut effects);
        }
    });
    assert_eq!(allocated, 0);
}
