//! Several queues as one pass the suite that every mover passes, whatever executes.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray::channels::{
    Channels, ChannelsOptions, Choice, LostQueuePolicy, Member, PageFaultPolicy, Require,
};
use dray::virt::{Options, Translation, VirtualDevice, VirtualMover};
use dray::{CpuMover, Executor, Mover};
use dray_conformance::{Disrupter, Disruption, Held, PAGE, ProcessDoor, ProcessPages, check};
use dray_device::WorkQueueMode::{Dedicated, Shared};
use dray_device::{Access, Capabilities, DeviceConfig, WorkQueueConfig};
use dray_spec::registers::{Command, CommandRegister};

/// A device with a queue of either mode, and two engines.
fn device() -> VirtualDevice {
    VirtualDevice::start(config(), Options::default()).expect("a device that can be enabled")
}

fn config() -> DeviceConfig {
    let queue = |(id, mode)| WorkQueueConfig {
        max_batch_size: 64,
        max_transfer_size: 4096,
        ..WorkQueueConfig::new(id, mode, 16)
    };
    let queues = [(0, Dedicated), (1, Shared)].map(queue);
    DeviceConfig {
        capabilities: Capabilities {
            max_batch_size: 64,
            max_transfer_size: 1 << 20,
            ..Capabilities::sapphire_rapids()
        },
        ..DeviceConfig::sapphire_rapids(2, queues.to_vec())
    }
}

/// Memory of this process but for one page, and another that the device waits for as long as it is held.
#[derive(Clone, Default)]
struct Guarded(Arc<[AtomicU64; 3]>);

impl Guarded {
    fn set(&self, guard: &Range<u64>) {
        self.0[0].store(guard.start, Ordering::SeqCst);
        self.0[1].store(guard.end, Ordering::SeqCst);
    }

    /// Holds a page of its own. It stays there: the device may write to it whatever a test does.
    fn hold(&self) -> Held {
        let page = ManuallyDrop::new(ProcessPages::new(PAGE as usize)).base();
        self.0[2].store(page, Ordering::SeqCst);
        let held = self.clone();
        Held {
            page,
            release: Box::new(move || held.0[2].store(0, Ordering::SeqCst)),
        }
    }
}

impl Translation for Guarded {
    fn accessible(&self, addr: u64, len: u64, _: Access) -> u64 {
        let is_held = || match self.0[2].load(Ordering::SeqCst) {
            0 => false,
            page => page == addr & !(PAGE - 1),
        };
        while is_held() {
            std::thread::yield_now();
        }
        let [start, end] = [0, 1].map(|n| self.0[n].load(Ordering::SeqCst));
        match addr < end && addr + len > start {
            true => start.saturating_sub(addr),
            false => len,
        }
    }
}

/// A device that reports faults of one page, and that page.
fn guarded(largest: u64) -> (VirtualDevice, Guarded) {
    let guarded = Guarded::default();
    let mut config = config();
    for queue in &mut config.work_queues {
        queue.max_transfer_size = largest;
    }
    let started = VirtualDevice::start_in(config, Options::default(), guarded.clone(), |_| {});
    (started.expect("a device that can be enabled"), guarded)
}

/// Disrupts both queues of a device in one way.
fn disrupter(device: &VirtualDevice, how: Disruption) -> Disrupter {
    let device = device.clone();
    Box::new(move |disruption| {
        if disruption != how {
            return false;
        }
        let command = match how {
            Disruption::Disabled => Command::DisableWq,
            Disruption::QueueReset => Command::ResetWq,
            Disruption::DeviceReset => Command::ResetDevice,
        };
        let operand = match how {
            Disruption::DeviceReset => 0,
            _ => CommandRegister::queues(0, 0b11),
        };
        let answer = device.device().command(command, operand);
        assert_eq!(answer, Ok(Ok(0)), "{how:?}");
        true
    })
}

/// Passes the suite with faults reported and its queues disrupted, in each way.
fn survives<M: Mover + 'static>(
    name: &str,
    largest: u64,
    executor: Executor,
    open: impl Fn(&VirtualDevice) -> M,
) {
    for how in Disruption::ALL {
        let (device, guard) = guarded(largest);
        let holding = guard.clone();
        let mut door = ProcessDoor::new(name, executor, open(&device))
            .with_faults(move |page| guard.set(&page))
            .with_held(move || holding.hold())
            .with_disrupter(disrupter(&device, how));
        match check(&mut door) {
            Ok(report) => {
                println!("{report}");
                assert!(report.faults >= 7, "{name}");
                assert_eq!(report.held, 3, "{name}");
                assert_eq!(report.disrupted, 16, "{name}, {how:?}");
            }
            Err(mismatch) => panic!("{name}, {how:?}: {mismatch}"),
        }
    }
}

#[test]
fn one_queue_reports_faults_and_survives_disruptions() {
    for queue in [0, 1] {
        survives("virtual", 1 << 20, Executor::Virtual, |device| {
            device.open(queue, 16).expect("a queue")
        });
    }
}

#[test]
fn channels_report_faults_and_survive_disruptions() {
    for page_fault in [
        PageFaultPolicy::Return,
        PageFaultPolicy::TouchAndResume { most: 2 },
        PageFaultPolicy::FinishOnCore,
    ] {
        let options = ChannelsOptions {
            slots: 16,
            page_fault,
            stripe_bytes: 1024,
            // The core in place of a lost queue would be another executor.
            lost_queue: LostQueuePolicy::Error,
            ..ChannelsOptions::default()
        };
        survives("channels", 4096, Executor::Virtual, |device| {
            channels(device, options)
        });
    }
}

#[test]
fn a_checked_cpu_mover_reports_faults() {
    let mover = CpuMover::checked(16);
    let mut door = ProcessDoor::new("cpu, checked", Executor::Cpu, mover).with_faults(|_| {});
    let report = check(&mut door).expect("it conforms");
    println!("{report}");
    assert!(report.faults >= 7);
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
fn channels_that_choose_the_core_conform() {
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
