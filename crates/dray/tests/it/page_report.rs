//! Lists of pages with what cannot be copied, deadlines, lost queues: states, statistics and typed errors.

use std::time::Duration;

use dray::channels::{Channels, ChannelsOptions, Member};
use dray::pages::{
    PageCopy, PageListError, PageListOptions, PageListReport, PageSize, PageState, PageStatistic,
    copy_page_lists_with_report,
};
use dray::virt::{Options, VirtualDevice, VirtualMover};
use dray::{Checked, Completion, CpuMover, Executor, Mover, Progress, Reason};
use dray_device::WorkQueueMode::Shared;
use dray_spec::Status;
use dray_spec::registers::{Command, CommandRegister};

use crate::machine::{device, queue};
use crate::memory::{Guarded, PAGE};

const LARGE: usize = 512;

fn checked(queues: u16) -> (VirtualDevice, Vec<VirtualMover>) {
    let config = device(2, (0..queues).map(|id| queue(id, Shared, 16)).collect());
    let started = VirtualDevice::start_in(config, Options::default(), Checked, |_| {});
    let started = started.expect("a device that can be enabled");
    let movers = (0..queues).map(|id| started.open(id, 64).expect("a queue"));
    let movers = movers.collect();
    (started, movers)
}

/// Base pages and then large ones, each copied to its like.
fn list(source: &Guarded, target: &Guarded, base: usize) -> Vec<PageCopy> {
    let pages = source.len() / PAGE;
    let mut list = Vec::new();
    let mut page = 0;
    while page < pages {
        let count = if page < base { 1 } else { LARGE };
        let offset = (page * PAGE) as u64;
        list.push(PageCopy {
            source: source.address() + offset,
            destination: target.address() + offset,
            bytes: (count * PAGE) as u64,
        });
        page += count;
    }
    list
}

fn report<M: Mover>(
    channels: &mut [M],
    list: &[PageCopy],
    options: &PageListOptions,
) -> PageListReport {
    // SAFETY: the tests' memory outlives the call, and addresses are looked at.
    unsafe { copy_page_lists_with_report(channels, list, options) }.expect("a list")
}

fn row(
    size: PageSize,
    executor: Executor,
    reason: Option<Reason>,
    pages: [usize; 2],
) -> PageStatistic {
    PageStatistic {
        size,
        executor,
        reason,
        entries: pages[0] as u64,
        bytes: (pages[1] * PAGE) as u64,
    }
}

#[test]
fn statistics_are_by_size_executor_and_reason() {
    let (source, target) = (
        Guarded::noise(40 + 2 * LARGE, 1),
        Guarded::new(40 + 2 * LARGE),
    );
    let (_device, mut movers) = checked(2);
    let all = list(&source, &target, 40);
    let done = report(&mut movers, &all, &PageListOptions::default());
    assert!(*source == *target);
    let (virt, offloaded) = (Executor::Virtual, None);
    let expected = [
        row(PageSize::Base, virt, offloaded, [40, 40]),
        row(PageSize::Large, virt, offloaded, [2, 2 * LARGE]),
    ];
    assert_eq!(done.statistics, expected);
    assert_eq!(done.states, [PageState::Copied; 42]);
    let short = report(&mut movers, &all[..11], &PageListOptions::default());
    let below = Some(Reason::BelowThreshold);
    let expected = [row(PageSize::Base, Executor::Cpu, below, [11, 11])];
    assert_eq!(short.statistics, expected);
    let none: &mut [CpuMover] = &mut [];
    let without = report(none, &all, &PageListOptions::default());
    assert!(
        without
            .statistics
            .iter()
            .all(|row| row.reason == Some(Reason::NoDevice))
    );
    assert_eq!(without.error, None);
}

/// Two pages that cannot be read or written, among others, and what says so.
fn two_bad_pages<M: Mover>(channels: &mut [M], pages: usize, require_device: bool) {
    for core_threads in [1, 4] {
        let (source, target) = (Guarded::noise(pages, 2), Guarded::new(pages));
        let (unreadable, read_only) = (pages / 2 - 2, pages / 2 + 3);
        let expected = source.to_vec();
        source.inaccessible(unreadable..unreadable + 1);
        target.read_only(read_only..read_only + 1);
        let list = list(&source, &target, pages);
        let options = PageListOptions {
            require_device,
            core_threads,
            ..PageListOptions::default()
        };
        let done = report(channels, &list, &options);
        let fault = |address, write| PageState::NotCopied {
            bytes: PAGE as u64,
            fault: Some((address, write)),
        };
        for (n, state) in done.states.iter().enumerate() {
            let bytes = n * PAGE..(n + 1) * PAGE;
            let expected_state = match n {
                n if n == unreadable => fault(list[n].source, false),
                n if n == read_only => fault(list[n].destination, true),
                _ => PageState::Copied,
            };
            assert_eq!(*state, expected_state, "page {n} of {pages}");
            match state {
                PageState::Copied => assert!(target[bytes.clone()] == expected[bytes]),
                PageState::NotCopied { .. } => assert!(target[bytes].iter().all(|b| *b == 0)),
            }
        }
        let bad = [
            (list[unreadable].source, false),
            (list[read_only].destination, true),
        ];
        let (address, write) = bad.into_iter().min().expect("two");
        let error = PageListError::Inaccessible {
            address,
            write,
            bytes: 2 * PAGE as u64,
        };
        assert_eq!(done.error, Some(error));
        let bytes: u64 = done.statistics.iter().map(|row| row.bytes).sum();
        assert_eq!(bytes, ((pages - 2) * PAGE) as u64);
    }
}

#[test]
fn pages_that_cannot_be_accessed_are_named_and_the_others_copied() {
    let none: &mut [CpuMover] = &mut [];
    two_bad_pages(none, 64, false);
    // More than the caches of a core hold.
    two_bad_pages(none, 2 * LARGE, false);
    // Below the threshold.
    let (_device, mut movers) = checked(2);
    two_bad_pages(&mut movers, 10, false);
    // On the device.
    two_bad_pages(&mut movers, 64, false);
    two_bad_pages(&mut movers, 64, true);
    two_bad_pages(&mut [CpuMover::checked(16)], 64, true);
    // Channels do not say beforehand who executes.
    let members = movers.into_iter().map(|mover| Member {
        mover,
        numa_node: None,
    });
    let channels = Channels::new(members, ChannelsOptions::default()).expect("channels");
    two_bad_pages(&mut [channels], 64, false);
}

#[test]
fn bytes_beside_bad_pages_are_copied_whatever_the_offsets_in_the_pages() {
    const PAGES: usize = LARGE + 100;
    let (source, target) = (Guarded::noise(PAGES + 1, 8), Guarded::new(PAGES + 1));
    let expected = source.to_vec();
    source.inaccessible(300..301);
    target.read_only(400..401);
    let (from, to) = (123, 2345);
    let copy = PageCopy {
        source: source.address() + from,
        destination: target.address() + to,
        bytes: (PAGES * PAGE) as u64,
    };
    let none: &mut [CpuMover] = &mut [];
    let done = report(none, &[copy], &PageListOptions::default());
    let page = PAGE as u64;
    let (unreadable, read_only) = (300 * page - from, 400 * page - to);
    let faults = [
        (source.address() + 300 * page, false),
        (target.address() + 400 * page, true),
    ];
    let state = PageState::NotCopied {
        bytes: 2 * page,
        fault: faults.into_iter().min(),
    };
    assert_eq!(done.states, [state]);
    for offset in 0..copy.bytes {
        let left_out = [unreadable, read_only]
            .iter()
            .any(|at| (*at..*at + page).contains(&offset));
        let byte = match left_out {
            true => 0,
            false => expected[(from + offset) as usize],
        };
        assert_eq!(target[(to + offset) as usize], byte, "at {offset}");
    }
    let beside = [0..to as usize, (to + copy.bytes) as usize..target.len()];
    for range in beside {
        assert!(target[range].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_deadline_leaves_nothing_in_flight() {
    let pages = 2 * LARGE;
    for channels in [0, 1] {
        let (source, target) = (Guarded::noise(pages, 3), Guarded::new(pages));
        let (_device, mut movers) = checked(1);
        // No two neighbours in the list are neighbours in memory: a descriptor each.
        let mut list = list(&source, &target, pages);
        list.sort_by_key(|copy| (copy.source >> 12) % 2);
        let after = Duration::ZERO;
        let options = PageListOptions {
            deadline: Some(after),
            core_threads: 1,
            ..PageListOptions::default()
        };
        let done = report(&mut movers[..channels], &list, &options);
        let left = done.states.iter().map(|state| match state {
            PageState::Copied => 0,
            PageState::NotCopied { bytes, fault } => {
                assert_eq!(*fault, None);
                *bytes
            }
        });
        let bytes = left.sum();
        // The mover has 64 slots, so that most was never begun.
        assert!(bytes >= ((pages - 64) * PAGE) as u64, "{bytes}");
        assert_eq!(done.error, Some(PageListError::Deadline { after, bytes }));
        for (copy, state) in list.iter().zip(&done.states) {
            let at = (copy.source - source.address()) as usize;
            let range = at..at + PAGE;
            match state {
                PageState::Copied => assert!(source[range.clone()] == target[range]),
                PageState::NotCopied { .. } => assert!(target[range].iter().all(|b| *b == 0)),
            }
        }
        let mut ended = [Completion::default()];
        assert_eq!(movers[0].poll(&mut ended), 0);
        assert_eq!(movers[0].oldest_record(), None);
        assert_eq!(movers[0].submit(), Progress::Done);
    }
}

#[test]
fn what_a_lost_queue_does_not_copy_the_core_does_or_nobody() {
    for require_device in [false, true] {
        let (source, target) = (Guarded::noise(64, 4), Guarded::new(64));
        let (device, mut movers) = checked(1);
        let answer = device
            .device()
            .command(Command::DisableWq, CommandRegister::queue(0));
        assert_eq!(answer, Ok(Ok(0)));
        let options = PageListOptions {
            require_device,
            ..PageListOptions::default()
        };
        let list = list(&source, &target, 64);
        let done = report(&mut movers, &list, &options);
        let bytes = source.len() as u64;
        if require_device {
            let status = Status::NONE;
            let error = PageListError::NotByDevice { bytes, status };
            assert_eq!(done.error, Some(error));
            assert!(target.iter().all(|byte| *byte == 0));
        } else {
            assert_eq!(done.error, None);
            assert!(*source == *target);
            let by_core = row(
                PageSize::Base,
                Executor::Cpu,
                Some(Reason::NotExecuted),
                [64, 64],
            );
            assert_eq!(done.statistics, [by_core]);
            assert_eq!(done.counts.after_failure_bytes, bytes);
        }
    }
}
