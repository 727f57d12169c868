//! What packets come from and go to.

mod tap;
mod vhost;
mod xdp;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

pub use tap::Tap;
pub use vhost::{VhostPort, VhostSetup};
pub use xdp::Xdp;

use crate::backend::Event;
use crate::copy::Channel;
use crate::net::{Adapter, Packet, Pool};
use crate::notify;
use crate::queue::{DropCause, Queue, QueueStats};

/// Packets that are given to an interface of the kernel at a time.
const AT_ONCE: usize = 4;

/// Packets on their way to an interface of the kernel.
#[derive(Debug, Default)]
struct Outlet {
    adapter: Adapter,
    adapted: Vec<Packet>,
}

impl Outlet {
    /// Sends packets from the front of a list, adapted to what the interface takes, as [`Port::send`] does.
    fn send(
        &mut self,
        (packets, taken): (&mut Vec<Packet>, u64),
        pool: &mut Pool,
        turn: Duration,
        stats: &mut QueueStats,
        mut send: impl FnMut(&Packet) -> Result<(), DropCause>,
    ) {
        let start = Instant::now();
        while !packets.is_empty() {
            let bad = (self.adapter).some(packets, (taken, AT_ONCE), pool, &mut self.adapted);
            stats.count_drops(DropCause::Header, bad);
            for packet in self.adapted.drain(..) {
                match send(&packet) {
                    Ok(()) => stats.count_packet(packet.len()),
                    Err(cause) => stats.count_drops(cause, 1),
                }
                pool.put(packet);
            }
            if start.elapsed() >= turn {
                return;
            }
        }
    }
}

/// One port of a switch.
#[derive(Debug)]
pub enum Port {
    /// A guest, or a container.
    Vhost(Box<VhostPort>),
    /// A network interface of the kernel.
    Tap(Box<Tap>),
    /// The same through AF_XDP: the first queue of its driver.
    Xdp(Box<Xdp>),
}

impl Port {
    /// Queue pairs.
    pub fn pairs(&self) -> usize {
        match self {
            Port::Vhost(port) => port.endpoint.backend.pairs(),
            Port::Tap(_) | Port::Xdp(_) => 1,
        }
    }

    /// Takes up to `max` packets that have come in on a pair.
    pub fn receive(
        &mut self,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        out: &mut Vec<Packet>,
        max: usize,
    ) -> usize {
        match self {
            Port::Vhost(port) => port.receive(pair, channels, pool, out, max),
            Port::Tap(tap) => tap.receive(pool, out, max),
            Port::Xdp(xdp) => xdp.receive(pool, out, max),
        }
    }

    /// Sends packets out on a pair, from the front of a list: what cannot be sent is dropped and counted. After `turn` it
    /// begins with no further ones: the next call has to get the rest of this list. Some are taken in any event.
    pub fn send(
        &mut self,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        packets: &mut Vec<Packet>,
        turn: Duration,
    ) {
        match self {
            Port::Vhost(port) => port.send(pair, channels, pool, packets, turn),
            Port::Tap(tap) => tap.send(pool, packets, turn),
            Port::Xdp(xdp) => xdp.send(pool, packets, turn),
        }
    }

    /// Polls for copies that have ended. Returns whether any were in flight.
    pub fn poll_copies(&mut self, channels: &mut [Channel], pool: &mut Pool) -> bool {
        match self {
            Port::Vhost(port) => port.poll_copies(channels, pool),
            Port::Tap(_) | Port::Xdp(_) => false,
        }
    }

    /// Accepts connections and handles messages.
    pub fn poll_control(
        &mut self,
        channels: &mut [Channel],
        now: Instant,
        events: &mut Vec<Event>,
    ) {
        if let Port::Vhost(port) = self {
            port.endpoint.poll(channels, now, events);
        }
    }

    /// Asks to be notified of packets, or not. Returns whether there are some already.
    pub fn set_notification(&mut self, wanted: bool) -> bool {
        match self {
            Port::Vhost(port) => port.set_notification(wanted),
            Port::Tap(_) | Port::Xdp(_) => false,
        }
    }

    /// What to wait for.
    pub fn wait_on<'a>(&'a self, into: &mut Vec<BorrowedFd<'a>>) {
        match self {
            Port::Vhost(port) => {
                into.extend(port.endpoint.wait_on());
                into.extend(port.endpoint.backend.kicks());
            }
            Port::Tap(tap) => into.push(tap.wait_on()),
            Port::Xdp(xdp) => into.push(xdp.wait_on()),
        }
    }

    /// Empties what notified.
    pub fn clear_notifications(&self) {
        if let Port::Vhost(port) = self {
            for kick in port.endpoint.backend.kicks() {
                notify::clear(kick);
            }
        }
    }

    /// Its queues, if it has any with statistics.
    pub fn queues(&self) -> &[Queue] {
        match self {
            Port::Vhost(port) => port.endpoint.backend.queues(),
            Port::Tap(tap) => tap.queues(),
            Port::Xdp(xdp) => xdp.queues(),
        }
    }
}
