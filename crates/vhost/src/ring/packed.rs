//! Packed virtqueues (virtio 1.3, 2.8).

use std::sync::atomic::{Ordering, fence};

use virtio_bindings::virtio_ring as v;

use super::ahead::Ahead;
use super::burst::{Burst, Direction, Fault, RingFault, Used};
use super::chain::{Collector, Descriptor, INDIRECT, NEXT, WRITE, plain};
use crate::memory::{DirtyLog, Hint, MemoryMap, Shared};
use crate::protocol::features as f;
use crate::protocol::{VringAddress, VringConfig};

const AVAILABLE: u16 = 1 << v::VRING_PACKED_DESC_F_AVAIL;
const USED: u16 = 1 << v::VRING_PACKED_DESC_F_USED;
const EVENT_ENABLE: u16 = v::VRING_PACKED_EVENT_FLAG_ENABLE as u16;
const EVENT_DISABLE: u16 = v::VRING_PACKED_EVENT_FLAG_DISABLE as u16;
const EVENT_DESCRIPTOR: u16 = v::VRING_PACKED_EVENT_FLAG_DESC as u16;
const EVENT_WRAP: u16 = 1 << v::VRING_PACKED_EVENT_F_WRAP_CTR;
/// Words of an event area: offset and wrap counter; flags.
const EVENT_OFFSET: u32 = 0;
const EVENT_FLAGS: u32 = 1;
/// Descriptors of a list that are looked at: as many as the largest ring of QEMU has.
const MAX_LIST: u32 = 1024;
/// The wrap counter in a base.
const BASE_WRAP: u32 = 1 << 15;

#[derive(Debug, Clone, Copy)]
struct Parts {
    /// Two words a descriptor.
    ring: Shared<u64>,
    driver: Shared<u16>,
    device: Shared<u16>,
}

impl Parts {
    fn new(address: &VringAddress, size: u32, memory: &MemoryMap) -> Result<Parts, &'static str> {
        let find = |user: u64, bytes: u32, align: u64| {
            let ptr = memory.translate_user(user, u64::from(bytes));
            ptr.filter(|ptr| (ptr.as_ptr() as u64).is_multiple_of(align))
                .ok_or("a part lies outside the regions or is misaligned")
        };
        let ring = find(address.descriptors, 16 * size, 16)?;
        let driver = find(address.available, 4, 4)?;
        let device = find(address.used, 4, 4)?;
        Ok(Parts {
            // SAFETY: mapped and aligned; the owner of the ring holds the map.
            ring: unsafe { Shared::new(ring, 2 * size) },
            // SAFETY: as above.
            driver: unsafe { Shared::new(driver, 2) },
            // SAFETY: as above.
            device: unsafe { Shared::new(device, 2) },
        })
    }
}

/// A place in the ring and the wrap counter there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    at: u32,
    wrap: bool,
}

impl Cursor {
    #[inline]
    fn advance(&mut self, by: u32, size: u32) {
        self.at += by;
        if self.at >= size {
            self.at -= size;
            self.wrap = !self.wrap;
        }
    }

    fn retreat(&mut self, by: u32, size: u32) {
        if self.at < by {
            self.at += size;
            self.wrap = !self.wrap;
        }
        self.at -= by;
    }

    fn to_base(self) -> u32 {
        self.at | if self.wrap { BASE_WRAP } else { 0 }
    }
}

#[derive(Debug)]
pub(super) struct Packed {
    parts: Parts,
    size: u32,
    events: bool,
    in_order: bool,
    next_available: Cursor,
    next_used: Cursor,
    /// Descriptors fetched and not yet used.
    in_flight: u32,
    /// Used position at the last notification; none since the start.
    notified: Option<u32>,
}

impl Packed {
    pub(super) fn new(
        address: &VringAddress,
        config: &VringConfig,
        features: u64,
        memory: &MemoryMap,
    ) -> Result<Packed, &'static str> {
        let size = config.size;
        // Front ends fill only the lower half reliably; after a drain both halves are equal.
        let start = Cursor {
            at: config.base & (BASE_WRAP - 1),
            wrap: config.base & BASE_WRAP != 0,
        };
        if start.at >= size {
            return Err("the base is beyond the ring");
        }
        Ok(Packed {
            parts: Parts::new(address, size, memory)?,
            size,
            events: features & f::EVENT_IDX != 0,
            in_order: features & f::IN_ORDER != 0,
            next_available: start,
            next_used: start,
            in_flight: 0,
            notified: None,
        })
    }

    pub(super) fn relocate(
        &mut self,
        address: &VringAddress,
        memory: &MemoryMap,
    ) -> Result<(), &'static str> {
        self.parts = Parts::new(address, self.size, memory)?;
        Ok(())
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn in_order(&self) -> bool {
        self.in_order
    }

    pub(super) fn base(&self) -> u32 {
        self.next_available.to_base() | self.next_used.to_base() << 16
    }

    /// The descriptor's second word, if the driver has made it available.
    #[inline]
    fn available(&self, cursor: Cursor) -> Option<u64> {
        let word = self.parts.ring.atomic(2 * cursor.at + 1);
        let word = word.load(Ordering::Acquire);
        let flags = (word >> 48) as u16;
        let available = flags & AVAILABLE != 0;
        let used = flags & USED != 0;
        (available == cursor.wrap && used != cursor.wrap).then_some(word)
    }

    /// Brings in the lines of `count` descriptors from a place on. Those of buffers that are given back
    /// one by one are written soon.
    #[inline]
    fn prefetch_lines(&self, direction: Direction, from: u32, count: u32) {
        const DESCRIPTORS: u32 = 4;
        for ahead in (0..count).step_by(DESCRIPTORS as usize) {
            let at = from + ahead;
            let at = at - if at < self.size { 0 } else { self.size };
            match direction {
                Direction::ToGuest => self.parts.ring.prefetch_write(2 * at),
                Direction::FromGuest => self.parts.ring.prefetch(2 * at),
            }
        }
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
        let plain = plain(direction);
        if max > 1 && self.available(self.next_available).is_some() {
            self.prefetch_lines(direction, self.next_available.at + 4, max as u32);
        }
        for done in 0..max {
            if burst.is_full() {
                return Ok(done);
            }
            let Some(word) = self.available(self.next_available) else {
                return Ok(done);
            };
            let addr = self.parts.ring.read(2 * self.next_available.at);
            let first = Descriptor::packed(addr, word);
            if first.flags & (NEXT | INDIRECT | WRITE) == plain
                && self.in_flight < self.size
                && burst.push_plain(memory, hint, (addr, first.len), first.tail)
            {
                self.in_flight += 1;
                self.next_available.advance(1, self.size);
                continue;
            }
            let mut collector = Collector::new(memory, hint, direction, self.size, burst);
            let (result, id, slots) = self.walk(first, &mut collector)?;
            let found = self.in_flight + slots;
            if found > self.size {
                return Err(RingFault::Overrun {
                    found,
                    size: self.size,
                });
            }
            collector.finish(id, slots as u16, result);
            self.in_flight = found;
            self.next_available.advance(slots, self.size);
        }
        Ok(max)
    }

    #[inline]
    pub(super) fn look_ahead(
        &self,
        memory: &MemoryMap,
        hint: &mut Hint,
        ahead: &Ahead,
        count: u32,
    ) {
        let mut cursor = self.next_available;
        if self.available(cursor).is_none() {
            return;
        }
        self.prefetch_lines(ahead.direction(), cursor.at, count);
        for _ in 0..count.min(ahead.buffers as u32) {
            let Some(word) = self.available(cursor) else {
                return;
            };
            let d = Descriptor::packed(self.parts.ring.read(2 * cursor.at), word);
            ahead.prefetch_described(memory, hint, (d.addr, d.len));
            cursor.advance(1, self.size);
        }
    }

    /// Collects a list of descriptors: the result, the buffer's id and how many they were.
    #[inline(never)]
    fn walk(
        &self,
        first: Descriptor,
        collector: &mut Collector<'_>,
    ) -> Result<(Result<(), Fault>, u16, u32), RingFault> {
        let mut d = first;
        let mut cursor = self.next_available;
        let mut slots = 1;
        let mut result = Ok(());
        loop {
            if result.is_ok() {
                result = match d.flags & INDIRECT {
                    0 => collector.push(d),
                    _ if slots > 1 => Err(Fault::Indirect),
                    _ => collector.push_table(d, true),
                };
            } else {
                collector.pass_over();
            }
            if d.flags & NEXT == 0 {
                return Ok((result, d.tail, slots));
            }
            if slots == self.size {
                return Ok((Err(Fault::Length), d.tail, slots));
            }
            if slots == MAX_LIST {
                return Err(RingFault::List { limit: MAX_LIST });
            }
            slots += 1;
            cursor.advance(1, self.size);
            let word = self.parts.ring.read(2 * cursor.at + 1);
            d = Descriptor::packed(self.parts.ring.read(2 * cursor.at), word);
        }
    }

    pub(super) fn unfetch(&mut self, slots: u16) {
        self.next_available.retreat(u32::from(slots), self.size);
        self.in_flight -= u32::from(slots);
    }

    #[inline]
    fn used_word(cursor: Cursor, used: Used) -> u64 {
        let mut flags = if cursor.wrap { AVAILABLE | USED } else { 0 };
        if used.len > 0 {
            flags |= WRITE;
        }
        u64::from(used.len) | u64::from(used.id) << 32 | u64::from(flags) << 48
    }

    /// The first one is made visible last: the driver looks there (2.8.9).
    #[inline]
    pub(super) fn publish(&mut self, used: &[Used]) {
        let first = self.next_used;
        for (i, element) in used.iter().enumerate() {
            if i > 0 {
                let word = Packed::used_word(self.next_used, *element);
                let at = self.parts.ring.atomic(2 * self.next_used.at + 1);
                at.store(word, Ordering::Release);
            }
            self.in_flight -= u32::from(element.slots);
            self.next_used.advance(u32::from(element.slots), self.size);
        }
        let word = Packed::used_word(first, used[0]);
        let at = self.parts.ring.atomic(2 * first.at + 1);
        at.store(word, Ordering::Release);
    }

    #[inline]
    pub(super) fn publish_in_order(&mut self, used: &[Used]) {
        let Some(last) = used.last() else {
            return;
        };
        let first = self.next_used;
        let slots: u32 = used.iter().map(|u| u32::from(u.slots)).sum();
        self.in_flight -= slots;
        self.next_used.advance(slots, self.size);
        let word = Packed::used_word(first, *last);
        let at = self.parts.ring.atomic(2 * first.at + 1);
        at.store(word, Ordering::Release);
    }

    /// Logs the last `slots` descriptors that were used.
    pub(super) fn log_used(&self, slots: u32, log: &DirtyLog, memory: &MemoryMap) -> u64 {
        let mut first = self.next_used;
        first.retreat(slots, self.size);
        let straight = slots.min(self.size - first.at);
        let descriptors = |from: u32, count: u32| {
            memory.log(
                log,
                self.parts.ring.address(2 * from),
                16 * u64::from(count),
            )
        };
        descriptors(first.at, straight) + descriptors(0, slots - straight)
    }

    #[inline]
    pub(super) fn wants_notification(&mut self) -> bool {
        // The descriptors are visible before the driver event area is read.
        fence(Ordering::SeqCst);
        let flags = self.parts.driver.atomic(EVENT_FLAGS);
        let flags = flags.load(Ordering::Acquire) & 3;
        let new = self.next_used;
        let old = self.notified.replace(new.at);
        if flags != EVENT_DESCRIPTOR || !self.events {
            return flags != EVENT_DISABLE;
        }
        let Some(old) = old else {
            return true;
        };
        let event = self.parts.driver.atomic(EVENT_OFFSET);
        let event = event.load(Ordering::Relaxed);
        let (size, mut old) = (self.size as i64, i64::from(old));
        let mut offset = i64::from(event & !EVENT_WRAP);
        let new_at = i64::from(new.at);
        if (event & EVENT_WRAP != 0) != new.wrap {
            offset -= size;
        }
        if new_at <= old {
            old -= size;
        }
        (old..new_at).contains(&offset)
    }

    pub(super) fn set_notification(&mut self, wanted: bool) -> bool {
        let flags = match (wanted, self.events) {
            (false, _) => EVENT_DISABLE,
            (true, false) => EVENT_ENABLE,
            (true, true) => {
                let offset = self.next_available.to_base() as u16;
                let word = self.parts.device.atomic(EVENT_OFFSET);
                word.store(offset, Ordering::Relaxed);
                EVENT_DESCRIPTOR
            }
        };
        let word = self.parts.device.atomic(EVENT_FLAGS);
        word.store(flags, Ordering::Release);
        fence(Ordering::SeqCst);
        self.available(self.next_available).is_some()
    }
}
