//! The reorder array: a slot for each packet between fetch and write-back, in ring order.

use std::mem::{forget, replace, take};
use std::ptr::NonNull;

use crate::net::Packet;
use crate::ring::{Direction, Used};

/// What a packet in flight gives back, and where its only copy lies in the guest.
#[derive(Debug, Default, Clone, Copy)]
struct Slot {
    /// The guest's side of a packet's only copy.
    guest: Option<NonNull<u8>>,
    /// The first buffer to give back.
    first: Used,
    /// Copies handed to a channel: so many of several, or [`ONE`].
    copies: u32,
    /// Further buffers to give back.
    more: u32,
}

/// A copy that a channel makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyInFlight {
    pub(super) source: NonNull<u8>,
    pub(super) destination: NonNull<u8>,
    pub(super) len: u32,
    /// Sequence number of its packet's slot.
    slot: u32,
}

/// Numbers of copies: with this bit they count the copies of packets that have several, without
/// it the slots of those that have one.
const SEVERAL: u32 = 1 << 31;

/// A slot's number of copies if it has one that is not among [`Slots::copies`].
const ONE: u32 = u32::MAX;

/// Slots in ring order. Copies may end in any order; packets leave in this one.
///
/// Each part of the slots is an array of its own: the end of a copy touches the smallest alone.
#[derive(Debug)]
pub(super) struct Slots {
    direction: Direction,
    /// By slot: copies that have not ended.
    outstanding: Box<[u32]>,
    /// By slot: the packet. One without room if there is nothing to deliver: the buffer had a fault.
    packets: Box<[Packet]>,
    slots: Box<[Slot]>,
    /// Slots that are open and have nothing to deliver.
    empty: u32,
    head: u32,
    tail: u32,
    /// Copies of packets that have several, in order.
    copies: Box<[CopyInFlight]>,
    copies_head: u32,
    copies_tail: u32,
    /// The first copy of the slot that is opened next.
    copies_open: u32,
    /// Second and further buffers of all slots, in order.
    more: Box<[Used]>,
    more_head: u32,
    more_tail: u32,
}

// SAFETY: copies name addresses in a packet's buffer and in shared memory; see `Packet`, `Mapping`.
unsafe impl Send for Slots {}

impl Slots {
    pub(super) fn new(direction: Direction) -> Slots {
        Slots {
            direction,
            outstanding: Box::default(),
            packets: Box::default(),
            slots: Box::default(),
            empty: 0,
            head: 0,
            tail: 0,
            copies: Box::default(),
            copies_head: 0,
            copies_tail: 0,
            copies_open: 0,
            more: Box::default(),
            more_head: 0,
            more_tail: 0,
        }
    }

    /// Room for as many packets and buffers as a ring has descriptors. Nothing may be in flight.
    pub(super) fn resize(&mut self, size: u32) {
        debug_assert!(self.is_empty());
        let capacity = size.next_power_of_two();
        if self.slots.len() == capacity as usize {
            return;
        }
        let copy = CopyInFlight {
            source: NonNull::dangling(),
            destination: NonNull::dangling(),
            len: 0,
            slot: 0,
        };
        *self = Slots {
            direction: self.direction,
            outstanding: vec![0; capacity as usize].into(),
            packets: (0..capacity).map(|_| Packet::default()).collect(),
            slots: vec![Slot::default(); capacity as usize].into(),
            empty: 0,
            // Sequence numbers go on: a copy of an earlier life is never mistaken.
            head: self.tail,
            tail: self.tail,
            // Chains have several copies; when these are taken, the core copies.
            copies: vec![copy; 2 * capacity.max(32) as usize].into(),
            copies_head: self.copies_tail,
            copies_tail: self.copies_tail,
            copies_open: self.copies_tail,
            more: vec![Used::default(); capacity as usize].into(),
            more_head: 0,
            more_tail: 0,
        };
    }

    #[inline]
    fn at(&self, sequence: u32) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Copies of packets with several that can be staged.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.copies.len() - self.copies_tail.wrapping_sub(self.copies_head) as usize
    }

    /// Notes one of several copies of the slot that is opened next. Returns its number, which
    /// its end carries. There must be room.
    #[inline]
    pub(super) fn stage(&mut self, source: NonNull<u8>, destination: NonNull<u8>, len: u32) -> u32 {
        let sequence = self.copies_tail;
        let at = sequence as usize & (self.copies.len() - 1);
        self.copies[at] = CopyInFlight {
            source,
            destination,
            len,
            slot: self.tail,
        };
        self.copies_tail = sequence.wrapping_add(1);
        sequence | SEVERAL
    }

    /// Number of the only copy of the slot that is opened next.
    #[inline]
    pub(super) fn only_copy(&self) -> u32 {
        self.tail & !SEVERAL
    }

    /// Opens a slot with one copy, of the whole packet, and one buffer to give back.
    #[inline]
    pub(super) fn open_one(&mut self, packet: Packet, guest: NonNull<u8>, used: Used) {
        let slot = Slot {
            guest: Some(guest),
            first: used,
            copies: ONE,
            more: 0,
        };
        self.push(packet, 1, slot);
    }

    /// The next slot, which is free: its packet has no room.
    #[inline(always)]
    fn push(&mut self, packet: Packet, outstanding: u32, slot: Slot) {
        assert!(
            self.len() < self.slots.len(),
            "more buffers than the ring has"
        );
        let at = self.at(self.tail);
        self.tail = self.tail.wrapping_add(1);
        forget(replace(&mut self.packets[at], packet));
        self.outstanding[at] = outstanding;
        self.slots[at] = slot;
    }

    /// Opens a slot with the copies staged since the last one, and the buffers to give back.
    #[inline]
    pub(super) fn open(&mut self, packet: Option<Packet>, first: Used, more: &[Used]) {
        let copies = self.copies_tail.wrapping_sub(self.copies_open);
        self.copies_open = self.copies_tail;
        self.empty += u32::from(packet.is_none());
        let slot = Slot {
            guest: None,
            first,
            copies,
            more: more.len() as u32,
        };
        self.push(packet.unwrap_or_default(), copies, slot);
        for element in more {
            let at = self.more_tail as usize & (self.more.len() - 1);
            self.more[at] = *element;
            self.more_tail = self.more_tail.wrapping_add(1);
        }
    }

    /// Notes that the copy with this number has ended. False if it is not in flight.
    #[inline]
    pub(super) fn complete(&mut self, sequence: u32) -> bool {
        let slot = match sequence & SEVERAL {
            0 if (sequence.wrapping_sub(self.head) & !SEVERAL) < self.len() as u32 => sequence,
            0 => return false,
            _ => match self.one_of_several(sequence) {
                Some(copy) => copy.slot,
                None => return false,
            },
        };
        let at = self.at(slot);
        let outstanding = &mut self.outstanding[at];
        let in_flight = *outstanding > 0;
        *outstanding -= u32::from(in_flight);
        in_flight
    }

    /// The copy with this number, of a packet that has not left.
    pub(super) fn copy(&self, sequence: u32) -> Option<CopyInFlight> {
        if sequence & SEVERAL != 0 {
            return self.one_of_several(sequence);
        }
        if sequence.wrapping_sub(self.head) & !SEVERAL >= self.len() as u32 {
            return None;
        }
        let (packet, slot) = (
            &self.packets[self.at(sequence)],
            &self.slots[self.at(sequence)],
        );
        let guest = slot.guest.filter(|_| slot.copies == ONE)?;
        let (source, destination) = match self.direction {
            Direction::ToGuest => (packet.data(), guest),
            Direction::FromGuest => (guest, packet.data()),
        };
        Some(CopyInFlight {
            source,
            destination,
            len: packet.len() as u32,
            slot: sequence,
        })
    }

    #[inline]
    fn one_of_several(&self, sequence: u32) -> Option<CopyInFlight> {
        let ahead = sequence.wrapping_sub(self.copies_head) & !SEVERAL;
        let known = ahead < self.copies_tail.wrapping_sub(self.copies_head);
        known.then(|| self.copies[sequence as usize & (self.copies.len() - 1)])
    }

    /// The oldest packets whose copies have all ended, appended to `out`, and their buffers, to `used`.
    /// Returns how many packets had a copy that a channel made.
    #[inline]
    pub(super) fn leave(&mut self, used: &mut Vec<Used>, out: &mut Vec<Packet>) -> u64 {
        // Before the ring is enabled there are no slots at all.
        if self.is_empty() {
            return 0;
        }
        let (start, len, before) = (self.at(self.head), self.len(), out.len());
        let straight = len.min(self.slots.len() - start);
        let mut end = start + done_prefix(&self.outstanding[start..start + straight]);
        let mut offloaded = self.leave_between(start, end, used, out);
        let mut count = end - start;
        if count == straight && count < len {
            end = done_prefix(&self.outstanding[..len - straight]);
            offloaded += self.leave_between(0, end, used, out);
            count += end;
        }
        self.head = self.head.wrapping_add(count as u32);
        self.empty -= (count - (out.len() - before)) as u32;
        if self.is_empty() {
            // The next packets find the first slots in the cache.
            let mask = self.slots.len() as u32 - 1;
            self.tail = self.tail.wrapping_add(mask) & !mask;
            self.head = self.tail;
        }
        offloaded
    }

    /// Packets and buffers of neighbouring slots, all of whose copies have ended.
    #[inline]
    fn leave_between(
        &mut self,
        from: usize,
        to: usize,
        used: &mut Vec<Used>,
        out: &mut Vec<Packet>,
    ) -> u64 {
        let slots = &self.slots[from..to];
        match self.more_head == self.more_tail {
            true => used.extend(slots.iter().map(|slot| slot.first)),
            false => {
                for slot in slots {
                    used.push(slot.first);
                    for _ in 0..slot.more {
                        used.push(self.more[self.more_head as usize & (self.more.len() - 1)]);
                        self.more_head = self.more_head.wrapping_add(1);
                    }
                }
            }
        }
        if self.copies_head != self.copies_tail {
            for slot in slots.iter().filter(|slot| slot.copies != ONE) {
                self.copies_head = self.copies_head.wrapping_add(slot.copies);
            }
        }
        let packets = self.packets[from..to].iter_mut().map(take);
        match self.empty {
            0 => out.extend(packets),
            _ => out.extend(packets.filter(|packet| packet.capacity() > 0)),
        }
        slots.iter().filter(|slot| slot.copies != 0).count() as u64
    }

    /// Where copies that have not ended write, and how many bytes; of packets with several copies, all
    /// of these.
    pub(super) fn destinations(&self) -> Vec<(NonNull<u8>, u32)> {
        let in_flight = |slot: u32| self.outstanding[self.at(slot)] > 0;
        let open = |of: u32| of.wrapping_sub(self.head) < self.len() as u32;
        let only = (0..self.len() as u32).filter_map(|i| {
            let slot = self.head.wrapping_add(i);
            self.copy(slot & !SEVERAL).filter(|_| in_flight(slot))
        });
        let count = self.copies_tail.wrapping_sub(self.copies_head);
        let several = (0..count).filter_map(|i| {
            let copy = self.one_of_several(self.copies_head.wrapping_add(i))?;
            (open(copy.slot) && in_flight(copy.slot)).then_some(copy)
        });
        let all = only.chain(several);
        all.map(|copy| (copy.destination, copy.len)).collect()
    }

    /// All packets in flight; the slots are empty then.
    pub(super) fn abandon(&mut self) -> Vec<Packet> {
        let mut packets = Vec::new();
        while !self.is_empty() {
            let at = self.at(self.head);
            packets.push(take(&mut self.packets[at]));
            self.outstanding[at] = 0;
            self.head = self.head.wrapping_add(1);
        }
        self.empty = 0;
        self.copies_head = self.copies_tail;
        self.copies_open = self.copies_tail;
        self.more_head = self.more_tail;
        packets
    }
}

/// How many slots, from the first on, have no copy that has not ended.
#[inline]
fn done_prefix(outstanding: &[u32]) -> usize {
    outstanding
        .iter()
        .take_while(|copies| **copies == 0)
        .count()
}

#[cfg(test)]
mod tests;
