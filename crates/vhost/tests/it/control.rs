//! Messages in every order, with and without copies in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dray_vhost::backend::Handled;
use dray_vhost::copy::Channel;
use dray_vhost::net::Packet;
use dray_vhost::protocol::{Frame, Header, Request, features as f};
use proptest::prelude::*;

use crate::driver::Kind;
use crate::engines::{Held, Shuffled};
use crate::guest::{Guest, Setup, region, region_bytes, table, words};

const KINDS: [Kind; 2] = [Kind::Split, Kind::Packed];

/// A guest with one packet in flight each way, held by the mover.
fn with_copies_held(kind: Kind) -> (Guest, Arc<AtomicBool>) {
    let go = Arc::new(AtomicBool::new(false));
    let mut guest = Guest::new(Setup::new(kind, 64), vec![Held::new(&go)]);
    assert!(guest.transmit(&[3; 700], 4096, false));
    guest.provide(&[2048], false);
    let mut out = Vec::new();
    guest.poll_data(&mut out, 32);
    assert_eq!(guest.deliver(&mut vec![Packet::from_bytes(&[4; 700])]), 1);
    assert!(out.is_empty());
    assert!(guest.backend.queues().iter().all(|q| q.in_flight() == 1));
    (guest, go)
}

/// A queue that has no channel when a drain begins gets one while another queue's copies are waited for: it takes
/// nothing either.
#[test]
fn a_channel_that_is_added_while_a_drain_waits_gets_no_copy() {
    for kind in KINDS {
        let go = Arc::new(AtomicBool::new(false));
        let mut guest = Guest::new(Setup::new(kind, 64), Vec::new());
        guest.channels = vec![Channel::new("wq0.0", Held::new(&go))];
        let channels = &mut guest.channels;
        guest.backend.to_guest(0).attach(channels, 0);
        guest.asynchronous = true;
        guest.provide(&[2048], false);
        assert_eq!(guest.deliver(&mut vec![Packet::from_bytes(&[4; 700])]), 1);
        let message = frame(Request::ResetOwner, &[]);
        let handled = guest.backend.handle(message, Instant::now());
        assert!(matches!(handled, Ok(Handled::Waiting)));
        guest.backend.from_guest(0).attach(&mut guest.channels, 0);
        assert!(guest.transmit(&[3; 700], 4096, false));
        let mut out = Vec::new();
        guest.poll_data(&mut out, 32);
        let taken = guest.backend.from_guest(0).in_flight();
        assert_eq!((taken, out.len()), (0, 0), "it drains too");
        go.store(true, Ordering::SeqCst);
        guest.settle(&mut out);
        let handled = guest.backend.resume(Instant::now());
        assert!(matches!(handled, Ok(Handled::Done(Some(_)))));
        guest.poll_data(&mut out, 32);
        guest.settle(&mut out);
        assert!(!guest.backend.is_waiting());
        assert_eq!(guest.rings[1].reclaim(&guest.memory), 1, "then it is taken");
    }
}

fn frame(request: Request, payload: &[u8]) -> Frame {
    Frame {
        header: Header::request(request, true, payload.len() as u32),
        payload: payload.to_vec(),
        descriptors: Vec::new(),
    }
}

/// Messages that must not be carried out while copies are in flight.
fn draining() -> Vec<(Request, Vec<u8>)> {
    vec![
        (Request::GetVringBase, words(1, 0x8000).to_vec()),
        (Request::SetVringEnable, words(1, 0).to_vec()),
        (
            Request::RemMemReg,
            [vec![0; 8], region_bytes(&region())].concat(),
        ),
        (Request::SetMemTable, table(&[])),
        (Request::ResetDevice, Vec::new()),
        (Request::ResetOwner, Vec::new()),
        (Request::SetStatus, 0u64.to_ne_bytes().to_vec()),
    ]
}

#[test]
fn messages_that_drain_wait_for_copies_in_flight() {
    for kind in KINDS {
        for (request, payload) in draining() {
            println!("{kind:?} {request:?}");
            let (mut guest, go) = with_copies_held(kind);
            let now = Instant::now();
            let frame = frame(request, &payload);
            let handled = guest.backend.handle(frame, now);
            assert!(matches!(handled, Ok(Handled::Waiting)), "{handled:?}");
            // No new packet is taken meanwhile.
            assert!(guest.transmit(&[5; 700], 4096, false));
            let mut out = Vec::new();
            guest.poll_data(&mut out, 32);
            assert_eq!(guest.backend.queue(1).in_flight(), 1);
            go.store(true, Ordering::SeqCst);
            guest.poll_data(&mut out, 32);
            assert_eq!(out[0].bytes(), [3; 700]);
            let handled = guest.backend.resume(now);
            assert!(matches!(handled, Ok(Handled::Done(Some(_)))), "{handled:?}");
            assert_eq!(guest.rings[1].reclaim(&guest.memory), 1, "not given back");
        }
    }
}

#[test]
fn a_drain_ends_at_its_deadline_and_memory_stays_mapped() {
    for kind in KINDS {
        for (request, payload) in draining() {
            println!("{kind:?} {request:?}");
            let (mut guest, go) = with_copies_held(kind);
            let now = Instant::now();
            let frame = frame(request, &payload);
            let handled = guest.backend.handle(frame, now);
            assert!(matches!(handled, Ok(Handled::Waiting)));
            let later = now + Duration::from_secs(2);
            match guest.backend.resume(later) {
                // Its only answer would mean that the ring is stopped, and it is not.
                Err(_) => assert_eq!(request, Request::GetVringBase),
                Ok(Handled::Done(Some(answer))) => assert_ne!(answer[12], 0, "refused"),
                other => panic!("{other:?}"),
            }
            assert!(guest.channels[0].in_flight() > 0);
            // The connection ends before the copies: their memory is still mapped.
            let _ = guest.backend.disconnect(later);
            let much_later = later + Duration::from_secs(2);
            let _ = guest.backend.resume(much_later);
            assert!(guest.backend.memory().is_empty());
            go.store(true, Ordering::SeqCst);
            guest.channels[0].reap();
            assert_eq!(guest.channels[0].in_flight(), 0);
        }
    }
}

#[test]
fn memory_of_copies_in_flight_outlives_the_device() {
    for kind in KINDS {
        let (guest, go) = with_copies_held(kind);
        let Guest {
            backend,
            mut channels,
            ..
        } = guest;
        drop(backend);
        go.store(true, Ordering::SeqCst);
        channels[0].reap();
        assert_eq!(channels[0].in_flight(), 0);
    }
}

#[test]
fn messages_that_change_no_ring_do_not_wait() {
    for kind in KINDS {
        let (mut guest, go) = with_copies_held(kind);
        let file = guest.memory.file.try_clone().expect("a copy");
        let same = guest.try_send(Request::SetMemTable, &table(&[region()]), vec![file]);
        assert_eq!(same.expect("answered").expect("an answer"), [0; 8]);
        assert_eq!(guest.state(Request::SetVringEnable, 1, 1), 0);
        let features = guest.setup.features.to_ne_bytes();
        assert_eq!(
            guest.send(Request::SetFeatures, &features),
            0,
            "the same features"
        );
        let address = guest.rings[1].address(1);
        assert_eq!(
            guest.send(Request::SetVringAddr, &address),
            0,
            "the same addresses"
        );
        assert_eq!(guest.backend.queue(1).in_flight(), 1);
        go.store(true, Ordering::SeqCst);
        let mut out = Vec::new();
        guest.settle(&mut out);
        assert_eq!(out.len(), 1);
    }
}

#[test]
fn changes_of_a_running_ring_are_refused() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    assert_ne!(guest.state(Request::SetVringNum, 1, 128), 0);
    assert_ne!(guest.state(Request::SetVringBase, 1, 7), 0);
    let mut address = guest.rings[1].address(1);
    address[8] ^= 16;
    assert_ne!(guest.send(Request::SetVringAddr, &address), 0);
    let other = (guest.setup.features ^ f::IN_ORDER).to_ne_bytes();
    assert_ne!(guest.send(Request::SetFeatures, &other), 0);
    guest.assert_flows();
}

#[test]
fn a_stopped_ring_continues_from_its_base() {
    for kind in KINDS {
        for asynchronous in [false, true] {
            let engines: Vec<Box<dyn dray_vhost::copy::CopyEngine>> = match asynchronous {
                true => vec![Shuffled::new(9, 512, None)],
                false => Vec::new(),
            };
            let mut guest = Guest::new(Setup::new(kind, 16), engines);
            for round in 0..30 {
                guest.assert_flows();
                guest.rings[1].reclaim(&guest.memory);
                for queue in 0..2 {
                    let expected = guest.rings[queue as usize].base();
                    let answer = guest.state(Request::GetVringBase, queue, 0x5589);
                    let base = (answer >> 32) as u32;
                    assert_eq!(answer as u32, queue);
                    match kind {
                        Kind::Split => assert_eq!(base, expected, "round {round}"),
                        Kind::Packed => assert_eq!(base, expected | expected << 16),
                    }
                    guest.start_queue(queue);
                }
            }
        }
    }
}

/// A front end that lost its connection: split rings go on from the used index whatever it says; a
/// packed ring from where it stood, if it says 0.
#[test]
fn rings_continue_after_a_reconnect() {
    for kind in KINDS {
        let mut guest = Guest::new(Setup::new(kind, 16), Vec::new());
        for _ in 0..21 {
            guest.assert_flows();
            guest.rings[1].reclaim(&guest.memory);
        }
        let now = Instant::now();
        let gone = guest.backend.disconnect(now);
        assert!(matches!(gone, Ok(Handled::Done(None))));
        guest.connect();
        for queue in 0..2 {
            assert_eq!(guest.state(Request::SetVringNum, queue, 16), 0);
            assert_eq!(guest.state(Request::SetVringBase, queue, 0), 0);
            let address = guest.rings[queue as usize].address(queue);
            assert_eq!(guest.send(Request::SetVringAddr, &address), 0);
            let poll = (u64::from(queue) | 1 << 8).to_ne_bytes();
            assert_eq!(guest.send(Request::SetVringKick, &poll), 0);
            assert_eq!(guest.state(Request::SetVringEnable, queue, 1), 0);
        }
        guest.assert_flows();
    }
}

#[test]
fn messages_of_a_reconnected_virtio_user_server_are_accepted() {
    // virtio-user with server=1: disable and stop before anything else, and no SET_OWNER.
    let mut guest = Guest::new(Setup::new(Kind::Packed, 64), Vec::new());
    let now = Instant::now();
    let _ = guest.backend.disconnect(now);
    for queue in 0..2 {
        let disable = frame(Request::SetVringEnable, &words(queue, 0));
        assert!(guest.backend.handle(disable, now).is_ok());
        let stop = frame(Request::GetVringBase, &words(queue, 0x8000));
        let stopped = guest.backend.handle(stop, now);
        let Ok(Handled::Done(Some(answer))) = stopped else {
            panic!("no answer: {stopped:?}");
        };
        assert_eq!(answer[..12], Header::reply(11, 8).to_bytes());
        assert_eq!(answer[4], 5, "version 1, a reply");
    }
}

#[test]
fn a_ring_enabled_before_the_features_are_set_works() {
    // QEMU enables rings while it connects.
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    let _ = guest.backend.disconnect(Instant::now());
    guest.rings = [0, 1].map(|queue| {
        crate::driver::Driver::new(
            Kind::Split,
            64,
            0,
            crate::guest::BASE + queue * crate::guest::RING + (512 << 10),
        )
    });
    let ack = f::PROTOCOL_REPLY_ACK.to_ne_bytes();
    guest.send(Request::SetProtocolFeatures, &ack);
    for queue in 0..2 {
        assert_eq!(guest.state(Request::SetVringEnable, queue, 1), 0);
    }
    guest.connect();
    for queue in 0..2u32 {
        assert_eq!(guest.state(Request::SetVringNum, queue, 64), 0);
        let address = guest.rings[queue as usize].address(queue);
        assert_eq!(guest.send(Request::SetVringAddr, &address), 0);
        let poll = (u64::from(queue) | 1 << 8).to_ne_bytes();
        assert_eq!(guest.send(Request::SetVringKick, &poll), 0);
    }
    guest.assert_flows();
}

#[test]
fn a_disabled_queue_discards_packets_and_delivers_none() {
    for kind in KINDS {
        let mut guest = Guest::new(Setup::new(kind, 64), Vec::new());
        for queue in 0..2 {
            assert_eq!(guest.state(Request::SetVringEnable, queue, 0), 0);
        }
        assert!(guest.transmit(&[1; 100], 4096, false));
        guest.provide(&[2048], false);
        let mut out = Vec::new();
        guest.poll_data(&mut out, 32);
        assert!(out.is_empty());
        assert_eq!(guest.backend.queue(1).stats().drops.disabled, 1);
        assert_eq!(guest.rings[1].reclaim(&guest.memory), 1);
        assert_eq!(guest.deliver(&mut vec![Packet::from_bytes(&[1; 100])]), 0);
        for queue in 0..2 {
            assert_eq!(guest.state(Request::SetVringEnable, queue, 1), 0);
        }
        assert_eq!(guest.deliver(&mut vec![Packet::from_bytes(&[1; 100])]), 1);
    }
}

#[test]
fn a_ring_starts_only_after_driver_ok() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    for queue in 0..2 {
        guest.state(Request::GetVringBase, queue, 0);
    }
    let protocol = f::PROTOCOL_REPLY_ACK | f::PROTOCOL_STATUS;
    guest.send(Request::SetProtocolFeatures, &protocol.to_ne_bytes());
    assert_ne!(
        guest.send(Request::SetFeatures, &(1u64 << 40).to_ne_bytes()),
        0
    );
    guest.send(Request::SetStatus, &0x0bu64.to_ne_bytes());
    assert_eq!(
        guest.send(Request::GetStatus, &[]),
        0x03,
        "features were refused"
    );
    let features = guest.setup.features.to_ne_bytes();
    assert_eq!(guest.send(Request::SetFeatures, &features), 0);
    guest.send(Request::SetStatus, &0x0bu64.to_ne_bytes());
    assert_eq!(guest.send(Request::GetStatus, &[]), 0x0b);
    guest.start();
    assert!(!guest.backend.queue(1).is_running());
    guest.send(Request::SetStatus, &0x0fu64.to_ne_bytes());
    assert!(guest.backend.queue(1).is_running());
    guest.assert_flows();
    guest.send(Request::SetStatus, &0u64.to_ne_bytes());
    assert!(!guest.backend.queue(1).is_running());
}

#[test]
fn invalid_requests_are_refused_and_the_connection_stays() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    for queue in 0..2 {
        guest.state(Request::GetVringBase, queue, 0);
    }
    for size in [0, 32769, u32::MAX] {
        assert_ne!(guest.state(Request::SetVringNum, 1, size), 0);
    }
    for index in [2, 255, u32::MAX] {
        assert_ne!(guest.state(Request::SetVringNum, index, 64), 0);
        assert_ne!(guest.state(Request::SetVringEnable, index, 1), 0);
        assert!(
            guest
                .try_send(Request::GetVringBase, &words(index, 0), Vec::new())
                .is_err()
        );
    }
    for mtu in [0u64, 67, 65536, u64::MAX] {
        assert_ne!(guest.send(Request::NetSetMtu, &mtu.to_ne_bytes()), 0);
    }
    assert_eq!(guest.send(Request::NetSetMtu, &1500u64.to_ne_bytes()), 0);
    assert_ne!(
        guest.state(Request::SetVringEnable, 1, 2),
        0,
        "neither 0 nor 1"
    );
    // A table without its file, and one that says more regions than it has.
    assert_ne!(guest.send(Request::SetMemTable, &table(&[region()])), 0);
    assert_ne!(guest.send(Request::SetMemTable, &words(9, 0)), 0);
    for request in Request::ALL {
        if !request.has_reply() && *request != Request::SetMemTable {
            let long = guest.send(*request, &[0xff; 333]);
            let empty = matches!(
                request,
                Request::SetOwner | Request::ResetOwner | Request::ResetDevice
            );
            assert_eq!(long == 0, empty, "{request:?}");
        }
    }
    // Sizes and places that a ring cannot have.
    for (size, shift) in [(63, 0), (64, 8), (64, 1 << 40)] {
        assert_eq!(guest.state(Request::SetVringNum, 1, size), 0);
        let mut address = guest.rings[1].address(1);
        let at = u64::from_ne_bytes(address[8..16].try_into().expect("8 bytes")) + shift;
        address[8..16].copy_from_slice(&at.to_ne_bytes());
        assert_eq!(guest.send(Request::SetVringAddr, &address), 0);
        let kick = (1u64 | 1 << 8).to_ne_bytes();
        assert_ne!(guest.send(Request::SetVringKick, &kick), 0, "{size}");
        assert!(!guest.backend.queue(1).is_running());
    }
    // Memory in place of an event.
    for request in [
        Request::SetVringKick,
        Request::SetVringCall,
        Request::SetVringErr,
        Request::SetLogFd,
    ] {
        let payload = 1u64.to_ne_bytes();
        let payload = if request == Request::SetLogFd {
            &[]
        } else {
            &payload[..]
        };
        let file = guest.memory.file.try_clone().expect("a copy");
        let answer = guest.try_send(request, payload, vec![file]);
        assert_ne!(crate::guest::number_of(answer), 0, "{request:?}");
    }
    guest.state(Request::GetVringBase, 1, 0);
    guest.start();
    guest.assert_flows();
}

#[test]
fn send_rarp_injects_a_broadcast_from_the_guest() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    let mac = [2, 0, 0, 0, 0, 9];
    assert_eq!(guest.send(Request::SendRarp, &[2, 0, 0, 0, 0, 9, 0, 0]), 0);
    let mut packets = Vec::new();
    guest.backend.from_guest(0).take_injected(&mut packets);
    assert_eq!(packets[0].bytes()[..12], [[0xff; 6], mac].concat());
    assert_eq!(packets[0].bytes()[12..14], [0x80, 0x35]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any messages in any order: no panic, and the device can be used afterwards.
    #[test]
    fn random_messages_leave_a_usable_device(
        messages in proptest::collection::vec(
            (1u32..45, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..80), 0usize..3),
            0..40,
        ),
    ) {
        let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
        for (request, small, mut payload, files) in messages {
            if small && payload.len() >= 8 {
                // Indices and sizes that mean something.
                payload[1..4].fill(0);
                payload[0] &= 3;
                payload[4..8].copy_from_slice(&64u32.to_ne_bytes());
            }
            let header = Header {
                request,
                flags: 9,
                size: payload.len() as u32,
            };
            let copy = || guest.memory.file.try_clone().expect("a copy");
            let frame = Frame { header, payload, descriptors: (0..files).map(|_| copy()).collect() };
            let now = Instant::now();
            let _ = guest.backend.handle(frame, now);
            let mut out = Vec::new();
            guest.poll_data(&mut out, 32);
            guest.deliver(&mut vec![Packet::from_bytes(&[1; 100])]);
        }
        let _ = guest.backend.disconnect(Instant::now());
        let mut fresh = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
        std::mem::swap(&mut fresh.backend, &mut guest.backend);
        fresh.connect();
        fresh.start();
        fresh.assert_flows();
    }
}
