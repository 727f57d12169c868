//! One direction of one queue pair: packets between a ring and this process's buffers.
//!
//! The synchronous calls ([`Queue::enqueue`], [`Queue::dequeue`]) copy on the calling core. The
//! asynchronous ones ([`Queue::enqueue_submit`], [`Queue::enqueue_poll`], [`Queue::try_dequeue`])
//! hand copies to channels; each packet has a slot from its fetch to its write-back, and only the
//! longest prefix of slots whose copies have all ended is given back to the driver.

mod attach;
mod control;
mod dequeue;
mod enqueue;
mod log;
mod place;
mod queues;
mod slots;
mod stats;
mod taker;
mod touch;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use queues::{QueueGuard, Queues};
pub use stats::{DropCause, Drops, QueueStats, SIZE_BINS};

use crate::copy::Channel;
use crate::memory::{self, DirtyLog, MemoryMap};
use crate::net::Packet;
use crate::notify;
use crate::ring::{Burst, Direction, Ring, RingFault, Used};
use attach::Lane;
use slots::Slots;

/// Most packets of one call.
pub const MAX_BURST: usize = 64;

/// Copies below this are made by the core, in bytes (published: offload does not pay up to 256).
pub const DEFAULT_COPY_THRESHOLD: u32 = 257;

/// How often queues of this process have given copies up.
static GIVEN_UP: AtomicU64 = AtomicU64::new(0);
/// How many rings of this process were stopped by a fault.
static RING_FAULTS: AtomicU64 = AtomicU64::new(0);

/// Changes when a queue has given copies up: threads call [`Queue::settle`] then.
pub(crate) fn given_up() -> u64 {
    GIVEN_UP.load(Ordering::Acquire)
}

/// Changes when a ring was stopped by a fault.
pub(crate) fn ring_faults() -> u64 {
    RING_FAULTS.load(Ordering::Acquire)
}

/// A ring at work.
#[derive(Debug)]
struct Running {
    ring: Ring,
    memory: Arc<MemoryMap>,
}

/// One direction of one queue pair.
#[derive(Debug)]
pub struct Queue {
    index: usize,
    direction: Direction,
    features: u64,
    header_bytes: usize,
    running: Option<Running>,
    enabled: bool,
    draining: bool,
    broken: Option<RingFault>,
    /// Why it broke, until that has been reported.
    unreported: Option<RingFault>,
    /// Where the driver notifies.
    kick: Option<Arc<OwnedFd>>,
    call: Option<OwnedFd>,
    error: Option<OwnedFd>,
    slots: Slots,
    /// By thread: its channels.
    lanes: Vec<Lane>,
    copy_threshold: u32,
    burst: Burst,
    used: Vec<Used>,
    /// Packets to be treated as if the guest had sent them.
    injected: Vec<Packet>,
    /// Calls in a row that had no time for the pages of the first buffer.
    in_vain: u32,
    /// Bytes of the last buffer from the guest.
    usual_bytes: usize,
    seen_faults: u64,
    /// Where writes to the guest are logged.
    log: Option<Arc<DirtyLog>>,
    /// Guest address by which writes to the ring are logged.
    ring_log: Option<u64>,
    stats: QueueStats,
}

impl Queue {
    /// The queue with this index: even ones carry packets to the guest, odd ones from it.
    pub fn new(index: usize) -> Queue {
        let direction = match index % 2 {
            0 => Direction::ToGuest,
            _ => Direction::FromGuest,
        };
        Queue {
            index,
            direction,
            features: 0,
            header_bytes: crate::net::HEADER_BYTES,
            running: None,
            enabled: false,
            draining: false,
            broken: None,
            unreported: None,
            kick: None,
            call: None,
            injected: Vec::new(),
            error: None,
            slots: Slots::new(direction),
            lanes: Vec::new(),
            copy_threshold: DEFAULT_COPY_THRESHOLD,
            burst: Burst::new(direction),
            used: Vec::with_capacity(MAX_BURST),
            in_vain: 0,
            usual_bytes: 0,
            seen_faults: memory::faults(),
            log: None,
            ring_log: None,
            stats: QueueStats::default(),
        }
    }

    /// Its index.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Which way its packets go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// What it has counted.
    pub fn stats(&self) -> &QueueStats {
        &self.stats
    }

    /// What it has counted, to add to.
    pub fn stats_mut(&mut self) -> &mut QueueStats {
        &mut self.stats
    }

    /// Virtio features in force.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Copies below this are made by the core, in bytes.
    pub fn set_copy_threshold(&mut self, bytes: u32) {
        self.copy_threshold = bytes;
    }

    /// Packets whose copies are in flight, or that wait for one before them.
    pub fn in_flight(&self) -> usize {
        self.slots.len()
    }

    /// Whether packets flow.
    pub fn is_live(&self) -> bool {
        self.enabled && self.is_running()
    }

    /// Whether its ring is started and sound.
    pub fn is_running(&self) -> bool {
        self.running.is_some() && self.broken.is_none()
    }

    /// Where the driver notifies of new buffers.
    pub(crate) fn kick(&self) -> Option<Arc<OwnedFd>> {
        self.kick.clone()
    }

    /// Adds a packet that is taken as if the guest had sent it: a broadcast on its behalf.
    pub(crate) fn inject(&mut self, packet: Packet) {
        // A front end that sends them without end fills nothing.
        if self.injected.len() < 16 {
            self.injected.push(packet);
        }
    }

    /// Takes such packets.
    #[inline]
    pub fn take_injected(&mut self, out: &mut Vec<Packet>) {
        if !self.injected.is_empty() {
            out.append(&mut self.injected);
        }
    }

    /// Whether the last call took fewer buffers than there were, because these had made enough work.
    pub(crate) fn is_spent(&self) -> bool {
        self.burst.spent
    }

    /// Why its ring was stopped, if that was not asked for before.
    pub(crate) fn take_fault(&mut self) -> Option<RingFault> {
        self.unreported.take()
    }

    /// Why its ring was stopped.
    pub fn broken(&self) -> Option<RingFault> {
        self.broken
    }

    /// Asks for notifications (interrupt mode) or does without (poll mode). Returns whether there is
    /// something to fetch already.
    pub fn set_notification(&mut self, wanted: bool) -> bool {
        match &mut self.running {
            Some(running) if self.broken.is_none() => {
                let ready = running.ring.set_notification(wanted);
                if let (Some(log), Some(at)) = (&self.log, self.ring_log) {
                    let missed = running.ring.log_event(log, at);
                    self.stats.pages_not_logged += missed;
                }
                ready
            }
            _ => false,
        }
    }

    /// Waits until no copy is in flight, for at most `deadline`; packets that are done go to `out`.
    /// Nothing new is taken meanwhile. Returns whether the queue is empty.
    pub fn clear(
        &mut self,
        channels: &mut [Channel],
        out: &mut Vec<Packet>,
        deadline: Duration,
    ) -> bool {
        let until = Instant::now() + deadline;
        loop {
            self.reap(channels, out);
            if self.slots.is_empty() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::hint::spin_loop();
        }
    }

    /// Stops a ring for good: until it is started anew nothing is fetched.
    #[cold]
    fn break_ring(&mut self, fault: RingFault) {
        if self.broken.is_none() {
            (self.broken, self.unreported) = (Some(fault), Some(fault));
            self.stats.ring_faults += 1;
            RING_FAULTS.fetch_add(1, Ordering::Release);
            if let Some(error) = &self.error {
                let _ = notify::signal(error);
            }
        }
    }

    /// Whether the front end's memory files still have their size; checked after copies and before their
    /// results are used.
    #[inline]
    fn memory_is_sound(&mut self) -> bool {
        let faults = memory::faults();
        if faults == self.seen_faults {
            return true;
        }
        self.check_memory(faults)
    }

    #[cold]
    fn check_memory(&mut self, faults: u64) -> bool {
        self.seen_faults = faults;
        let broken = self.running.as_ref().is_some_and(|r| r.memory.is_broken());
        if broken {
            self.break_ring(RingFault::Truncated);
        }
        !broken
    }

    /// Notifies the driver of what was published, if it has notifications enabled.
    #[inline]
    fn notify(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        if !running.ring.wants_notification() {
            self.stats.notifications_suppressed += 1;
            return;
        }
        match &self.call {
            None => self.stats.notifications_suppressed += 1,
            Some(call) => match notify::signal(call) {
                Ok(()) => self.stats.notifications_sent += 1,
                Err(_) => self.stats.notifications_failed += 1,
            },
        }
    }
}

impl Drop for Queue {
    /// A mover still writes where copies in flight lead: that memory is never given back.
    fn drop(&mut self) {
        if !self.slots.is_empty() {
            std::mem::forget(self.abandon());
        }
        for lane in &mut self.lanes {
            lane.forget();
        }
    }
}
