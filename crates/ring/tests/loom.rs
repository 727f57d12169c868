//! The rings and the doorbell under loom: the same source, compiled with loom's atomics, in every
//! interleaving (up to three preemptions) of small numbers of threads.

#[allow(unreachable_pub, reason = "the models are no library")]
#[path = "../src/completion_bell.rs"]
mod completion_bell;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the models have processors enough"
)]
#[path = "../src/doorbell.rs"]
mod doorbell;
#[allow(dead_code, unreachable_pub, reason = "the models have no device")]
#[path = "../src/gate.rs"]
mod gate;
#[allow(dead_code, unreachable_pub, reason = "the models have no program")]
#[path = "../src/origin.rs"]
mod origin;
#[allow(dead_code, unreachable_pub, reason = "the models restore nothing")]
#[path = "../src/reader.rs"]
mod reader;
#[allow(dead_code, unreachable_pub, reason = "the models count no losses")]
#[path = "../src/ring.rs"]
mod ring;
#[path = "loom/ring_view.rs"]
mod ring_view;
#[path = "loom/sync.rs"]
mod sync;
#[allow(unreachable_pub, reason = "the models are no library")]
#[path = "../src/tag.rs"]
mod tag;

use completion_bell::CompletionBell;
use doorbell::Doorbell;
use gate::{Gate, WriteKind};
use loom::sync::Arc;
use loom::thread;
use reader::Reader;
use ring::{Offer, Ring, Words};
use ring_view::RingView;
use sync::Futex;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Eight words by which a torn or foreign descriptor is known.
fn words(n: u64) -> Words {
    [n; 8]
}

fn gate(size: u16) -> Gate {
    Gate {
        dedicated: true,
        size,
        threshold: 0,
    }
}

/// A ring of a dedicated queue with that many entries.
fn ring(entries: u16) -> Ring {
    let ring = Ring::new(RingView::new(entries.into()));
    ring.open(gate(entries));
    ring
}

fn number(words: Words) -> u64 {
    assert!(words.iter().all(|w| *w == words[0]), "torn: {words:?}");
    words[0]
}

#[test]
fn what_is_accepted_arrives_once_and_whole() {
    check(|| {
        let ring = ring(2);
        let writers: Vec<_> = (1..=2)
            .map(|n| {
                let ring = ring.clone();
                thread::spawn(move || ring.offer(&words(n), WriteKind::Posted, 0))
            })
            .collect();
        let mut reader = Reader::new(ring);
        let mut seen = Vec::new();
        seen.extend(reader.next().map(number));
        reader.free_but(0);
        for writer in writers {
            assert_eq!(writer.join().unwrap(), Offer::Accepted);
        }
        seen.extend(std::iter::from_fn(|| reader.next()).map(number));
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn a_full_ring_refuses_exactly_and_an_entry_is_used_again_only_when_it_is_free() {
    check(|| {
        let ring = ring(1);
        assert_eq!(ring.offer(&words(1), WriteKind::Posted, 0), Offer::Accepted);
        let writers: Vec<_> = (2..=3)
            .map(|n| {
                let ring = ring.clone();
                thread::spawn(move || ring.offer(&words(n), WriteKind::Posted, 0))
            })
            .collect();
        let mut reader = Reader::new(ring);
        assert_eq!(reader.next().map(number), Some(1));
        reader.free_but(0);
        let second = reader.next().map(number);
        let accepted = writers
            .into_iter()
            .map(|w| w.join().unwrap())
            .filter(|offer| *offer == Offer::Accepted)
            .count();
        // At most one, for its entry has not been freed again.
        let third = reader.next().map(number);
        let seen = usize::from(second.is_some()) + usize::from(third.is_some());
        assert_eq!(seen, accepted);
        assert!(accepted <= 1);
        assert_eq!(reader.ring().occupancy(), accepted as u64);
    });
}

#[test]
fn after_its_end_the_count_of_accepted_ones_is_final() {
    check(|| {
        let ring = ring(2);
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || ring.offer(&words(1), WriteKind::Posted, 0))
        };
        ring.end();
        let mut reader = Reader::new(ring);
        let accepted = reader.is_behind();
        let offer = writer.join().unwrap();
        assert_eq!(accepted, offer == Offer::Accepted);
        assert_eq!(!accepted, offer == Offer::Closed);
        assert_eq!(reader.next().is_some(), accepted);
    });
}

/// One writer dies between its claim and its descriptor; whatever the others were doing meanwhile, it
/// alone is left out.
#[test]
fn what_a_dead_writer_has_claimed_is_left_out() {
    for dead in [1, 2] {
        check(move || {
            let ring = ring(4);
            let victim = {
                let ring = ring.clone();
                thread::spawn(move || assert!(ring.claim(WriteKind::Posted, dead).is_ok()))
            };
            let other = {
                let ring = ring.clone();
                thread::spawn(move || {
                    for n in 0..2 {
                        let offer = ring.offer(&words(n), WriteKind::Posted, 3 - dead);
                        assert_eq!(offer, Offer::Accepted);
                    }
                })
            };
            let mut reader = Reader::new(ring);
            let mut seen = Vec::new();
            seen.extend(reader.next().map(number));
            victim.join().unwrap();
            // From here on the reader may know that it is dead.
            let mut passed = 0;
            passed += u64::from(reader.pass(|client| client == dead));
            seen.extend(reader.next().map(number));
            other.join().unwrap();
            while reader.is_behind() {
                match reader.next() {
                    Some(words) => seen.push(number(words)),
                    None => {
                        assert!(
                            reader.pass(|client| client == dead),
                            "no client is behind it"
                        );
                        passed += 1;
                    }
                }
            }
            assert_eq!((seen, passed), (vec![0, 1], 1));
        });
    }
}

/// If a sleeper could miss a ring it would sleep for ever, and loom would say so.
#[test]
fn a_sleeper_misses_nothing() {
    check(|| {
        let ring = ring(2);
        let doorbell = Arc::new(Doorbell::new(
            Futex::new(),
            CompletionBell::new(Futex::new()),
        ));
        let writers: Vec<_> = (1..=2)
            .map(|n| {
                let (ring, doorbell) = (ring.clone(), doorbell.clone());
                thread::spawn(move || {
                    assert_eq!(ring.offer(&words(n), WriteKind::Posted, 0), Offer::Accepted);
                    doorbell.ring();
                })
            })
            .collect();
        let mut reader = Reader::new(ring);
        let mut seen = 0;
        while seen < 2 {
            match reader.next() {
                Some(_) => seen += 1,
                None => doorbell.sleep(|| reader.pending(), None),
            }
        }
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

/// Two records, two sleepers: neither sleeps for ever, whoever has cleared what the other had set.
#[test]
fn who_waits_for_a_record_misses_no_ring() {
    check(|| {
        let bell = Arc::new(CompletionBell::new(Futex::new()));
        let records = Arc::new([0, 1].map(|_| sync::AtomicU32::new(0)));
        let waiters: Vec<_> = (0..2)
            .map(|index| {
                let (bell, records) = (bell.clone(), records.clone());
                let ended = move || records[index].load(sync::Ordering::Acquire) != 0;
                thread::spawn(move || {
                    while !ended() {
                        bell.wait(&ended, None);
                    }
                })
            })
            .collect();
        for record in records.iter() {
            record.store(1, sync::Ordering::Release);
            bell.ring();
        }
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

/// A command disables the queue while a writer comes, and the next one enables it again, smaller.
#[test]
fn what_was_accepted_before_a_command_is_there_when_it_is_carried_out() {
    check(|| {
        let ring = ring(2);
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || {
                loop {
                    match ring.offer(&words(1), WriteKind::Posted, 0) {
                        Offer::Held => sync::relax(),
                        offer => break offer,
                    }
                }
            })
        };
        let mut reader = Reader::new(ring.clone());
        ring.hold();
        let mut accepted = 0;
        while reader.is_behind() {
            match reader.next() {
                Some(words) => accepted += u64::from(number(words) > 0),
                None => sync::relax(),
            }
        }
        assert!(!reader.pending(), "no more than was accepted");
        reader.free_but(0);
        ring.close();
        assert!(reader.next().is_none(), "closed");
        ring.open(gate(1));
        let offer = writer.join().unwrap();
        let later = u64::from(offer == Offer::Accepted) - accepted;
        assert_eq!(std::iter::from_fn(|| reader.next()).count() as u64, later);
        assert_eq!(reader.ring().occupancy(), later);
    });
}
