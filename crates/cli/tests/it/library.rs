//! The library's `hw` mover inside `dray run`, where it is a DSA program like any other: this test
//! runs itself again there.

use std::env;
use std::process::Command;
use std::time::Duration;

use dray::channels::{Channels, ChannelsOptions, Outcome, Require};
use dray::hw::{self, HwError, HwMover, HwOptions, OpenQueue, Submitting};
use dray::{
    Channel, Completion, CpuMover, Executor, Failure, Mover, Operation, Output, Progress,
    QueueLost, WaitPolicy, wait,
};
use dray_conformance::machines::{disrupt, held_page};
use dray_conformance::{Disruption, ProcessDoor, check};
use dray_spec::{Flags, Status};

/// Set in the process inside.
const INSIDE: &str = "DRAY_TEST_INSIDE";

/// Runs the test of this name again, inside `dray run` with these options. True in the process
/// inside, which has the test's work to do.
fn is_inside(test: &str, options: &[&str]) -> bool {
    run_inside(&format!("library::{test}"), options)
}

/// The same, of a test by its whole name.
pub(crate) fn run_inside(test: &str, options: &[&str]) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let myself = env::current_exe().expect("a path");
    let output = Command::new(assert_cmd::cargo::cargo_bin("dray"))
        .arg("run")
        .args(options)
        .arg("--")
        .arg(myself)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("dray runs");
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options:?}\n{out}\n{err}");
    assert!(out.contains("1 passed"), "{options:?}\n{out}\n{err}");
    println!("{out}");
    false
}

fn conforms(submitting: Option<Submitting>) {
    survives(submitting, Disruption::Disabled);
}

fn survives(submitting: Option<Submitting>, how: Disruption) {
    let options = HwOptions {
        slots: 16,
        submitting,
        ..HwOptions::default()
    };
    let mover = hw::open(None, options).expect("a work queue");
    let name = format!("hw {} {}", mover.info().name(), mover.submit_path());
    let queue = mover.info().name();
    let mut door = ProcessDoor::new(&name, Executor::Hardware, mover)
        .with_faults(|_| {})
        .with_disrupter(Box::new(move |disruption| {
            if disruption == how {
                disrupt(&queue, how);
            }
            disruption == how
        }));
    match check(&mut door) {
        Ok(report) => {
            println!("{report}");
            assert!(report.faults >= 7, "{name}");
            assert_eq!(report.disrupted, 16, "{name}");
        }
        Err(mismatch) => panic!("{name}: {mismatch}"),
    }
    let mut core = ProcessDoor::new("cpu", Executor::Cpu, CpuMover::new(16));
    println!("{}", check(&mut core).expect("this core conforms"));
}

#[test]
fn a_wait_for_a_stalled_operation_ends_at_its_deadline() {
    let test = "a_wait_for_a_stalled_operation_ends_at_its_deadline";
    // Engines of their own: the device answers the driver while they wait.
    for profile in ["4e1w-d", "4e1w-s"] {
        if !is_inside(test, &["--profile", profile, "--faults", "touch"]) {
            continue;
        }
        let Some(held) = held_page() else {
            dray_skip::skip("this process may not hold page faults of the kernel");
            return;
        };
        let mover = hw::open(None, HwOptions::default()).expect("a work queue");
        let mut door = ProcessDoor::new("hw", Executor::Hardware, mover).with_held(move || held);
        match check(&mut door) {
            Ok(report) => {
                println!("{report}");
                assert_eq!(report.held, 3);
            }
            Err(mismatch) => panic!("{mismatch}"),
        }
        return;
    }
}

#[test]
fn a_dedicated_queue_conforms() {
    if is_inside("a_dedicated_queue_conforms", &["--profile", "1e1w-d"]) {
        conforms(Some(Submitting::Portal));
    }
}

#[test]
fn nothing_is_lost_when_a_queue_is_reset_and_enabled_again() {
    let test = "nothing_is_lost_when_a_queue_is_reset_and_enabled_again";
    for profile in ["1e1w-d", "1e1w-s"] {
        if is_inside(test, &["--profile", profile]) {
            return survives(None, Disruption::QueueReset);
        }
    }
}

#[test]
fn nothing_is_lost_when_a_device_is_disabled() {
    for profile in ["1e1w-d", "1e1w-s"] {
        if is_inside(
            "nothing_is_lost_when_a_device_is_disabled",
            &["--profile", profile],
        ) {
            return survives(None, Disruption::DeviceReset);
        }
    }
}

#[test]
fn a_lost_queue_reports_why_it_was_lost() {
    let test = "a_lost_queue_reports_why_it_was_lost";
    if !is_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    let mover = hw::open(None, HwOptions::default()).expect("a work queue");
    let queue = mover.info().name();
    let mut channel = Channel::new(mover);
    disrupt(&queue, Disruption::QueueReset);
    // The portal mapped before leads to the queue as enabled now: descriptors written there are not executed.
    channel.copy(vec![7; 64], vec![1; 64]).expect("a slot");
    let done = channel.wait(WaitPolicy::Yield, DEADLINE).expect("an end");
    let reason = QueueLost::Disabled;
    assert_eq!(done.result, Err(Failure::QueueLost { reason }));
    assert_eq!(done.buffers.destination, Some(vec![1; 64]));
    let failure = channel.mover().failure();
    assert!(
        matches!(failure, Some(HwError::Disabled { .. })),
        "{failure:?}"
    );
    // A new open of the queue works.
    drop(channel);
    let mut channel = Channel::new(hw::open(Some(&queue), HwOptions::default()).expect("a queue"));
    channel.copy(vec![7; 64], vec![1; 64]).expect("a slot");
    let done = channel.wait(WaitPolicy::Yield, DEADLINE).expect("an end");
    assert_eq!(done.buffers.destination, Some(vec![7; 64]));
}

#[test]
fn channels_go_on_without_a_queue_that_is_disabled() {
    let test = "channels_go_on_without_a_queue_that_is_disabled";
    if !is_inside(test, &["--profile", "2e2w-s"]) {
        return;
    }
    let members = hw::open_all(HwOptions::default()).expect("work queues");
    assert!(members.len() > 1);
    let queue = members[0].mover.info().name();
    let options = ChannelsOptions {
        require: Require::Hardware,
        gather_below_bytes: 0,
        ..ChannelsOptions::default()
    };
    let mut channel = Channel::new(Channels::new(members, options).expect("channels"));
    disrupt(&queue, Disruption::Disabled);
    for n in 0..64 {
        channel
            .copy(vec![n; 4096], vec![0xff; 4096])
            .expect("a slot");
    }
    for _ in 0..64 {
        let done = channel.wait(WaitPolicy::Yield, DEADLINE).expect("an end");
        assert_eq!(done.result, Ok(Output::Done));
        assert_eq!(done.executor, Executor::Hardware);
        assert_eq!(done.buffers.source, done.buffers.destination);
    }
    let excluded = channel.mover().excluded();
    let excluded: Vec<usize> = excluded.map(|excluded| excluded.channel).collect();
    assert_eq!(excluded, [0]);
}

/// No test waits so long.
const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));
#[test]
fn a_shared_queue_with_four_engines_conforms() {
    let test = "a_shared_queue_with_four_engines_conforms";
    if is_inside(test, &["--profile", "4e1w-s"]) {
        conforms(Some(Submitting::Portal));
    }
}

#[test]
fn submission_by_write_conforms() {
    let options = ["--profile", "1e1w-d", "--personality", "7.2"];
    if is_inside("submission_by_write_conforms", &options) {
        conforms(Some(Submitting::Write));
    }
}

#[test]
fn channels_over_all_queues_conform() {
    if !is_inside("channels_over_all_queues_conform", &["--profile", "2e2w-s"]) {
        return;
    }
    let options = ChannelsOptions {
        require: Require::Hardware,
        stripe_bytes: 1024,
        ..ChannelsOptions::default()
    };
    let members = hw::open_all(HwOptions::default()).expect("work queues");
    assert_eq!(members.len(), 2);
    let channels = Channels::new(members, options).expect("hardware alone");
    let mut door = ProcessDoor::new("channels hw", Executor::Hardware, channels);
    println!("{}", check(&mut door).expect("they conform"));
}

#[test]
fn a_copy_touches_pages_that_are_not_present_and_resumes() {
    let test = "a_copy_touches_pages_that_are_not_present_and_resumes";
    if !is_inside(test, &["--profile", "2e2w-s"]) {
        return;
    }
    let members = hw::open_all(HwOptions::default()).expect("work queues");
    let options = ChannelsOptions {
        require: Require::Hardware,
        ..ChannelsOptions::default()
    };
    let mut channels = Channels::new(members, options).expect("hardware alone");
    let (bytes, source) = (64 * 4096, vec![7_u8; 64 * 4096]);
    let target = untouched_pages(64) as u64;
    let from = source.as_ptr().expose_provenance() as u64;
    let copy = Operation::memmove(from, target, bytes);
    // SAFETY: both areas outlive the operation, which is waited for.
    unsafe { channels.enqueue(&copy) }.expect("a slot");
    let mut ended = [Outcome::default()];
    while channels.poll_outcomes(&mut ended) == 0 {
        channels.submit();
        std::thread::yield_now();
    }
    assert_eq!(ended[0].output(&copy), Ok(dray::Output::Done));
    assert_eq!(ended[0].device_bytes, u64::from(bytes));
    assert_eq!((ended[0].resumed_faults, ended[0].stripes), (64, 2));
    // SAFETY: a mapping of so many bytes, which has been written.
    let copied = unsafe { std::slice::from_raw_parts(target as *const u8, bytes as usize) };
    assert!(copied == source);
}

#[test]
fn an_operation_above_max_transfer_size_is_split() {
    let test = "an_operation_above_max_transfer_size_is_split";
    if !is_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    let mut queue = hw::discover().expect("work queues").remove(0);
    // As if it were smaller: the device's own limit would take 2 MiB and more.
    queue.capabilities.max_transfer_bytes = 64 << 10;
    let mut mover = HwMover::open(&queue, HwOptions::default()).expect("a work queue");
    let bytes = (1 << 20) + 7;
    let source: Vec<u8> = (0..bytes).map(|n| ((n * 7) >> 3) as u8).collect();
    let target = vec![1_u8; bytes as usize];
    let from = source.as_ptr().expose_provenance() as u64;
    let to = target.as_ptr().expose_provenance() as u64;
    // A page that the kernel is moving at that moment faults.
    let mut tries = (0..100).map(|_| copy(&mut mover, from, to, bytes).status());
    let ended = tries.find(|status| *status != Status::PAGE_FAULT);
    assert_eq!(ended, Some(Status::SUCCESS));
    assert!(source == target);
}

/// A copy on a mover, to its end.
fn copy(mover: &mut HwMover, from: u64, to: u64, len: u32) -> Completion {
    // SAFETY: the callers' buffers outlive the call.
    unsafe { mover.enqueue(&Operation::memmove(from, to, len)) }.expect("a slot");
    let mut ended = [Completion::default()];
    let deadline = Some(std::time::Duration::from_secs(30));
    wait(mover, &mut ended, WaitPolicy::Yield, deadline).expect("it ends");
    ended[0]
}

#[test]
fn a_page_that_is_not_present_faults_and_the_rest_can_be_resumed() {
    let test = "a_page_that_is_not_present_faults_and_the_rest_can_be_resumed";
    if !is_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    let options = HwOptions {
        page_faults: 0,
        ..HwOptions::default()
    };
    let mut mover = hw::open(None, options).expect("a work queue");
    // Two pages, of which the second was never touched.
    let pages = untouched_pages(2);
    // SAFETY: the first byte of the mapping.
    unsafe { pages.write_volatile(1) };
    let target = vec![1_u8; 8192];
    let (from, to) = (pages as u64, target.as_ptr().expose_provenance() as u64);
    let first = copy(&mut mover, from, to, 8192);
    assert_eq!(first.status(), Status::PAGE_FAULT);
    assert_eq!(first.record.bytes_completed, 4096);
    assert_eq!(first.record.fault_address & !0xfff, from + 4096);
    // SAFETY: mapped, and nothing else writes it.
    unsafe { mover.touch(from + 4096, true) };
    let rest = copy(&mut mover, from + 4096, to + 4096, 4096);
    assert_eq!(rest.status(), Status::SUCCESS);
    assert!(target[4096..].iter().all(|byte| *byte == 0));
}

#[test]
fn untouched_memory_is_copied_alone_and_in_a_batch() {
    let test = "untouched_memory_is_copied_alone_and_in_a_batch";
    if !is_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    let mut mover = hw::open(None, HwOptions::default()).expect("a work queue");
    let target = vec![1_u8; 8192];
    let to = target.as_ptr().expose_provenance() as u64;
    let alone = copy(&mut mover, untouched_pages(2) as u64, to, 8192);
    assert_eq!(alone.status(), Status::SUCCESS);
    assert!(target.iter().all(|byte| *byte == 0));
    let (first, second) = (untouched_pages(2) as u64, untouched_pages(2) as u64);
    let fill = Operation::fill(u64::MAX, first, 8192);
    let copy =
        Operation::memmove(first, second, 8192).with_changed_flags(Flags::EMPTY, Flags::FENCE);
    // SAFETY: mappings that stay.
    unsafe { mover.enqueue_batch(&[fill, copy]) }.expect("slots");
    let (mut count, mut ended) = (0, [Completion::default(); 2]);
    while count < 2 {
        let seen = wait(&mut mover, &mut ended[count..], WaitPolicy::Yield, None);
        count += seen.expect("a completion");
    }
    assert_eq!(ended.map(|ended| ended.status()), [Status::SUCCESS; 2]);
    let copied = std::ptr::with_exposed_provenance::<[u64; 1024]>(second as usize);
    // SAFETY: both pages, which the device has written.
    assert!(unsafe { copied.read() } == [u64::MAX; 1024]);
}

pub(crate) fn untouched_pages(count: usize) -> *mut u8 {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let pages = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            count * 4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(pages, libc::MAP_FAILED);
    pages.cast()
}

#[test]
fn more_in_flight_than_the_queue_has_entries_are_all_executed() {
    let test = "more_in_flight_than_the_queue_has_entries_are_all_executed";
    if !is_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    let options = HwOptions {
        slots: 1000,
        ..HwOptions::default()
    };
    let mut mover = hw::open(None, options).expect("a work queue");
    let mut values = vec![0_u64; 1000];
    let base = values.as_mut_ptr().expose_provenance() as u64;
    for n in 0..1000 {
        let fill = Operation::fill(n + 1, base + 8 * n, 8).with_user_data(n);
        // SAFETY: the values outlive the mover's work, which is waited for.
        unsafe { mover.enqueue(&fill) }.expect("a slot");
    }
    let mut seen = vec![false; 1000];
    let mut ended = [Completion::default(); 64];
    while seen.iter().any(|seen| !seen) {
        mover.submit();
        let count = mover.poll(&mut ended);
        for completion in &ended[..count] {
            assert_eq!(completion.status(), Status::SUCCESS);
            assert!(!std::mem::replace(
                &mut seen[completion.user_data as usize],
                true
            ));
        }
        std::thread::yield_now();
    }
    assert_eq!(mover.submit(), Progress::Done);
    assert!((1..=1000).eq(values.iter().copied()));
}

#[test]
fn movers_of_several_threads_share_a_dedicated_queue() {
    let test = "movers_of_several_threads_share_a_dedicated_queue";
    if !is_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    let mut info = hw::discover().expect("work queues").remove(0);
    // Fewer than the movers would fill.
    info.entries = 4;
    let queue = OpenQueue::open(&info, HwOptions::default()).expect("a work queue");
    let mut values = vec![0_u64; 3 * 500];
    std::thread::scope(|scope| {
        for part in values.chunks_mut(500) {
            let mut mover = queue.mover().expect("a mover");
            scope.spawn(move || {
                let base = part.as_mut_ptr().expose_provenance() as u64;
                let (mut next, mut left) = (0, part.len());
                let mut ended = [Completion::default(); 16];
                while left > 0 {
                    while next < 500 {
                        let fill = Operation::fill(next + 1, base + 8 * next, 8);
                        // SAFETY: the values outlive the mover's work, which is waited for.
                        if unsafe { mover.enqueue(&fill) }.is_err() {
                            break;
                        }
                        next += 1;
                    }
                    mover.submit();
                    let count = mover.poll(&mut ended);
                    for completion in &ended[..count] {
                        assert_eq!(completion.status(), Status::SUCCESS);
                    }
                    left -= count;
                    std::thread::yield_now();
                }
            });
        }
    });
    for part in values.chunks(500) {
        assert!((1..=500).eq(part.iter().copied()));
    }
}
