//! Several queues as one pass the suite that every mover passes, whoever executes.

use dray::channels::{Channels, ChannelsOptions, Choice, Member, Require};
use dray::virt::{Options, VirtualDevice, VirtualMover};
use dray::{CpuMover, Executor};
use dray_conformance::{ProcessDoor, check};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_device::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig};

/// A device with a queue of either mode, and two engines.
fn device() -> VirtualDevice {
    let queue = |(id, mode)| WorkQueueConfig {
        id,
        mode,
        size: 16,
        threshold: 16,
        priority: 10,
        max_batch_size: 64,
        max_transfer_size: 4096,
        pasid: Some(0),
        ..WorkQueueConfig::default()
    };
    let config = DeviceConfig {
        capabilities: Capabilities {
            version: 0x100,
            gen_cap: 0x40_915f_0107,
            op_cap: [0x1_003f_03ff, 0, 0, 0],
            max_groups: 1,
            max_work_queues: 2,
            max_engines: 2,
            work_queue_size: 64,
            max_read_buffers: 96,
            max_batch_size: 64,
            max_transfer_size: 1 << 20,
            ..Capabilities::default()
        },
        work_queues: [(0, Dedicated), (1, Shared)].map(queue).to_vec(),
        groups: vec![GroupConfig {
            engines: vec![0, 1],
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    };
    VirtualDevice::start(config, Options::default()).expect("a device that can be enabled")
}

fn channels(device: &VirtualDevice, options: ChannelsOptions) -> Channels<VirtualMover> {
    let open = |queue| Member {
        mover: device.open(queue, 16).expect("a queue"),
        numa_node: None,
    };
    Channels::new([open(0), open(1)], options).expect("channels")
}

fn conforms(name: &str, options: ChannelsOptions, executor: Executor) {
    let device = device();
    let mut door = ProcessDoor::new(name, executor, channels(&device, options));
    match check(&mut door) {
        Ok(report) => println!("{report}"),
        Err(mismatch) => panic!("{name}: {mismatch}"),
    }
    assert_eq!(device.device().lost(0), Some(0));
}

#[test]
fn stripes_and_batches_conform() {
    // The largest transfer is below some of the suite's sizes: they travel in parts.
    for (slots, gather_below_bytes, stripe_bytes) in
        [(16, 0, 1024), (16, 16384, 1 << 20), (1000, 4096, 2048)]
    {
        let options = ChannelsOptions {
            slots,
            require: Require::Device,
            gather_below_bytes,
            stripe_bytes,
            ..ChannelsOptions::default()
        };
        conforms("channels", options, Executor::Virtual);
    }
}

#[test]
fn the_core_behind_channels_conforms() {
    let options = ChannelsOptions {
        slots: 16,
        choice: Choice::Core,
        ..ChannelsOptions::default()
    };
    conforms("channels, core", options, Executor::Cpu);
    let members = [0, 1].map(|_| Member {
        mover: CpuMover::new(16),
        numa_node: None,
    });
    let two = Channels::new(members, ChannelsOptions::default()).expect("channels");
    let mut door = ProcessDoor::new("channels, two cores", Executor::Cpu, two);
    check(&mut door).expect("two cores conform");
}
