//! A switch on several threads: pairs that move under traffic, and what a guest does to others meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use dray_vhost::backend::{Endpoint, Role};
use dray_vhost::copy::{Channel, Channels, CopyEngine, open_virtual};
use dray_vhost::forward::{Mode, Switch};
use dray_vhost::port::{Port, VhostPort};
use dray_vhost::protocol::{Options, features as f};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rustix::fs::ftruncate;

use crate::attacks::attacks;
use crate::driver::Kind;
use crate::engines::Shuffled;
use crate::guest::{BASE, Guest, SIZE, Setup};
use crate::limits::table_of;

const KINDS: [Kind; 2] = [Kind::Split, Kind::Packed];
/// Nothing takes so long unless it hangs.
pub const TIMEOUT: Duration = Duration::from_secs(120);
pub const THREADS: usize = 3;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// Channels of each thread, with copies that end in random order or in those of a device.
pub fn channels(seed: u64, virtual_device: bool) -> Vec<Channels> {
    let engines = open_virtual(THREADS as u16).expect("a device").into_iter();
    let of = |(thread, device): (usize, Box<dyn CopyEngine>)| {
        let shuffled: Box<dyn CopyEngine> = Shuffled::new(seed + thread as u64, 96, Some(50));
        let engine = if virtual_device { device } else { shuffled };
        vec![Channel::new(format!("wq0.{thread}"), engine).of_thread(thread)]
    };
    engines.enumerate().map(of).collect()
}

/// A port that has this guest.
pub fn port_of(path: &Path, guest: &mut Guest) -> VhostPort {
    let endpoint = Endpoint::new(path, Role::Server, Options::default());
    let mut endpoint = endpoint.expect("a socket");
    std::mem::swap(&mut endpoint.backend, &mut guest.backend);
    VhostPort::over(endpoint)
}

/// A switch whose ports have these guests, in pairs.
fn switch_of(dir: &Path, guests: &mut [Guest], mut lists: Vec<Channels>) -> Switch {
    let ports: Vec<VhostPort> = guests
        .iter_mut()
        .enumerate()
        .map(|(at, guest)| {
            let port = port_of(&dir.join(at.to_string()), guest);
            lists
                .iter_mut()
                .filter(|channels| !channels.is_empty())
                .for_each(|channels| port.attach(channels, (&[0], &[0])));
            port
        })
        .collect();
    let mut switch = Switch::with_threads(lists, Mode::Io).expect("threads");
    for (at, port) in ports.into_iter().enumerate() {
        switch.add_port(&at.to_string(), Port::Vhost(Box::new(port)));
    }
    // Decided by the test.
    switch.set_balances(false);
    switch
}

/// Starts the threads, one after the other on the cores that there are: where these are few they interrupt each other anywhere.
pub fn start(switch: &mut Switch) {
    let allowed = rustix::thread::sched_getaffinity(None).expect("an affinity");
    let cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let cores: Vec<usize> = cores.cycle().take(switch.threads()).collect();
    switch.start(&cores, false).expect("threads");
}

/// Numbered packets of a guest, and those that it has received.
struct Flow {
    sent: u32,
    received: u32,
}

impl Flow {
    /// Sends while there is room, and looks at what came: the numbers of the peer's, one after the other.
    fn go_on(&mut self, guest: &mut Guest, most: u32, rng: &mut ChaCha8Rng) {
        guest.rings[1].reclaim(&guest.memory);
        while self.sent < most {
            let mut packet = vec![self.sent as u8; 64 + (rng.next_u32() % 900) as usize];
            packet[..4].copy_from_slice(&self.sent.to_ne_bytes());
            if !guest.transmit(&packet, 4096, false) {
                break;
            }
            self.sent += 1;
        }
        while let Some(packet) = guest.received() {
            let packet = &packet[12..];
            let number = u32::from_ne_bytes([packet[0], packet[1], packet[2], packet[3]]);
            assert_eq!(number, self.received, "lost, or out of order");
            assert!(packet[4..].iter().all(|byte| *byte == number as u8));
            self.received += 1;
        }
        // There is a buffer for each packet that the peer may send.
        while guest.provide(&[2048], false) {}
    }
}

/// Pairs of two wired guests move from thread to thread so often while packets flow; none is lost, none overtakes
/// another.
fn move_under_traffic(kind: Kind, virtual_device: bool, moves: u64) {
    let seed = 7;
    println!("{kind:?}, virtual device: {virtual_device}, seed {seed}");
    let dir = tempfile::tempdir().expect("a directory");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let setup = Setup::new(kind, 256).with(f::MRG_RXBUF);
    let mut guests = [(); 2].map(|()| Guest::new(setup, Vec::new()));
    for guest in &mut guests {
        guest.fills = false;
        while guest.provide(&[2048], false) {}
    }
    let mut switch = switch_of(dir.path(), &mut guests, channels(seed, virtual_device));
    start(&mut switch);
    let mut flows = [0; 2].map(|zero| Flow {
        sent: zero,
        received: zero,
    });
    let (mut events, mut in_flight) = (Vec::new(), 0);
    let until = Instant::now() + TIMEOUT;
    while switch.moved().0 < moves {
        assert!(Instant::now() < until, "{:?} moves", switch.moved());
        for at in 0..2 {
            // The peer's ring has room for all that is not received.
            let most = flows[at ^ 1].received + 200;
            flows[at].go_on(&mut guests[at], most, &mut rng);
        }
        switch.step(&mut events);
        let (port, to) = (
            rng.next_u32() as usize % 2,
            rng.next_u32() as usize % THREADS,
        );
        let mut now = 0;
        switch.each_port(|at, of| {
            if at == port {
                of.each_queue(|queue| now += queue.in_flight());
            }
        });
        if switch.move_pair(port, 0, to) {
            in_flight += now;
        }
    }
    let sent = flows.each_ref().map(|flow| flow.sent);
    while flows[0].received < sent[1] || flows[1].received < sent[0] {
        assert!(Instant::now() < until, "packets that never came: {sent:?}");
        switch.step(&mut events);
        for at in 0..2 {
            flows[at].go_on(&mut guests[at], 0, &mut rng);
        }
    }
    assert!(in_flight > 0, "copies were in flight at moves");
    println!("{} packets, {:?} moves", sent[0] + sent[1], switch.moved());
    let report = switch.report(1.0);
    assert_eq!(report.pairs_moved, switch.moved().0);
    let busy = report.threads.iter().filter(|t| t.packets_switched > 0);
    assert_eq!(busy.count(), THREADS, "each thread has switched packets");
    let all = report.ports.iter().flat_map(|port| &port.queues);
    let drops: u64 = all.map(|queue| queue.counters.drops.total()).sum();
    assert_eq!(drops, 0);
    assert!(switch.close(Duration::from_secs(10), &mut events));
}

#[test]
fn pairs_that_move_under_traffic_lose_and_reorder_nothing() {
    for kind in KINDS {
        move_under_traffic(kind, false, 1000);
        move_under_traffic(kind, true, 1000);
    }
}

/// What a hostile guest does to its rings.
type Attack = Box<dyn Fn(&mut Guest)>;

/// Everything of which another guest must feel nothing.
fn hostile() -> Vec<(String, Attack)> {
    let mut all: Vec<(String, Attack)> = Vec::new();
    for (name, queue, entries) in attacks() {
        let attack = move |guest: &mut Guest| {
            let flags = if queue == 0 { WRITE } else { 0 };
            for _ in 0..20 {
                let entry = table_of(guest, &entries, flags);
                guest.rings[queue].add_raw(&guest.memory, &[entry]);
            }
        };
        all.push((name.to_owned(), Box::new(attack)));
    }
    let raw: [(u64, u32, u16); 10] = [
        (0xdead_0000, 100, 0),
        (u64::MAX - 10, 100, 0),
        (BASE + SIZE - 50, 100, 0),
        (BASE, u32::MAX, 0),
        (BASE, 0, 0),
        (BASE, 2048, WRITE),
        (BASE, 17, INDIRECT),
        (BASE, u32::MAX - 15, INDIRECT | NEXT),
        (BASE + (8 << 20), 11, WRITE),
        (0xdead_0000, 16, INDIRECT | WRITE),
    ];
    for list in raw {
        let attack = move |guest: &mut Guest| {
            for queue in [0, 1, 1, 0, 1] {
                guest.rings[queue].add_raw(&guest.memory, &[list]);
            }
        };
        all.push((format!("{list:x?}"), Box::new(attack)));
    }
    for queue in [0, 1] {
        for by in [0x7000, 65536 - 10] {
            let jump = move |guest: &mut Guest| guest.rings[queue].jump(&guest.memory, by);
            all.push((format!("queue {queue} jumps {by:#x}"), Box::new(jump)));
        }
        let head = move |guest: &mut Guest| {
            if guest.setup.kind == Kind::Split {
                guest.rings[queue].post_head(&guest.memory, u16::MAX);
            }
        };
        all.push((format!("queue {queue}: a head beyond it"), Box::new(head)));
    }
    let cut = |guest: &mut Guest| ftruncate(&guest.memory.file, 8192).expect("shorter");
    all.push(("a truncated file".to_owned(), Box::new(cut)));
    all
}

/// Two guests are wired to each other, and both do all that is hostile; two others exchange packets meanwhile, on the
/// same two threads: none of theirs is lost.
#[test]
fn hostile_guests_on_two_threads_cost_others_nothing() {
    const PACKETS: u32 = 300;
    for (number, (name, attack)) in hostile().into_iter().enumerate() {
        for (kind, asynchronous) in [(Kind::Split, true), (Kind::Packed, false)] {
            println!("{name}, {kind:?}, asynchronous: {asynchronous}");
            let dir = tempfile::tempdir().expect("a directory");
            let mut rng = ChaCha8Rng::seed_from_u64(number as u64);
            let setup = Setup::new(kind, 256).with(f::INDIRECT_DESC | f::MRG_RXBUF);
            let mut guests = [(); 4].map(|()| Guest::new(setup, Vec::new()));
            let mut lists = channels(number as u64, false);
            lists.truncate(2);
            if !asynchronous {
                lists.iter_mut().for_each(Vec::clear);
            }
            let [_, _, left, right] = &mut guests;
            for guest in [left, right] {
                guest.fills = false;
                while guest.provide(&[2048], false) {}
            }
            let mut switch = switch_of(dir.path(), &mut guests, lists);
            start(&mut switch);
            let mut flows = [0; 2].map(|zero| Flow {
                sent: zero,
                received: zero,
            });
            let (mut events, until) = (Vec::new(), Instant::now() + TIMEOUT);
            guests[..2].iter_mut().for_each(&attack);
            while flows.iter().any(|flow| flow.received < PACKETS) {
                assert!(Instant::now() < until, "packets that never came");
                for at in 0..2 {
                    let most = PACKETS.min(flows[at ^ 1].received + 200);
                    flows[at].go_on(&mut guests[2 + at], most, &mut rng);
                }
                switch.step(&mut events);
                switch.move_pair(rng.next_u32() as usize % 4, 0, rng.next_u32() as usize % 2);
            }
            switch.close(Duration::from_secs(10), &mut events);
        }
    }
}
