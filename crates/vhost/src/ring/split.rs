//! Split virtqueues (virtio 1.3, 2.7).

use std::sync::atomic::{Ordering, fence};

use super::ahead::Ahead;
use super::burst::{Burst, Direction, Fault, RingFault, Used};
use super::chain::{Collector, Descriptor, INDIRECT, NEXT, plain};
use crate::memory::{DirtyLog, Hint, MemoryMap, Shared};
use crate::protocol::features as f;
use crate::protocol::{VringAddress, VringConfig};

/// Avail flag: the driver wants no notifications. Used flag: the device wants none.
const NO_NOTIFICATION: u16 = 1;
const FLAGS: u32 = 0;
const INDEX: u32 = 1;
const RING: u32 = 2;

/// The three parts of a split ring.
#[derive(Debug, Clone, Copy)]
struct Parts {
    descriptors: Shared<u64>,
    /// flags, idx, ring, used_event.
    available: Shared<u16>,
    /// flags, idx, ring, avail_event.
    used: Shared<u16>,
    /// The same, for the elements.
    elements: Shared<u32>,
}

impl Parts {
    fn new(
        address: &VringAddress,
        size: u32,
        events: bool,
        memory: &MemoryMap,
    ) -> Result<Parts, &'static str> {
        let event = u32::from(events);
        let (available_words, used_words) = (RING + size + event, RING + 4 * size + event);
        let find = |user: u64, bytes: u32, align: u64| {
            let ptr = memory.translate_user(user, u64::from(bytes));
            ptr.filter(|ptr| (ptr.as_ptr() as u64).is_multiple_of(align))
                .ok_or("a part lies outside the regions or is misaligned")
        };
        let descriptors = find(address.descriptors, 16 * size, 16)?;
        let available = find(address.available, 2 * available_words, 2)?;
        let used = find(address.used, 2 * used_words, 4)?;
        Ok(Parts {
            // SAFETY: mapped and aligned; the owner of the ring holds the map.
            descriptors: unsafe { Shared::new(descriptors, 2 * size) },
            // SAFETY: as above.
            available: unsafe { Shared::new(available, available_words) },
            // SAFETY: as above.
            used: unsafe { Shared::new(used, used_words) },
            // SAFETY: as above; the elements end before the event word.
            elements: unsafe { Shared::new(used, 1 + 2 * size) },
        })
    }
}

#[derive(Debug)]
pub(super) struct Split {
    parts: Parts,
    size: u32,
    mask: u32,
    events: bool,
    in_order: bool,
    /// Next entry of the available ring to fetch.
    next_available: u16,
    /// The driver's index as it was last read.
    available: u16,
    /// Next entry of the used ring to write.
    next_used: u16,
    /// Index at the last notification; none since the start.
    notified: Option<u16>,
}

impl Split {
    pub(super) fn new(
        address: &VringAddress,
        config: &VringConfig,
        features: u64,
        memory: &MemoryMap,
    ) -> Result<Split, &'static str> {
        let size = config.size;
        if !size.is_power_of_two() {
            return Err("the size is not a power of two");
        }
        let events = features & f::EVENT_IDX != 0;
        let parts = Parts::new(address, size, events, memory)?;
        // After a front end that went on without us, its used index is the truth: some send 0, some
        // the used index (QEMU) as base.
        let used = parts.used.atomic(INDEX).load(Ordering::Acquire);
        Ok(Split {
            parts,
            size,
            mask: size - 1,
            events,
            in_order: features & f::IN_ORDER != 0,
            next_available: used,
            available: used,
            next_used: used,
            notified: None,
        })
    }

    pub(super) fn relocate(
        &mut self,
        address: &VringAddress,
        memory: &MemoryMap,
    ) -> Result<(), &'static str> {
        self.parts = Parts::new(address, self.size, self.events, memory)?;
        Ok(())
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn in_order(&self) -> bool {
        self.in_order
    }

    pub(super) fn base(&self) -> u32 {
        u32::from(self.next_available)
    }

    #[inline]
    pub(super) fn fetch(
        &mut self,
        memory: &MemoryMap,
        hint: &mut Hint,
        direction: Direction,
        max: usize,
        burst: &mut Burst,
    ) -> Result<usize, RingFault> {
        let mut count = self.available.wrapping_sub(self.next_available);
        if usize::from(count) < max {
            let available = self.parts.available.atomic(INDEX).load(Ordering::Acquire);
            // In flight and available, each by itself: an index that goes back would pass as a sum.
            let in_flight = self.next_available.wrapping_sub(self.next_used);
            let ahead = available.wrapping_sub(self.next_available);
            let found = u32::from(in_flight) + u32::from(ahead);
            if found > self.size {
                return Err(RingFault::Overrun {
                    found,
                    size: self.size,
                });
            }
            // Kept only now: a later fetch takes what it finds here without another look.
            self.available = available;
            count = self.available.wrapping_sub(self.next_available);
        }
        let count = usize::from(count).min(max);
        let start = u32::from(self.next_available);
        for i in 0..count as u32 {
            let head = self.parts.available.read(RING + ((start + i) & self.mask));
            self.parts.descriptors.prefetch(2 * u32::from(head));
        }
        if direction == Direction::ToGuest {
            // Elements of 8 bytes, which are written soon.
            for ahead in (0..count as u32 + 8).step_by(8) {
                let at = u32::from(self.next_used).wrapping_add(ahead) & self.mask;
                self.parts.elements.prefetch_write(1 + 2 * at);
            }
        }
        let plain = plain(direction);
        for done in 0..count {
            if burst.is_full() {
                return Ok(done);
            }
            let slot = RING + (u32::from(self.next_available) & self.mask);
            let head = self.parts.available.read(slot);
            self.next_available = self.next_available.wrapping_add(1);
            let first = (u32::from(head) < self.size).then(|| self.read(head));
            if let Some(d) = first
                && d.flags == plain
                && burst.push_plain(memory, hint, (d.addr, d.len), head)
            {
                continue;
            }
            let mut collector = Collector::new(memory, hint, direction, self.size, burst);
            let result = match first {
                Some(d) => self.walk(d, &mut collector),
                None => Err(Fault::Head),
            };
            collector.finish(head, 1, result);
        }
        Ok(count)
    }

    #[inline]
    pub(super) fn look_ahead(
        &self,
        memory: &MemoryMap,
        hint: &mut Hint,
        ahead: &Ahead,
        count: u32,
    ) {
        let known = u32::from(self.available.wrapping_sub(self.next_available));
        let start = u32::from(self.next_available);
        let head = |i| {
            let head = self.parts.available.read(RING + ((start + i) & self.mask));
            u32::from(head) & self.mask
        };
        for i in 0..count.min(known) {
            self.parts.descriptors.prefetch(2 * head(i));
        }
        for i in 0..count.min(known).min(ahead.buffers as u32) {
            let d = self.read(head(i) as u16);
            ahead.prefetch_described(memory, hint, (d.addr, d.len));
        }
        // 32 entries in a line.
        let at = (start + count + 32) & self.mask;
        self.parts.available.prefetch(RING + at);
    }

    #[inline]
    fn read(&self, at: u16) -> Descriptor {
        let word = 2 * u32::from(at);
        let addr = self.parts.descriptors.read(word);
        Descriptor::split(addr, self.parts.descriptors.read(word + 1))
    }

    /// Collects a chain from its first descriptor on.
    #[inline(never)]
    fn walk(&self, first: Descriptor, collector: &mut Collector<'_>) -> Result<(), Fault> {
        let mut d = first;
        loop {
            if d.flags & INDIRECT != 0 {
                return collector.push_table(d, false);
            }
            collector.push(d)?;
            if d.flags & NEXT == 0 {
                return Ok(());
            }
            if u32::from(d.tail) >= self.size {
                return Err(Fault::Next);
            }
            d = self.read(d.tail);
        }
    }

    pub(super) fn unfetch(&mut self) {
        self.next_available = self.next_available.wrapping_sub(1);
    }

    #[inline]
    fn write_element(&self, index: u16, used: Used) {
        let word = 1 + 2 * (u32::from(index) & self.mask);
        self.parts.elements.write(word, u32::from(used.id));
        self.parts.elements.write(word + 1, used.len);
    }

    #[inline]
    pub(super) fn publish(&mut self, used: &[Used]) {
        let mut index = self.next_used;
        for element in used {
            self.write_element(index, *element);
            index = index.wrapping_add(1);
        }
        self.set_index(index);
    }

    #[inline]
    pub(super) fn publish_in_order(&mut self, used: &[Used]) {
        if let Some(last) = used.last() {
            self.write_element(self.next_used, *last);
            self.set_index(self.next_used.wrapping_add(used.len() as u16));
        }
    }

    #[inline]
    fn set_index(&mut self, index: u16) {
        self.next_used = index;
        // All elements are visible before the index (2.7.8.2).
        self.parts
            .used
            .atomic(INDEX)
            .store(index, Ordering::Release);
    }

    /// Logs the last `count` elements, and the index.
    pub(super) fn log_used(&self, count: u32, log: &DirtyLog, at: u64) -> u64 {
        let start = u32::from(self.next_used).wrapping_sub(count) & self.mask;
        let straight = count.min(self.size - start);
        let elements = |from: u32, count: u32| {
            let bytes = 2 * u64::from(RING) + 8 * u64::from(from);
            log.mark(at.saturating_add(bytes), 8 * u64::from(count))
        };
        elements(start, straight) + elements(0, count - straight) + log.mark(at, 4)
    }

    /// Logs flags and event index.
    pub(super) fn log_event(&self, log: &DirtyLog, at: u64) -> u64 {
        let event = 2 * u64::from(RING) + 8 * u64::from(self.size);
        log.mark(at, 2) + log.mark(at.saturating_add(event), 2)
    }

    #[inline]
    pub(super) fn wants_notification(&mut self) -> bool {
        // The index is visible before the driver's flags and event index are read.
        fence(Ordering::SeqCst);
        let new = self.next_used;
        if !self.events {
            let flags = self.parts.available.atomic(FLAGS).load(Ordering::Relaxed);
            return flags & NO_NOTIFICATION == 0;
        }
        let old = self.notified.replace(new);
        let event = self.parts.available.atomic(RING + self.size);
        let event = event.load(Ordering::Relaxed);
        match old {
            None => true,
            Some(old) => new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old),
        }
    }

    pub(super) fn set_notification(&mut self, wanted: bool) -> bool {
        let index = self.parts.used.atomic(FLAGS);
        if !self.events {
            let flags = if wanted { 0 } else { NO_NOTIFICATION };
            index.store(flags, Ordering::Relaxed);
        } else {
            // Flags must stay 0 (2.7.10.2). Not wanted: an index that is just behind.
            let event = match wanted {
                true => self.next_available,
                false => self.next_available.wrapping_sub(1),
            };
            let word = RING + 4 * self.size;
            self.parts.used.atomic(word).store(event, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        let available = self.parts.available.atomic(INDEX).load(Ordering::Acquire);
        available != self.next_available
    }
}
