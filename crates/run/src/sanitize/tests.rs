//! Each class with its right twin.

use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use super::flight::flight;
use super::*;

/// A record of this process, whose status is 0.
static ZERO: [u64; 8] = [0; 8];
/// One that was written before.
static STALE: [u64; 8] = [1; 8];

const PASID: u32 = 1;

fn at(record: &'static [u64; 8]) -> u64 {
    record.as_ptr().addr() as u64
}

/// Accepts descriptors of this process that are called by their index, and ends none.
fn accepted(descriptors: &[Descriptor]) -> Books<usize> {
    let spaces = Spaces::new();
    spaces.add(PASID, std::process::id()).expect("this process");
    let mut books = Books::new(Arc::new(spaces), Budget::new(false));
    for (index, descriptor) in descriptors.iter().enumerate() {
        let mut flight = flight(Some(std::process::id()), (0, 1), descriptor, None);
        flight.pasid = PASID;
        accept(&mut books, index, flight);
    }
    books
}

/// A descriptor is accepted, with what stands where its record will be.
fn accept(books: &mut Books<usize>, key: usize, flight: flight::Flight<usize>) {
    let status = books.record_status(&flight);
    let list = books.look(key, &flight, true);
    books.accept(key, flight, &list, status);
}

fn classes<K>(books: &Books<K>) -> Vec<Class> {
    books
        .reporter
        .found
        .iter()
        .map(|finding| finding.class)
        .collect()
}

fn copy(from: u64, to: u64) -> Descriptor {
    Descriptor::memmove(from, to, 0x1000)
}

fn ended(books: &mut Books<usize>, index: usize, status: Status, bytes: u32, result: u8) {
    let mut record = CompletionRecord::with_status(status);
    (record.bytes_completed, record.result) = (bytes, result);
    books.end(index, Some(&record));
}

#[test]
fn what_is_in_flight_together_shares_no_written_byte() {
    let books = accepted(&[copy(0x1000, 0x8000), copy(0x8fff, 0x20000)]);
    assert_eq!(classes(&books), [Class::Overlap]);
    let text = books.reporter.found[0].to_string();
    assert!(
        text.contains("1 bytes at 0x8fff") && text.contains("wq0.1"),
        "{text}"
    );
    // The same after the first has ended, and reads of the same bytes.
    let mut books = accepted(&[copy(0x1000, 0x8000)]);
    ended(&mut books, 0, Status::SUCCESS, 0, 0);
    accept(
        &mut books,
        1,
        flight(
            Some(std::process::id()),
            (0, 1),
            &copy(0x8fff, 0x20000),
            None,
        ),
    );
    assert_eq!(classes(&books), []);
    assert_eq!(
        classes(&accepted(&[copy(0x1000, 0x8000), copy(0x1000, 0x9000)])),
        []
    );
}

/// DPDK's test of DMA drivers copies one buffer to one other several times.
#[test]
fn two_that_do_the_same_are_no_race() {
    let twice = |d: Descriptor| classes(&accepted(&[d, d]));
    assert_eq!(twice(copy(0x1000, 0x8000)), []);
    assert_eq!(
        twice(copy(0x1000, 0x1800)),
        [Class::Overlap],
        "it moves its own source"
    );
    let other = copy(0x3000, 0x8000);
    let two = classes(&accepted(&[copy(0x1000, 0x8000), other]));
    assert_eq!(two, [Class::Overlap], "other bytes to the same place");
}

#[test]
fn memory_of_two_processes_is_not_the_same() {
    let mut books = accepted(&[copy(0x1000, 0x8000)]);
    accept(
        &mut books,
        1,
        flight(Some(1), (0, 1), &copy(0x8000, 0x1000), None),
    );
    assert_eq!(classes(&books), []);
}

#[test]
fn members_of_a_batch_are_ordered_by_fences_alone() {
    let members = |fence: bool| {
        let mut books = accepted(&[Descriptor::batch(0x40000, 2)]);
        let first = copy(0x1000, 0x8000);
        let mut second = copy(0x8000, 0x9000);
        if fence {
            second.flags_opcode |= Flags::FENCE.bits();
        }
        for (index, member) in [first, second].iter().enumerate() {
            let member = flight(Some(std::process::id()), (0, 1), member, Some(0));
            books.start_member(10 + index, 0, member);
            // The device executes one after the other.
            ended(&mut books, 10 + index, Status::SUCCESS, 0, 0);
        }
        classes(&books)
    };
    assert_eq!(members(false), [Class::Overlap]);
    assert_eq!(members(true), []);
}

/// A batch with these members, whose list is in memory.
fn batch<const N: usize>(members: [Descriptor; N]) -> Descriptor {
    let list: &'static [Descriptor; N] = Box::leak(Box::new(members));
    Descriptor::batch(list.as_ptr().expose_provenance() as u64, N as u32)
}

#[test]
fn members_are_in_flight_as_soon_as_their_batch_is() {
    let (first, second) = (copy(0x1000, 0x8000), copy(0x3000, 0x8000));
    let other = copy(0x3000, 0x9000);
    for (one, two, expected) in [
        (
            batch([other, first]),
            batch([second]),
            &[Class::Overlap][..],
        ),
        (first, batch([other, second]), &[Class::Overlap]),
        (batch([other, first]), second, &[Class::Overlap]),
        (batch([first]), batch([other]), &[]),
        // The order within a batch is another matter.
        (batch([first, second]), Descriptor::noop(), &[]),
    ] {
        assert_eq!(classes(&accepted(&[one, two])), expected);
        // What has ended may have been seen.
        let mut books = accepted(&[one]);
        ended(&mut books, 0, Status::SUCCESS, 0, 0);
        accept(
            &mut books,
            1,
            flight(Some(std::process::id()), (0, 1), &two, None),
        );
        assert_eq!(classes(&books), []);
    }
    let record = |from, to| copy(from, to).with_completion(at(&ZERO));
    let batches = [
        batch([record(0x1000, 0x8000)]),
        batch([record(0x3000, 0x9000)]),
    ];
    assert_eq!(classes(&accepted(&batches)), [Class::Record]);
}

#[test]
fn a_member_that_has_begun_counts_until_it_has_ended() {
    let members = [copy(0x1000, 0x8000), copy(0x2000, 0x9000)];
    let later = copy(0x3000, 0x8000);
    let own = std::process::id();
    for (ends, expected) in [(false, &[Class::Overlap][..]), (true, &[])] {
        let mut books = accepted(&[batch(members)]);
        let member = books
            .flights
            .get(0)
            .expect("in flight")
            .member(0, &members[0]);
        books.start_member(10, 0, member);
        if ends {
            ended(&mut books, 10, Status::SUCCESS, 0, 0);
        }
        accept(&mut books, 1, flight(Some(own), (0, 1), &later, None));
        assert_eq!(classes(&books), expected);
    }
}

#[test]
fn a_record_is_of_one_descriptor_and_zero() {
    let with = |from, record| copy(from, from + 0x100_0000).with_completion(record);
    let pair = |second| classes(&accepted(&[with(0x1000, at(&ZERO)), with(0x9000, second)]));
    assert_eq!(pair(at(&ZERO)), [Class::Record]);
    assert_eq!(pair(at(&ZERO) + 32), []);
    assert_eq!(pair(at(&STALE)), [Class::Record]);
    // A page that is not there says nothing.
    assert_eq!(pair(0x20), []);
}

/// The record of the batch, or of a drain, says it all.
#[test]
fn records_that_nobody_need_look_at_may_be_shared_or_stale() {
    let stale = copy(0x1000, 0x8000).with_completion(at(&STALE));
    let mut books = accepted(&[batch([stale])]);
    let member = books.flights.get(0).expect("in flight").member(0, &stale);
    books.start_member(10, 0, member);
    assert_eq!(classes(&books), []);
    let of_errors = |from, record| {
        let mut d = copy(from, from + 0x100_0000).with_completion(record);
        d.flags_opcode &= !Flags::REQUEST_COMPLETION_RECORD.bits();
        d
    };
    let pair = |second| classes(&accepted(&[of_errors(0x1000, at(&STALE)), second]));
    assert_eq!(pair(of_errors(0x3000, at(&STALE))), []);
    let polled = copy(0x3000, 0x9000).with_completion(at(&STALE));
    assert_eq!(pair(polled), [Class::Record]);
}

#[test]
fn a_member_leaves_its_batch_alone() {
    let own = |fill: fn(u64) -> Descriptor, first: bool| {
        let noop = Descriptor::noop();
        let list: &'static mut [Descriptor; 2] = Box::leak(Box::new([noop; 2]));
        let start = list.as_ptr().expose_provenance() as u64;
        let member = fill(start);
        list[usize::from(!first)] = member;
        let of = Descriptor::batch(start, 2).with_completion(at(&ZERO));
        let mut books = accepted(&[of]);
        let flight = books.flights.get(0).expect("in flight");
        let (before, member) = (flight.member(0, &noop), flight.member(0, &member));
        if !first {
            books.start_member(10, 0, before);
        }
        books.start_member(11, 0, member);
        classes(&books)
    };
    let next: fn(u64) -> Descriptor = |list| Descriptor::fill(0, list + 64, 64);
    assert_eq!(own(next, true), [Class::Overlap], "it is not read yet");
    assert_eq!(own(next, false), [], "it is read");
    let record: fn(u64) -> Descriptor = |_| Descriptor::fill(0, at(&ZERO) + 8, 8);
    assert_eq!(own(record, false), [Class::Overlap]);
}

#[test]
fn one_finding_stands_for_a_batch_that_is_given_up() {
    let members = [copy(0x1000, 0x8000), copy(0x2000, 0x9000)];
    for closes in [false, true] {
        let mut books = accepted(&[batch(members)]);
        for (index, member) in members.iter().enumerate() {
            let member = books.flights.get(0).expect("in flight").member(0, member);
            books.start_member(10 + index, 0, member);
        }
        if closes {
            books.close(None, std::process::id());
        }
        for key in [10, 11, 0] {
            books.end(key, None);
        }
        assert_eq!(classes(&books), [Class::Close]);
    }
}

#[test]
fn a_rest_is_submitted_as_the_record_says() {
    const PAGE: usize = 4096;
    let second = |offset: u64, size: u32, is_finished: bool| {
        let mut memory: Vec<u8> = (0..6 * PAGE).map(|n| (n / PAGE + n) as u8).collect();
        let skipped = memory.as_ptr().align_offset(PAGE);
        let memory = &mut memory[skipped..];
        let at = memory.as_ptr().expose_provenance() as u64;
        let mut books = accepted(&[Descriptor::memmove(at, at + PAGE as u64, 0x3000)]);
        memory.copy_within(2 * PAGE..3 * PAGE, 3 * PAGE);
        ended(&mut books, 0, Status::PAGE_FAULT, 0x1000, 1);
        if is_finished {
            memory.copy_within(0..2 * PAGE, PAGE);
        }
        let next = Descriptor::memmove(at + offset, at + offset + PAGE as u64, size);
        let mut flight = flight(Some(std::process::id()), (0, 1), &next, None);
        flight.pasid = PASID;
        accept(&mut books, 1, flight);
        classes(&books)
    };
    assert_eq!(
        second(0x1000, 0x2000, false),
        [Class::Resume],
        "behind it, as if it had gone forward"
    );
    assert_eq!(second(0x1000, 0x2000, true), [], "a core has done the rest");
    assert_eq!(second(0, 0x2000, false), []);
}

/// Copies two pages onto two others of which the second is not there, and after `act` those elsewhere.
fn copied_on(act: impl FnOnce(&mut [u8], &[u8])) -> Vec<Class> {
    const PAGE: usize = 4096;
    let mut memory = vec![5_u8; 8 * PAGE];
    let skipped = memory.as_ptr().align_offset(PAGE);
    let (from, to) = memory[skipped..].split_at_mut(2 * PAGE);
    to.fill(1);
    let at = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
    let first = Descriptor::memmove(at(from), at(to), 2 * PAGE as u32);
    let next = Descriptor::memmove(at(to), at(to) + 2 * PAGE as u64, 2 * PAGE as u32);
    let mut books = accepted(&[first]);
    to[..PAGE].copy_from_slice(&from[..PAGE]);
    ended(&mut books, 0, Status::PAGE_FAULT, PAGE as u32, 0);
    act(to, from);
    let mut flight = flight(Some(std::process::id()), (0, 1), &next, None);
    flight.pasid = PASID;
    accept(&mut books, 1, flight);
    classes(&books)
}

#[test]
fn what_nobody_has_written_is_not_carried_on() {
    assert_eq!(copied_on(|_, _| ()), [Class::Resume]);
    let finish = |to: &mut [u8], from: &[u8]| to[4096..8192].copy_from_slice(&from[4096..]);
    assert_eq!(copied_on(finish), [], "a core has finished");
    let other = |to: &mut [u8], _: &[u8]| to[0] ^= 1;
    assert_eq!(
        copied_on(other),
        [],
        "the buffer is used for something else"
    );
}

#[test]
fn errors_and_what_is_given_up_are_found() {
    let mut books = accepted(&[
        copy(0x1000, 0x8000),
        copy(0x10000, 0x18000),
        copy(0x20000, 0x28000),
    ]);
    ended(&mut books, 0, Status::TRANSFER_SIZE, 0, 0);
    ended(&mut books, 1, Status::PAGE_FAULT, 64, 0);
    books.end(2, None);
    assert_eq!(classes(&books), [Class::Field, Class::Close]);
    assert!(
        books.reporter.found[0]
            .to_string()
            .contains("transfer size is 0")
    );
}

#[test]
fn a_class_is_said_twenty_times_of_a_place_and_counted_further() {
    let mut books = Books::new(Arc::default(), Budget::new(false));
    let at = |site: u64| dray_realtime::Origin {
        site,
        ..Default::default()
    };
    let sites = &mut books.reporter.sites;
    let places = [0x10, 0x20].map(|site| sites.enter(1, &at(site), &[]));
    assert!(places[0] != places[1]);
    for index in 0..60 {
        let mut one = flight(Some(1), (0, 1), &copy(0x1000, 0x8000), None);
        one.place = places[index % 2];
        accept(&mut books, index, one);
        books.end(index, None);
    }
    assert_eq!(books.reporter.found.len(), 40);
    let findings = &books.reporter.findings;
    assert_eq!(findings.counts, BTreeMap::from([(Class::Close, 60)]));
    assert_eq!(findings.descriptors, 60);
}

#[test]
fn what_is_suppressed_is_counted_apart() {
    let mut books = Books::new(Arc::default(), Budget::new(false));
    books.reporter.suppressions = Suppressions::parse("close:*").expect("a line");
    accept(
        &mut books,
        0,
        flight(Some(1), (0, 1), &copy(0x1000, 0x8000), None),
    );
    books.end(0, None);
    assert!(books.reporter.found.is_empty());
    let findings = &books.reporter.findings;
    assert!(findings.counts.is_empty());
    assert_eq!(findings.suppressed.get("close:*"), Some(&1));
}
