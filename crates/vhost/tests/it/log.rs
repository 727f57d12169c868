//! Live migration: what the device writes is in the log, before the guest is notified of it.
//!
//! The destination is a copy of the guest's memory that follows the guest's own writes byte by byte, and
//! the device's by the pages of the log alone. At the end both are the same, or a write was not logged.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dray_vhost::copy::CopyEngine;
use dray_vhost::net::Packet;
use dray_vhost::protocol::{Request, features as f};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::driver::Kind;
use crate::engines::{Held, Shuffled};
use crate::guest::{BASE, Guest, SIZE, Setup, number_of};

const KINDS: [Kind; 2] = [Kind::Split, Kind::Packed];
const PAGE: u64 = 4096;
/// Bytes of a log for all of the guest's memory, and where it begins in its file.
const LOG_BYTES: u64 = (BASE + SIZE) / PAGE / 8;
const OFFSET: u64 = 4096;

fn file(len: u64) -> OwnedFd {
    let file = memfd_create(c"log", MemfdFlags::CLOEXEC).expect("a memfd");
    ftruncate(&file, len).expect("its length");
    file
}

fn copy(file: &OwnedFd) -> OwnedFd {
    file.try_clone().expect("a copy")
}

/// SET_LOG_BASE; what it answers.
fn set_log(guest: &mut Guest, file: &OwnedFd, bytes: u64, offset: u64) -> u64 {
    let payload = [bytes.to_ne_bytes(), offset.to_ne_bytes()].concat();
    number_of(guest.try_send(Request::SetLogBase, &payload, vec![copy(file)]))
}

/// Turns logging on or off as QEMU does, while rings run.
fn set_logging(guest: &mut Guest, on: bool) {
    let more = if on { f::LOG_ALL } else { 0 };
    let features = guest.setup.features | more;
    assert_eq!(guest.send(Request::SetFeatures, &features.to_ne_bytes()), 0);
    for queue in 0..2 {
        let ring = &guest.rings[queue as usize];
        let mut address = ring.address(queue);
        address[4..8].copy_from_slice(&u32::from(on).to_ne_bytes());
        address[32..40].copy_from_slice(&ring.used_ring.to_ne_bytes());
        assert_eq!(guest.send(Request::SetVringAddr, &address), 0);
    }
}

fn agree_on_log(guest: &mut Guest) {
    let protocol = f::PROTOCOL_REPLY_ACK | f::PROTOCOL_LOG_SHMFD;
    let answer = guest.send(Request::SetProtocolFeatures, &protocol.to_ne_bytes());
    assert_eq!(answer, 0);
}

/// A migration under way.
struct Migration {
    log: OwnedFd,
    /// Pages that the log has named.
    pages: u64,
}

impl Migration {
    /// Begins: all of the memory is copied once.
    fn begin(guest: &mut Guest) -> Migration {
        agree_on_log(guest);
        let log = file(OFFSET + LOG_BYTES);
        assert_eq!(set_log(guest, &log, LOG_BYTES, OFFSET), 0);
        set_logging(guest, true);
        let memory = guest.memory.read(BASE, SIZE as usize);
        guest.memory.mirror.replace(memory);
        Migration { log, pages: 0 }
    }

    /// Takes the log, and copies its pages.
    fn round(&mut self, guest: &Guest) {
        let mut bytes = vec![0; LOG_BYTES as usize];
        rustix::io::pread(&self.log, &mut bytes, OFFSET).expect("the log");
        let zeros = vec![0; bytes.len()];
        rustix::io::pwrite(&self.log, &zeros, OFFSET).expect("the log");
        let mut mirror = guest.memory.mirror.borrow_mut();
        for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            for bit in (0..8).filter(|bit| byte & 1 << bit != 0) {
                let page = (8 * at as u64 + bit) * PAGE;
                assert!(
                    (BASE..BASE + SIZE).contains(&page),
                    "no memory at {page:#x}"
                );
                let start = (page - BASE) as usize;
                mirror[start..start + PAGE as usize]
                    .copy_from_slice(&guest.memory.read(page, PAGE as usize));
                self.pages += 1;
            }
        }
    }

    /// Nothing is missing.
    fn check(&mut self, guest: &Guest) {
        self.round(guest);
        let memory = guest.memory.read(BASE, SIZE as usize);
        let mirror = guest.memory.mirror.borrow();
        let differs = (0..memory.len()).find(|at| memory[*at] != mirror[*at]);
        let at = differs.map(|at| BASE + at as u64);
        assert_eq!(at, None, "a write was not logged");
        let missed = guest
            .backend
            .queues()
            .iter()
            .map(|q| q.stats().pages_not_logged);
        assert_eq!(missed.sum::<u64>(), 0);
    }
}

fn movers(which: usize) -> Vec<Box<dyn CopyEngine>> {
    match which {
        0 => Vec::new(),
        1 => vec![Shuffled::new(1, 200, None)],
        _ => vec![Shuffled::new(2, 30, Some(5)), Shuffled::new(3, 60, None)],
    }
}

/// Packets both ways; the guest's side of all that comes back is looked at later.
fn traffic(guest: &mut Guest, rng: &mut ChaCha8Rng, mergeable: bool) {
    let parts: &[u32] = if mergeable { &[700] } else { &[5, 1000, 3200] };
    while guest.provide(parts, false) {}
    let mut inside = Vec::new();
    for _ in 0..8 {
        let bytes = vec![rng.next_u32() as u8; 1 + rng.next_u32() as usize % 4000];
        let _ = guest.transmit(&bytes, 1500, false);
        guest.poll_data(&mut inside, 8);
        guest.deliver(&mut inside);
    }
}

#[test]
fn every_write_is_logged_before_its_used_index() {
    for kind in KINDS {
        for which in 0..3 {
            for features in [0, f::MRG_RXBUF, f::IN_ORDER | f::EVENT_IDX] {
                println!("{kind:?}, movers {which}, features {features:#x}");
                let setup = Setup::new(kind, 64).with(features);
                let mut guest = Guest::new(setup, movers(which));
                // What is filled before would be the same after.
                guest.fills = false;
                guest.backend.to_guest(0).set_copy_threshold(600);
                let mut rng = ChaCha8Rng::seed_from_u64(4);
                let mergeable = features & f::MRG_RXBUF != 0;
                traffic(&mut guest, &mut rng, mergeable);
                let mut migration = Migration::begin(&mut guest);
                for _ in 0..60 {
                    traffic(&mut guest, &mut rng, mergeable);
                    migration.round(&guest);
                    while guest.received().is_some() {}
                    guest.rings[1].reclaim(&guest.memory);
                    guest.backend.from_guest(0).set_notification(true);
                    guest.backend.from_guest(0).set_notification(false);
                }
                guest.settle(&mut Vec::new());
                migration.check(&guest);
                assert!(migration.pages > 100, "{} pages", migration.pages);
                let packets = guest.backend.queue(0).stats().packets;
                assert!(packets > 100, "{packets} packets");
                // Logging ends; the log is left alone.
                set_logging(&mut guest, false);
                migration.round(&guest);
                let pages = migration.pages;
                traffic(&mut guest, &mut rng, mergeable);
                guest.settle(&mut Vec::new());
                migration.round(&guest);
                assert_eq!(migration.pages, pages);
            }
        }
    }
}

/// Copies that were in flight before logging began.
#[test]
fn copies_started_before_logging_are_logged_when_they_end() {
    for kind in KINDS {
        let go = Arc::new(AtomicBool::new(false));
        let mut guest = Guest::new(Setup::new(kind, 64), vec![Held::new(&go)]);
        for parts in [&[2048][..], &[500, 2000], &[2048]] {
            assert!(guest.provide(parts, false));
        }
        let packets = || (1..4).map(|n| Packet::from_bytes(&[n; 1500]));
        assert_eq!(guest.deliver(&mut packets().collect()), 3);
        let mut migration = Migration::begin(&mut guest);
        migration.round(&guest);
        go.store(true, Ordering::SeqCst);
        guest.settle(&mut Vec::new());
        migration.check(&guest);
        assert_eq!((1..4).filter_map(|_| guest.received()).count(), 3);
    }
}

/// A drain misses its deadline, and its copies are abandoned; what they still write
/// is logged when they have ended.
#[test]
fn abandoned_copies_are_logged_when_they_end() {
    for kind in KINDS {
        let go = Arc::new(AtomicBool::new(false));
        let mut guest = Guest::new(Setup::new(kind, 64), vec![Held::new(&go)]);
        guest.backend.set_drain_deadline(Duration::ZERO);
        for parts in [&[2048][..], &[500, 2000]] {
            assert!(guest.provide(parts, false));
        }
        let mut migration = Migration::begin(&mut guest);
        let mut packets = (1..3).map(|n| Packet::from_bytes(&[n; 1500])).collect();
        assert_eq!(guest.deliver(&mut packets), 2);
        assert_ne!(guest.state(Request::SetVringEnable, 0, 0), 0, "refused");
        assert_eq!(guest.backend.queue(0).in_flight(), 0);
        assert_eq!(guest.channels[0].in_flight(), 3);
        migration.round(&guest);
        let before = guest.memory.read(BASE, SIZE as usize);
        go.store(true, Ordering::SeqCst);
        let Guest {
            backend, channels, ..
        } = &mut guest;
        let queues = backend.queues().iter();
        queues.for_each(|mut queue| queue.settle(channels));
        guest.channels[0].reap();
        assert_eq!(guest.channels[0].in_flight(), 0);
        assert_ne!(guest.memory.read(BASE, SIZE as usize), before, "written");
        migration.check(&guest);
    }
}

#[test]
fn the_log_eventfd_is_signalled_after_writes() {
    for kind in KINDS {
        let mut guest = Guest::new(Setup::new(kind, 64), Vec::new());
        let event = eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd");
        let mut word = [0; 8];
        let _migration = Migration::begin(&mut guest);
        let answer = guest.try_send(Request::SetLogFd, &[], vec![copy(&event)]);
        assert_eq!(number_of(answer), 0);
        assert!(rustix::io::read(&event, &mut word).is_err());
        guest.assert_flows();
        assert!(rustix::io::read(&event, &mut word).is_ok());
        set_logging(&mut guest, false);
        guest.assert_flows();
        assert!(rustix::io::read(&event, &mut word).is_err());
    }
}

#[test]
fn logs_that_cannot_be_used_are_refused_with_an_answer() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    let log = file(4096);
    assert_ne!(set_log(&mut guest, &log, 4096, 0), 0, "not agreed on");
    agree_on_log(&mut guest);
    for (bytes, offset) in [(0, 0), (4097, 0), (4096, 1), (u64::MAX, 0), (1, u64::MAX)] {
        assert_ne!(set_log(&mut guest, &log, bytes, offset), 0);
    }
    let (pipe, _other) = std::io::pipe().expect("a pipe");
    assert_ne!(set_log(&mut guest, &pipe.into(), 1, 0), 0);
    let none = guest.try_send(Request::SetLogBase, &[1; 16], Vec::new());
    assert_ne!(number_of(none), 0, "no file");
    // LOG_ALL without a log is no reason to stop.
    set_logging(&mut guest, true);
    guest.assert_flows();
}

/// Too small, truncated, replaced: under traffic, with copies in flight.
#[test]
fn a_log_can_be_replaced_or_truncated_under_traffic() {
    for kind in KINDS {
        for which in 0..3 {
            let mut guest = Guest::new(Setup::new(kind, 64), movers(which));
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let flows = |guest: &mut Guest, rng: &mut ChaCha8Rng| {
                traffic(guest, rng, false);
                guest.settle(&mut Vec::new());
                while guest.received().is_some() {}
                guest.rings[1].reclaim(&guest.memory);
            };
            let first = Migration::begin(&mut guest);
            traffic(&mut guest, &mut rng, false);
            let small = file(64);
            assert_eq!(set_log(&mut guest, &small, 8, 8), 0);
            flows(&mut guest, &mut rng);
            let missed = guest.backend.queue(0).stats().pages_not_logged;
            assert!(missed > 0);
            let mut bytes = [0; 64];
            rustix::io::pread(&small, &mut bytes, 0).expect("the log");
            assert_eq!(bytes, [0; 64], "its pages are others");
            let mut second = Migration::begin(&mut guest);
            flows(&mut guest, &mut rng);
            second.round(&guest);
            assert!(second.pages > 0);
            ftruncate(&second.log, 0).expect("shorter");
            flows(&mut guest, &mut rng);
            flows(&mut guest, &mut rng);
            assert!(!guest.backend.memory().is_broken());
            assert!(guest.backend.queues().iter().all(|q| q.broken().is_none()));
            drop(first);
        }
    }
}
