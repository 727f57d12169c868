//! What packets come from and go to.

mod tap;
mod vhost;
mod xdp;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use tap::Tap;
pub use vhost::{VhostPort, VhostSetup};
pub use xdp::Xdp;

use crate::VhostError;
use crate::backend::Event;
use crate::copy::Channel;
use crate::net::{Adapter, Packet, Pool};
use crate::queue::{DropCause, Queue, QueueStats};
use crate::ring::Direction;

/// Packets that are given to an interface of the kernel at a time.
const AT_ONCE: usize = 4;

/// Packets of one thread on their way to a port.
#[derive(Debug, Default)]
pub struct Outlet {
    adapter: Adapter,
    adapted: Vec<Packet>,
    done: Vec<Packet>,
}

impl Outlet {
    /// Sends packets from the front of a list to an interface, adapted to what it takes, as [`Port::send`] does.
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

/// What a look at a pair has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Packets.
    pub packets: usize,
    /// Whether copies of others are in flight.
    pub in_flight: bool,
}

/// One port of a switch. Threads share it: each pair is received from by one thread at a time, and sent to by
/// all.
#[derive(Debug)]
pub enum Port {
    /// A guest, or a container.
    Vhost(Box<VhostPort>),
    /// A network interface of the kernel.
    Tap(Box<Interface<Tap>>),
    /// The same through AF_XDP: the first queue of its driver.
    Xdp(Box<Interface<Xdp>>),
}

/// An interface of the kernel that threads share.
#[derive(Debug)]
pub struct Interface<T> {
    device: Mutex<T>,
    /// Becomes readable with a packet: the same open file as the device's.
    ready: OwnedFd,
}

impl<T> Interface<T> {
    fn new(device: T, ready: impl Fn(&T) -> BorrowedFd<'_>) -> Result<Box<Self>, VhostError> {
        let ready = ready(&device).try_clone_to_owned()?;
        let device = Mutex::new(device);
        Ok(Box::new(Interface { device, ready }))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Port {
    /// Of an interface.
    ///
    /// # Errors
    /// Its descriptor cannot be duplicated.
    pub fn tap(tap: Tap) -> Result<Port, VhostError> {
        Interface::new(tap, Tap::wait_on).map(Port::Tap)
    }

    /// Of an interface through AF_XDP.
    ///
    /// # Errors
    /// Its descriptor cannot be duplicated.
    pub fn xdp(xdp: Xdp) -> Result<Port, VhostError> {
        Interface::new(xdp, Xdp::wait_on).map(Port::Xdp)
    }

    /// Queue pairs.
    pub fn pairs(&self) -> usize {
        match self {
            Port::Vhost(port) => port.queues().len() / 2,
            Port::Tap(_) | Port::Xdp(_) => 1,
        }
    }

    /// Takes up to `max` packets that have come in on a pair; with 0, those whose copies end.
    pub fn receive(
        &self,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        out: &mut Vec<Packet>,
        max: usize,
    ) -> Received {
        let packets = match self {
            Port::Vhost(port) => return port.receive(pair, channels, pool, out, max),
            Port::Tap(tap) => tap.lock().receive(pool, out, max),
            Port::Xdp(xdp) => xdp.lock().receive(pool, out, max),
        };
        Received {
            packets,
            in_flight: false,
        }
    }

    /// Sends packets out on a pair, from the front of a list: what cannot be sent is dropped and counted. After `turn` it
    /// begins with no further ones: the next call has to get the rest of this list. Some are taken in any event.
    /// Returns the pair whose copies are to be polled.
    pub fn send(
        &self,
        outlet: &mut Outlet,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
        packets: &mut Vec<Packet>,
        turn: Duration,
    ) -> Option<usize> {
        match self {
            Port::Vhost(port) => return port.send(outlet, pair, channels, pool, packets, turn),
            Port::Tap(tap) => tap.lock().send(outlet, pool, packets, turn),
            Port::Xdp(xdp) => xdp.lock().send(outlet, pool, packets, turn),
        }
        None
    }

    /// Polls for copies to a pair that have ended. Returns whether others are in flight.
    pub fn poll_copies(
        &self,
        outlet: &mut Outlet,
        pair: usize,
        channels: &mut [Channel],
        pool: &mut Pool,
    ) -> bool {
        match self {
            Port::Vhost(port) => port.poll_copies(outlet, pair, channels, pool),
            Port::Tap(_) | Port::Xdp(_) => false,
        }
    }

    /// Counts packets that were to be sent to a pair, and that the switch has dropped.
    pub fn count_dropped(&self, pair: usize, packets: u64) {
        self.count(Direction::ToGuest, pair, packets);
    }

    /// Counts packets that came in on a pair, and that the switch sends nowhere.
    pub fn count_unsent(&self, pair: usize, packets: u64) {
        self.count(Direction::FromGuest, pair, packets);
    }

    fn count(&self, direction: Direction, pair: usize, packets: u64) {
        let count = |queue: &mut Queue| queue.stats_mut().count_drops(DropCause::Disabled, packets);
        let odd = usize::from(direction == Direction::FromGuest);
        match self {
            Port::Vhost(port) => count(&mut port.queues().lock(2 * (pair % self.pairs()) + odd)),
            Port::Tap(tap) => count(&mut tap.lock().queues_mut()[odd]),
            Port::Xdp(xdp) => count(&mut xdp.lock().queues_mut()[odd]),
        }
    }

    /// Accepts connections and handles messages. Returns whether anything was done.
    pub fn poll_control(&self, now: Instant, events: &mut Vec<Event>) -> bool {
        match self {
            Port::Vhost(port) => port.endpoint().poll(now, events),
            Port::Tap(_) | Port::Xdp(_) => false,
        }
    }

    /// Asks to be notified of packets of a pair, or not. Returns whether there are some already.
    pub fn set_notification(&self, pair: usize, wanted: bool) -> bool {
        match self {
            Port::Vhost(port) => port.queues().lock(2 * pair + 1).set_notification(wanted),
            Port::Tap(_) | Port::Xdp(_) => false,
        }
    }

    /// What notifies of packets of a pair, if it is an eventfd.
    pub fn kick(&self, pair: usize) -> Option<Arc<OwnedFd>> {
        match self {
            Port::Vhost(port) => port.queues().lock(2 * pair + 1).kick(),
            Port::Tap(_) | Port::Xdp(_) => None,
        }
    }

    /// What notifies of packets, if it is an interface.
    pub fn ready(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Port::Vhost(_) => None,
            Port::Tap(tap) => Some(tap.ready.as_fd()),
            Port::Xdp(xdp) => Some(xdp.ready.as_fd()),
        }
    }

    /// Calls `each` with its queues, one after the other.
    pub fn each_queue(&self, mut each: impl FnMut(&Queue)) {
        match self {
            Port::Vhost(port) => port.queues().iter().for_each(|queue| each(&queue)),
            Port::Tap(tap) => tap.lock().queues().iter().for_each(each),
            Port::Xdp(xdp) => xdp.lock().queues().iter().for_each(each),
        }
    }
}
