//! Front ends that make as much work as they can, beside a neighbour: how long it waits for them.

use std::path::Path;

use dray_vhost::backend::{Endpoint, Role};
use dray_vhost::forward::{Mode, Switch};
use dray_vhost::port::{Port, VhostPort};
use dray_vhost::protocol::Options;
use dray_vhost::protocol::features as f;
use rustix::fs::{FallocateFlags, fallocate};

use crate::driver::Kind;
use crate::guest::{BASE, Guest, SIZE, Setup};
use crate::limits::{long_segment, table_of};

const WRITE: u16 = 2;
/// Where buffers lie that only attacks use.
const AREA: u64 = BASE + (8 << 20);
/// Runs of an attack. The CPU time of a turn has the interrupts and the preemptions by a hypervisor that
/// fell into it: the least of several runs is the attack's own.
const RUNS: usize = 7;

/// Where pages lie that nobody has touched.
const UNTOUCHED: u64 = BASE + (12 << 20);
/// Buffers by the entries of their tables: address, length.
pub type Entries = Vec<(u64, u32)>;

/// Name, queue, entries of each of its buffers.
pub fn attacks() -> [(&'static str, usize, Entries); 11] {
    let from = |start: u64, count: u64, step: u64, len: u32| -> Entries {
        (0..count).map(|i| (start + step * i, len)).collect()
    };
    let each = |count, step, len| from(AREA, count, step, len);
    let untouched = || from(UNTOUCHED, 256, 4096, 256);
    [
        ("from guest, empty entries", 1, vec![(0xdead_0000, 0); 1000]),
        ("from guest, 1000 entries of a byte", 1, each(1000, 1, 1)),
        ("from guest, 256 entries of a byte", 1, each(256, 1, 1)),
        ("from guest, 256 pages", 1, each(256, 4096, 256)),
        ("from guest, 131070 bytes", 1, each(2, 65_536, 65_535)),
        ("from guest, 262140 bytes", 1, each(4, 65_536, 65_535)),
        ("to guest, empty entries", 0, vec![(0xdead_0000, 0); 1000]),
        ("to guest, 256 entries of a byte", 0, each(256, 1, 1)),
        ("to guest, 256 pages", 0, each(256, 4096, 256)),
        ("from guest, 256 untouched pages", 1, untouched()),
        ("to guest, 256 untouched pages", 0, untouched()),
    ]
}

/// Two guests, each behind a port of one switch.
fn switch_of(dir: &Path, guests: &mut [Guest; 2]) -> Switch {
    let ports = guests.iter_mut().enumerate().map(|(at, guest)| {
        let path = dir.join(at.to_string());
        let endpoint = Endpoint::new(&path, Role::Server, Options::default());
        let mut endpoint = endpoint.expect("a socket");
        std::mem::swap(&mut endpoint.backend, &mut guest.backend);
        Port::Vhost(Box::new(VhostPort::over(endpoint)))
    });
    Switch::new(ports.collect(), Vec::new(), Mode::Io)
}

/// The longest turn of an attacker's port, in nanoseconds.
fn attack(dir: &Path, kind: Kind, queue: usize, entries: &Entries) -> u64 {
    let setup = |size| Setup::new(kind, size).with(f::INDIRECT_DESC | f::MRG_RXBUF);
    let mut guests = [1024, 256].map(|size| Guest::new(setup(size), Vec::new()));
    let mut switch = switch_of(dir, &mut guests);
    let [attacker, neighbour] = &mut guests;
    // Headers without offloads: the packets are taken.
    attacker.memory.write(AREA, &vec![0; 2 << 20]);
    let (hole, rest) = (UNTOUCHED - BASE, SIZE - (UNTOUCHED - BASE));
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&attacker.memory.file, flags, hole, rest).expect("memory can be given back");
    let flags = if queue == 0 { WRITE } else { 0 };
    for _ in 0..100 {
        let entry = table_of(attacker, entries, flags);
        attacker.rings[queue].add_raw(&attacker.memory, &[entry]);
    }
    while queue == 1 && attacker.provide(&[2048], false) {}
    while neighbour.provide(&[2048], false) {}
    for _ in 0..32 {
        assert!(neighbour.transmit(&[9; 1000], 4096, false));
    }
    for _ in 0..200 {
        switch.step(&mut Vec::new());
    }
    assert_eq!(
        neighbour.rings[1].reclaim(&neighbour.memory),
        32,
        "all packets of the neighbour are taken"
    );
    switch.turns(0).longest_turn_ns
}

/// Printed for people: `cargo test -p dray-vhost attacks -- --nocapture`.
#[test]
fn a_neighbour_is_served_beside_every_attack() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, queue, entries) in attacks() {
        for kind in [Kind::Split, Kind::Packed] {
            let run = |_| attack(dir.path(), kind, queue, &entries);
            let longest = (0..RUNS).map(run).min().expect("a run");
            assert!(longest > 0, "{name}: not measured");
            println!("{name}, {kind:?}: {:.1} us", longest as f64 / 1e3);
        }
    }
}

/// The longest turn of either port where one sends segments of `bytes` that the other wants in packets of `part`.
fn cut_attack(dir: &Path, kind: Kind, (bytes, part): (usize, u16)) -> u64 {
    let sends = Setup::new(kind, 1024).with(f::INDIRECT_DESC | f::CSUM | f::HOST_TSO4);
    let takes = Setup::new(kind, 1024).with(f::MRG_RXBUF);
    let mut guests = [sends, takes].map(|setup| Guest::new(setup, Vec::new()));
    let mut switch = switch_of(dir, &mut guests);
    let [attacker, neighbour] = &mut guests;
    neighbour.fills = false;
    let long = long_segment(bytes, part);
    let mut packet = long.header.to_bytes().to_vec();
    packet.extend(long.bytes());
    attacker.memory.write(AREA, &packet);
    let (half, rest) = (packet.len() as u32 / 2, packet.len() as u32 % 2);
    let entries = [(AREA, half), (AREA + u64::from(half), half + rest)];
    for _ in 0..3 {
        let entry = table_of(attacker, &entries, 0);
        attacker.rings[1].add_raw(&attacker.memory, &[entry]);
    }
    let expected = 3 * (packet.len() - 12 - 54).div_ceil(part.into());
    let mut received = 0;
    for _ in 0..expected {
        while neighbour.provide(&[2048], false) {}
        switch.step(&mut Vec::new());
        received += std::iter::from_fn(|| neighbour.received()).count();
    }
    assert_eq!(received, expected, "none is lost");
    let turns = [0, 1]
        .map(|port| switch.turns(port).longest_turn_ns)
        .into_iter();
    turns.max().expect("a port")
}

/// Printed for people, as above.
#[test]
fn a_neighbour_gets_the_parts_of_the_longest_segments() {
    let dir = tempfile::tempdir().expect("a directory");
    for segment in [
        (131_000, 1448),
        (131_000, 536),
        (131_000, 257),
        (65_000, 128),
    ] {
        for kind in [Kind::Split, Kind::Packed] {
            let run = |_| cut_attack(dir.path(), kind, segment);
            let longest = (0..RUNS).map(run).min().expect("a run");
            assert!(longest > 0, "{segment:?}: not measured");
            let (bytes, part) = segment;
            println!(
                "{bytes} bytes cut at {part}, {kind:?}: {:.1} us",
                longest as f64 / 1e3
            );
        }
    }
}
