//! Ways into a work queue: the submit path that is chosen, full queues, raw descriptors. Inside `dray run`, except
//! for tests on a page of a file in place of the portal.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use dray::hw::{
    self, HwError, HwMover, HwOptions, Portal, QueueInfo, RawPortal, SubmitPath, Submitting,
};
use dray::{Completion, Mover, Operation, Progress, WaitError, WaitPolicy, wait};
use dray_conformance::machines::held_page;
use dray_device::Submission;
use dray_spec::{Descriptor, Status};

use crate::library::run_inside;
use memory_queue::of_memory;

#[path = "../../../dray/benches/support/memory_queue.rs"]
mod memory_queue;

/// No test waits so long.
const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));

/// A line that a device writes a completion record to.
#[repr(align(64))]
struct Record([AtomicU8; 64]);

impl Record {
    fn new() -> Record {
        Record([const { AtomicU8::new(0) }; 64])
    }

    fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Waits until it is written.
    fn status(&self) -> Status {
        let start = std::time::Instant::now();
        loop {
            match self.0[0].load(Ordering::Acquire) {
                0 => assert!(start.elapsed() < Duration::from_secs(60), "no record"),
                status => return Status(status),
            }
            std::thread::yield_now();
        }
    }
}

fn copy_on(mover: &mut HwMover) {
    let (source, target) = (vec![7_u8; 4096], vec![0_u8; 4096]);
    let address = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
    let copy = Operation::memmove(address(&source), address(&target), 4096);
    // SAFETY: both outlive the operation, which is waited for.
    unsafe { mover.enqueue(&copy) }.expect("a slot");
    let mut ended = [Completion::default()];
    wait(mover, &mut ended, WaitPolicy::Yield, DEADLINE).expect("it ends");
    assert_eq!(ended[0].status(), Status::SUCCESS);
    assert!(source == target);
}

#[test]
fn a_dedicated_queue_gets_movdir64b() {
    let test = "library_queue::a_dedicated_queue_gets_movdir64b";
    if run_inside(test, &["--profile", "1e1w-d"]) {
        let mut mover = hw::open(None, HwOptions::default()).expect("a queue");
        assert_eq!(mover.submit_path(), SubmitPath::Movdir64b);
        assert!(mover.map_refusal().is_none());
        copy_on(&mut mover);
    }
}

#[test]
fn a_shared_queue_gets_enqcmd() {
    let test = "library_queue::a_shared_queue_gets_enqcmd";
    if run_inside(test, &["--profile", "4e1w-s"]) {
        let mut mover = hw::open(None, HwOptions::default()).expect("a queue");
        assert_eq!(mover.submit_path(), SubmitPath::Enqcmd);
        copy_on(&mut mover);
    }
}

#[test]
fn write_is_used_where_the_kernel_refuses_the_mapping() {
    let test = "library_queue::write_is_used_where_the_kernel_refuses_the_mapping";
    let kernel = ["--personality", "7.2", "--require", "write"];
    if !run_inside(test, &[&["--profile", "4e1w-s"], &kernel[..]].concat()) {
        return;
    }
    if !is_without_raw_io(test) {
        return;
    }
    let options = HwOptions::default();
    let mut mover = hw::open(None, options).expect("a queue");
    assert_eq!(mover.submit_path(), SubmitPath::Write);
    let refusal = mover.map_refusal().expect("the mapping was refused");
    assert_eq!(refusal.kind(), ErrorKind::PermissionDenied);
    copy_on(&mut mover);
    // With `Submitting::Portal` the refusal is an error.
    let submitting = Some(Submitting::Portal);
    let insists = hw::open(
        Some("wq0.0"),
        HwOptions {
            submitting,
            ..options
        },
    );
    let Err(HwError::Map { source, .. }) = insists else {
        panic!("{insists:?}");
    };
    assert_eq!(source.kind(), ErrorKind::PermissionDenied);
}

/// Runs the test again in a process without CAP_SYS_RAWIO, for which a kernel since 6.10 maps no portal of a
/// device of version 1. True in that process.
fn is_without_raw_io(test: &str) -> bool {
    const WITHOUT: &str = "DRAY_TEST_WITHOUT_RAW_IO";
    const RAW_IO: libc::c_ulong = 17;
    if std::env::var_os(WITHOUT).is_some() {
        return true;
    }
    // Processes that this thread starts cannot have CAP_SYS_RAWIO. Users other than root do not have it.
    // SAFETY: numbers alone.
    unsafe { libc::prctl(libc::PR_CAPBSET_DROP, RAW_IO, 0, 0, 0) };
    let status = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", test, "--nocapture"])
        .env(WITHOUT, "1")
        .status();
    assert!(status.expect("it starts").success());
    false
}

#[test]
fn umwait_is_supported_where_the_processor_has_waitpkg() {
    let test = "library_queue::umwait_is_supported_where_the_processor_has_waitpkg";
    if !run_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    // Of the processor: the session's /proc/cpuinfo has the flags of what is emulated as well.
    let has_it = std::arch::x86_64::__cpuid_count(7, 0).ecx >> 5 & 1 == 1;
    assert_eq!(WaitPolicy::Umwait.is_supported(), has_it);
    let mut mover = hw::open(None, HwOptions::default()).expect("a queue");
    // SAFETY: a NOOP has no operands.
    unsafe { mover.enqueue(&Operation::noop()) }.expect("a slot");
    let mut ended = [Completion::default()];
    let waited = wait(&mut mover, &mut ended, WaitPolicy::Umwait, DEADLINE);
    let expected = if has_it {
        Ok(1)
    } else {
        Err(WaitError::NoUmwait)
    };
    assert_eq!(waited, expected);
}

#[test]
fn a_full_shared_queue_answers_retry_and_loses_nothing() {
    let test = "library_queue::a_full_shared_queue_answers_retry_and_loses_nothing";
    if !run_inside(test, &["--profile", "4e1w-s", "--faults", "touch"]) {
        return;
    }
    let Some(held) = held_page() else {
        dray_skip::skip("this process may not hold page faults of the kernel");
        return;
    };
    let mut other = hw::open(Some("wq0.0"), HwOptions::default()).expect("a shared queue");
    let mut mover = hw::open(Some("wq0.0"), HwOptions::default()).expect("the same queue");
    let entries = usize::from(mover.info().entries);
    let fill = |mover: &mut HwMover, n: usize| {
        let fill = Operation::fill(n as u64, held.page + 8 * (n as u64 % 512), 8);
        // SAFETY: the page outlives all operations.
        unsafe { mover.enqueue(&fill) }.expect("a slot");
    };
    // The other client fills the queue, as far as a client may, while the engines wait for the page.
    for n in 0..entries {
        fill(&mut other, n);
    }
    assert_eq!(other.submit(), Progress::Done);
    assert_eq!(other.retries(), 0);
    // The mover under test has no descriptor in flight yet, and the queue will soon be full.
    let count = entries.min(mover.slots());
    for n in 0..count {
        fill(&mut mover, n);
    }
    assert_eq!(mover.submit(), Progress::Pending);
    let retries = mover.retries();
    assert!(retries >= 16, "{retries} retries");
    // Each call makes a limited number of attempts.
    assert_eq!(mover.submit(), Progress::Pending);
    assert_eq!(mover.retries(), retries + 16);
    (held.release)();
    for (mover, count) in [(&mut other, entries), (&mut mover, count)] {
        let mut left = count;
        let mut ended = [Completion::default(); 8];
        while left > 0 {
            let count = wait(mover, &mut ended, WaitPolicy::Yield, DEADLINE).expect("they end");
            for completion in &ended[..count] {
                assert_eq!(completion.status(), Status::SUCCESS);
            }
            left -= count;
        }
    }
}

#[test]
fn raw_descriptors_are_executed_unchanged() {
    let test = "library_queue::raw_descriptors_are_executed_unchanged";
    if !run_inside(test, &["--profile", "1e1w-d"]) {
        return;
    }
    let queue = hw::discover().expect("queues").remove(0);
    let mut portal = RawPortal::open(&queue, None).expect("a queue");
    assert_eq!(portal.submit_path(), SubmitPath::Movdir64b);
    let source = vec![3_u8; 8192];
    let target = vec![0_u8; 8192];
    let [from, to] = [&source, &target].map(|bytes| bytes.as_ptr().expose_provenance() as u64);
    // A batch with a list of its own, whose members have records of their own.
    let records = [(); 2].map(|()| Record::new());
    let whole = Record::new();
    let list = [0, 1].map(|n: u64| {
        Descriptor::memmove(from + 4096 * n, to + 4096 * n, 4096)
            .with_completion(records[n as usize].address())
    });
    let batch = Descriptor::batch(list.as_ptr().expose_provenance() as u64, 2);
    let batch = batch.with_completion(whole.address());
    // SAFETY: list, records and buffers outlive the batch, which is waited for; the queue has room for it.
    let submitted = unsafe { portal.submit(&batch) };
    assert_eq!(submitted.expect("no write(2)"), Submission::Accepted);
    assert_eq!(whole.status(), Status::SUCCESS);
    assert!(
        records
            .iter()
            .all(|record| record.status() == Status::SUCCESS)
    );
    assert!(source == target);
    // Bytes that lie anywhere, with a flag that is reserved.
    let record = Record::new();
    let mut bytes = [0_u8; 65];
    bytes[1 + 4] = 0x4c;
    bytes[1 + 8..1 + 16].copy_from_slice(&record.address().to_le_bytes());
    let descriptor = bytes[1..].try_into().expect("64 bytes");
    // SAFETY: a NOOP with a record, which outlives it.
    let submitted = unsafe { portal.submit_bytes(descriptor) };
    assert_eq!(submitted.expect("no write(2)"), Submission::Accepted);
    assert_eq!(record.status(), Status::INVALID_FLAGS);
}

/// CPUID leaf 7: MOVDIR64B.
fn has_movdir64b() -> bool {
    // SAFETY: every x86-64 processor has CPUID.
    #[allow(unused_unsafe, reason = "a safe function in later versions of Rust")]
    let has = unsafe { std::arch::x86_64::__cpuid_count(7, 0) }.ecx >> 28 & 1 == 1;
    if !has {
        dray_skip::skip("this processor has no MOVDIR64B");
    }
    has
}

/// Lines of the page that were written.
fn lines(queue: &QueueInfo) -> Vec<usize> {
    let mut page = [0; 4096];
    let file = fs::File::open(&queue.path).expect("the page");
    file.read_exact_at(&mut page, 0).expect("the page");
    let written = page.chunks(64).enumerate();
    let written = written.filter(|(_, line)| line.iter().any(|byte| *byte != 0));
    written.map(|(n, _)| n).collect()
}

#[test]
fn submissions_rotate_over_the_64_lines_of_the_portal() {
    if !has_movdir64b() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let queue = of_memory(&directory.path().join("wq0.0"), 16);
    let noop = Descriptor::noop().with_completion(0x1000);
    let mut portal = Portal::open(&queue, true).expect("a page");
    for n in 0..65 {
        assert!(lines(&queue).into_iter().eq(0..n.min(64)));
        // SAFETY: nothing reads it.
        unsafe { portal.movdir64b(&noop) };
    }
    let queue = of_memory(&directory.path().join("wq0.0"), 16);
    let mut portal = Portal::open(&queue, false).expect("a page");
    for _ in 0..3 {
        // SAFETY: as above.
        unsafe { portal.movdir64b(&noop) };
    }
    assert_eq!(lines(&queue), [0]);
}

#[test]
fn a_dedicated_queue_never_holds_more_than_its_entries() {
    if !has_movdir64b() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let queue = of_memory(&directory.path().join("wq0.0"), 5);
    let drop_timeout = Duration::ZERO;
    let options = HwOptions {
        drop_timeout,
        ..HwOptions::default()
    };
    let mut mover = HwMover::open(&queue, options).expect("a page");
    for _ in 0..20 {
        // SAFETY: a NOOP has no operands.
        unsafe { mover.enqueue(&Operation::noop()) }.expect("a slot");
        mover.submit();
    }
    // Nothing completes: the others wait.
    assert_eq!(mover.submit(), Progress::Pending);
    assert_eq!(lines(&queue), [0, 1, 2, 3, 4]);
    assert_eq!(mover.poll(&mut [Completion::default(); 4]), 0);
    assert_eq!(mover.withdraw(), 15);
}
