//! What one driver can make this process do before other queues have their turn.

use std::time::Duration;

use dray_vhost::Backend;
use dray_vhost::backend::{Endpoint, Event, Role};
use dray_vhost::memory::RegionInfo;
use dray_vhost::net::{Header, MAX_PACKET_BYTES, Packet, Pool};
use dray_vhost::port::{Outlet, Port, VhostPort};
use dray_vhost::protocol::{Options, Request, features as f};
use dray_vhost::ring::RingFault;

use crate::driver::Kind;
use crate::engines::Shuffled;
use crate::guest::{BASE, Guest, SIZE, Setup, USER, number_of, region_bytes};

const KINDS: [Kind; 2] = [Kind::Split, Kind::Packed];
const NEXT: u16 = 1;
const INDIRECT: u16 = 4;

fn guest(kind: Kind, size: u32) -> Guest {
    Guest::new(Setup::new(kind, size).with(f::INDIRECT_DESC), Vec::new())
}

/// A table of these buffers, as a list of one descriptor.
pub fn table_of(guest: &mut Guest, entries: &[(u64, u32)], flags: u16) -> (u64, u32, u16) {
    let table = guest.buffer(16 * entries.len() as u32);
    for (i, (addr, len)) in entries.iter().enumerate() {
        let next = if i + 1 < entries.len() { NEXT } else { 0 };
        let at = table + 16 * i as u64;
        guest.write_entry(at, (*addr, *len, flags | next), i as u16 + 1);
    }
    (table, 16 * entries.len() as u32, INDIRECT)
}

/// Bytes of the packet of a list, if it is taken.
fn taken(guest: &mut Guest, list: &[(u64, u32, u16)]) -> Option<usize> {
    guest.rings[1].add_raw(&guest.memory, list);
    let mut out = Vec::new();
    guest.poll_until_back(&mut out, 1);
    out.pop().map(|packet| packet.len())
}

#[test]
fn a_buffer_has_256_descriptors_at_most() {
    for kind in KINDS {
        let mut guest = guest(kind, 1024);
        let at = guest.buffer(100);
        guest.memory.write(at, &[0; 100]);
        for (count, expected) in [(256, Some(256 * 100 - 12)), (257, None), (1000, None)] {
            let entry = table_of(&mut guest, &vec![(at, 100); count], 0);
            assert_eq!(taken(&mut guest, &[entry]), expected, "{kind:?} {count}");
            assert_eq!(
                taken(&mut guest, &vec![(at, 100, 0); count]),
                expected,
                "{kind:?} {count} in the ring"
            );
        }
        assert_eq!(guest.backend.queue(1).stats().drops.descriptor, 4);
        guest.assert_flows();
    }
}

#[test]
fn a_buffer_across_more_than_256_regions_is_dropped() {
    for kind in KINDS {
        let mut guest = guest(kind, 64);
        for at in 0..300 {
            let info = RegionInfo {
                guest: BASE + SIZE + 64 * at,
                size: 64,
                user: USER + SIZE + 64 * at,
                offset: 0,
            };
            let message = [vec![0; 8], region_bytes(&info)].concat();
            let file = guest.memory.file.try_clone().expect("a copy");
            let answer = guest.try_send(Request::AddMemReg, &message, vec![file]);
            assert_eq!(number_of(answer), 0, "region {at}");
        }
        let all = BASE + SIZE;
        assert_eq!(
            taken(&mut guest, &[(all, 64 * 256, 0)]),
            Some(64 * 256 - 12)
        );
        assert_eq!(taken(&mut guest, &[(all, 64 * 257, 0)]), None);
        guest.assert_flows();
    }
}

#[test]
fn a_packet_longer_than_any_is_dropped_as_a_chain_and_whole() {
    for kind in KINDS {
        let mut guest = guest(kind, 64);
        let longest = (12 + MAX_PACKET_BYTES) as u32;
        let at = BASE + (8 << 20);
        guest.memory.write(at, &[0; 100]);
        for (more, expected) in [(0, Some(MAX_PACKET_BYTES)), (1, None)] {
            assert_eq!(taken(&mut guest, &[(at, longest + more, 0)]), expected);
            let parts = [(at, 1000, 0), (at, longest - 1000 + more, 0)];
            assert_eq!(taken(&mut guest, &parts), expected);
        }
    }
}

/// Whatever a buffer costs, a call ends after a few of those that cost most.
#[test]
fn one_call_looks_at_a_bounded_number_of_descriptors() {
    const BUFFERS: usize = 64;
    for kind in KINDS {
        for len in [0, 1, 100] {
            let mut guest = guest(kind, 1024);
            let at = guest.buffer(100);
            for _ in 0..BUFFERS {
                let entry = table_of(&mut guest, &[(at, len); 1000], 0);
                guest.rings[1].add_raw(&guest.memory, &[entry]);
            }
            let (mut calls, mut back) = (0, 0);
            while back < BUFFERS {
                guest.poll_data(&mut Vec::new(), 64);
                let more = guest.rings[1].reclaim(&guest.memory);
                assert!((1..=4).contains(&more), "{kind:?} {len}: {more} in a call");
                (calls, back) = (calls + 1, back + more);
            }
            assert!(calls >= BUFFERS / 4);
            guest.assert_flows();
        }
    }
}

/// The same to the guest, where one packet passes over all buffers that it cannot use.
#[test]
fn one_packet_passes_over_a_bounded_number_of_bad_buffers() {
    const BUFFERS: usize = 64;
    for kind in KINDS {
        for features in [0, f::MRG_RXBUF] {
            let setup = Setup::new(kind, 1024).with(f::INDIRECT_DESC | features);
            let mut guest = Guest::new(setup, Vec::new());
            let at = guest.buffer(100);
            for _ in 0..BUFFERS {
                let entry = table_of(&mut guest, &[(at, 0); 1000], 2);
                guest.rings[0].add_raw(&guest.memory, &[entry]);
            }
            let mut packets = vec![Packet::from_bytes(&[1; 100])];
            assert_eq!(guest.deliver(&mut packets), 0);
            let back = guest.rings[0].reclaim(&guest.memory);
            assert!((1..=4).contains(&back), "{kind:?}: {back} in a call");
            while guest.rings[0].reclaim(&guest.memory) > 0 || !packets.is_empty() {
                guest.provide(&[2048], false);
                guest.deliver(&mut packets);
            }
        }
    }
}

#[test]
fn one_call_takes_a_bounded_number_of_bytes() {
    for kind in KINDS {
        for engines in [Vec::new(), vec![Shuffled::new(3, 512, None) as _]] {
            let mut guest = Guest::new(Setup::new(kind, 64), engines);
            for _ in 0..10 {
                assert!(guest.transmit(&[7; 60_000], 65_536, false));
            }
            let queue = |guest: &Guest| {
                let queue = guest.backend.queue(1);
                queue.in_flight() as u64 + queue.stats().packets
            };
            let mut out = Vec::new();
            guest.poll_data(&mut out, 32);
            assert_eq!(queue(&guest), 2, "as many as 64 KiB are reached with");
            for _ in 0..4 {
                guest.poll_data(&mut out, 32);
            }
            guest.settle(&mut out);
            assert_eq!(out.len(), 10);
        }
    }
}

#[test]
fn a_packed_list_without_end_stops_its_ring() {
    let mut guest = guest(Kind::Packed, 4096);
    let at = guest.buffer(100);
    guest.rings[1].add_raw(&guest.memory, &vec![(at, 100, 0); 2000]);
    guest.poll_data(&mut Vec::new(), 32);
    let broken = guest.backend.queue(1).broken();
    assert_eq!(broken, Some(RingFault::List { limit: 1024 }));
}

/// A port with a guest of two queue pairs behind it, of which the first is enabled.
fn half_enabled(kind: Kind) -> (Guest, VhostPort, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        queue_pairs: 2,
        ..Options::default()
    };
    let mut guest = Guest::new(Setup::new(kind, 64), Vec::new());
    guest.backend = Backend::new(options);
    guest.connect();
    guest.start();
    let endpoint = Endpoint::new(&dir.path().join("s"), Role::Server, options);
    let mut endpoint = endpoint.expect("a socket");
    std::mem::swap(&mut endpoint.backend, &mut guest.backend);
    (guest, VhostPort::over(endpoint), dir)
}

#[test]
fn packets_for_a_pair_that_is_off_go_to_one_that_is_on() {
    for kind in KINDS {
        let (mut guest, port, _dir) = half_enabled(kind);
        let port = Port::Vhost(Box::new(port));
        while guest.provide(&[2048], false) {}
        let (mut pool, mut outlet) = (Pool::new(0), Outlet::default());
        let mut send = |pair, number| {
            let mut packets = vec![Packet::from_bytes(&[number; 100])];
            let turn = Duration::MAX;
            port.send(&mut outlet, pair, &mut [], &mut pool, &mut packets, turn);
        };
        for pair in [0, 1] {
            (0..10).for_each(|number| send(pair, number));
            for number in 0..10 {
                let received = guest.received().expect("a packet of either pair");
                assert_eq!(received[12..], [number; 100], "{kind:?} pair {pair}");
            }
        }
        let Port::Vhost(of_guest) = &port else {
            unreachable!("it was made so");
        };
        std::mem::swap(&mut of_guest.endpoint().backend, &mut guest.backend);
        assert_eq!(guest.state(Request::SetVringEnable, 0, 0), 0);
        send(1, 1);
        assert!(guest.received().is_none(), "none is enabled");
        assert_eq!(guest.backend.queue(2).stats().drops.disabled, 1);
    }
}

/// A segment of TCP over IPv4 with so much data that is to be cut into packets of `part`.
pub fn long_segment(data: usize, part: u16) -> Packet {
    let mut bytes = vec![2; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0]);
    bytes.extend([
        10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 81, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    bytes.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    bytes.extend(vec![3; data]);
    let mut packet = Packet::from_bytes(&bytes);
    packet.header = Header {
        // NEEDS_CSUM and GSO_TCPV4 (virtio 1.3, 5.1.6).
        flags: 1,
        gso_type: 1,
        gso_size: part,
        csum_start: 34,
        csum_offset: 16,
        ..Header::default()
    };
    packet
}

/// What a sender has cut is paid by all ports.
#[test]
fn a_burst_is_cut_in_turns_and_arrives_whole() {
    let (mut guest, port, _dir) = half_enabled(Kind::Split);
    let port = Port::Vhost(Box::new(port));
    let mut outlet = Outlet::default();
    let (mut pool, mut numbers, mut turns) = (Pool::new(0), Vec::new(), 0);
    let mut packets: Vec<Packet> = (0..32).map(|_| long_segment(10_000, 100)).collect();
    while !packets.is_empty() {
        while guest.provide(&[2048], false) {}
        let turn = Duration::ZERO;
        port.send(&mut outlet, 0, &mut [], &mut pool, &mut packets, turn);
        turns += 1;
        while let Some(received) = guest.received() {
            // The sequence number of TCP.
            numbers.push(u32::from_be_bytes([50, 51, 52, 53].map(|at| received[at])));
        }
    }
    assert_eq!(turns, 32 * 100 / 8);
    let expected = (0..32).flat_map(|_| (0..100).map(|part| 100 * part));
    assert_eq!(numbers, expected.collect::<Vec<u32>>());
}

#[test]
fn a_ring_that_stops_is_reported_once_and_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let mut endpoint = Endpoint::new(&path, Role::Server, Options::default()).expect("a socket");
    let mut guest = guest(Kind::Split, 64);
    guest.rings[1].jump(&guest.memory, 0x7000);
    guest.poll_data(&mut Vec::new(), 32);
    std::mem::swap(&mut endpoint.backend, &mut guest.backend);
    let mut poll = || {
        let mut events = Vec::new();
        endpoint.poll(std::time::Instant::now(), &mut events);
        events
    };
    let events = poll();
    assert!(
        matches!(&events[..], [Event::Stopped { path: at, queue: 1, fault: RingFault::Overrun { .. } }] if *at == path),
        "{events:?}"
    );
    assert!(poll().is_empty());
}

#[test]
fn a_packet_of_256_bytes_stays_on_the_core() {
    for kind in KINDS {
        let mut guest = Guest::new(Setup::new(kind, 64), vec![Shuffled::new(3, 512, None)]);
        for mut queue in guest.backend.queues().iter() {
            queue.set_copy_threshold(dray_vhost::queue::DEFAULT_COPY_THRESHOLD);
        }
        for len in [256, 257] {
            assert!(guest.transmit(&vec![1; len], 4096, false));
            guest.provide(&[2048], false);
            guest.deliver(&mut vec![Packet::from_bytes(&vec![1; len])]);
        }
        let mut out = Vec::new();
        guest.poll_data(&mut out, 32);
        guest.settle(&mut out);
        for queue in guest.backend.queues().iter() {
            let stats = queue.stats();
            assert_eq!((stats.copies_small, stats.copies_channel), (1, 1));
        }
    }
}
