//! Ports that come and go while threads forward packets.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use dray_vhost::copy::Channels;
use dray_vhost::forward::{Mode, Switch};
use dray_vhost::port::Port;
use dray_vhost::protocol::features as f;

use crate::driver::Kind;
use crate::guest::{Guest, Setup};
use crate::threads::{TIMEOUT, port_of, start};

/// Many more than cores: it takes long until the last one has lost a port.
const THREADS: usize = 8;
/// Ports that are added and removed again.
const CYCLES: u16 = 100;
/// The first byte of all addresses, and those of the guests.
const UNICAST: u8 = 2;
const LEFT: u8 = 10;
const RIGHT: u8 = 11;
const GUEST: u8 = 12;
const ALL: u8 = 0xff;

/// A packet with a number.
fn packet(to: u8, from: u8, number: u16) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..6].copy_from_slice(&[UNICAST, 0, 0, 0, 0, to]);
    if to == ALL {
        bytes[..6].fill(ALL);
    }
    bytes[6..12].copy_from_slice(&[UNICAST, 0, 0, 0, 0, from]);
    bytes[12..14].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Sends while there is room.
fn fill(guest: &mut Guest, packets: &[Vec<u8>]) {
    guest.rings[1].reclaim(&guest.memory);
    let mut next = packets.iter().cycle();
    while next.next().is_some_and(|p| guest.transmit(p, 4096, false)) {}
}

/// Whether such a packet is among what a guest has received; it has room for others then.
fn has_received(guest: &mut Guest, packet: &[u8]) -> bool {
    let mut found = false;
    while let Some(received) = guest.received() {
        found |= received[12..] == *packet;
    }
    while guest.provide(&[2048], false) {}
    found
}

fn guest() -> Guest {
    let mut guest = Guest::new(Setup::new(Kind::Split, 256).with(f::MRG_RXBUF), Vec::new());
    guest.fills = false;
    while guest.provide(&[2048], false) {}
    guest
}

/// Adds a port with a connection, whose end stops the guest's queues.
fn add(switch: &mut Switch, path: &Path, guest: &mut Guest) -> (usize, UnixStream) {
    let port = port_of(path, guest);
    let stream = UnixStream::connect(path).expect("it listens");
    while !port.endpoint().is_connected() {
        port.endpoint().poll(Instant::now(), &mut Vec::new());
    }
    let at = switch.add_port(&path.to_string_lossy(), Port::Vhost(Box::new(port)));
    (at, stream)
}

/// One guest sends to another and to one whose port is removed and added again: it goes on sending, to both.
#[test]
fn a_port_that_goes_under_traffic_stops_no_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let channels = (0..THREADS).map(|_| Channels::new()).collect();
    let mut switch = Switch::with_threads(channels, Mode::Switch).expect("threads");
    switch.set_balances(false);
    let (mut left, mut right) = (guest(), guest());
    // The second thread receives from the left one: it loses the third port before others do.
    let (_, _right_stream) = add(&mut switch, &dir.path().join("right"), &mut right);
    let (_, _left_stream) = add(&mut switch, &dir.path().join("left"), &mut left);
    assert_eq!(switch.thread_of(1, 0), Some(1));
    start(&mut switch);
    let (mut events, until) = (Vec::new(), Instant::now() + TIMEOUT);
    for cycle in 0..CYCLES {
        let mut third = guest();
        let (at, _stream) = add(&mut switch, &dir.path().join("third"), &mut third);
        assert_eq!(at, 2, "the gap is taken");
        let (to_right, to_third) = (packet(RIGHT, LEFT, cycle), packet(GUEST, LEFT, cycle));
        let traffic = [to_right.clone(), to_third.clone()];
        let (mut right_has, mut third_has, mut gone) = (false, false, false);
        while !(right_has && gone) {
            assert!(
                Instant::now() < until,
                "cycle {cycle}: right {right_has}, third {third_has}, gone {gone}"
            );
            fill(&mut left, &traffic);
            fill(&mut right, &[packet(LEFT, RIGHT, cycle)]);
            has_received(&mut left, &[]);
            if !third_has {
                fill(&mut third, &[packet(ALL, GUEST, cycle)]);
                third_has = has_received(&mut third, &to_third);
                if third_has {
                    assert!(switch.remove_port(at, &mut events));
                }
            }
            let received = has_received(&mut right, &to_right);
            // What it was sent before the port went proves nothing.
            right_has |= gone && received;
            switch.step(&mut events);
            switch.poll_control(&mut events);
            gone |= !switch.take_removed().is_empty();
        }
    }
    let report = switch.report(1.0);
    let present = report.ports.iter().flat_map(|port| &port.queues);
    let present: u64 = present.map(|queue| queue.counters.copies_core).sum();
    let all = report.copies_by_executor["core"];
    assert!(
        all >= present + u64::from(CYCLES),
        "those of ports that are gone count"
    );
    assert!(switch.close(Duration::from_secs(10), &mut events));
}
