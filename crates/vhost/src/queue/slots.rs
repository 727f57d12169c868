//! The reorder array: a slot for each packet between fetch and write-back, in ring order.

use std::mem::{forget, replace};
use std::ptr::NonNull;

use crate::net::Packet;
use crate::ring::{Direction, Used};

/// A packet in flight. As long as a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    /// None if there is nothing to deliver: the buffer had a fault.
    packet: Option<Packet>,
    /// The guest's side of a packet's only copy.
    guest: Option<NonNull<u8>>,
    /// Copies that have not ended.
    outstanding: u32,
    /// Copies handed to a channel: so many of several, or [`ONE`].
    copies: u32,
    /// The first buffer to give back.
    first: Used,
    /// Further buffers to give back.
    more: u32,
}

const _: () = assert!(size_of::<Slot>() == 64);

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
#[derive(Debug)]
pub(super) struct Slots {
    direction: Direction,
    slots: Box<[Slot]>,
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

/// A packet that leaves.
pub(super) struct Left {
    pub(super) packet: Option<Packet>,
    pub(super) offloaded: bool,
}

impl Slots {
    pub(super) fn new(direction: Direction) -> Slots {
        Slots {
            direction,
            slots: Box::default(),
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
            slots: (0..capacity).map(|_| Slot::default()).collect(),
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

    /// Copies that can be staged.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.copies.len() - self.copies_tail.wrapping_sub(self.copies_head) as usize
    }

    /// Notes one of several copies of the slot that is opened next. Its number, by which its end is
    /// told. There must be room.
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
        let slot = self.push();
        forget(slot.packet.replace(packet));
        slot.guest = Some(guest);
        slot.outstanding = 1;
        slot.copies = ONE;
        slot.first = used;
        slot.more = 0;
    }

    /// The next slot, which is free: it has no packet.
    #[inline]
    fn push(&mut self) -> &mut Slot {
        assert!(
            self.len() < self.slots.len(),
            "more buffers than the ring has"
        );
        let at = self.at(self.tail);
        self.tail = self.tail.wrapping_add(1);
        &mut self.slots[at]
    }

    /// Opens a slot with the copies staged since the last one, and the buffers to give back.
    #[inline]
    pub(super) fn open(&mut self, packet: Option<Packet>, first: Used, more: &[Used]) {
        let copies = self.copies_tail.wrapping_sub(self.copies_open);
        self.copies_open = self.copies_tail;
        let slot = self.push();
        forget(replace(&mut slot.packet, packet));
        slot.outstanding = copies;
        slot.copies = copies;
        slot.first = first;
        slot.more = more.len() as u32;
        for element in more {
            let at = self.more_tail as usize & (self.more.len() - 1);
            self.more[at] = *element;
            self.more_tail = self.more_tail.wrapping_add(1);
        }
    }

    /// The copy with this number has ended: what it was, or none if it is not in flight.
    #[inline]
    pub(super) fn complete(&mut self, sequence: u32) -> Option<CopyInFlight> {
        if sequence & SEVERAL != 0 {
            return self.complete_one_of_several(sequence);
        }
        let ahead = sequence.wrapping_sub(self.head) & !SEVERAL;
        if ahead as usize >= self.len() {
            return None;
        }
        let at = self.at(sequence);
        let slot = &mut self.slots[at];
        if slot.outstanding == 0 {
            return None;
        }
        slot.outstanding = 0;
        let (packet, guest) = (slot.packet.as_ref()?, slot.guest?);
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

    fn complete_one_of_several(&mut self, sequence: u32) -> Option<CopyInFlight> {
        let ahead = sequence.wrapping_sub(self.copies_head) & !SEVERAL;
        if ahead >= self.copies_tail.wrapping_sub(self.copies_head) {
            return None;
        }
        let copy = self.copies[sequence as usize & (self.copies.len() - 1)];
        let at = self.at(copy.slot);
        let slot = &mut self.slots[at];
        if slot.outstanding == 0 {
            return None;
        }
        slot.outstanding -= 1;
        Some(copy)
    }

    /// The oldest packet, if all its copies have ended; its buffers are appended.
    #[inline]
    pub(super) fn leave(&mut self, used: &mut Vec<Used>) -> Option<Left> {
        if self.is_empty() {
            return None;
        }
        let at = self.at(self.head);
        let slot = &mut self.slots[at];
        if slot.outstanding > 0 {
            return None;
        }
        used.push(slot.first);
        for _ in 0..slot.more {
            used.push(self.more[self.more_head as usize & (self.more.len() - 1)]);
            self.more_head = self.more_head.wrapping_add(1);
        }
        let offloaded = slot.copies != 0;
        if slot.copies != ONE {
            self.copies_head = self.copies_head.wrapping_add(slot.copies);
        }
        self.head = self.head.wrapping_add(1);
        Some(Left {
            packet: slot.packet.take(),
            offloaded,
        })
    }

    /// All packets in flight; the slots are empty then.
    pub(super) fn abandon(&mut self) -> Vec<Packet> {
        let mut packets = Vec::new();
        while !self.is_empty() {
            let at = self.at(self.head);
            packets.extend(self.slots[at].packet.take());
            self.head = self.head.wrapping_add(1);
        }
        self.copies_head = self.copies_tail;
        self.copies_open = self.copies_tail;
        self.more_head = self.more_tail;
        packets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn used(id: u16) -> Used {
        Used {
            id,
            slots: 1,
            len: 0,
        }
    }

    fn stage(slots: &mut Slots) -> u32 {
        slots.stage(NonNull::dangling(), NonNull::dangling(), 1)
    }

    #[test]
    fn the_longest_done_prefix_leaves() {
        // Figure 7 of the article: of four packets 0, 2 and 3 are done; only 0 leaves.
        let mut slots = Slots::new(Direction::ToGuest);
        slots.resize(4);
        let copies: Vec<u32> = (0..4)
            .map(|id| {
                let copy = stage(&mut slots);
                slots.open(None, used(id), &[]);
                copy
            })
            .collect();
        let mut out = Vec::new();
        for done in [0, 2, 3] {
            assert!(slots.complete(copies[done]).is_some());
        }
        while slots.leave(&mut out).is_some() {}
        assert_eq!(out, [used(0)]);
        assert!(slots.complete(copies[2]).is_none(), "it has ended already");
        assert!(slots.complete(copies[1]).is_some());
        while slots.leave(&mut out).is_some() {}
        assert_eq!(out, [used(0), used(1), used(2), used(3)]);
        assert!(slots.complete(copies[0]).is_none(), "it has left");
        assert!(slots.complete(copies[0] + 9).is_none(), "never there");
    }

    #[test]
    fn an_only_copy_is_found_again_from_its_slot() {
        for direction in [Direction::ToGuest, Direction::FromGuest] {
            let mut slots = Slots::new(direction);
            slots.resize(4);
            // Numbers go on beyond their highest.
            slots.head = u32::MAX / 2 - 2;
            slots.tail = slots.head;
            for round in 0..6 {
                let packet = Packet::from_bytes(&[1; 70]);
                let (data, number) = (packet.data(), slots.only_copy());
                let mut memory = 0u8;
                let guest = NonNull::from(&mut memory);
                slots.open_one(packet, guest, used(round));
                let mut out = Vec::new();
                assert!(slots.leave(&mut out).is_none());
                assert!(slots.complete(number.wrapping_add(1) & !SEVERAL).is_none());
                let copy = slots.complete(number).expect("in flight");
                let expected = match direction {
                    Direction::ToGuest => (data, guest),
                    Direction::FromGuest => (guest, data),
                };
                assert_eq!((copy.source, copy.destination), expected);
                assert_eq!(copy.len, 70);
                assert!(slots.complete(number).is_none(), "twice");
                assert!(slots.leave(&mut out).is_some_and(|left| left.offloaded));
                assert_eq!(out, [used(round)]);
            }
        }
    }

    #[test]
    fn room_for_copies_comes_back_with_their_packets() {
        let mut slots = Slots::new(Direction::ToGuest);
        slots.resize(4);
        let room = slots.room();
        let copies: Vec<u32> = (0..room).map(|_| stage(&mut slots)).collect();
        slots.open(None, used(0), &[]);
        assert_eq!(slots.room(), 0);
        let mut out = Vec::new();
        for copy in copies {
            assert!(slots.leave(&mut out).is_none());
            assert!(slots.complete(copy).is_some());
        }
        assert!(slots.leave(&mut out).is_some_and(|left| left.offloaded));
        assert_eq!(slots.room(), room);
    }

    proptest! {
        #[test]
        fn packets_leave_in_ring_order_whatever_ends_first(
            counts in proptest::collection::vec((0u32..4, 1usize..3), 1..40),
            order in any::<u64>(),
        ) {
            let mut slots = Slots::new(Direction::ToGuest);
            slots.resize(128);
            let mut pending = Vec::new();
            let mut expected = Vec::new();
            for (i, (copies, buffers)) in counts.iter().enumerate() {
                let list: Vec<Used> = (0..*buffers).map(|_| used(i as u16)).collect();
                pending.extend((0..*copies).map(|_| stage(&mut slots)));
                slots.open(Some(Packet::from_bytes(&[i as u8])), list[0], &list[1..]);
                expected.extend(list);
            }
            let mut out = Vec::new();
            let mut left = Vec::new();
            let mut state = order;
            while !pending.is_empty() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                let at = (state >> 33) as usize % pending.len();
                prop_assert!(slots.complete(pending.swap_remove(at)).is_some());
                while let Some(one) = slots.leave(&mut out) {
                    left.extend(one.packet.map(|p| p.bytes()[0]));
                }
            }
            while let Some(one) = slots.leave(&mut out) {
                left.extend(one.packet.map(|p| p.bytes()[0]));
            }
            let numbers: Vec<u8> = (0..counts.len() as u8).collect();
            prop_assert_eq!(left, numbers);
            prop_assert_eq!(out, expected);
            prop_assert!(slots.is_empty());
        }
    }
}
