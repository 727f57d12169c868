//! Processes that die in the middle of a submission, and boards that say nonsense.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;

use dray_device::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig};
use dray_spec::{CompletionRecord, Status};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::*;
use crate::{Options, ProcessMemory, RealtimeDevice, Stop, Vouched};

const PORTAL: Portal = Portal {
    wq: 0,
    limited: false,
};

/// A device with one shared queue of four entries.
fn device() -> RealtimeDevice {
    let config = DeviceConfig {
        capabilities: Capabilities {
            version: 0x100,
            gen_cap: 0x40_915f_0107,
            op_cap: [0x1_003f_03ff, 0, 0, 0],
            max_groups: 1,
            max_work_queues: 2,
            max_engines: 1,
            work_queue_size: 8,
            max_read_buffers: 96,
            max_batch_size: 1024,
            max_transfer_size: 1 << 31,
            ..Capabilities::default()
        },
        work_queues: vec![WorkQueueConfig {
            size: 4,
            threshold: 4,
            priority: 1,
            pasid: Some(0),
            max_batch_size: 32,
            max_transfer_size: 1 << 20,
            ..WorkQueueConfig::default()
        }],
        groups: vec![GroupConfig {
            engines: vec![0],
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    };
    let options = Options {
        shared: true,
        ..Options::default()
    };
    // SAFETY: tests leak what descriptors name.
    let memory = unsafe { ProcessMemory::new(Arc::new(Vouched)) };
    RealtimeDevice::start(config, memory, options, |_| ()).expect("a device")
}

fn attach(device: &RealtimeDevice, client: u16) -> RemotePortal {
    let region = device.region().expect("shared");
    let attachment = Attachment::new(region.fd(), region.layout(), client);
    let portal = attachment.expect("a region").portal(PORTAL);
    portal.expect("a queue")
}

/// Runs `action` in a process of its own, which then dies on the spot.
fn die_after(action: impl FnOnce()) {
    // SAFETY: the child needs no other thread, and ends without any cleaning up.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        action();
        // SAFETY: it ends the child.
        unsafe { libc::_exit(0) };
    }
    let pid = Pid::from_raw(pid).expect("no more processes");
    let ended = waitpid(Some(pid), WaitOptions::empty()).expect("a child");
    let status = ended.expect("it has ended").1;
    assert_eq!(status.exit_status(), Some(0));
}

/// A NOOP, and the status byte of its record.
fn noop() -> (Descriptor, &'static AtomicU8) {
    let record = Box::leak(Box::new(CompletionRecord::default()));
    let status = (&raw mut record.status).cast::<u8>();
    let address = status.expose_provenance() as u64;
    // SAFETY: nothing else accesses it but the device, by an atomic.
    let status = unsafe { AtomicU8::from_ptr(status) };
    (Descriptor::noop().with_completion(address), status)
}

fn wait(status: &AtomicU8) {
    while status.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    assert_eq!(Status(status.load(Ordering::Acquire)), Status::SUCCESS);
}

#[test]
fn a_client_that_dies_between_claim_and_descriptor_holds_up_nobody() {
    let device = device();
    let own = device.map(PORTAL).expect("a queue");
    // The claim is the last one, or others follow, of this process and of its own.
    for (own_after, its_after) in [(0, 0), (1, 0), (0, 1), (2, 1)] {
        let client = device.admit().expect("a name");
        die_after(|| {
            let portal = attach(&device, client.number());
            portal
                .ring
                .claim(Way::Limited, client.number())
                .expect("room");
            for _ in 0..its_after {
                portal.enqueue(&Descriptor::noop());
            }
        });
        let behind: Vec<_> = (0..own_after).map(|_| noop()).collect();
        for (descriptor, _) in &behind {
            assert_eq!(own.enqueue(descriptor), Submission::Accepted);
        }
        // The device cannot know, and goes on with what else there is.
        device.control(|_, _| ()).expect("a device");
        assert_eq!(device.occupancy(0), Some(1 + own_after + its_after));
        device.abandon(client).expect("a device");
        behind.iter().for_each(|(_, status)| wait(status));
        while device.occupancy(0) != Some(0) {
            thread::yield_now();
        }
    }
    // All names are free again.
    assert_eq!(device.admit().map(|client| client.number()), Some(1));
    device.stop(Stop::Drain).expect("no failure");
}

/// A signal handler that submits interrupts a submission to the same queue, and waits for its own.
#[test]
fn what_is_behind_an_interrupted_submission_ends_before_it() {
    let device = device();
    let client = device.admit().expect("a name");
    let portal = attach(&device, client.number());
    // Often enough that every entry is the one in which it happens.
    for handlers in [1, 3, 2, 1, 3, 1] {
        let claimed = portal.ring.claim(Way::Limited, client.number());
        let position = claimed.expect("room");
        for _ in 0..handlers {
            let (descriptor, status) = noop();
            assert_eq!(portal.enqueue(&descriptor), Submission::Accepted);
            wait(status);
        }
        let (descriptor, status) = noop();
        portal.ring.fill(position, &transmute!(descriptor));
        portal.board.doorbell().ring();
        wait(status);
        while device.occupancy(0) != Some(0) {
            thread::yield_now();
        }
    }
    device.stop(Stop::Drain).expect("no failure");
}

#[test]
fn a_device_stops_though_a_client_hangs_in_the_middle() {
    let device = device();
    let client = device.admit().expect("a name");
    let portal = attach(&device, client.number());
    portal
        .ring
        .claim(Way::Limited, client.number())
        .expect("room");
    device.stop(Stop::Drain).expect("no failure");
}

#[test]
fn what_comes_late_is_still_carried_out() {
    let device = device();
    let client = device.admit().expect("a name");
    let portal = attach(&device, client.number());
    let position = portal
        .ring
        .claim(Way::Limited, client.number())
        .expect("room");
    device.control(|_, _| ()).expect("a device");
    let (descriptor, status) = noop();
    portal.ring.fill(position, &transmute!(descriptor));
    portal.region.doorbell().ring();
    wait(status);
}

#[test]
fn a_board_full_of_nonsense_stops_nobody_for_ever() {
    let device = device();
    let shared = device.region().expect("shared");
    let attachment = Attachment::new(shared.fd(), shared.layout(), 1).expect("a region");
    for pattern in [u64::MAX, 1, 1 << 63, 0x0123_4567_89ab_cdef, 0] {
        attachment
            .region
            .each_word(|word: &AtomicU64| word.store(pattern, Ordering::Relaxed));
        device.control(|_, _| ()).expect("a device");
        let occupancy = device.occupancy(0).expect("a queue");
        assert!(occupancy <= 8, "{occupancy}");
        // Enabled as it is, the queue works again.
        let (descriptor, status) = noop();
        let own = device.map(PORTAL).expect("a queue");
        assert_eq!(own.enqueue(&descriptor), Submission::Accepted);
        wait(status);
    }
    device.stop(Stop::Drain).expect("no failure");
}
