//! Packets through every kind of ring, in order and unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dray_vhost::Queue;
use dray_vhost::copy::CopyEngine;
use dray_vhost::net::{Header, Packet};
use dray_vhost::port::Port;
use dray_vhost::protocol::features as f;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::driver::Kind;
use crate::engines::{Held, Shuffled};
use crate::guest::{Guest, Setup};
use crate::threads::port_of;

/// Packets of one run; more by hand: `DRAY_VHOST_PACKETS=10000000 cargo test --release ...`.
fn packets() -> u64 {
    let asked = std::env::var("DRAY_VHOST_PACKETS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(1000)
}

/// A run in which nothing moves for so long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a packet with this number: they and their count follow from it.
fn packet(number: u64, longest: u32) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    let len = 1 + rng.next_u32() % longest;
    let mut bytes = vec![0; len as usize];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// Sends packets from the guest through the back end to the guest.
fn run(guest: &mut Guest, longest: u32, buffer: u32, part: usize) {
    let indirect = guest.setup.features & f::INDIRECT_DESC != 0;
    let total = packets();
    let (mut sent, mut got, mut moved) = (0, 0, Instant::now());
    let (mut inside, mut next) = (Vec::new(), None);
    while got < total {
        let before = (sent, got, inside.len());
        while guest.provide(&[buffer / 2, buffer - buffer / 2], indirect) {}
        while sent < total {
            let bytes: Vec<u8> = next.take().unwrap_or_else(|| packet(sent, longest));
            if !guest.transmit(&bytes, part, indirect && sent % 2 == 0) {
                next = Some(bytes);
                break;
            }
            sent += 1;
        }
        if inside.len() < 256 {
            guest.poll_data(&mut inside, 32);
        }
        guest.deliver(&mut inside);
        let mut none = Vec::new();
        guest.poll_data(&mut none, 0);
        inside.append(&mut none);
        while let Some(bytes) = guest.received() {
            assert_eq!(bytes[12..], packet(got, longest), "packet {got}");
            let header = Header::from_bytes(bytes[..12].try_into().expect("12 bytes"));
            assert_eq!((header.flags, header.gso_type), (0, 0));
            assert!(header.num_buffers >= 1);
            got += 1;
        }
        guest.rings[1].reclaim(&guest.memory);
        if (sent, got, inside.len()) != before {
            moved = Instant::now();
            continue;
        }
        std::thread::yield_now();
        let waited = moved.elapsed();
        assert!(waited < TIMEOUT, "nothing moves: sent {sent}, got {got}");
    }
    let stats = *guest.backend.queue(1).stats();
    assert_eq!((stats.packets, stats.drops.total()), (total, 0));
    assert!(guest.received().is_none());
}

fn movers(which: usize) -> Vec<Box<dyn CopyEngine>> {
    match which {
        0 => Vec::new(),
        1 => vec![dray_vhost::copy::open_cpu()],
        2 => vec![Shuffled::new(1, 512, None)],
        // Little room, failures, and three channels for one queue.
        _ => (0..3)
            .map(|seed| {
                let engine: Box<dyn CopyEngine> = Shuffled::new(seed, 40, Some(7));
                engine
            })
            .collect(),
    }
}

fn every_path(kind: Kind, size: u32) {
    let sets = [
        0,
        f::MRG_RXBUF,
        f::IN_ORDER,
        f::MRG_RXBUF | f::IN_ORDER,
        f::MRG_RXBUF | f::INDIRECT_DESC,
        f::INDIRECT_DESC | f::EVENT_IDX,
    ];
    for features in sets {
        for mover in 0..4 {
            println!("{kind:?} {size} features {features:#x} mover {mover}");
            let setup = Setup::new(kind, size).with(features);
            let mut guest = Guest::new(setup, movers(mover));
            match features & f::MRG_RXBUF {
                0 => run(&mut guest, 1518, 1530, 600),
                _ => run(&mut guest, 6192, 512, 2000),
            }
            if mover >= 2 {
                let stats = *guest.backend.queue(1).stats();
                assert!(stats.submitted > 0 && stats.submitted == stats.completed);
                let queues = guest.backend.queues().iter();
                let repeated: u64 = queues.map(|queue| queue.stats().copies_repeated).sum();
                let causes = guest.channels.iter().flat_map(|channel| channel.failures());
                let failed = causes.clone().map(|(_, count)| count).sum::<u64>();
                assert_eq!(failed, repeated);
                assert_eq!(failed > 0, mover == 3);
                assert!(
                    causes
                        .into_iter()
                        .all(|(name, _)| *name == "hardware_error_write")
                );
            }
        }
    }
}

/// Copies in flight of a ring that breaks end, and do not keep their pair busy.
#[test]
fn copies_of_a_broken_ring_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let go = Arc::new(AtomicBool::new(false));
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), vec![Held::new(&go)]);
    assert!(guest.transmit(&[3; 700], 4096, false));
    let port = port_of(&dir.path().join("a"), &mut guest);
    let port = Port::Vhost(Box::new(port));
    let mut out = Vec::new();
    let (channels, pool) = (&mut guest.channels, &mut guest.pool);
    let mut receive = || port.receive(0, channels, pool, &mut out, 32);
    assert!(receive().in_flight);
    guest.rings[1].jump(&guest.memory, 0x7000);
    assert!(receive().in_flight);
    let broken = |queue: &Queue| queue.index() != 1 || queue.broken().is_some();
    port.each_queue(|queue| assert!(broken(queue)));
    go.store(true, Ordering::SeqCst);
    assert!(!receive().in_flight);
}

#[test]
fn split_rings_deliver_every_packet() {
    every_path(Kind::Split, 256);
}

#[test]
fn packed_rings_deliver_every_packet() {
    every_path(Kind::Packed, 256);
}

#[test]
fn packed_rings_of_odd_size_deliver_every_packet() {
    every_path(Kind::Packed, 57);
}

/// None lost, none out of order, none changed. By hand with more:
/// `DRAY_VHOST_PACKETS=10000000 cargo test --release -p dray-vhost --test it in_random_order`.
fn copies_end_in_random_order(kind: Kind) {
    let setup = Setup::new(kind, 256).with(f::MRG_RXBUF);
    let mut guest = Guest::new(setup, vec![Shuffled::new(3, 512, None)]);
    run(&mut guest, 1518, 1024, 1000);
    let stats = *guest.backend.queue(0).stats();
    println!("{kind:?}: {} packets to the guest", stats.packets);
    assert_eq!(stats.submitted, stats.completed);
    assert!(stats.copies_channel > stats.packets, "chains of two parts");
}

#[test]
fn split_rings_keep_order_when_copies_end_in_random_order() {
    copies_end_in_random_order(Kind::Split);
}

#[test]
fn packed_rings_keep_order_when_copies_end_in_random_order() {
    copies_end_in_random_order(Kind::Packed);
}

#[test]
fn the_virtual_device_copies_packets() {
    for kind in [Kind::Split, Kind::Packed] {
        let engines = dray_vhost::copy::open_virtual(2).expect("a device");
        let mut guest = Guest::new(Setup::new(kind, 256).with(f::MRG_RXBUF), engines);
        run(&mut guest, 3000, 1600, 1000);
        let stats = *guest.backend.queue(1).stats();
        assert!(stats.copies_channel > 0);
        assert_eq!(stats.copies_repeated, 0);
    }
}

#[test]
fn the_smallest_and_the_largest_ring_deliver_packets() {
    for (kind, size) in [
        (Kind::Split, 2),
        (Kind::Split, 32768),
        (Kind::Packed, 32768),
    ] {
        let mut guest = Guest::new(Setup::new(kind, size), Vec::new());
        guest.assert_flows();
        guest.assert_flows();
    }
}

#[test]
fn chains_of_131070_bytes_are_delivered() {
    for kind in [Kind::Split, Kind::Packed] {
        for mover in [0, 2] {
            let setup = Setup::new(kind, 256).with(f::MRG_RXBUF);
            let mut guest = Guest::new(setup, movers(mover));
            let bytes: Vec<u8> = (0..131_070u32).map(|i| (i / 3) as u8).collect();
            assert!(guest.transmit(&bytes, 65535 + 12, false));
            while guest.provide(&[2048], false) {}
            let mut out = Vec::new();
            guest.poll_data(&mut out, 32);
            guest.settle(&mut out);
            assert_eq!(out[0].bytes(), bytes);
            // Its pages may take several calls.
            assert!((0..10_000).any(|_| guest.deliver(&mut out) == 1));
            guest.settle(&mut Vec::new());
            assert_eq!(guest.received().expect("it")[12..], bytes);
        }
    }
}

#[test]
fn packets_below_the_threshold_are_copied_by_the_core_in_order() {
    let mut guest = Guest::new(
        Setup::new(Kind::Split, 256),
        vec![Shuffled::new(5, 512, None)],
    );
    guest
        .backend
        .queues()
        .iter()
        .for_each(|mut queue| queue.set_copy_threshold(256));
    run(&mut guest, 600, 700, 4096);
    let stats = *guest.backend.queue(1).stats();
    assert!(stats.copies_small > 0 && stats.submitted > 0);
    assert_eq!(stats.copies_small + stats.submitted, stats.packets);
}

#[test]
fn a_merged_packet_fills_all_buffers_but_the_last() {
    let setup = Setup::new(Kind::Split, 256).with(f::MRG_RXBUF);
    let mut guest = Guest::new(setup, Vec::new());
    for _ in 0..3 {
        guest.provide(&[100], false);
    }
    let mut packets = vec![Packet::from_bytes(&[7; 400])];
    assert_eq!(
        guest.deliver(&mut packets),
        0,
        "412 bytes need five buffers"
    );
    assert!(guest.received().is_none());
    for _ in 0..2 {
        guest.provide(&[100], false);
    }
    assert_eq!(guest.deliver(&mut packets), 1);
    let lens: Vec<usize> = (0..5)
        .map(|_| {
            guest.rings[0]
                .used(&guest.memory)
                .expect("used")
                .bytes
                .len()
        })
        .collect();
    assert_eq!(lens, [100, 100, 100, 100, 12]);
}
