//! A port with a guest behind it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::VhostError;
use crate::backend::{Endpoint, Role};
use crate::copy::Channel;
use crate::net::{Adapter, Packet, Pool};
use crate::protocol::Options;
use crate::queue::{DropCause, Queue};
use crate::ring::Direction;

/// Calls for one burst of packets whose buffers have made too much work: the rest of it is dropped, for
/// other ports wait. Linux' buffers of 19 descriptors need two.
const MAX_SPENT: u32 = 2;

/// Packets that are adapted to the guest and then given to it, at a time.
const AT_ONCE: usize = 8;

/// How a port is set up.
#[derive(Debug, Clone)]
pub struct VhostSetup {
    /// Which side listens.
    pub role: Role,
    /// What is offered.
    pub options: Options,
    /// Channels of queues to the guest. None: the core copies, synchronously.
    pub to_guest: Vec<usize>,
    /// Channels of queues from the guest.
    pub from_guest: Vec<usize>,
    /// Copies below this are made by the core, in bytes.
    pub copy_threshold: u32,
    /// How long control messages wait for copies in flight.
    pub drain_deadline: Duration,
}

impl Default for VhostSetup {
    /// A listening port whose copies the core makes.
    fn default() -> VhostSetup {
        VhostSetup {
            role: Role::Server,
            options: Options::default(),
            to_guest: Vec::new(),
            from_guest: Vec::new(),
            copy_threshold: crate::queue::DEFAULT_COPY_THRESHOLD,
            drain_deadline: Duration::from_secs(1),
        }
    }
}

/// A port with a guest behind it.
#[derive(Debug)]
pub struct VhostPort {
    /// Socket and device.
    pub endpoint: Endpoint,
    asynchronous: [bool; 2],
    adapter: Adapter,
    adapted: Vec<Packet>,
    done: Vec<Packet>,
}

impl VhostPort {
    /// Opens the socket.
    ///
    /// # Errors
    /// It cannot be listened at.
    pub fn open(
        path: &Path,
        setup: &VhostSetup,
        channels: &mut [Channel],
    ) -> Result<VhostPort, VhostError> {
        let mut endpoint = Endpoint::new(path, setup.role, setup.options)?;
        endpoint.backend.set_drain_deadline(setup.drain_deadline);
        for queue in endpoint.backend.queues_mut() {
            let which = match queue.direction() {
                Direction::ToGuest => &setup.to_guest,
                Direction::FromGuest => &setup.from_guest,
            };
            queue.set_copy_threshold(setup.copy_threshold);
            for channel in which {
                queue.attach(channels, *channel);
            }
        }
        Ok(VhostPort {
            endpoint,
            asynchronous: [!setup.to_guest.is_empty(), !setup.from_guest.is_empty()],
            adapter: Adapter::default(),
            adapted: Vec::new(),
            done: Vec::new(),
        })
    }

    pub(super) fn receive(
        &mut self,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        out: &mut Vec<Packet>,
        max: usize,
    ) -> usize {
        let before = out.len();
        if pair == 0 {
            out.extend(self.endpoint.backend.take_injected());
        }
        let queue = self.endpoint.backend.from_guest(pair);
        if !queue.is_running() {
            return out.len() - before;
        }
        let start = ticks();
        let count = match self.asynchronous[1] {
            true => queue.try_dequeue(channels, pool, out, max),
            false => queue.dequeue(pool, out, max),
        };
        count_poll(queue, start, count);
        out.len() - before
    }

    pub(super) fn send(
        &mut self,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        packets: &mut Vec<Packet>,
        turn: Duration,
    ) {
        let pair = self.live_pair(pair);
        let queue = self.endpoint.backend.to_guest(pair);
        if !queue.is_live() {
            self.adapter = Adapter::default();
            queue
                .stats_mut()
                .count_drops(DropCause::Disabled, packets.len() as u64);
            return packets.drain(..).for_each(|p| pool.put(p));
        }
        let asynchronous = self.asynchronous[0];
        if !packets.iter().any(|p| p.header.has_offload()) {
            return give(queue, asynchronous, channels, pool, packets);
        }
        let (start, features) = (Instant::now(), queue.features());
        while !packets.is_empty() {
            let bad = (self.adapter).some(packets, (features, AT_ONCE), pool, &mut self.adapted);
            queue.stats_mut().count_drops(DropCause::Header, bad);
            give(queue, asynchronous, channels, pool, &mut self.adapted);
            if start.elapsed() >= turn {
                break;
            }
        }
    }

    /// The pair that takes what is meant for one: another one if the guest has not enabled it, always
    /// the same, so that a flow keeps its order.
    fn live_pair(&mut self, pair: usize) -> usize {
        let backend = &mut self.endpoint.backend;
        if backend.to_guest(pair).is_live() {
            return pair;
        }
        let live = |queue: &&Queue| queue.direction() == Direction::ToGuest && queue.is_live();
        let count = backend.queues().iter().filter(live).count();
        match count {
            0 => pair,
            _ => {
                let mut queues = backend.queues().iter().filter(live);
                queues.nth(pair % count).map_or(pair, |q| q.index() / 2)
            }
        }
    }

    pub(super) fn poll_copies(&mut self, channels: &mut [Channel], pool: &mut Pool) -> bool {
        let mut busy = false;
        for pair in 0..self.endpoint.backend.pairs() {
            let queue = self.endpoint.backend.to_guest(pair);
            if queue.in_flight() > 0 {
                busy = true;
                let start = ticks();
                if queue.enqueue_poll(channels, &mut self.done) > 0 {
                    queue.stats_mut().busy_cycles += ticks().wrapping_sub(start);
                }
                self.done.drain(..).for_each(|p| pool.put(p));
            }
            busy |= self.endpoint.backend.from_guest(pair).in_flight() > 0;
        }
        busy
    }

    pub(super) fn set_notification(&mut self, wanted: bool) -> bool {
        let mut ready = false;
        for queue in self.endpoint.backend.queues_mut() {
            if queue.direction() == Direction::FromGuest {
                ready |= queue.set_notification(wanted);
            }
        }
        ready
    }
}

/// Gives all of these packets to the guest, or drops them.
fn give(
    queue: &mut Queue,
    asynchronous: bool,
    channels: &mut [Channel],
    pool: &mut Pool,
    packets: &mut Vec<Packet>,
) {
    let start = ticks();
    let (mut sent, mut spent) = (0, 0);
    while !packets.is_empty() {
        let count = match asynchronous {
            true => queue.enqueue_submit(channels, packets),
            false => {
                let count = queue.enqueue(packets);
                packets.drain(..count).for_each(|p| pool.put(p));
                count
            }
        };
        sent += count;
        let enough = queue.is_spent();
        spent += u32::from(enough);
        if (count == 0 && !enough) || spent == MAX_SPENT {
            let dropped = packets.len() as u64;
            queue.stats_mut().count_drops(DropCause::NoBuffer, dropped);
            packets.drain(..).for_each(|p| pool.put(p));
        }
    }
    count_poll(queue, start, sent);
}

fn count_poll(queue: &mut Queue, start: u64, count: usize) {
    let stats = queue.stats_mut();
    if count > 0 {
        stats.polls_busy += 1;
        stats.busy_cycles += ticks().wrapping_sub(start);
    } else {
        stats.polls_empty += 1;
    }
}

/// The time stamp counter.
#[inline]
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reading the counter has no effect.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}
