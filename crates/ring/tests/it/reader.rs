//! What the reader takes, in which order, and what it counts.

use dray_ring::{Gate, Offer, Reader, RegionLayout, Ring, SharedRegion, Words, WriteKind};

/// Entries of the ring, all of which the queue has.
const ENTRIES: u16 = 4;

/// The client of all claims here, which may be gone.
const CLIENT: u16 = 7;

fn ring() -> (Ring, Reader) {
    let region = SharedRegion::new(RegionLayout {
        queues: 1,
        entries: ENTRIES,
    });
    let ring = region.ring(0).expect("a queue");
    assert!(region.ring(1).is_none());
    ring.open(Gate {
        dedicated: true,
        size: ENTRIES,
        threshold: 0,
    });
    (ring.clone(), Reader::new(ring))
}

/// A descriptor that names its number in each word.
fn words(number: u64) -> Words {
    [number; 8]
}

fn offer(ring: &Ring, number: u64) -> Offer {
    ring.offer(&words(number), WriteKind::Posted, CLIENT)
}

fn claim(ring: &Ring) -> u64 {
    ring.claim(WriteKind::Posted, CLIENT).expect("an entry")
}

#[test]
fn descriptors_come_in_order_and_occupy_entries_until_they_are_taken() {
    let (ring, mut reader) = ring();
    assert!(!reader.pending() && !reader.has_waiting());
    assert_eq!(reader.next(), None);
    let mut written = 0;
    let mut read = 0;
    // Some rounds, with different numbers of entries free.
    for round in 0..12_u64 {
        let free = round % u64::from(ENTRIES) + 1;
        for _ in 0..free {
            written += 1;
            assert_eq!(offer(&ring, written), Offer::Accepted);
        }
        assert_eq!(ring.occupancy(), free);
        for waiting in 1..=free {
            assert!(reader.pending());
            read += 1;
            assert_eq!(reader.next(), Some(words(read)));
            assert!(reader.has_waiting());
            // Nothing is free before it is taken.
            reader.free_but(waiting);
            assert_eq!(ring.occupancy(), free);
        }
        assert!(!reader.pending() && reader.next().is_none());
        for waiting in (0..free).rev() {
            reader.free_but(waiting);
            assert_eq!(ring.occupancy(), waiting);
            assert_eq!(reader.has_waiting(), waiting > 0);
        }
        // What was said once is not taken back.
        reader.free_but(free);
        assert_eq!(ring.occupancy(), 0);
    }
}

#[test]
fn a_full_queue_has_room_again_for_each_that_is_taken() {
    let (ring, mut reader) = ring();
    for number in 0..u64::from(ENTRIES) {
        assert_eq!(offer(&ring, number), Offer::Accepted);
    }
    assert_eq!(offer(&ring, 9), Offer::Full);
    assert_eq!(reader.next(), Some(words(0)));
    assert_eq!(offer(&ring, 9), Offer::Full);
    reader.free_but(0);
    assert_eq!(offer(&ring, 9), Offer::Accepted);
    assert_eq!(offer(&ring, 10), Offer::Full);
    for number in [1, 2, 3, 9] {
        assert_eq!(reader.next(), Some(words(number)));
    }
    assert_eq!(reader.next(), None);
}

#[test]
fn descriptors_behind_one_that_is_not_there_yet_are_read_once() {
    let (ring, mut reader) = ring();
    let late = claim(&ring);
    assert!(!reader.pending() && !reader.pending_ahead());
    assert_eq!(offer(&ring, 1), Offer::Accepted);
    let later = claim(&ring);
    assert_eq!(offer(&ring, 3), Offer::Accepted);
    assert!(!reader.pending() && reader.pending_ahead());
    assert_eq!(reader.next(), None);
    assert_eq!(reader.next_ahead(), Some(words(1)));
    assert!(reader.has_waiting());
    assert_eq!(reader.next_ahead(), Some(words(3)));
    assert!(!reader.pending_ahead());
    assert_eq!(reader.next_ahead(), None);
    // The entries of those behind are not free before the first is there.
    reader.free_but(0);
    assert_eq!(ring.occupancy(), 4);
    ring.fill(late, &words(0));
    // The next is read in its turn, not ahead of it.
    assert!(reader.pending() && !reader.pending_ahead());
    assert_eq!(reader.next(), Some(words(0)));
    assert!(!reader.pending());
    reader.free_but(0);
    // Both that are there before the one that is late are free.
    assert_eq!(ring.occupancy(), 2);
    ring.fill(later, &words(2));
    assert_eq!(reader.next(), Some(words(2)));
    assert_eq!(reader.next(), None);
    reader.free_but(0);
    assert_eq!(ring.occupancy(), 0);
    assert!(!reader.has_waiting());
    // The entries are used again.
    for number in 10..14 {
        assert_eq!(offer(&ring, number), Offer::Accepted);
        assert_eq!(reader.next(), Some(words(number)));
    }
}

#[test]
fn a_claim_is_waited_for_until_it_is_expected_later() {
    let (ring, mut reader) = ring();
    assert!(!reader.is_behind() && !reader.is_awaited());
    let position = claim(&ring);
    assert!(reader.is_behind() && reader.is_awaited());
    reader.expect_later();
    assert!(reader.is_behind() && !reader.is_awaited());
    ring.fill(position, &words(0));
    assert_eq!(reader.next(), Some(words(0)));
    assert!(!reader.is_behind());
    // The next one is waited for again.
    claim(&ring);
    assert!(reader.is_awaited());
}

#[test]
fn the_claim_of_a_client_that_is_gone_is_left_out() {
    let (ring, mut reader) = ring();
    assert!(!reader.pass(|_| true));
    claim(&ring);
    assert_eq!(offer(&ring, 1), Offer::Accepted);
    let mut asked = None;
    assert!(!reader.pass(|client| {
        asked = Some(client);
        false
    }));
    assert_eq!(asked, Some(CLIENT));
    assert_eq!(reader.next(), None);
    assert!(reader.pass(|_| true));
    assert_eq!(reader.next(), Some(words(1)));
    // One that is there is not left out.
    assert_eq!(offer(&ring, 2), Offer::Accepted);
    assert!(!reader.pass(|_| true));
    assert_eq!(reader.next(), Some(words(2)));
    // The last claim, whose name only the counter has.
    claim(&ring);
    assert!(reader.pass(|client| client == CLIENT));
    reader.free_but(0);
    assert_eq!(ring.occupancy(), 0);
}

#[test]
fn a_ring_that_is_held_closed_or_ended_takes_nothing() {
    let (ring, mut reader) = ring();
    ring.hold();
    assert_eq!(offer(&ring, 0), Offer::Held);
    assert!(!ring.is_closed());
    ring.close();
    assert_eq!(offer(&ring, 0), Offer::Closed);
    assert!(ring.is_closed());
    let shared = Gate {
        dedicated: false,
        size: 3,
        threshold: 2,
    };
    ring.open(shared);
    assert_eq!(ring.gate(), shared);
    assert!(!ring.is_closed());
    assert_eq!(offer(&ring, 0), Offer::Closed);
    let deferrable = |limited| {
        let kind = WriteKind::deferrable(limited);
        ring.offer(&words(5), kind, CLIENT)
    };
    assert_eq!([deferrable(true), deferrable(true)], [Offer::Accepted; 2]);
    // Beyond the threshold only the other page.
    assert_eq!(deferrable(true), Offer::Full);
    assert_eq!(deferrable(false), Offer::Accepted);
    assert_eq!(deferrable(false), Offer::Full);
    assert_eq!(reader.next(), Some(words(5)));
    ring.end();
    assert_eq!(deferrable(false), Offer::Closed);
}
