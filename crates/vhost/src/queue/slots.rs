//! The reorder array: a slot for each packet between fetch and write-back, in ring order.

use crate::net::Packet;
use crate::ring::Used;

/// A packet in flight.
#[derive(Debug, Default)]
struct Slot {
    /// Copies that have not ended.
    outstanding: u32,
    /// Buffers to give back.
    used: u32,
    /// Whether a channel has had a copy of it.
    offloaded: bool,
    /// None if there is nothing to deliver: the buffer had a fault.
    packet: Option<Packet>,
}

/// Slots in ring order. Copies may end in any order; packets leave in this one.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Box<[Slot]>,
    head: u32,
    tail: u32,
    /// Buffers of all slots, in order.
    used: Box<[Used]>,
    used_head: u32,
    used_tail: u32,
}

/// A packet that leaves.
pub(super) struct Left {
    pub(super) packet: Option<Packet>,
    pub(super) offloaded: bool,
}

impl Slots {
    pub(super) fn new() -> Slots {
        Slots {
            slots: Box::default(),
            head: 0,
            tail: 0,
            used: Box::default(),
            used_head: 0,
            used_tail: 0,
        }
    }

    /// Room for as many packets and buffers as a ring has descriptors. Nothing may be in flight.
    pub(super) fn resize(&mut self, size: u32) {
        debug_assert!(self.is_empty());
        let capacity = size.next_power_of_two();
        if self.slots.len() == capacity as usize {
            return;
        }
        let none = Used {
            id: 0,
            slots: 0,
            len: 0,
        };
        *self = Slots {
            slots: (0..capacity).map(|_| Slot::default()).collect(),
            used: (0..capacity).map(|_| none).collect(),
            // Sequence numbers go on: a copy of an earlier life is never mistaken.
            head: self.tail,
            tail: self.tail,
            used_head: 0,
            used_tail: 0,
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

    /// Sequence number of the slot that is opened next.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.tail
    }

    /// Opens a slot with these buffers to give back.
    #[inline]
    pub(super) fn open(&mut self, packet: Option<Packet>, outstanding: u32, used: &[Used]) {
        assert!(
            self.len() < self.slots.len(),
            "more buffers than the ring has"
        );
        let at = self.at(self.tail);
        self.slots[at] = Slot {
            outstanding,
            used: used.len() as u32,
            offloaded: outstanding > 0,
            packet,
        };
        self.tail = self.tail.wrapping_add(1);
        for element in used {
            let at = self.used_tail as usize & (self.used.len() - 1);
            self.used[at] = *element;
            self.used_tail = self.used_tail.wrapping_add(1);
        }
    }

    /// Puts the packet of a slot in flight into it.
    #[inline]
    pub(super) fn set_packet(&mut self, sequence: u32, packet: Packet) {
        let at = self.at(sequence);
        self.slots[at].packet = Some(packet);
    }

    /// A copy of a slot has ended. False if there is no such slot.
    #[inline]
    pub(super) fn complete(&mut self, sequence: u32) -> bool {
        if sequence.wrapping_sub(self.head) >= self.tail.wrapping_sub(self.head) {
            return false;
        }
        let at = self.at(sequence);
        let slot = &mut self.slots[at];
        let known = slot.outstanding > 0;
        slot.outstanding -= u32::from(known);
        known
    }

    /// The oldest packet, if all its copies have ended; its buffers are appended.
    #[inline]
    pub(super) fn leave(&mut self, used: &mut Vec<Used>) -> Option<Left> {
        if self.is_empty() {
            return None;
        }
        let at = self.at(self.head);
        if self.slots[at].outstanding > 0 {
            return None;
        }
        let slot = &mut self.slots[at];
        for _ in 0..slot.used {
            used.push(self.used[self.used_head as usize & (self.used.len() - 1)]);
            self.used_head = self.used_head.wrapping_add(1);
        }
        self.head = self.head.wrapping_add(1);
        Some(Left {
            packet: slot.packet.take(),
            offloaded: slot.offloaded,
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
        self.used_head = self.used_tail;
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

    #[test]
    fn the_longest_done_prefix_leaves() {
        // Figure 7 of the article: of four packets 0, 2 and 3 are done; only 0 leaves.
        let mut slots = Slots::new();
        slots.resize(4);
        let first = slots.next();
        for id in 0..4 {
            slots.open(None, 1, &[used(id)]);
        }
        let mut out = Vec::new();
        for done in [0, 2, 3] {
            assert!(slots.complete(first + done));
        }
        while slots.leave(&mut out).is_some() {}
        assert_eq!(out, [used(0)]);
        assert!(slots.complete(first + 1));
        while slots.leave(&mut out).is_some() {}
        assert_eq!(out, [used(0), used(1), used(2), used(3)]);
        assert!(!slots.complete(first), "it has left");
        assert!(!slots.complete(first + 9), "it was never there");
    }

    proptest! {
        #[test]
        fn packets_leave_in_ring_order_whatever_ends_first(
            counts in proptest::collection::vec((0u32..4, 1usize..3), 1..40),
            order in any::<u64>(),
        ) {
            let mut slots = Slots::new();
            slots.resize(128);
            let mut pending = Vec::new();
            let (mut expected, mut id) = (Vec::new(), 0);
            for (copies, buffers) in counts {
                let sequence = slots.next();
                pending.extend((0..copies).map(|_| sequence));
                let list: Vec<Used> = (0..buffers as u16).map(|i| used(id + i)).collect();
                id += buffers as u16;
                expected.extend(list.clone());
                slots.open(Some(Packet::with_capacity(1)), copies, &list);
            }
            let (mut out, mut seed) = (Vec::new(), order);
            loop {
                while slots.leave(&mut out).is_some() {}
                prop_assert_eq!(&out[..], &expected[..out.len()]);
                if pending.is_empty() {
                    break;
                }
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = (seed >> 33) as usize % pending.len();
                prop_assert!(slots.complete(pending.swap_remove(at)));
            }
            prop_assert!(slots.is_empty());
            prop_assert_eq!(out, expected);
        }
    }
}
