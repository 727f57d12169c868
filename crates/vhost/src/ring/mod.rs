//! Virtqueues: split and packed behind one type.
//!
//! A ring hands out the buffers that the driver made available and takes back those that are used.
//! It reads each descriptor once, into a copy, and gives host addresses that lie in mapped regions:
//! what a buffer's owner changes later changes nothing.

mod ahead;
mod burst;
mod chain;
mod packed;
mod split;

pub(crate) use ahead::Ahead;
pub(crate) use burst::{Buffer, Used};
pub use burst::{Burst, Direction, Fault, RingFault, Segment};
use packed::Packed;
use split::Split;

use crate::memory::{DirtyLog, Hint, MemoryMap};
use crate::protocol::features as f;
use crate::protocol::{VringAddress, VringConfig};

const _: () = assert!(
    cfg!(target_endian = "little"),
    "rings are little-endian, and so are all hosts that this is built for"
);

/// Most descriptors of a ring (virtio 1.3, 2.7 and 2.8.10.1).
pub const MAX_SIZE: u32 = 32768;

/// A ring in a front end's memory.
#[derive(Debug)]
pub(crate) struct Ring {
    kind: Kind,
    hint: Hint,
}

#[derive(Debug)]
enum Kind {
    Split(Split),
    Packed(Packed),
}

impl Ring {
    /// Finds the ring in memory. The caller holds `memory` as long as it uses the ring.
    pub(crate) fn new(
        config: &VringConfig,
        features: u64,
        memory: &MemoryMap,
    ) -> Result<Ring, &'static str> {
        let address = config.address.ok_or("no addresses were set")?;
        if config.size == 0 || config.size > MAX_SIZE {
            return Err("the size is 0 or above 32768");
        }
        let kind = match features & f::RING_PACKED != 0 {
            false => Kind::Split(Split::new(&address, config, features, memory)?),
            true => Kind::Packed(Packed::new(&address, config, features, memory)?),
        };
        Ok(Ring { kind, hint: 0 })
    }

    /// The same ring at the same position, in another map.
    pub(crate) fn relocate(
        &mut self,
        address: &VringAddress,
        memory: &MemoryMap,
    ) -> Result<(), &'static str> {
        self.hint = 0;
        match &mut self.kind {
            Kind::Split(ring) => ring.relocate(address, memory),
            Kind::Packed(ring) => ring.relocate(address, memory),
        }
    }

    /// Descriptors of the ring.
    pub(crate) fn size(&self) -> u32 {
        match &self.kind {
            Kind::Split(ring) => ring.size(),
            Kind::Packed(ring) => ring.size(),
        }
    }

    /// Takes up to `max` buffers, in ring order, and appends them to the burst. A buffer that breaks
    /// a rule is among them, with its fault.
    #[inline]
    pub(crate) fn fetch(
        &mut self,
        memory: &MemoryMap,
        direction: Direction,
        max: usize,
        burst: &mut Burst,
    ) -> Result<usize, RingFault> {
        match &mut self.kind {
            Kind::Split(ring) => ring.fetch(memory, &mut self.hint, direction, max, burst),
            Kind::Packed(ring) => ring.fetch(memory, &mut self.hint, direction, max, burst),
        }
    }

    /// Brings into the cache what the next fetch of `count` buffers reads, and the beginnings of the
    /// first of these buffers. Only what is known to be available.
    #[inline]
    pub(crate) fn look_ahead(&mut self, memory: &MemoryMap, ahead: &Ahead, count: usize) {
        let count = count as u32;
        match &self.kind {
            Kind::Split(ring) => ring.look_ahead(memory, &mut self.hint, ahead, count),
            Kind::Packed(ring) => ring.look_ahead(memory, &mut self.hint, ahead, count),
        }
    }

    /// Gives the last `count` buffers back that were fetched; they will be fetched again.
    pub(crate) fn unfetch(&mut self, burst: &mut Burst, count: usize) {
        for _ in 0..count {
            let Some(buffer) = burst.pop() else {
                return;
            };
            match &mut self.kind {
                Kind::Split(ring) => ring.unfetch(),
                Kind::Packed(ring) => ring.unfetch(buffer.slots),
            }
        }
    }

    /// Gives used buffers to the driver, in the order in which they were fetched, all at once.
    #[inline]
    pub(crate) fn publish(&mut self, used: &[Used]) {
        if used.is_empty() {
            return;
        }
        match &mut self.kind {
            Kind::Split(ring) => ring.publish(used),
            Kind::Packed(ring) => ring.publish(used),
        }
    }

    /// As [`Ring::publish`], for buffers that were read and not written: with IN_ORDER one element
    /// stands for all of them (virtio 1.3, 2.7.9 and 2.8.8).
    #[inline]
    pub(crate) fn publish_read(&mut self, used: &[Used]) {
        if used.is_empty() {
            return;
        }
        match &mut self.kind {
            Kind::Split(ring) if ring.in_order() => ring.publish_in_order(used),
            Kind::Split(ring) => ring.publish(used),
            Kind::Packed(ring) if ring.in_order() => ring.publish_in_order(used),
            Kind::Packed(ring) => ring.publish(used),
        }
    }

    /// Whether the driver has notifications enabled for what was published since the last call.
    #[inline]
    pub(crate) fn wants_notification(&mut self) -> bool {
        match &mut self.kind {
            Kind::Split(ring) => ring.wants_notification(),
            Kind::Packed(ring) => ring.wants_notification(),
        }
    }

    /// Asks the driver to notify when it makes more available, or not to. Returns whether there is
    /// something already: the driver does not notify of that.
    pub(crate) fn set_notification(&mut self, wanted: bool) -> bool {
        match &mut self.kind {
            Kind::Split(ring) => ring.set_notification(wanted),
            Kind::Packed(ring) => ring.set_notification(wanted),
        }
    }

    /// Logs what was published last. Writes to a split ring and to the event area of a packed one are
    /// logged by their address in the log, `at`; descriptors by their place in memory. Returns how many
    /// pages the log is too small for.
    pub(crate) fn log_used(
        &self,
        used: &[Used],
        log: &DirtyLog,
        at: u64,
        memory: &MemoryMap,
    ) -> u64 {
        match &self.kind {
            Kind::Split(ring) => ring.log_used(used.len() as u32, log, at),
            Kind::Packed(ring) => {
                let slots = used.iter().map(|u| u32::from(u.slots)).sum();
                ring.log_used(slots, log, memory)
            }
        }
    }

    /// Logs what the device may ever have written to the ring.
    pub(crate) fn log_all(&self, log: &DirtyLog, at: u64, memory: &MemoryMap) -> u64 {
        let ring = match &self.kind {
            Kind::Split(ring) => ring.log_used(ring.size(), log, at),
            Kind::Packed(ring) => ring.log_used(ring.size(), log, memory),
        };
        ring + self.log_event(log, at)
    }

    /// Logs the write to the device's event index or event area.
    pub(crate) fn log_event(&self, log: &DirtyLog, at: u64) -> u64 {
        match &self.kind {
            Kind::Split(ring) => ring.log_event(log, at),
            Kind::Packed(_) => log.mark(at, 4),
        }
    }

    /// Where the next fetch begins, as GET_VRING_BASE answers it. All that was fetched must have been
    /// published.
    pub(crate) fn base(&self) -> u32 {
        match &self.kind {
            Kind::Split(ring) => ring.base(),
            Kind::Packed(ring) => ring.base(),
        }
    }
}
