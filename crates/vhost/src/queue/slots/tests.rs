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
fn packets_leave_up_to_the_first_that_is_not_done() {
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
        assert!(slots.complete(copies[done]));
    }
    assert_eq!(slots.leave(&mut out, &mut Vec::new()), 1);
    assert_eq!(out, [used(0)]);
    assert!(!slots.complete(copies[2]), "it has ended already");
    assert!(slots.complete(copies[1]));
    assert_eq!(slots.leave(&mut out, &mut Vec::new()), 3);
    assert_eq!(out, [used(0), used(1), used(2), used(3)]);
    assert!(!slots.complete(copies[0]), "it has left");
    assert!(!slots.complete(copies[0] + 9), "never there");
}

#[test]
fn the_only_copy_of_a_packet_is_found_by_its_slot() {
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
            let (mut out, mut left) = (Vec::new(), Vec::new());
            assert_eq!(slots.leave(&mut out, &mut left), 0);
            assert!(!slots.complete(number.wrapping_add(1) & !SEVERAL));
            let copy = slots.copy(number).expect("in flight");
            assert_eq!(slots.destinations(), [(copy.destination, 70)]);
            assert!(slots.complete(number));
            assert_eq!(slots.destinations(), []);
            let expected = match direction {
                Direction::ToGuest => (data, guest),
                Direction::FromGuest => (guest, data),
            };
            assert_eq!((copy.source, copy.destination), expected);
            assert_eq!(copy.len, 70);
            assert!(!slots.complete(number), "twice");
            assert_eq!(slots.leave(&mut out, &mut left), 1);
            assert_eq!(out, [used(round)]);
            assert_eq!(left[0].bytes(), [1; 70]);
            assert!(slots.copy(number).is_none(), "it has left");
        }
    }
}

#[test]
fn slots_of_copies_are_free_when_their_packets_leave() {
    let mut slots = Slots::new(Direction::ToGuest);
    slots.resize(4);
    let room = slots.room();
    let copies: Vec<u32> = (0..room).map(|_| stage(&mut slots)).collect();
    slots.open(None, used(0), &[]);
    assert_eq!(slots.room(), 0);
    assert_eq!(slots.destinations().len(), room);
    for copy in copies {
        assert_eq!(slots.leave(&mut Vec::new(), &mut Vec::new()), 0);
        assert!(slots.complete(copy));
    }
    assert_eq!(slots.destinations(), []);
    assert_eq!(slots.leave(&mut Vec::new(), &mut Vec::new()), 1);
    assert_eq!(slots.room(), room);
}

proptest! {
    #[test]
    fn packets_leave_in_ring_order_for_any_order_of_completion(
        counts in proptest::collection::vec((0u32..4, 1usize..3), 1..40),
        order in any::<u64>(),
    ) {
        let mut slots = Slots::new(Direction::ToGuest);
        slots.resize(128);
        let mut pending = Vec::new();
        let (mut expected, mut numbers) = (Vec::new(), Vec::new());
        for (i, (copies, buffers)) in counts.iter().enumerate() {
            let list: Vec<Used> = (0..*buffers).map(|_| used(i as u16)).collect();
            pending.extend((0..*copies).map(|_| stage(&mut slots)));
            // Every fifth had a fault: there is nothing to deliver.
            let packet = (i % 5 < 4).then(|| Packet::from_bytes(&[i as u8]));
            numbers.extend(packet.as_ref().map(|p| p.bytes()[0]));
            slots.open(packet, list[0], &list[1..]);
            expected.extend(list);
        }
        let mut out = Vec::new();
        let mut left = Vec::new();
        let mut state = order;
        while !pending.is_empty() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let at = (state >> 33) as usize % pending.len();
            prop_assert!(slots.complete(pending.swap_remove(at)));
            slots.leave(&mut out, &mut left);
        }
        slots.leave(&mut out, &mut left);
        let left: Vec<u8> = left.iter().map(|packet| packet.bytes()[0]).collect();
        prop_assert_eq!(left, numbers);
        prop_assert_eq!(out, expected);
        prop_assert!(slots.is_empty());
    }
}
