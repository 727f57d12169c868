//! A port with a guest behind it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Outlet, Received};
use crate::VhostError;
use crate::backend::{Endpoint, Role};
use crate::copy::Channel;
use crate::net::{Adapter, Packet, Pool};
use crate::protocol::Options;
use crate::queue::{DropCause, Queue, QueueGuard, Queues};
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
    /// Socket and device; one thread polls it.
    endpoint: Mutex<Endpoint>,
    queues: Queues,
}

impl VhostPort {
    /// Opens the socket. The channels are those of the first thread.
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
        let port = VhostPort::over(endpoint);
        for mut queue in port.queues.iter() {
            queue.set_copy_threshold(setup.copy_threshold);
        }
        port.attach(channels, (&setup.to_guest, &setup.from_guest));
        Ok(port)
    }

    /// Of a socket and the device behind it.
    pub fn over(endpoint: Endpoint) -> VhostPort {
        VhostPort {
            queues: endpoint.backend.queues().clone(),
            endpoint: Mutex::new(endpoint),
        }
    }

    /// Registers channels of a thread with the queues to the guest, and with those from it.
    pub fn attach(&self, channels: &mut [Channel], (to_guest, from_guest): (&[usize], &[usize])) {
        for mut queue in self.queues.iter() {
            let which = match queue.direction() {
                Direction::ToGuest => to_guest,
                Direction::FromGuest => from_guest,
            };
            for channel in which {
                queue.attach(channels, *channel);
            }
        }
    }

    /// Socket and device. Waits until no other thread uses it.
    pub fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its queues.
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(super) fn receive(
        &self,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        out: &mut Vec<Packet>,
        max: usize,
    ) -> Received {
        let before = out.len();
        let mut queue = self.queues.lock(2 * pair + 1);
        queue.take_injected(out);
        if queue.is_running() {
            let start = ticks();
            let count = match queue.uses_channels() {
                true => queue.try_dequeue(channels, pool, out, max),
                false => queue.dequeue(pool, out, max),
            };
            count_poll(&mut queue, start, count);
        } else if queue.in_flight() > 0 {
            // Its ring is broken. Copies end all the same.
            queue.try_dequeue(channels, pool, out, 0);
        }
        Received {
            packets: out.len() - before,
            in_flight: queue.in_flight() > 0,
        }
    }

    pub(super) fn send(
        &self,
        outlet: &mut Outlet,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        packets: &mut Vec<Packet>,
        turn: Duration,
    ) -> Option<usize> {
        let (pair, mut queue) = self.live_pair(pair);
        let queue = &mut *queue;
        if !queue.is_live() {
            outlet.adapter = Adapter::default();
            queue
                .stats_mut()
                .count_drops(DropCause::Disabled, packets.len() as u64);
            packets.drain(..).for_each(|p| pool.put(p));
            return None;
        }
        if !packets.iter().any(|p| p.header.has_offload()) {
            give(queue, channels, pool, packets);
            return (queue.in_flight() > 0).then_some(pair);
        }
        let (start, features) = (Instant::now(), queue.features());
        let Outlet {
            adapter, adapted, ..
        } = outlet;
        while !packets.is_empty() {
            let bad = adapter.some(packets, (features, AT_ONCE), pool, adapted);
            queue.stats_mut().count_drops(DropCause::Header, bad);
            give(queue, channels, pool, adapted);
            if start.elapsed() >= turn {
                break;
            }
        }
        (queue.in_flight() > 0).then_some(pair)
    }

    /// The pair that takes what is meant for one: another one if the guest has not enabled it, always
    /// the same, so that a flow keeps its order.
    fn live_pair(&self, pair: usize) -> (usize, QueueGuard<'_>) {
        let queue = self.queues.lock(2 * pair);
        if queue.is_live() {
            return (pair, queue);
        }
        drop(queue);
        let live = |pair: &usize| self.queues.lock(2 * pair).is_live();
        let pairs = || (0..self.queues.len() / 2).filter(live);
        let pair = match pairs().count() {
            0 => pair,
            count => pairs().nth(pair % count).unwrap_or(pair),
        };
        (pair, self.queues.lock(2 * pair))
    }

    pub(super) fn poll_copies(
        &self,
        outlet: &mut Outlet,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
    ) -> bool {
        let mut queue = self.queues.lock(2 * pair);
        let start = ticks();
        if queue.enqueue_poll(channels, &mut outlet.done) > 0 {
            queue.stats_mut().busy_cycles += ticks().wrapping_sub(start);
        }
        outlet.done.drain(..).for_each(|p| pool.put(p));
        queue.in_flight() > 0
    }
}

/// Gives all of these packets to the guest, or drops them.
fn give(queue: &mut Queue, channels: &mut [Channel], pool: &mut Pool, packets: &mut Vec<Packet>) {
    let start = ticks();
    let (mut sent, mut spent) = (0, 0);
    let asynchronous = queue.uses_channels();
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
            // A message that drains, or a fault, may have stopped it.
            let cause = match queue.may_fetch() {
                true => DropCause::NoBuffer,
                false => DropCause::Disabled,
            };
            queue.stats_mut().count_drops(cause, packets.len() as u64);
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
