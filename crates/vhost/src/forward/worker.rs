//! The work of one thread of a switch: the pairs that it receives from, and its channels.

mod dispatch;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use super::Mode;
use super::generate::Generator;
use super::learn::{News, Table};
use super::turns::Watch;
use crate::copy::Channels;
use crate::net::{Packet, Pool};
use crate::port::{Outlet, Port};
use crate::queue;

/// Packets moved at a time.
pub const BURST: usize = 32;
/// Bytes of a burst, about: what has been copied in is copied out again, and the first cache should
/// hold most of it until then. Measured with dpdk-testpmd as guest: 32 KiB are faster than 8 and 16 at
/// 512 to 1518 bytes; more is not faster.
const BURST_BYTES: usize = 32 << 10;
/// Packets of a burst at least.
const MIN_BURST: usize = 16;
/// Steps between two looks at what is rare, while packets flow.
pub(super) const CONTROL_EVERY: u32 = 128;

/// Time after which a port takes no further burst in its turn: the rest of its queues begin the next.
/// A burst makes at most about as much work again, and a turn no more than 50 us, but for pages of the guest that nobody
/// has touched: the kernel makes each when it is read or written (some 0.6 us), and a packet may lie on 256 of them.
const TURN: Duration = Duration::from_micros(20);

/// A pair that a thread receives from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) pair: usize,
    /// It goes to another thread: nothing new is taken.
    leaving: bool,
    /// Copies of its packets are in flight.
    in_flight: bool,
    /// Time that its packets took, until they were sent.
    pub(super) load: Duration,
}

/// What one thread has of a switch.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) channels: Channels,
    pub(super) mode: Mode,
    pub(super) generator: Generator,
    pub(super) watch: Watch,
    pub(super) packets_switched: u64,
    /// By port. A port that is removed leaves a gap, which the next one takes.
    ports: Vec<Option<Arc<Port>>>,
    /// By port: the pairs that this thread receives from.
    own: Vec<Vec<Pair>>,
    /// By port: which of these its next turn begins with.
    next: Vec<usize>,
    outlets: Vec<Outlet>,
    /// By port: what a mode has decided to send there.
    outgoing: Vec<Vec<Packet>>,
    /// By port: what there was no time to send yet, with its pair, in order.
    behind: Vec<VecDeque<(usize, Vec<Packet>)>>,
    /// By port: those that are behind with its packets. Nothing is received from it until they are not.
    waits_for: Vec<Vec<usize>>,
    /// By port: pairs with copies to the guest in flight.
    polled: Vec<Vec<usize>>,
    /// By port: whether there is one.
    present: Vec<bool>,
    pool: Pool,
    table: Arc<RwLock<Table>>,
    news: Vec<News>,
    packets: Vec<Packet>,
    pub(super) turn: Duration,
    /// Packets of the next burst at most, as large as those of the last one.
    burst: usize,
    steps: u32,
    given_up: u64,
    /// Channels that are closed when they are not in use.
    pub(super) closing: Vec<usize>,
    /// Copies of channels that are closed, by who made them.
    pub(super) closed_copies: BTreeMap<&'static str, u64>,
}

impl Worker {
    pub(super) fn new(channels: Channels, mode: Mode, table: Arc<RwLock<Table>>) -> Worker {
        Worker {
            channels,
            mode,
            generator: Generator::default(),
            watch: Watch::new(),
            packets_switched: 0,
            ports: Vec::new(),
            own: Vec::new(),
            next: Vec::new(),
            outlets: Vec::new(),
            outgoing: Vec::new(),
            behind: Vec::new(),
            waits_for: Vec::new(),
            polled: Vec::new(),
            present: Vec::new(),
            pool: Pool::new(256),
            table,
            news: Vec::new(),
            packets: Vec::with_capacity(BURST),
            turn: TURN,
            burst: BURST,
            steps: 0,
            given_up: queue::given_up(),
            closing: Vec::new(),
            closed_copies: BTreeMap::new(),
        }
    }

    /// Sends to a port from now on.
    pub(super) fn add_port(&mut self, at: usize, port: Arc<Port>) {
        let count = self.ports.len().max(at + 1);
        self.ports.resize_with(count, || None);
        self.own.resize_with(count, Vec::new);
        self.next.resize(count, 0);
        self.outlets.resize_with(count, Outlet::default);
        self.outgoing.resize_with(count, Vec::new);
        self.behind.resize_with(count, VecDeque::new);
        self.waits_for.resize_with(count, Vec::new);
        self.polled.resize_with(count, Vec::new);
        self.present.resize(count, false);
        self.watch.add(at);
        assert!(!self.has_packets_for(at), "packets for a port that is gone");
        self.ports[at] = Some(port);
        self.present[at] = true;
    }

    /// Whether packets wait to be sent to a port. There are none for one that is not there.
    fn has_packets_for(&self, at: usize) -> bool {
        !self.outgoing[at].is_empty() || !self.behind[at].is_empty()
    }

    /// Knows a port no longer: what waits for it is dropped and counted, and its places at channels are given back.
    pub(super) fn remove_port(&mut self, at: usize) {
        let Some(port) = self.ports[at].take() else {
            return;
        };
        self.drop_behind(at, &port);
        // It sent nothing that waits: packets of its guest go on to others.
        self.own[at].clear();
        self.waits_for[at].clear();
        self.polled[at].clear();
        self.outlets[at] = Outlet::default();
        self.present[at] = false;
        if let Port::Vhost(port) = &*port {
            for mut queue in port.queues().iter() {
                queue.detach(&mut self.channels);
            }
        }
        debug_assert!(!self.has_packets_for(at));
    }

    /// Receives from a pair from now on.
    pub(super) fn take_pair(&mut self, at: usize, pair: usize) {
        debug_assert!(!self.own[at].iter().any(|own| own.pair == pair));
        if let Some(port) = &self.ports[at] {
            port.set_notification(pair, false);
        }
        self.own[at].push(Pair {
            pair,
            leaving: false,
            in_flight: true,
            load: Duration::ZERO,
        });
    }

    /// Whether it knows a port.
    pub(super) fn has_port(&self, at: usize) -> bool {
        self.present.get(at) == Some(&true)
    }

    /// Pairs of a port that this thread receives from.
    pub(super) fn own(&mut self, at: usize) -> &mut [Pair] {
        &mut self.own[at]
    }

    /// Takes nothing new from a pair, or does again. False if this thread has no such pair.
    pub(super) fn set_leaving(&mut self, at: usize, pair: usize, leaving: bool) -> bool {
        let own = self.own[at].iter_mut().find(|own| own.pair == pair);
        own.map(|own| own.leaving = leaving).is_some()
    }

    /// Whether nothing of a pair that leaves is on its way here: no copy in flight, no packet that is still to be sent.
    pub(super) fn has_drained(&self, at: usize, pair: usize) -> bool {
        let own = self.own[at].iter().find(|own| own.pair == pair);
        own.is_some_and(|own| own.leaving && !own.in_flight) && self.waits_for[at].is_empty()
    }

    /// Gives up a pair, which another thread takes.
    ///
    /// # Panics
    /// If it has not drained: packets would overtake others.
    pub(super) fn release_pair(&mut self, at: usize, pair: usize) {
        assert!(self.has_drained(at, pair), "packets are on their way");
        if let Some(Port::Vhost(port)) = self.ports[at].as_deref() {
            let queue = port.queues().lock(2 * pair + 1);
            assert_eq!(queue.in_flight(), 0, "copies are in flight");
        }
        self.own[at].retain(|own| own.pair != pair);
    }

    /// Moves a burst from each queue, or from as many as a port's turn is long enough for. Returns whether
    /// there was anything to do.
    pub(super) fn step(&mut self) -> bool {
        let mut busy = false;
        for at in 0..self.ports.len() {
            busy |= self.turn(at);
        }
        for at in 0..self.ports.len() {
            if !self.polled[at].is_empty() {
                busy = true;
                self.poll_copies(at);
            }
        }
        self.steps += 1;
        if !busy || self.steps >= CONTROL_EVERY {
            self.steps = 0;
            self.tidy();
        }
        busy
    }

    fn poll_copies(&mut self, at: usize) {
        let start = Instant::now();
        let Worker {
            ports,
            outlets,
            polled,
            channels,
            ..
        } = self;
        let pool = match self.mode {
            Mode::TxOnly => &mut self.generator.pool,
            _ => &mut self.pool,
        };
        let port = ports[at].as_deref();
        polled[at].retain(|pair| {
            port.is_some_and(|port| port.poll_copies(&mut outlets[at], *pair, channels, pool))
        });
        self.watch.end(at, start.elapsed());
    }

    /// Takes back what queues have given up: a message had no time to wait for these copies.
    pub(super) fn tidy(&mut self) {
        self.watch.read();
        let given_up = queue::given_up();
        if given_up != self.given_up {
            self.given_up = given_up;
            for port in self.ports.iter().flatten() {
                if let Port::Vhost(port) = &**port {
                    for mut queue in port.queues().iter() {
                        queue.settle(&mut self.channels);
                    }
                }
            }
        }
        for channel in &mut self.channels {
            channel.reap();
        }
        if !self.closing.is_empty() {
            self.go_on_closing();
        }
    }

    /// Channels that are neither closed nor about to be.
    pub(super) fn open_channels(&self) -> Vec<usize> {
        let open = |at: &usize| !self.channels[*at].is_closed() && !self.closing.contains(at);
        (0..self.channels.len()).filter(open).collect()
    }

    /// Gives a channel no further copies; it is closed when none is in flight.
    pub(super) fn close_channel(&mut self, at: usize) {
        if !self.closing.contains(&at) {
            self.closing.push(at);
        }
        self.go_on_closing();
    }

    #[cold]
    fn go_on_closing(&mut self) {
        let Worker {
            closing,
            closed_copies,
            channels,
            ports,
            ..
        } = self;
        closing.retain(|at| {
            for port in ports.iter().flatten() {
                if let Port::Vhost(port) = &**port {
                    for mut queue in port.queues().iter() {
                        queue.unregister(channels, *at);
                    }
                }
            }
            let waits = channels[*at].is_in_use();
            if !waits {
                let (copies, _, failed) = channels[*at].counts();
                *closed_copies.entry(channels[*at].executor()).or_default() += copies - failed;
                channels[*at].close();
            }
            waits
        });
    }

    fn turn(&mut self, at: usize) -> bool {
        if let Some((pair, mut packets)) = self.behind[at].pop_front() {
            self.send(at, pair, &mut packets);
            if !packets.is_empty() {
                self.behind[at].push_front((pair, packets));
            }
        }
        let Worker {
            behind, waits_for, ..
        } = self;
        waits_for[at].retain(|to| !behind[*to].is_empty());
        if !waits_for[at].is_empty() {
            return true;
        }
        let (mut busy, pairs) = (!behind[at].is_empty(), self.own[at].len());
        if pairs == 0 {
            return busy;
        }
        let (start, mut own) = (Instant::now(), Duration::ZERO);
        for _ in 0..pairs {
            let index = self.next[at] % pairs;
            self.next[at] = (index + 1) % pairs;
            busy |= self.step_queue(at, index, &mut own);
            if !self.waits_for[at].is_empty() || pairs > 1 && start.elapsed() >= self.turn {
                break;
            }
        }
        self.watch.end(at, own);
        busy
    }

    /// `own`: the time is added that is not another port's.
    fn step_queue(&mut self, at: usize, index: usize, own: &mut Duration) -> bool {
        let start = Instant::now();
        let Worker {
            ports,
            channels,
            pool,
            packets,
            ..
        } = self;
        let Some(port) = &ports[at] else {
            return false;
        };
        let Pair { pair, leaving, .. } = self.own[at][index];
        let max = if leaving { 0 } else { self.burst };
        let received = port.receive(pair, channels, pool, packets, max);
        let count = received.packets;
        self.own[at][index].in_flight = received.in_flight;
        // What channels copy does not go through the core's cache.
        if count > 0 && channels.is_empty() {
            let bytes: usize = packets.iter().map(Packet::len).sum();
            self.burst = (BURST_BYTES * count / bytes.max(1)).clamp(MIN_BURST, BURST);
        }
        if count == 0 && (leaving || self.mode != Mode::TxOnly) {
            *own += start.elapsed();
            return received.in_flight;
        }
        self.packets_switched += count as u64;
        self.dispatch(at, pair);
        let mut load = start.elapsed();
        *own += load;
        for to in 0..self.ports.len() {
            if self.outgoing[to].is_empty() {
                continue;
            }
            let mut packets = std::mem::take(&mut self.outgoing[to]);
            if self.behind[to].is_empty() {
                load += self.send(to, pair, &mut packets);
            }
            if packets.is_empty() {
                self.outgoing[to] = packets;
                continue;
            }
            self.behind[to].push_back((pair, packets));
            self.waits_for[at].push(to);
        }
        self.own[at][index].load += load;
        true
    }

    /// Sends packets to a port, as many as there is time for. Returns the time that it took.
    fn send(&mut self, to: usize, pair: usize, packets: &mut Vec<Packet>) -> Duration {
        let start = Instant::now();
        let Worker {
            ports,
            outlets,
            channels,
            polled,
            ..
        } = self;
        let port = ports[to].as_ref();
        let port = port.expect("packets wait for ports that are there");
        let pool = match self.mode {
            Mode::TxOnly => &mut self.generator.pool,
            _ => &mut self.pool,
        };
        let (pair, outlet) = (pair % port.pairs(), &mut outlets[to]);
        let sent = port.send(outlet, pair, channels, pool, packets, self.turn);
        if let Some(pair) = sent.filter(|pair| !polled[to].contains(pair)) {
            polled[to].push(pair);
        }
        let elapsed = start.elapsed();
        self.watch.end(to, elapsed);
        elapsed
    }

    /// Asks to be notified of packets, or not. Returns whether there are some already.
    pub(super) fn set_notification(&mut self, wanted: bool) -> bool {
        let mut ready = false;
        for (port, own) in self.ports.iter().zip(&self.own) {
            for own in port
                .iter()
                .flat_map(|port| own.iter().map(move |o| (port, o)))
            {
                ready |= own.0.set_notification(own.1.pair, wanted);
            }
        }
        ready
    }

    /// What notifies: eventfds, and ports that are interfaces.
    pub(super) fn waits_on(&self) -> (Vec<Arc<OwnedFd>>, Vec<Arc<Port>>) {
        let (mut kicks, mut interfaces) = (Vec::new(), Vec::new());
        for (port, own) in self.ports.iter().zip(&self.own) {
            let Some(port) = port else {
                continue;
            };
            kicks.extend(own.iter().filter_map(|own| port.kick(own.pair)));
            if !own.is_empty() && port.ready().is_some() {
                interfaces.push(port.clone());
            }
        }
        (kicks, interfaces)
    }

    /// Drops what is still to be sent to a port.
    fn drop_behind(&mut self, at: usize, port: &Port) {
        for (pair, packets) in self.behind[at].drain(..) {
            port.count_dropped(pair, packets.len() as u64);
            packets.into_iter().for_each(|packet| self.pool.put(packet));
        }
    }

    /// Takes what the guests have sent, and drops it: copies in flight end.
    pub(super) fn discard(&mut self) {
        for at in 0..self.ports.len() {
            let Some(port) = self.ports[at].clone() else {
                continue;
            };
            self.drop_behind(at, &port);
            for index in 0..self.own[at].len() {
                let (pair, channels) = (self.own[at][index].pair, &mut self.channels);
                port.receive(pair, channels, &mut self.pool, &mut self.packets, BURST);
                self.drop_received(at, pair);
            }
            self.poll_copies(at);
        }
        self.tidy();
    }

    #[cfg(test)]
    pub(super) fn next_pair(&self, at: usize) -> usize {
        self.next[at]
    }
}
