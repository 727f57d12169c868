//! A driver that violates every rule of the rings. Only its own packets may be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dray_vhost::copy::CopyEngine;
use dray_vhost::net::Packet;
use dray_vhost::protocol::{Request, features as f};
use dray_vhost::ring::RingFault;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::ftruncate;

use crate::driver::Kind;
use crate::engines::{Held, Shuffled};
use crate::guest::{BASE, CANARY, Guest, SIZE, Setup};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

const KINDS: [Kind; 2] = [Kind::Split, Kind::Packed];

fn engines(asynchronous: bool) -> Vec<Box<dyn CopyEngine>> {
    match asynchronous {
        true => vec![Shuffled::new(3, 512, None)],
        false => Vec::new(),
    }
}

/// Both rings, synchronous and asynchronous.
fn each(features: u64, mut case: impl FnMut(&mut Guest)) {
    for kind in KINDS {
        for asynchronous in [false, true] {
            println!("{kind:?}, asynchronous: {asynchronous}");
            let mut guest = Guest::new(Setup::new(kind, 64).with(features), engines(asynchronous));
            case(&mut guest);
        }
    }
}

/// A descriptor as the guest writes it: address, length, flags.
type Raw = (u64, u32, u16);

/// A list of descriptors from the guest is dropped, counted, and packets flow on.
fn dropped_from_guest(name: &str, make: impl Fn(&mut Guest) -> Vec<Raw>) {
    println!("{name}");
    each(f::INDIRECT_DESC, |guest| {
        let list = make(guest);
        guest.rings[1].add_raw(&guest.memory, &list);
        let mut out = Vec::new();
        guest.poll_until_back(&mut out, 1);
        assert!(out.is_empty(), "{name}: a packet was made of it");
        let drops = guest.backend.queue(1).stats().drops;
        assert_eq!(drops.total(), 1, "{name}: {drops:?}");
        for _ in 0..100 {
            guest.assert_flows();
            guest.rings[1].reclaim(&guest.memory);
        }
    });
}

#[test]
fn bad_buffers_from_the_guest_are_dropped() {
    let end = BASE + SIZE;
    dropped_from_guest("unmapped", |_| vec![(0xdead_0000, 100, 0)]);
    dropped_from_guest("beyond the last address", |_| vec![(u64::MAX - 10, 100, 0)]);
    dropped_from_guest("across a region's end", |_| vec![(end - 50, 100, 0)]);
    dropped_from_guest("second part unmapped", |guest| {
        vec![(guest.buffer(100), 100, 0), (0xdead_0000, 100, 0)]
    });
    for len in [0, 11, 12] {
        dropped_from_guest("too short", |guest| vec![(guest.buffer(64), len, 0)]);
    }
    dropped_from_guest("4 GiB", |guest| vec![(guest.buffer(64), u32::MAX, 0)]);
    dropped_from_guest("1 MiB", |_| vec![(BASE, 1 << 20, 0)]);
    dropped_from_guest("writable", |guest| vec![(guest.buffer(100), 100, WRITE)]);
    dropped_from_guest("writable in the end", |guest| {
        vec![(guest.buffer(100), 100, 0), (guest.buffer(100), 100, WRITE)]
    });
}

#[test]
fn bad_indirect_tables_are_dropped() {
    for len in [0, 8, 15, 17, 16 * 65, u32::MAX, u32::MAX - 15] {
        dropped_from_guest("length", |guest| vec![(guest.buffer(2048), len, INDIRECT)]);
    }
    dropped_from_guest("unmapped", |_| vec![(0xdead_0000, 16, INDIRECT)]);
    dropped_from_guest("across the end", |_| vec![(BASE + SIZE - 8, 16, INDIRECT)]);
    dropped_from_guest("nested", |guest| {
        let (table, inner) = (guest.buffer(16), guest.buffer(16));
        guest.write_entry(table, (inner, 16, INDIRECT), 0);
        vec![(table, 16, INDIRECT)]
    });
    dropped_from_guest("continued", |guest| {
        let table = guest.buffer(16);
        guest.write_entry(table, (BASE, 100, 0), 0);
        vec![(table, 16, INDIRECT | NEXT), (guest.buffer(64), 64, 0)]
    });
    dropped_from_guest("entry unmapped", |guest| {
        let table = guest.buffer(16);
        guest.write_entry(table, (0xdead_0000, 100, 0), 0);
        vec![(table, 16, INDIRECT)]
    });
    println!("loop and index beyond the table (split)");
    for next in [0, 1, 7] {
        let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
        let table = guest.buffer(32);
        guest.write_entry(table, (BASE, 100, NEXT), next);
        guest.write_entry(table + 16, (BASE, 100, NEXT), next);
        guest.rings[1].add_raw(&guest.memory, &[(table, 32, INDIRECT)]);
        guest.poll_data(&mut Vec::new(), 32);
        assert_eq!(guest.backend.queue(1).stats().drops.total(), 1);
        guest.rings[1].reclaim(&guest.memory);
        guest.assert_flows();
    }
}

#[test]
fn a_chain_may_end_in_an_indirect_table() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    let (table, first, second) = (guest.buffer(16), guest.buffer(12), guest.buffer(50));
    guest.memory.write(first, &[0; 12]);
    guest.memory.write(second, &[9; 50]);
    guest.write_entry(table, (second, 50, 0), 0);
    let list = [(first, 12, 0), (table, 16, INDIRECT | WRITE)];
    guest.rings[1].add_raw(&guest.memory, &list);
    let mut out = Vec::new();
    guest.poll_data(&mut out, 32);
    assert_eq!(
        out[0].bytes(),
        [9; 50],
        "WRITE on what refers to a table is ignored"
    );
}

#[test]
fn bad_indices_of_split_rings_do_not_stop_other_queues() {
    for asynchronous in [false, true] {
        let new = || Guest::new(Setup::new(Kind::Split, 64), engines(asynchronous));
        for head in [64, 1000, u16::MAX] {
            for queue in [0, 1] {
                let mut guest = new();
                guest.rings[queue].post_head(&guest.memory, head);
                guest.assert_flows();
            }
        }
        for next in [64, u16::MAX] {
            let mut guest = new();
            let at = guest.buffer(100);
            guest.rings[1].post_looped(&guest.memory, (at, 100, NEXT), next);
            guest.assert_flows();
            assert_eq!(guest.backend.queue(1).stats().drops.total(), 1);
        }
        println!("NEXT to itself");
        let mut guest = new();
        let at = guest.buffer(100);
        let head = guest.rings[1].next_index();
        guest.rings[1].post_looped(&guest.memory, (at, 100, NEXT), head);
        guest.assert_flows();
        assert_eq!(guest.backend.queue(1).stats().drops.total(), 1);
    }
}

#[test]
fn a_chain_as_long_as_the_packed_ring_is_dropped() {
    for asynchronous in [false, true] {
        let mut guest = Guest::new(Setup::new(Kind::Packed, 64), engines(asynchronous));
        let at = guest.buffer(100);
        let list = vec![(at, 100, NEXT); 64];
        guest.rings[1].add_raw(&guest.memory, &list);
        guest.poll_data(&mut Vec::new(), 32);
        assert_eq!(guest.rings[1].reclaim(&guest.memory), 1);
        guest.assert_flows();
        assert_eq!(guest.backend.queue(1).stats().drops.total(), 1);
    }
}

/// Buffers to the guest that cannot be used come back with length 0, and the next one is used.
#[test]
fn bad_buffers_to_the_guest_are_returned_with_length_0() {
    let bad: [Raw; 9] = [
        (0xdead_0000, 2048, WRITE),
        (BASE + SIZE - 100, 2048, WRITE),
        (u64::MAX, 2048, WRITE),
        (BASE + (8 << 20), 0, WRITE),
        (BASE + (8 << 20), 11, WRITE),
        (BASE + (8 << 20), 12, WRITE),
        (BASE + (8 << 20), 2048, 0),
        (BASE + (8 << 20), 17, INDIRECT),
        (0xdead_0000, u32::MAX, WRITE),
    ];
    for raw in bad {
        println!("{raw:x?}");
        each(0, |guest| {
            guest.memory.write(BASE + (8 << 20), &[CANARY; 4096]);
            guest.rings[0].add_raw(&guest.memory, &[raw]);
            guest.assert_flows();
            let untouched = guest.memory.read(BASE + (8 << 20), 4096);
            assert!(untouched.iter().all(|byte| *byte == CANARY));
        });
    }
}

#[test]
fn no_byte_is_written_beyond_a_buffer() {
    for mergeable in [0, f::MRG_RXBUF] {
        each(mergeable, |guest| {
            for len in [13, 299, 300, 311, 312, 313] {
                assert!(guest.provide(&[len], false));
                let at = guest.last_buffer(len);
                let mut packets = vec![Packet::from_bytes(&[1; 300])];
                let count = guest.deliver(&mut packets);
                guest.settle(&mut Vec::new());
                let beyond = guest.memory.read(at + u64::from(len), 64);
                assert!(
                    beyond.iter().all(|byte| *byte == CANARY),
                    "{len}: {beyond:x?}"
                );
                if mergeable == 0 {
                    assert_eq!(count, 1, "sent, or dropped: never kept");
                    let small = guest.backend.queue(0).stats().drops.small_buffer;
                    let fits = len >= 312;
                    assert_eq!(guest.received().is_some(), fits, "{len}");
                    assert_eq!(small > 0, !fits || len > 299);
                    if !fits {
                        // It is still there for a smaller packet.
                        let mut small = vec![Packet::from_bytes(&[2])];
                        assert_eq!(guest.deliver(&mut small), 1);
                        guest.settle(&mut Vec::new());
                        assert_eq!(guest.received().expect("it").len(), 13);
                    }
                }
                while guest.received().is_some() {}
            }
        });
    }
}

#[test]
fn an_available_index_that_jumps_stops_only_its_ring() {
    for asynchronous in [false, true] {
        let mut guest = Guest::new(Setup::new(Kind::Split, 64), engines(asynchronous));
        let error = eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd");
        let copy = error.try_clone().expect("a copy");
        let answer = guest.try_send(Request::SetVringErr, &1u64.to_ne_bytes(), vec![copy]);
        assert!(answer.is_ok());
        guest.rings[1].jump(&guest.memory, 0x7000);
        let mut out = Vec::new();
        for _ in 0..3 {
            guest.poll_data(&mut out, 32);
        }
        assert!(out.is_empty());
        let broken = guest.backend.queue(1).broken();
        assert!(matches!(broken, Some(RingFault::Overrun { .. })));
        assert!(
            rustix::io::read(&error, &mut [0; 8]).is_ok(),
            "signalled once"
        );
        assert!(
            rustix::io::read(&error, &mut [0; 8]).is_err(),
            "and not again"
        );
        guest.provide(&[2048], false);
        assert_eq!(guest.deliver(&mut vec![Packet::from_bytes(&[1; 100])]), 1);
    }
}

#[test]
fn an_available_index_that_goes_back_stops_its_ring() {
    for asynchronous in [false, true] {
        let go = Arc::new(AtomicBool::new(false));
        let held: Vec<Box<dyn CopyEngine>> = match asynchronous {
            true => vec![Held::new(&go)],
            false => Vec::new(),
        };
        let mut guest = Guest::new(Setup::new(Kind::Split, 64), held);
        for _ in 0..40 {
            assert!(guest.transmit(&[1; 500], 4096, false));
        }
        let mut out = Vec::new();
        guest.poll_data(&mut out, 64);
        guest.rings[1].jump(&guest.memory, 65536 - 10);
        for _ in 0..3 {
            guest.poll_data(&mut out, 64);
        }
        let broken = guest.backend.queue(1).broken();
        assert!(
            matches!(broken, Some(RingFault::Overrun { .. })),
            "{broken:?}"
        );
        go.store(true, Ordering::SeqCst);
        guest.settle(&mut out);
        assert_eq!(out.len(), 40, "what was taken before is delivered, once");

        // To the guest, where one call asks the ring more than once.
        for by in [0x7000, 65536 - 10] {
            let mut guest = Guest::new(Setup::new(Kind::Split, 64), engines(asynchronous));
            while guest.provide(&[2048], false) {}
            let packets = || vec![Packet::from_bytes(&[1; 500]), Packet::from_bytes(&[1; 9])];
            assert_eq!(guest.deliver(&mut packets()), 2);
            guest.rings[0].jump(&guest.memory, by);
            for _ in 0..50 {
                guest.deliver(&mut packets());
            }
            guest.settle(&mut Vec::new());
            let broken = guest.backend.queue(0).broken();
            assert!(
                matches!(broken, Some(RingFault::Overrun { .. })),
                "{broken:?}"
            );
        }
    }
}

#[test]
fn descriptors_made_available_twice_stop_a_packed_ring() {
    let go = Arc::new(AtomicBool::new(false));
    let mut guest = Guest::new(Setup::new(Kind::Packed, 64), vec![Held::new(&go)]);
    for _ in 0..64 {
        assert!(guest.transmit(&[1; 500], 4096, false));
    }
    let mut out = Vec::new();
    guest.poll_data(&mut out, 64);
    assert_eq!(guest.backend.queue(1).in_flight(), 64);
    // All descriptors are in flight; the driver makes them available again.
    let at = guest.buffer(512);
    for id in 0..64 {
        guest.rings[1].offer_packed(&guest.memory, &[(at, 500, 0)], id);
    }
    guest.poll_data(&mut out, 64);
    let broken = guest.backend.queue(1).broken();
    assert!(
        matches!(broken, Some(RingFault::Overrun { .. })),
        "{broken:?}"
    );
    go.store(true, Ordering::SeqCst);
    guest.settle(&mut out);
    assert_eq!(out.len(), 64, "what was taken before is delivered");
}

#[test]
fn a_descriptor_changed_after_its_fetch_has_no_effect() {
    for kind in KINDS {
        let go = Arc::new(AtomicBool::new(false));
        let mut guest = Guest::new(Setup::new(kind, 64), vec![Held::new(&go)]);
        assert!(guest.transmit(&[6; 500], 4096, false));
        let mut out = Vec::new();
        guest.poll_data(&mut out, 32);
        let first = guest.rings[1].descriptors;
        guest.write_entry(first, (0xdead_0000, u32::MAX, INDIRECT), 0xffff);
        go.store(true, Ordering::SeqCst);
        guest.settle(&mut out);
        assert_eq!(out[0].bytes(), [6; 500]);
    }
}

#[test]
fn a_truncated_memory_file_stops_only_its_device() {
    for kind in KINDS {
        for asynchronous in [false, true] {
            let mut other = Guest::new(Setup::new(kind, 64), engines(asynchronous));
            let mut guest = Guest::new(Setup::new(kind, 64), engines(asynchronous));
            guest.assert_flows();
            assert!(guest.transmit(&[1; 500], 4096, false));
            guest.provide(&[2048], false);
            ftruncate(&guest.memory.file, 8192).expect("shorter");
            let mut out = Vec::new();
            for _ in 0..3 {
                guest.poll_data(&mut out, 32);
                guest.deliver(&mut vec![Packet::from_bytes(&[1; 100])]);
            }
            guest.settle(&mut out);
            assert!(out.is_empty(), "zeros are no packet");
            assert!(guest.backend.memory().is_broken());
            assert!(dray_vhost::memory::faults() > 0);
            other.assert_flows();
        }
    }
}

#[test]
fn packets_with_inconsistent_headers_are_dropped() {
    each(f::CSUM | f::HOST_TSO4, |guest| {
        let mut bad = vec![0u8; 12 + 100];
        bad[0] = 1;
        bad[6..8].copy_from_slice(&90u16.to_le_bytes());
        bad[8..10].copy_from_slice(&90u16.to_le_bytes());
        let at = guest.buffer(112);
        guest.memory.write(at, &bad);
        guest.rings[1].add_raw(&guest.memory, &[(at, 112, 0)]);
        let mut out = Vec::new();
        guest.poll_data(&mut out, 32);
        guest.settle(&mut out);
        assert!(out.is_empty());
        assert_eq!(guest.backend.queue(1).stats().drops.header, 1);
        guest.rings[1].reclaim(&guest.memory);
        guest.assert_flows();
    });
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Any descriptors, any indices: no panic, nothing outside the guest's memory.
        #[test]
        fn random_rings_do_not_panic_or_leave_guest_memory(
            packed in any::<bool>(),
            asynchronous in any::<bool>(),
            seed in any::<u64>(),
            mergeable in any::<bool>(),
        ) {
            use rand_chacha::rand_core::{RngCore, SeedableRng};
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let kind = if packed { Kind::Packed } else { Kind::Split };
            let features = if mergeable { f::MRG_RXBUF } else { 0 };
            let setup = Setup::new(kind, 16).with(features);
            let mut guest = Guest::new(setup, engines(asynchronous));
            let mut out = Vec::new();
            for _ in 0..50 {
                for queue in 0..2 {
                    let at = guest.rings[queue].descriptors;
                    for entry in 0..16 {
                        let addr = match rng.next_u32() % 4 {
                            0 => u64::from(rng.next_u32()),
                            1 => BASE + SIZE - u64::from(rng.next_u32() % 5000),
                            _ => BASE + (4 << 20) + u64::from(rng.next_u32() % (8 << 20)),
                        };
                        let len = match rng.next_u32() % 4 {
                            0 => rng.next_u32(),
                            1 => 16 * (rng.next_u32() % 20),
                            _ => rng.next_u32() % 2000,
                        };
                        let flags = rng.next_u32() as u16;
                        let tail = (rng.next_u32() % 20) as u16;
                        let (third, fourth) = match kind {
                            Kind::Split => (flags & 7, tail),
                            Kind::Packed => (tail, flags),
                        };
                        let place = at + 16 * entry;
                        let d = (addr, len, third, fourth);
                        guest.rings[queue].write_split(&guest.memory, place, d);
                    }
                    if kind == Kind::Split {
                        let heads = rng.next_u32() % 4;
                        for _ in 0..heads {
                            let head = (rng.next_u32() % 18) as u16;
                            guest.rings[queue].offer_split(&guest.memory, head);
                        }
                    }
                }
                guest.poll_data(&mut out, 32);
                let mut packets = vec![Packet::from_bytes(&[1; 700]), Packet::from_bytes(&[1; 9])];
                guest.deliver(&mut packets);
            }
            guest.settle(&mut out);
        }
    }
}
