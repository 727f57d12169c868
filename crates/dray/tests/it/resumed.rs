//! Movers on a queue that resume what meets a page fault, alone and in batches.

use std::ops::Range;

use dray::virt::{Options, Translation, VirtualDevice, VirtualMover};
use dray::{Completion, CpuMover, Mover, Operation, WaitPolicy, wait};
use dray_device::Access;
use dray_device::WorkQueueMode::Dedicated;
use dray_spec::{Flags, Status};

use crate::channels::{address, noise};
use crate::machine::{device, queue};
use crate::memory::{Guarded, PAGE};
use crate::policies::FirstTouch;

/// Memory whose pages fault once each, and some of it always.
struct Space {
    pages: FirstTouch,
    missing: Range<u64>,
}

impl Translation for Space {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        match self.missing.contains(&addr) {
            true => 0,
            false => self.pages.accessible(addr, len, access),
        }
    }
}

/// A mover in whose memory every page faults once.
fn resuming(most: u32) -> VirtualMover {
    resuming_without(0..0, most)
}

fn resuming_without(missing: Range<u64>, most: u32) -> VirtualMover {
    let config = device(2, vec![queue(0, Dedicated, 16)]);
    let space = Space {
        pages: FirstTouch::everywhere(),
        missing,
    };
    let started = VirtualDevice::start_in(config, Options::default(), space, |_| {});
    let started = started.expect("a device that can be enabled");
    let mut mover = started.open(0, 32).expect("a queue");
    mover.resume_page_faults(most);
    mover
}

/// Waits for as many completions as there are places.
fn all(mover: &mut impl Mover, ended: &mut [Completion]) {
    let mut count = 0;
    while count < ended.len() {
        let seen = wait(mover, &mut ended[count..], WaitPolicy::Yield, None);
        count += seen.expect("completions");
    }
    assert_eq!(mover.in_flight(), 0);
}

/// Completions in the order of their members.
fn batch(mover: &mut impl Mover, operations: &[Operation]) -> Vec<Completion> {
    let mut ended = vec![Completion::default(); operations.len()];
    // SAFETY: callers keep the memory until all have ended.
    let first = unsafe { mover.enqueue_batch(operations) }.expect("slots").0;
    all(mover, &mut ended);
    ended.sort_by_key(|completion| completion.ticket.0.wrapping_sub(first));
    ended
}

fn fenced(operation: Operation) -> Operation {
    operation.with_changed_flags(Flags::EMPTY, Flags::FENCE)
}

/// What the core says of each operation, a resumed one says, too; and the same bytes are written.
#[test]
fn every_operation_ends_as_on_the_core() {
    let pages = 5;
    let of = |memory: &[Guarded; 3]| {
        let [a, b, c] = memory.each_ref().map(Guarded::address);
        let len = (3 * PAGE + 321) as u32;
        let up = Operation::memmove(a, a + 1000, len);
        let down = Operation::memmove(b + 900, b, len);
        vec![
            Operation::crc(a + 7, len, 3),
            Operation::copy_crc(a + 7, c + 3, len, 9),
            up,
            down,
            Operation::fill(0x0102_0304_0506_0708, c + 17, len),
            Operation::compare(a, b, len),
            Operation::compare_pattern(c + 17, 0x0102_0304_0506_0708, len / 8 * 8),
            Operation::create_delta(a, b, 4096, c, 8192),
        ]
    };
    let memory = || [1, 2, 3].map(|seed| Guarded::noise(pages, seed));
    let (by_core, by_device) = (memory(), memory());
    let mut core = CpuMover::new(32);
    for (index, (on_core, on_device)) in of(&by_core).into_iter().zip(of(&by_device)).enumerate() {
        // Each with memory that has not faulted yet.
        let mut mover = resuming(64);
        // A batch of two, whose other member has no memory.
        for two in [false, true] {
            let members = |operation| match two {
                true => vec![Operation::noop(), operation],
                false => vec![operation],
            };
            let expected = *batch(&mut core, &members(on_core)).last().expect("one");
            let seen = *batch(&mut mover, &members(on_device)).last().expect("one");
            let of = |completion: &Completion| {
                let record = completion.record;
                (
                    record.status(),
                    record.result,
                    record.crc32(),
                    record.bytes_completed,
                )
            };
            assert_eq!(
                of(&seen),
                of(&expected),
                "operation {index}, in a batch: {two}"
            );
            for (left, right) in by_core.iter().zip(&by_device) {
                assert!(
                    left[..] == right[..],
                    "operation {index}, in a batch: {two}"
                );
            }
            mover = resuming(64);
        }
    }
}

/// A move onto itself upwards goes from its end; its rest goes forward once it no longer overlaps. Whatever page is missing
/// for good, the record says how much is left at the start, and a move of that completes it.
#[test]
fn a_backward_move_that_ends_at_a_fault_can_be_completed() {
    let pages = 9;
    for (distance, len) in [
        (1000, 5 * PAGE),
        (2 * PAGE, 6 * PAGE),
        (3 * PAGE + 77, 5 * PAGE + 9),
        (PAGE, PAGE + 1),
    ] {
        for missing in 0..=pages {
            let (memory, mut expected) = (Guarded::noise(pages, 5), Guarded::noise(pages, 5));
            expected.copy_within(..len, distance);
            let from = memory.address();
            let page = from + (missing * PAGE) as u64;
            // The last is no page of the operation.
            let mut mover = resuming_without(page..page + PAGE as u64, 2);
            let whole = Operation::memmove(from, from + distance as u64, len as u32);
            let ended = batch(&mut mover, &[whole])[0];
            let record = ended.record;
            if ended.status() != Status::SUCCESS {
                assert_eq!(ended.status().code(), Status::PAGE_FAULT.code());
                let left = len - record.bytes_completed as usize;
                assert!(record.result == 1 || left == len, "{record:?}");
                let rest = Operation::memmove(from, from + distance as u64, left as u32);
                batch(&mut CpuMover::new(1), &[rest]);
            }
            assert!(
                memory[..] == expected[..],
                "distance {distance}, page {missing}: {record:?}"
            );
        }
    }
}

#[test]
fn members_behind_a_fence_follow_what_was_resumed() {
    let source = noise(3 * PAGE);
    let (middle, target) = (vec![0; source.len()], vec![0; source.len()]);
    let [from, through, to] = [&source, &middle, &target].map(|bytes| address(bytes));
    let len = source.len() as u32;
    let mut mover = resuming(64);
    let ended = batch(
        &mut mover,
        &[
            Operation::memmove(from, through, len),
            fenced(Operation::memmove(through, to, len)),
            Operation::noop(),
            fenced(Operation::compare(from, to, len)),
        ],
    );
    let seen: Vec<Status> = ended.iter().map(Completion::status).collect();
    assert_eq!(seen, [Status::SUCCESS; 4]);
    assert_eq!(ended[3].record.result, 0);
    assert!(source == target);
}

#[test]
fn behind_a_fence_that_has_failed_nothing_runs() {
    let (good, bad) = (Guarded::noise(2, 1), Guarded::new(1));
    bad.protect(0..1, libc::PROT_NONE);
    let missing = bad.address()..bad.address() + PAGE as u64;
    let mut mover = resuming_without(missing, 64);
    let crc = Operation::crc(good.address(), 64, 0);
    let copy = Operation::memmove(good.address(), bad.address(), 64);
    let fill = Operation::fill(7, good.address(), 64);
    let ended = batch(
        &mut mover,
        &[crc, copy, Operation::noop(), fenced(fill), fill],
    );
    let seen: Vec<u8> = ended
        .iter()
        .map(|completion| completion.status().code())
        .collect();
    // The first was resumed.
    assert_eq!(seen, [1, Status::PAGE_FAULT.code(), 1, 0, 0]);
    assert!(good[..] == Guarded::noise(2, 1)[..]);
}

/// A false predicate stops a fence (spec 3.9), also behind a member that was resumed.
#[test]
fn a_false_predicate_stops_what_waits_for_it() {
    let (left, right, target) = (noise(PAGE), vec![0; PAGE], vec![0_u8; PAGE]);
    let [a, b, c] = [&left, &right, &target].map(|bytes| address(bytes));
    let compare =
        Operation::compare(a, b, 4096).with_changed_flags(Flags::EMPTY, Flags::CHECK_RESULT);
    let ended = batch(
        &mut resuming(64),
        &[compare, fenced(Operation::fill(!0, c, 4096))],
    );
    assert_eq!(ended[0].status(), Status::SUCCESS_PREDICATE);
    assert_eq!(ended[1].status(), Status::NONE);
    assert!(target.iter().all(|byte| *byte == 0));
}

#[test]
fn without_resumption_a_fault_ends_a_member_and_what_waits_for_it() {
    let (source, target) = (noise(PAGE), vec![0_u8; PAGE]);
    let copy = Operation::memmove(address(&source), address(&target), 4096);
    let ended = batch(&mut resuming(0), &[copy, fenced(copy)]);
    assert_eq!(ended[0].status().code(), Status::PAGE_FAULT.code());
    assert_eq!(ended[1].status(), Status::NONE);
}

/// More than one batch waits for a member at once, and units of none pass them.
#[test]
fn batches_and_single_operations_are_resumed_together() {
    let mut mover = resuming(64);
    let sources: Vec<Vec<u8>> = (0..24).map(|_| noise(2 * PAGE)).collect();
    let targets = vec![vec![0_u8; 2 * PAGE]; sources.len()];
    let copies: Vec<Operation> = sources
        .iter()
        .zip(&targets)
        .enumerate()
        .map(|(n, (source, target))| {
            let copy = Operation::memmove(address(source), address(target), 2 * PAGE as u32);
            copy.with_user_data(n as u64)
        })
        .collect();
    for copies in copies.chunks(6) {
        let (single, members) = copies.split_first().expect("six");
        let members: Vec<Operation> = members.iter().map(|copy| fenced(*copy)).collect();
        // SAFETY: the memory is kept until all have ended.
        unsafe { mover.enqueue_batch(&members) }.expect("slots");
        // SAFETY: as above.
        unsafe { mover.enqueue(single) }.expect("a slot");
    }
    let mut ended = vec![Completion::default(); copies.len()];
    all(&mut mover, &mut ended);
    let mut seen: Vec<u64> = ended
        .iter()
        .map(|completion| completion.user_data)
        .collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..copies.len() as u64));
    assert!(
        ended
            .iter()
            .all(|completion| completion.status() == Status::SUCCESS)
    );
    assert!(sources == targets);
}
