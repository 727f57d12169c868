//! Processes that die in the middle of a submission, and regions that say nonsense.

use std::ptr::null_mut;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;

use dray_device::{Portal, Submission, WorkQueueMode};
use dray_realtime::{RealtimeDevice, Stop};
use dray_ring::{Offer, Ring, SharedRegion, WriteKind};
use dray_spec::{CompletionRecord, Descriptor, Status};
use rustix::fs::fstat;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use zerocopy::transmute;

const PORTAL: Portal = Portal {
    wq: 0,
    limited: false,
};

/// A device with one shared queue of four entries.
fn device() -> RealtimeDevice {
    super::device(WorkQueueMode::Shared, 4)
}

/// The region of a device as another process maps it, and the ring of its queue.
fn attach(device: &RealtimeDevice) -> (Arc<SharedRegion>, Ring) {
    let file = device.region().expect("shared");
    let region = SharedRegion::attached(file.fd(), file.layout()).expect("a region");
    let ring = region.ring(0).expect("a queue");
    (region, ring)
}

/// Runs `action` in a process of its own, which then dies on the spot.
fn die_after(action: impl FnOnce()) {
    let child = super::fork(|| {
        action();
        true
    });
    assert_eq!(super::wait(child), Some(0));
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
            let (region, ring) = attach(&device);
            let kind = WriteKind::Limited;
            ring.claim(kind, client.number()).expect("room");
            for _ in 0..its_after {
                let words = transmute!(Descriptor::noop());
                assert_eq!(ring.offer(&words, kind, client.number()), Offer::Accepted);
                region.doorbell().ring();
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
    let (region, ring) = attach(&device);
    // Often enough that every entry is the one in which it happens.
    for handlers in [1, 3, 2, 1, 3, 1] {
        let position = ring
            .claim(WriteKind::Limited, client.number())
            .expect("room");
        for _ in 0..handlers {
            let (descriptor, status) = noop();
            let offer = ring.offer(&transmute!(descriptor), WriteKind::Limited, client.number());
            assert_eq!(offer, Offer::Accepted);
            region.doorbell().ring();
            wait(status);
        }
        let (descriptor, status) = noop();
        ring.fill(position, &transmute!(descriptor));
        region.doorbell().ring();
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
    let (_region, ring) = attach(&device);
    ring.claim(WriteKind::Limited, client.number())
        .expect("room");
    device.stop(Stop::Drain).expect("no failure");
}

#[test]
fn what_comes_late_is_still_carried_out() {
    let device = device();
    let client = device.admit().expect("a name");
    let (region, ring) = attach(&device);
    let position = ring
        .claim(WriteKind::Limited, client.number())
        .expect("room");
    device.control(|_, _| ()).expect("a device");
    let (descriptor, status) = noop();
    ring.fill(position, &transmute!(descriptor));
    region.doorbell().ring();
    wait(status);
}

/// Stores `pattern` in every word of the region, as another process can.
fn overwrite(device: &RealtimeDevice, pattern: u64) {
    let file = device.region().expect("shared").fd();
    let size = fstat(file).expect("a file").st_size as usize;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses disturbs nothing.
    let base = unsafe { mmap(null_mut(), size, access, MapFlags::SHARED, file, 0) };
    let base = base.expect("a mapping");
    // SAFETY: the mapping has so many words, and all that access it do so by atomics.
    let words = unsafe { slice::from_raw_parts(base.cast::<AtomicU64>(), size / 8) };
    for word in words {
        word.store(pattern, Ordering::Relaxed);
    }
    // SAFETY: nothing refers to it any more.
    unsafe { munmap(base, size) }.expect("a mapping");
}

#[test]
fn a_region_full_of_nonsense_stops_nobody_for_ever() {
    let device = device();
    for pattern in [u64::MAX, 1, 1 << 63, 0x0123_4567_89ab_cdef, 0] {
        overwrite(&device, pattern);
        device.control(|_, _| ()).expect("a device");
        let occupancy = device.occupancy(0).expect("a queue");
        let entries = device.region().expect("shared").layout().entries;
        assert!(occupancy <= entries, "{occupancy}");
        // Enabled as it is, the queue works again.
        let (descriptor, status) = noop();
        let own = device.map(PORTAL).expect("a queue");
        assert_eq!(own.enqueue(&descriptor), Submission::Accepted);
        wait(status);
    }
    device.stop(Stop::Drain).expect("no failure");
}
