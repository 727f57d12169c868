//! The driver's side of a ring, as virtio 1.3 describes it.

use std::collections::VecDeque;

use dray_vhost::protocol::features as f;

use crate::guest::{BASE, Memory, USER};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Split,
    Packed,
}

/// A buffer that was given to the device.
#[derive(Debug, Clone)]
struct Posted {
    id: u16,
    chain: Vec<(u64, u32, bool)>,
    /// Descriptors of the ring that it takes.
    slots: u16,
    indexes: Vec<u16>,
}

/// A buffer that has come back.
pub struct Used {
    pub bytes: Vec<u8>,
}

pub struct Driver {
    kind: Kind,
    pub size: u32,
    in_order: bool,
    /// Where the ring's parts lie (guest addresses).
    pub descriptors: u64,
    pub available: u64,
    pub used_ring: u64,
    /// Split: free-running indices. Packed: positions.
    next: u32,
    wrap: bool,
    last_used: u32,
    used_wrap: bool,
    free: VecDeque<u16>,
    posted: VecDeque<Posted>,
}

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

impl Driver {
    pub fn new(kind: Kind, size: u32, features: u64, at: u64) -> Driver {
        let available = at + 16 * u64::from(size);
        let used_ring = (available + 8 + 2 * u64::from(size)).next_multiple_of(64);
        Driver {
            kind,
            size,
            in_order: features & f::IN_ORDER != 0,
            descriptors: at,
            available: available.next_multiple_of(4),
            used_ring,
            next: 0,
            wrap: true,
            last_used: 0,
            used_wrap: true,
            free: (0..size as u16).collect(),
            posted: VecDeque::new(),
        }
    }

    pub fn base(&self) -> u32 {
        match self.kind {
            Kind::Split => self.next & 0xffff,
            Kind::Packed => self.next | u32::from(self.wrap) << 15,
        }
    }

    /// The payload of SET_VRING_ADDR.
    pub fn address(&self, index: u32) -> Vec<u8> {
        let mut bytes = crate::guest::words(index, 0).to_vec();
        for part in [self.descriptors, self.used_ring, self.available, BASE] {
            bytes.extend((part - BASE + USER).to_ne_bytes());
        }
        bytes
    }

    pub fn write_split(&self, memory: &Memory, at: u64, d: (u64, u32, u16, u16)) {
        let mut bytes = d.0.to_le_bytes().to_vec();
        bytes.extend(d.1.to_le_bytes());
        bytes.extend(d.2.to_le_bytes());
        bytes.extend(d.3.to_le_bytes());
        memory.write(at, &bytes);
    }

    fn free_slots(&self) -> usize {
        let taken: usize = self.posted.iter().map(|p| usize::from(p.slots)).sum();
        self.size as usize - taken
    }

    /// Whether a chain of so many parts can be made available.
    pub fn has_room(&self, parts: usize, indirect: bool) -> bool {
        let slots = if indirect { 1 } else { parts };
        self.free_slots() >= slots && (self.kind == Kind::Packed || self.free.len() >= slots)
    }

    /// Makes a chain available. False if there is no room.
    pub fn add(&mut self, memory: &Memory, chain: &[(u64, u32, bool)], table: Option<u64>) -> bool {
        if !self.has_room(chain.len(), table.is_some()) {
            return false;
        }
        let slots = if table.is_some() { 1 } else { chain.len() };
        let (slots, chain) = (slots as u16, chain.to_vec());
        match self.kind {
            Kind::Split => self.add_split(memory, chain, slots, table),
            Kind::Packed => self.add_packed(memory, chain, slots, table),
        }
        true
    }

    fn add_split(
        &mut self,
        memory: &Memory,
        chain: Vec<(u64, u32, bool)>,
        slots: u16,
        table: Option<u64>,
    ) {
        let indexes: Vec<u16> = self.free.drain(..usize::from(slots)).collect();
        let flags = |write: bool| if write { WRITE } else { 0 };
        let last = chain.len() - 1;
        for (i, (addr, len, write)) in chain.iter().enumerate() {
            let next = if i == last { 0 } else { NEXT };
            let (at, tail) = match table {
                Some(table) => (table + 16 * i as u64, i as u16 + 1),
                None => {
                    let tail = indexes.get(i + 1).copied().unwrap_or(0);
                    (self.descriptors + 16 * u64::from(indexes[i]), tail)
                }
            };
            self.write_split(memory, at, (*addr, *len, flags(*write) | next, tail));
        }
        if let Some(table) = table {
            let at = self.descriptors + 16 * u64::from(indexes[0]);
            let len = 16 * chain.len() as u32;
            self.write_split(memory, at, (table, len, INDIRECT, 0));
        }
        let id = indexes[0];
        self.posted.push_back(Posted {
            id,
            chain,
            slots,
            indexes,
        });
        self.offer_split(memory, id);
    }

    /// Puts a head into the available ring.
    pub fn offer_split(&mut self, memory: &Memory, head: u16) {
        let slot = u64::from(self.next % self.size);
        memory.write(self.available + 4 + 2 * slot, &head.to_le_bytes());
        self.next = (self.next + 1) & 0xffff;
        memory.write(self.available + 2, &(self.next as u16).to_le_bytes());
    }

    fn add_packed(
        &mut self,
        memory: &Memory,
        chain: Vec<(u64, u32, bool)>,
        slots: u16,
        table: Option<u64>,
    ) {
        let id = self.free.pop_front().expect("an id");
        let list: Vec<(u64, u32, u16)> = match table {
            Some(table) => {
                for (i, (addr, len, write)) in chain.iter().enumerate() {
                    let flags = if *write { WRITE } else { 0 };
                    self.write_split(memory, table + 16 * i as u64, (*addr, *len, 0, flags));
                }
                vec![(table, 16 * chain.len() as u32, INDIRECT)]
            }
            None => {
                let flags = |write: bool| if write { WRITE } else { 0 };
                chain.iter().map(|(a, l, w)| (*a, *l, flags(*w))).collect()
            }
        };
        self.offer_packed(memory, &list, id);
        self.posted.push_back(Posted {
            id,
            chain,
            slots,
            indexes: vec![id],
        });
    }

    /// Writes a list of descriptors, the first one last.
    pub fn offer_packed(&mut self, memory: &Memory, list: &[(u64, u32, u16)], id: u16) {
        let mut writes = Vec::new();
        let last = list.len() - 1;
        for (i, (addr, len, flags)) in list.iter().enumerate() {
            let available = if self.wrap { 1 << 7 } else { 1 << 15 };
            let next = if i == last { 0 } else { NEXT };
            writes.push((self.next, *addr, *len, flags | next | available));
            self.next += 1;
            if self.next == self.size {
                self.next = 0;
                self.wrap = !self.wrap;
            }
        }
        for (at, addr, len, flags) in writes.into_iter().rev() {
            let at = self.descriptors + 16 * u64::from(at);
            self.write_split(memory, at, (addr, len, id, flags));
        }
    }

    /// The next buffer that has come back, with what was written to it.
    pub fn used(&mut self, memory: &Memory) -> Option<Used> {
        let (id, len) = match self.kind {
            Kind::Split => self.used_split(memory)?,
            Kind::Packed => self.used_packed(memory)?,
        };
        let at = match self.in_order {
            true => 0,
            false => self
                .posted
                .iter()
                .position(|p| p.id == id)
                .expect("an id of ours"),
        };
        let posted = self.posted.remove(at).expect("a buffer of ours");
        if self.kind == Kind::Packed {
            self.last_used += u32::from(posted.slots);
            if self.last_used >= self.size {
                self.last_used -= self.size;
                self.used_wrap = !self.used_wrap;
            }
        }
        self.free.extend(&posted.indexes);
        let (mut bytes, mut left) = (Vec::new(), len);
        for (addr, len, write) in &posted.chain {
            let part = left.min(*len);
            if *write && part > 0 {
                bytes.extend(memory.read(*addr, part as usize));
            }
            left -= part;
        }
        assert!(
            left == 0 || !posted.chain[0].2,
            "more was written than the buffer has"
        );
        Some(Used { bytes })
    }

    fn used_split(&mut self, memory: &Memory) -> Option<(u16, u32)> {
        if memory.u16(self.used_ring + 2) == self.last_used as u16 {
            return None;
        }
        let at = self.used_ring + 4 + 8 * u64::from(self.last_used % self.size);
        self.last_used = (self.last_used + 1) & 0xffff;
        Some((memory.u32(at) as u16, memory.u32(at + 4)))
    }

    fn used_packed(&mut self, memory: &Memory) -> Option<(u16, u32)> {
        let at = self.descriptors + 16 * u64::from(self.last_used);
        let flags = memory.u16(at + 14);
        let (available, used) = (flags & 1 << 7 != 0, flags & 1 << 15 != 0);
        let front = self.posted.front()?;
        if available == self.used_wrap && used == self.used_wrap {
            return Some((memory.u16(at + 12), memory.u32(at + 8)));
        }
        // In order, one descriptor may stand for several buffers: those before the one it names.
        let _ = front;
        None
    }

    /// Whether every buffer has come back; with IN_ORDER one element may stand for many.
    pub fn reclaim(&mut self, memory: &Memory) -> usize {
        let mut count = 0;
        if self.in_order && self.kind == Kind::Packed {
            while let Some((id, _)) = self.used_packed(memory) {
                loop {
                    let posted = self.posted.pop_front().expect("a buffer of ours");
                    self.last_used += u32::from(posted.slots);
                    if self.last_used >= self.size {
                        self.last_used -= self.size;
                        self.used_wrap = !self.used_wrap;
                    }
                    self.free.extend(&posted.indexes);
                    count += 1;
                    if posted.id == id {
                        break;
                    }
                }
            }
            return count;
        }
        while self.used(memory).is_some() {
            count += 1;
        }
        count
    }
}

/// What only a hostile driver does.
impl Driver {
    /// Index of the descriptor that is used next (split).
    pub fn next_index(&self) -> u16 {
        self.free[0]
    }

    /// Makes a list of descriptors available as they are; all but the last are continued.
    pub fn add_raw(&mut self, memory: &Memory, list: &[(u64, u32, u16)]) {
        let slots = list.len() as u16;
        if self.kind == Kind::Packed {
            let id = self.free.pop_front().expect("an id");
            self.offer_packed(memory, list, id);
            return self.posted.push_back(Posted {
                id,
                chain: vec![(0, 0, false)],
                slots,
                indexes: vec![id],
            });
        }
        let indexes: Vec<u16> = self.free.drain(..list.len()).collect();
        for (i, (addr, len, flags)) in list.iter().enumerate() {
            let next = indexes.get(i + 1).copied();
            let more = if next.is_some() { NEXT } else { 0 };
            let at = self.descriptors + 16 * u64::from(indexes[i]);
            self.write_split(memory, at, (*addr, *len, flags | more, next.unwrap_or(0)));
        }
        self.post_split(memory, indexes[0], indexes);
    }

    /// Makes a head available that may be no index of the table.
    pub fn post_head(&mut self, memory: &Memory, head: u16) {
        self.post_split(memory, head, Vec::new());
    }

    /// Makes one descriptor available that is continued at `next`.
    pub fn post_looped(&mut self, memory: &Memory, d: (u64, u32, u16), next: u16) {
        let index = self.free.pop_front().expect("an index");
        let at = self.descriptors + 16 * u64::from(index);
        self.write_split(memory, at, (d.0, d.1, d.2, next));
        self.post_split(memory, index, vec![index]);
    }

    fn post_split(&mut self, memory: &Memory, id: u16, indexes: Vec<u16>) {
        self.posted.push_back(Posted {
            id,
            chain: vec![(0, 0, false)],
            slots: 1,
            indexes,
        });
        self.offer_split(memory, id);
    }

    /// Says that so many more buffers are available (split).
    pub fn jump(&mut self, memory: &Memory, by: u32) {
        self.next = (self.next + by) & 0xffff;
        memory.write(self.available + 2, &(self.next as u16).to_le_bytes());
    }
}
