//! What the control path does to a queue.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{GIVEN_UP, Queue, Running};
use crate::memory::MemoryMap;
use crate::net::{HEADER_BYTES, LEGACY_HEADER_BYTES};
use crate::notify;
use crate::protocol::features as f;
use crate::protocol::{VringAddress, VringConfig};
use crate::ring::{Direction, Ring};

impl Queue {
    /// Starts the ring. Nothing may be in flight.
    pub(crate) fn start(
        &mut self,
        config: &VringConfig,
        features: u64,
        memory: Arc<MemoryMap>,
    ) -> Result<(), &'static str> {
        let ring = Ring::new(config, features, &memory)?;
        self.slots.resize(ring.size());
        let long = f::VERSION_1 | f::MRG_RXBUF | f::RING_PACKED;
        self.header_bytes = match features & long {
            0 => LEGACY_HEADER_BYTES,
            _ => HEADER_BYTES,
        };
        self.features = features;
        self.broken = None;
        self.draining = false;
        self.running = Some(Running { ring, memory });
        self.kick = config.kick.descriptor().cloned();
        self.ring_log = config.address.and_then(|a| a.ring_log());
        self.set_notification(false);
        Ok(())
    }

    /// Stops the ring and returns its base. Nothing may be in flight.
    pub(crate) fn stop(&mut self) -> Option<u32> {
        assert!(self.slots.is_empty(), "copies are in flight");
        self.draining = false;
        self.kick = None;
        Some(self.running.take()?.ring.base())
    }

    /// Whether the ring is started, sound or not.
    pub(crate) fn is_started(&self) -> bool {
        self.running.is_some()
    }

    /// Moves the ring to another map.
    ///
    /// # Errors
    /// The ring is not in it, or copies are in flight in memory that it lacks.
    pub(crate) fn relocate(
        &mut self,
        address: &VringAddress,
        memory: &Arc<MemoryMap>,
    ) -> Result<(), &'static str> {
        if let Some(running) = &mut self.running {
            if !self.slots.is_empty() && !memory.has_all_of(&running.memory) {
                return Err("copies are in flight in memory that goes away");
            }
            running.ring.relocate(address, memory)?;
            running.memory = memory.clone();
        }
        Ok(())
    }

    pub(crate) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.draining = false;
    }

    /// Takes nothing new until [`Queue::end_drain`]. A queue whose copies the core makes may get a channel
    /// meanwhile.
    pub(crate) fn begin_drain(&mut self) {
        self.draining = true;
    }

    pub(crate) fn end_drain(&mut self) {
        self.draining = false;
    }

    /// Copies did not end in time: lets go of them, and of the ring. Each thread takes its places at channels
    /// back when it uses the queue the next time.
    pub(crate) fn give_up(&mut self) {
        self.stats.drain_timeouts += 1;
        let keep = self.abandon();
        for lane in &mut self.lanes {
            lane.give_up(&keep);
        }
        GIVEN_UP.fetch_add(1, Ordering::Release);
        if let Some(error) = &self.error {
            let _ = notify::signal(error);
        }
        self.running = None;
        self.draining = false;
    }

    /// Sets the eventfd that notifies the driver, and signals it once for what was published before.
    pub(crate) fn set_call(&mut self, call: Option<OwnedFd>) {
        self.call = call;
        if let (true, Some(call)) = (self.running.is_some(), &self.call) {
            let _ = notify::signal(call);
        }
    }

    pub(crate) fn set_error(&mut self, error: Option<OwnedFd>) {
        self.error = error;
    }

    /// Whether a fetch is allowed: started, sound, not draining. A disabled transmit queue is
    /// fetched from too, and its packets are discarded.
    #[inline]
    pub(crate) fn may_fetch(&self) -> bool {
        let enabled = self.enabled || self.direction == Direction::FromGuest;
        enabled && !self.draining && self.is_running()
    }
}
