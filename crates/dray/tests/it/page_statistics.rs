//! Statistics of page lists add up, whoever has copied what and whatever is lost meanwhile.

use std::cell::RefCell;
use std::rc::Rc;

use dray::pages::{
    PageCopy, PageListOptions, PageListReport, PageSize, PageState, PageStatistic,
    copy_page_lists_with_report,
};
use dray::{Executor, Operation, Reason};
use dray_spec::{CompletionRecord, Status};
use proptest::prelude::*;

use crate::manual::{Manual, execute};
use crate::memory::{Guarded, PAGE};

fn report(channels: &mut [Manual], list: &[PageCopy], require_device: bool) -> PageListReport {
    let options = PageListOptions {
        require_device,
        ..PageListOptions::default()
    };
    // SAFETY: the tests' memory outlives the call, and entries do not overlap.
    unsafe { copy_page_lists_with_report(channels, list, &options) }.expect("a list")
}

/// Entries of so many bytes each, one behind the other with a page between them.
fn list(source: &Guarded, target: &Guarded, bytes: &[usize]) -> Vec<PageCopy> {
    let mut offset = 0;
    let entry = |bytes: &usize| {
        let at = offset;
        offset += (bytes.div_ceil(PAGE) + 1) * PAGE;
        PageCopy {
            source: source.address() + at as u64,
            destination: target.address() + at as u64,
            bytes: *bytes as u64,
        }
    };
    bytes.iter().map(entry).collect()
}

fn pages(bytes: &[usize]) -> usize {
    bytes.iter().map(|bytes| bytes.div_ceil(PAGE) + 1).sum()
}

#[test]
fn an_entry_that_two_lost_queues_split_is_counted_once() {
    // One that is split over both channels, and one behind it in both shares.
    let bytes = [64 * PAGE, 32 * PAGE];
    let (source, target) = (
        Guarded::noise(pages(&bytes), 1),
        Guarded::new(pages(&bytes)),
    );
    let mut movers = [0, 1].map(|_| Manual::new(64, 64).with_script(Manual::lose));
    movers.iter().for_each(Manual::lose);
    let done = report(&mut movers, &list(&source, &target, &bytes), false);
    let expected = PageStatistic {
        size: PageSize::Base,
        executor: Executor::Cpu,
        reason: Some(Reason::NotExecuted),
        entries: 2,
        bytes: (96 * PAGE) as u64,
    };
    assert_eq!(done.statistics, [expected]);
    assert_eq!(done.states, [PageState::Copied; 2]);
    assert!(target[..64 * PAGE] == source[..64 * PAGE]);
}

#[test]
fn bytes_are_those_of_the_executor_that_copied_them() {
    let bytes = [64 * PAGE];
    let (source, target) = (Guarded::noise(65, 2), Guarded::new(65));
    let executors = [Executor::Virtual, Executor::Hardware];
    let mut movers = executors.map(|executor| {
        let mover = Manual::new(64, 64).with_executor(executor);
        mover.with_script(|mover| {
            mover.execute_all();
        })
    });
    let done = report(&mut movers, &list(&source, &target, &bytes), true);
    let expected = executors.map(|executor| PageStatistic {
        size: PageSize::Base,
        executor,
        reason: None,
        entries: 1,
        bytes: (32 * PAGE) as u64,
    });
    assert_eq!(done.statistics, expected);
}

/// What devices have copied: first address, bytes, by whom.
type Log = Rc<RefCell<Vec<(u64, u64, Executor)>>>;

/// A mover whose device copies, fails, faults in the middle or is lost, as the numbers say.
fn fickle(seed: u64, log: &Log) -> Manual {
    let log = log.clone();
    let mut state = seed | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    Manual::new(16, 8).with_script(move |mover| {
        if next(40) == 0 {
            mover.lose();
        }
        let executor = [Executor::Virtual, Executor::Hardware][next(2) as usize];
        mover.set_executor(executor);
        for operation in mover.in_flight() {
            let d = *operation.descriptor();
            let copy = |bytes: u32| {
                if bytes > 0 {
                    execute(&Operation::memmove(d.address1, d.address2, bytes));
                    log.borrow_mut().push((d.address2, bytes.into(), executor));
                }
            };
            mover.end(match next(12) {
                0 => CompletionRecord::default(),
                1 => CompletionRecord::with_status(Status::HARDWARE_ERROR_READ),
                2..4 => {
                    let bytes = next(d.size.into()) as u32;
                    copy(bytes);
                    let mut record =
                        CompletionRecord::with_status(Status::PAGE_FAULT.with_write_fault());
                    record.bytes_completed = bytes;
                    record.fault_address = d.address2 + u64::from(bytes);
                    record
                }
                _ => {
                    copy(d.size);
                    CompletionRecord::with_status(Status::SUCCESS)
                }
            });
        }
    })
}

fn sum(rows: &[PageStatistic], is_counted: impl Fn(&PageStatistic) -> bool) -> u64 {
    let rows = rows.iter().filter(|row| is_counted(row));
    rows.map(|row| row.bytes).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_add_up_to_what_was_copied(
        sizes in prop::collection::vec(prop_oneof![
            4 => 1..3 * PAGE,
            3 => 16 * PAGE..40 * PAGE,
            1 => Just(512 * PAGE),
        ], 12..40),
        seeds in prop::collection::vec(any::<u64>(), 1..5),
        require_device: bool,
    ) {
        let (source, target) = (Guarded::noise(pages(&sizes), 3), Guarded::new(pages(&sizes)));
        let list = list(&source, &target, &sizes);
        let log = Log::default();
        let mut movers: Vec<Manual> = seeds.iter().map(|seed| fickle(*seed, &log)).collect();
        let done = report(&mut movers, &list, require_device);
        let rows = &done.statistics;
        for (n, row) in rows.iter().enumerate() {
            let key = |row: &PageStatistic| (row.size, row.executor, row.reason);
            prop_assert!(rows[..n].iter().all(|other| key(other) != key(row)), "{:?} twice", row);
        }
        let mut failed = [0, 0];
        let mut all = [0, 0];
        let is_large = |entry: &PageCopy| entry.bytes >= 2 << 20;
        for (entry, state) in list.iter().zip(&done.states) {
            let size = usize::from(is_large(entry));
            all[size] += entry.bytes;
            let at = (entry.destination - target.address()) as usize;
            let range = at..at + entry.bytes as usize;
            match state {
                PageState::Copied => prop_assert!(target[range.clone()] == source[range]),
                PageState::NotCopied { bytes, fault } => {
                    prop_assert!(require_device && *bytes > 0 && fault.is_none());
                    failed[size] += bytes;
                }
            }
        }
        for (n, size) in [PageSize::Base, PageSize::Large].into_iter().enumerate() {
            let copied = sum(rows, |row| row.size == size);
            prop_assert_eq!(copied, all[n] - failed[n], "{:?}", size);
        }
        let offloaded = |row: &PageStatistic| row.reason.is_none();
        prop_assert_eq!(sum(rows, offloaded), done.counts.device_bytes);
        let by_core = sum(rows, |row| !offloaded(row));
        prop_assert_eq!(by_core, done.counts.after_failure_bytes);
        // The oracle: what the devices have copied, entry by entry.
        for row in rows.iter().filter(|row| offloaded(row)) {
            let (mut entries, mut bytes) = (0, 0);
            for entry in list.iter().filter(|entry| is_large(entry) == (row.size == PageSize::Large)) {
                let inside = |(start, _, executor): &&(u64, u64, Executor)| {
                    *executor == row.executor
                        && (entry.destination..entry.destination + entry.bytes).contains(start)
                };
                let log = log.borrow();
                let copied: u64 = log.iter().filter(inside).map(|(_, bytes, _)| bytes).sum();
                entries += u64::from(copied > 0);
                bytes += copied;
            }
            prop_assert_eq!((row.entries, row.bytes), (entries, bytes), "{:?}", row);
        }
        let most = list.len() as u64;
        prop_assert!(rows.iter().all(|row| (1..=most).contains(&row.entries)));
    }
}
