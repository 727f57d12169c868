//! A switch on one thread: ports, channels, and what is done with packets.

mod answer;
mod generate;
mod learn;
mod mode;
mod report;
mod turns;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

pub use mode::Mode;
pub use report::{ChannelReport, PortReport, QueueReport, Report};

use crate::backend::Event;
use crate::copy::Channels;
use crate::net::{Packet, Pool};
use crate::port::Port;
use generate::Generator;
use learn::Table;
pub use turns::Turns;
use turns::Watch;

/// Longest sleep while a port waits for its former memory to be unmapped.
const UNMAPPING: Duration = Duration::from_millis(1);
/// Packets moved at a time.
pub const BURST: usize = 32;
/// Bytes of a burst, about: what has been copied in is copied out again, and the first cache should
/// hold most of it until then. Measured with dpdk-testpmd as guest: 32 KiB are faster than 8 and 16 at
/// 512 to 1518 bytes; more is not faster.
const BURST_BYTES: usize = 32 << 10;
/// Packets of a burst at least.
const MIN_BURST: usize = 16;
/// Steps between two looks at the control path, while packets flow.
const CONTROL_EVERY: u32 = 128;

/// Time after which a port takes no further burst in its turn: the rest of its queues begin the next.
/// A burst makes at most about as much work again, and a turn no more than 50 us, but for pages of the guest that nobody
/// has touched: the kernel makes each when it is read or written (some 0.6 us), and a packet may lie on 256 of them.
const TURN: Duration = Duration::from_micros(20);

/// A switch on one thread.
#[derive(Debug)]
pub struct Switch {
    ports: Vec<Port>,
    channels: Channels,
    pool: Pool,
    mode: Mode,
    table: Table,
    generator: Generator,
    packets: Vec<Packet>,
    /// By port: what a mode has decided to send there.
    outgoing: Vec<Vec<Packet>>,
    /// By port: what there was no time to send yet, with its pair, in order.
    behind: Vec<VecDeque<(usize, Vec<Packet>)>>,
    /// By port: those that are behind with its packets. Nothing is received from it until they are not.
    waits_for: Vec<Vec<usize>>,
    steps: u32,
    packets_switched: u64,
    watch: Watch,
    /// By port: the pair that its next turn begins with.
    next_pair: Vec<usize>,
    /// [`TURN`].
    turn: Duration,
    /// Packets of the next burst at most, as large as those of the last one.
    burst: usize,
}

impl Switch {
    /// A switch of these ports, whose copies these channels make.
    pub fn new(ports: Vec<Port>, channels: Channels, mode: Mode) -> Switch {
        Switch {
            outgoing: ports.iter().map(|_| Vec::new()).collect(),
            behind: ports.iter().map(|_| VecDeque::new()).collect(),
            waits_for: ports.iter().map(|_| Vec::new()).collect(),
            watch: Watch::new(ports.len()),
            next_pair: vec![0; ports.len()],
            turn: TURN,
            ports,
            channels,
            pool: Pool::new(256),
            mode,
            table: Table::default(),
            generator: Generator::default(),
            packets: Vec::with_capacity(BURST),
            steps: 0,
            packets_switched: 0,
            burst: BURST,
        }
    }

    /// Does something else with packets from now on; those of [`Mode::TxOnly`] have so many bytes (64
    /// to 9000). Returns whether it does: not while copies are in flight.
    pub fn set_mode(&mut self, mode: Mode, generated_bytes: usize) -> bool {
        let mut queues = self.ports.iter().flat_map(Port::queues);
        if queues.any(|queue| queue.in_flight() > 0) {
            return false;
        }
        self.mode = mode;
        self.generator = Generator::new(generated_bytes);
        true
    }

    /// Moves a burst from each queue, or from as many as a port's turn is long enough for. Returns whether
    /// there was anything to do.
    pub fn step(&mut self, events: &mut Vec<Event>) -> bool {
        let mut busy = false;
        for at in 0..self.ports.len() {
            busy |= self.turn(at);
        }
        let pool = match self.mode {
            Mode::TxOnly => &mut self.generator.pool,
            _ => &mut self.pool,
        };
        if !self.channels.is_empty() {
            for (at, port) in self.ports.iter_mut().enumerate() {
                let start = Instant::now();
                busy |= port.poll_copies(&mut self.channels, pool);
                self.watch.end(at, start.elapsed());
            }
        }
        self.steps += 1;
        if !busy || self.steps >= CONTROL_EVERY {
            self.steps = 0;
            self.poll_control(events);
        }
        busy
    }

    fn turn(&mut self, at: usize) -> bool {
        if let Some((pair, mut packets)) = self.behind[at].pop_front() {
            self.send(at, pair, &mut packets);
            if !packets.is_empty() {
                self.behind[at].push_front((pair, packets));
            }
        }
        let Switch {
            behind, waits_for, ..
        } = self;
        waits_for[at].retain(|to| !behind[*to].is_empty());
        if !waits_for[at].is_empty() {
            return true;
        }
        let (mut busy, pairs) = (false, self.ports[at].pairs());
        let (start, mut own) = (Instant::now(), Duration::ZERO);
        for _ in 0..pairs {
            let pair = self.next_pair[at];
            self.next_pair[at] = (pair + 1) % pairs;
            busy |= self.step_queue(at, pair, &mut own);
            if !self.waits_for[at].is_empty() || pairs > 1 && start.elapsed() >= self.turn {
                break;
            }
        }
        self.watch.end(at, own);
        busy
    }

    /// `own`: the time is added that is not another port's.
    fn step_queue(&mut self, at: usize, pair: usize, own: &mut Duration) -> bool {
        let start = Instant::now();
        let Switch {
            ports,
            channels,
            pool,
            packets,
            ..
        } = self;
        let count = ports[at].receive(pair, channels, pool, packets, self.burst);
        // What channels copy does not go through the core's cache.
        if count > 0 && channels.is_empty() {
            let bytes: usize = packets.iter().map(Packet::len).sum();
            self.burst = (BURST_BYTES * count / bytes.max(1)).clamp(MIN_BURST, BURST);
        }
        if count == 0 && self.mode != Mode::TxOnly {
            *own += start.elapsed();
            return false;
        }
        self.packets_switched += count as u64;
        self.dispatch(at);
        *own += start.elapsed();
        for to in 0..self.ports.len() {
            if self.outgoing[to].is_empty() {
                continue;
            }
            let mut packets = std::mem::take(&mut self.outgoing[to]);
            if self.behind[to].is_empty() {
                self.send(to, pair, &mut packets);
            }
            if packets.is_empty() {
                self.outgoing[to] = packets;
                continue;
            }
            self.behind[to].push_back((pair, packets));
            self.waits_for[at].push(to);
        }
        true
    }

    /// Sends packets to a port, as many as there is time for.
    fn send(&mut self, to: usize, pair: usize, packets: &mut Vec<Packet>) {
        let start = Instant::now();
        let port = &mut self.ports[to];
        let pair = pair % port.pairs();
        let pool = match self.mode {
            Mode::TxOnly => &mut self.generator.pool,
            _ => &mut self.pool,
        };
        port.send(pair, &mut self.channels, pool, packets, self.turn);
        self.watch.end(to, start.elapsed());
    }

    /// Decides where the packets go that came in at a port.
    fn dispatch(&mut self, at: usize) {
        // Ports are wired in pairs; one that is alone, to itself.
        let peer = match at ^ 1 {
            peer if peer < self.ports.len() => peer,
            _ => at,
        };
        match self.mode {
            Mode::Io => self.outgoing[peer].append(&mut self.packets),
            Mode::Mac => {
                self.packets.iter_mut().for_each(mode::swap_addresses);
                self.outgoing[peer].append(&mut self.packets);
            }
            Mode::RxOnly => self.packets.drain(..).for_each(|p| self.pool.put(p)),
            Mode::TxOnly => {
                self.packets.drain(..).for_each(|p| self.pool.put(p));
                self.generator.fill(&mut self.outgoing[at], BURST);
            }
            Mode::Icmp => {
                for mut packet in self.packets.drain(..) {
                    match answer::answer(&mut packet) {
                        true => self.outgoing[at].push(packet),
                        false => self.pool.put(packet),
                    }
                }
            }
            Mode::Switch => self.table.dispatch(
                at,
                &mut self.packets,
                &mut self.outgoing,
                &mut self.pool,
                Instant::now(),
            ),
        }
    }

    /// Accepts connections and handles messages of all ports.
    pub fn poll_control(&mut self, events: &mut Vec<Event>) {
        self.watch.read();
        for (at, port) in self.ports.iter_mut().enumerate() {
            let now = Instant::now();
            port.poll_control(&mut self.channels, now, events);
            self.watch.end_control(at, now.elapsed());
        }
        for channel in &mut self.channels {
            channel.reap();
        }
    }

    /// Sleeps until there may be something to do, or for at most this long. Copies in flight are not
    /// waited for.
    pub fn wait(&mut self, at_most: Duration) {
        let mut ready = false;
        for port in &mut self.ports {
            ready |= port.set_notification(true);
        }
        if !ready {
            let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
            for port in &self.ports {
                port.wait_on(&mut descriptors);
            }
            let mut polled: Vec<PollFd<'_>> = descriptors
                .iter()
                .map(|d| PollFd::from_borrowed_fd(*d, PollFlags::IN))
                .collect();
            let unmaps =
                |port: &Port| matches!(port, Port::Vhost(port) if port.endpoint.is_unmapping());
            let at_most = match self.ports.iter().any(unmaps) {
                true => at_most.min(UNMAPPING),
                false => at_most,
            };
            let timeout = Timespec {
                tv_sec: at_most.as_secs() as i64,
                tv_nsec: at_most.subsec_nanos().into(),
            };
            let _ = rustix::event::poll(&mut polled, Some(&timeout));
        }
        for port in &mut self.ports {
            port.clear_notifications();
            port.set_notification(false);
        }
    }

    /// Ends: connections are closed once their copies have ended, for at most this long. Returns
    /// whether all have.
    pub fn close(&mut self, deadline: Duration, events: &mut Vec<Event>) -> bool {
        let until = Instant::now() + deadline;
        let now = Instant::now();
        for port in &mut self.ports {
            if let Port::Vhost(port) = port {
                port.endpoint.close(&mut self.channels, now, events);
            }
        }
        loop {
            let mut leaving = false;
            let now = Instant::now();
            for port in &mut self.ports {
                for pair in 0..port.pairs() {
                    let (channels, pool) = (&mut self.channels, &mut self.pool);
                    port.receive(pair, channels, pool, &mut self.packets, BURST);
                }
                port.poll_copies(&mut self.channels, &mut self.pool);
                if let Port::Vhost(port) = port
                    && port.endpoint.is_leaving()
                {
                    port.endpoint.finish_leaving(&mut self.channels, now);
                    leaving |= port.endpoint.is_leaving();
                }
            }
            self.packets.clear();
            if !leaving || now >= until {
                return !leaving;
            }
        }
    }

    /// The ports.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The channels.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// How long the ports' turns were, at most.
    pub fn turns(&self) -> &[Turns] {
        self.watch.turns()
    }

    /// Packets taken from ports.
    pub fn packets_switched(&self) -> u64 {
        self.packets_switched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{VhostPort, VhostSetup};

    /// A turn that is over takes no further pair, and the next one begins there.
    #[test]
    fn a_turn_that_is_over_leaves_the_other_pairs_to_the_next() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut setup = VhostSetup::default();
        setup.options.queue_pairs = 3;
        let port = VhostPort::open(&dir.path().join("a"), &setup, &mut []).expect("a socket");
        let ports = vec![Port::Vhost(Box::new(port))];
        let mut switch = Switch::new(ports, Channels::new(), Mode::Io);
        let mut begins = |turn| {
            switch.turn = turn;
            switch.step(&mut Vec::new());
            switch.next_pair[0]
        };
        assert_eq!(begins(Duration::MAX), 0);
        assert_eq!([(); 4].map(|()| begins(Duration::ZERO)), [1, 2, 0, 1]);
        assert_eq!(begins(Duration::MAX), 1);
    }
}
