//! A region as another process maps it: what the writes of its portals are answered.

use dray_ring::{
    AttachError, Attachment, Gate, Moment, Origin, Reader, RegionLayout, RemotePortal,
    SharedRegion, WrongKind,
};
use dray_spec::{Descriptor, Portal, Submission, WorkQueueMode};

const LAYOUT: RegionLayout = RegionLayout {
    queues: 2,
    entries: 4,
};

fn portal(attachment: &Attachment, wq: u16, limited: bool) -> RemotePortal {
    let portal = Portal { wq, limited };
    attachment.portal(portal).expect("a queue of the region")
}

#[test]
fn each_write_is_answered_as_a_portal_answers_it() {
    let (region, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let attachment = Attachment::new(file.fd(), file.layout(), 1).expect("the region");
    let nothing = Portal {
        wq: 2,
        limited: false,
    };
    assert!(attachment.portal(nothing).is_none());
    let gates = [(true, 4, 0), (false, 2, 1)].map(|(dedicated, size, threshold)| Gate {
        dedicated,
        size,
        threshold,
    });
    let copy = Descriptor::memmove(0x1000, 0x2000, 64);
    let [dedicated, shared] = [0, 1].map(|wq| portal(&attachment, wq, false));
    let limited = portal(&attachment, 1, true);
    let rings = [0, 1].map(|queue| region.ring(queue).expect("a queue"));
    for (ring, gate) in rings.iter().zip(gates) {
        ring.open(gate);
    }
    assert_eq!(dedicated.mode(), WorkQueueMode::Dedicated);
    assert_eq!(shared.mode(), WorkQueueMode::Shared);
    for _ in 0..4 {
        assert_eq!(dedicated.write_posted(&copy), Submission::Accepted);
    }
    assert_eq!(dedicated.write_posted(&copy), Submission::Lost);
    assert_eq!((rings[0].lost(), rings[0].retried()), (1, 0));
    assert_eq!(limited.enqueue(&copy), Submission::Accepted);
    assert_eq!(limited.enqueue(&copy), Submission::Retry);
    assert_eq!(shared.enqueue(&copy), Submission::Accepted);
    assert_eq!(shared.enqueue(&copy), Submission::Retry);
    assert_eq!((rings[1].lost(), rings[1].retried()), (0, 2));
    // The instruction that the queue does not take.
    assert_eq!(dedicated.enqueue(&copy), Submission::Retry);
    assert_eq!(shared.write_posted(&copy), Submission::Ignored);
    let [first, second] = rings.each_ref().map(|ring| ring.wrong_kind());
    assert_eq!(
        [first, second],
        [(0, 1), (1, 0)].map(|(posted, deferrable)| WrongKind { posted, deferrable })
    );
    let mut reader = Reader::new(rings[0].clone());
    let words = reader.next().expect("a copy");
    assert_eq!(words[2..4], [0x1000, 0x2000]);
}

#[test]
fn queues_that_are_not_enabled_take_nothing() {
    let (region, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let attachment = Attachment::new(file.fd(), file.layout(), 1).expect("the region");
    let ring = region.ring(0).expect("a queue");
    ring.close();
    let copy = Descriptor::memmove(0x1000, 0x2000, 64);
    let portal = portal(&attachment, 0, false);
    assert_eq!(portal.write_posted(&copy), Submission::Ignored);
    assert_eq!(portal.enqueue(&copy), Submission::Retry);
    assert_eq!((ring.occupancy(), ring.lost(), ring.retried()), (0, 0, 0));
}

#[test]
fn a_posted_write_to_a_queue_that_stays_held_is_ignored_in_the_end() {
    let (region, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let attachment = Attachment::new(file.fd(), file.layout(), 1).expect("the region");
    let ring = region.ring(0).expect("a queue");
    ring.open(Gate {
        dedicated: true,
        size: 4,
        threshold: 0,
    });
    ring.hold();
    let copy = Descriptor::memmove(0x1000, 0x2000, 64);
    assert_eq!(
        portal(&attachment, 0, false).write_posted(&copy),
        Submission::Ignored
    );
    // No deferrable write waits.
    assert_eq!(
        portal(&attachment, 0, false).enqueue(&copy),
        Submission::Retry
    );
    assert_eq!(ring.occupancy(), 0);
}

#[test]
fn a_posted_write_to_a_queue_that_is_held_waits_until_it_is_open() {
    let (region, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let attachment = Attachment::new(file.fd(), file.layout(), 1).expect("the region");
    let ring = region.ring(0).expect("a queue");
    let gate = Gate {
        dedicated: true,
        size: 4,
        threshold: 0,
    };
    ring.open(gate);
    ring.hold();
    let portal = portal(&attachment, 0, false);
    let copy = Descriptor::memmove(0x1000, 0x2000, 64);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| portal.write_posted(&copy));
        // The writer may come before or behind this.
        std::thread::yield_now();
        ring.open(gate);
        let answer = writer.join().expect("no panic");
        assert_eq!(answer, Submission::Accepted);
    });
    assert_eq!(ring.occupancy(), 1);
}

#[test]
fn threads_of_the_device_say_that_they_are_delayed_bit_by_bit() {
    let (region, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let attachment = Attachment::new(file.fd(), file.layout(), 1).expect("the region");
    let portal = portal(&attachment, 0, false);
    assert!(!portal.is_delayed());
    for first in [1, 4] {
        region.doorbell().set_delayed(1, true);
        region.doorbell().set_delayed(4, true);
        region.doorbell().set_delayed(first, false);
        assert!(portal.is_delayed());
        region.doorbell().set_delayed(5 - first, false);
        assert!(!portal.is_delayed());
        // One that is not delayed says so again.
        region.doorbell().set_delayed(first, false);
        assert!(!portal.is_delayed());
    }
}

#[test]
fn submitters_that_are_watched_wait_though_no_thread_is_delayed() {
    let (region, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let attachment = Attachment::new(file.fd(), file.layout(), 1).expect("the region");
    let portal = portal(&attachment, 0, false);
    assert!(!portal.is_watched());
    region.doorbell().watch(true);
    assert!(portal.is_delayed() && portal.is_watched() && !portal.lacks_processor());
    region.doorbell().set_delayed(1, true);
    assert!(portal.lacks_processor());
    region.doorbell().set_delayed(1, false);
    assert!(portal.is_watched() && !portal.lacks_processor());
    region.doorbell().trace(false);
    region.doorbell().watch(false);
    assert!(portal.is_delayed() && portal.is_traced() && !portal.is_watched());
}

#[test]
fn an_origin_is_that_of_its_own_descriptor_in_every_round() {
    let (region, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let ring = region.ring(0).expect("the queue");
    ring.open(Gate {
        dedicated: true,
        size: 4,
        threshold: 0,
    });
    let attachment = Attachment::new(file.fd(), file.layout(), 1).expect("the region");
    let portal = portal(&attachment, 0, false);
    let mut reader = Reader::new(ring);
    for round in 0..3 * u64::from(LAYOUT.entries) {
        let origin = Origin {
            thread: 7,
            site: 0x1000 + round,
            stack: 0x7000,
            frame: 0x8000,
            record: (round % 2 == 0).then_some(round as u8),
            at: Moment {
                cycles: 1,
                returned: 2,
                cpu_ns: 3,
            },
        };
        // Every third one says nothing, and has not what stood there a round before.
        let said = (round % 3 != 0).then_some(origin);
        let answer = match &said {
            Some(origin) => portal.write_posted_from(&Descriptor::noop(), origin),
            None => portal.write_posted(&Descriptor::noop()),
        };
        assert_eq!(answer, Submission::Accepted);
        assert!(!portal.has_looked(portal.accepted()));
        assert!(reader.next().is_some());
        assert_eq!(reader.last_origin(), said, "{round}");
        reader.looked();
        assert!(portal.has_looked(portal.accepted()));
        reader.free_but(0);
    }
}

#[test]
fn a_file_of_another_size_or_without_seals_is_refused() {
    let (_, file) = SharedRegion::shared(LAYOUT).expect("shared memory");
    let more = RegionLayout {
        queues: 9,
        ..LAYOUT
    };
    let refused = Attachment::new(file.fd(), more, 1).expect_err("another size");
    assert!(matches!(refused, AttachError::Size { .. }), "{refused}");
    let plain = tempfile::tempfile().expect("a file");
    let refused = Attachment::new(&plain, LAYOUT, 1).expect_err("a file without seals");
    assert_eq!(refused, AttachError::NotSealed);
}
