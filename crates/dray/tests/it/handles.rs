//! Operations that threads start and wait for by handles.

use std::pin::Pin;
use std::ptr::null_mut;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use dray::task::{self, Driver, Handle, Look, StartError, Submitter};
use dray::virt::{Options, VirtualDevice, VirtualMover};
use dray::{CpuMover, Mover, Operation, Outcome};
use dray_device::WorkQueueMode;
use dray_spec::Status;

use crate::forked::in_child;
use crate::gate::{Gate, Opener};
use crate::machine::{device, queue};

fn address<T>(bytes: &mut [T]) -> u64 {
    bytes.as_mut_ptr().expose_provenance() as u64
}

fn step<M: Mover>(driver: &mut Driver<M>) -> Poll<()> {
    Pin::new(driver).poll(&mut Context::from_waker(Waker::noop()))
}

fn ended(look: Look) -> Outcome {
    match look {
        Look::Ended(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// A device that holds what it has until the gate opens, its driver on a thread.
fn gated() -> (Opener, VirtualDevice, Submitter, thread::JoinHandle<()>) {
    let gate = Opener(Gate::default());
    let config = device(1, vec![queue(0, WorkQueueMode::Dedicated, 8)]);
    let started = VirtualDevice::start_in(config, Options::default(), gate.0.clone(), |_| {});
    let device = started.expect("a device");
    let mover = device.open(0, 2).expect("a queue");
    let (submitter, driver) = task::share::<VirtualMover>(mover);
    let driver = thread::spawn(move || driver.run());
    (gate, device, submitter, driver)
}

fn start(submitter: &Submitter, handle: &Handle, operation: Operation, listed: bool) {
    // SAFETY: each test keeps handles and buffers until the operations have ended.
    unsafe { submitter.start(handle, operation.into(), listed) }.expect("it starts");
}

/// Four threads on one mover, each with more operations than there are slots, and other lengths.
fn many_threads<M: Mover + Send + 'static>(mover: M) {
    let (submitter, driver) = task::share(mover);
    let driver = thread::spawn(move || driver.run());
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let submitter = submitter.clone();
            scope.spawn(move || {
                let handles: Vec<Handle> = (0..64).map(|_| Handle::new()).collect();
                let mut buffers = vec![[0_u8; 100]; handles.len()];
                for round in 0..20_u8 {
                    for (n, handle) in handles.iter().enumerate() {
                        let pattern = u64::from_ne_bytes([thread * 20 + round + 1; 8]);
                        let to = address(&mut buffers[n]);
                        let fill = Operation::fill(pattern, to, n as u32 + 1);
                        start(&submitter, handle, fill.with_user_data(n as u64), false);
                    }
                    for (n, handle) in handles.iter().enumerate() {
                        let outcome = ended(handle.wait(None));
                        assert_eq!(outcome.completion.status(), Status::SUCCESS);
                        assert_eq!(outcome.completion.user_data, n as u64);
                        assert_eq!(outcome.core_bytes + outcome.device_bytes, n as u64 + 1);
                        let (filled, rest) = buffers[n].split_at(n + 1);
                        assert!(filled.iter().all(|byte| *byte == thread * 20 + round + 1));
                        assert!(rest.iter().all(|byte| *byte == 0));
                    }
                }
            });
        }
    });
    drop(submitter);
    driver.join().expect("it ends with its submitters");
}

#[test]
fn threads_share_a_mover_and_all_data_are_right() {
    many_threads(CpuMover::new(8));
    for mode in [WorkQueueMode::Dedicated, WorkQueueMode::Shared] {
        let config = device(1, vec![queue(0, mode, 16)]);
        let device = VirtualDevice::start(config, Options::default()).expect("a device");
        many_threads(device.open(0, 8).expect("a queue"));
    }
}

#[test]
fn a_million_handles_end_in_their_order() {
    const COUNT: usize = 1_000_000;
    let (submitter, mut driver) = task::share(CpuMover::new(128));
    let handles: Vec<Handle> = (0..COUNT).map(|_| Handle::new()).collect();
    for (n, handle) in handles.iter().enumerate() {
        start(
            &submitter,
            handle,
            Operation::noop().with_user_data(n as u64),
            true,
        );
    }
    let mut taken = [null_mut(); 128];
    let mut next = 0;
    while next < COUNT {
        let _ = step(&mut driver);
        let count = submitter.take_ended(&mut taken);
        for &handle in &taken[..count] {
            assert_eq!(handle.cast_const(), &raw const handles[next]);
            next += 1;
        }
    }
    assert_eq!(
        ended(handles[COUNT - 1].look()).completion.user_data,
        COUNT as u64 - 1
    );
}

#[test]
fn what_is_cancelled_before_it_begins_is_not_executed() {
    let (submitter, mut driver) = task::share(CpuMover::new(1));
    let handles = [const { Handle::new() }; 3];
    let mut bytes = [0_u8; 24];
    let at = address(&mut bytes);
    for (n, handle) in handles.iter().enumerate() {
        let fill = Operation::fill(u64::MAX, at + 8 * n as u64, 8);
        start(&submitter, handle, fill.with_user_data(7), false);
        // SAFETY: it is refused.
        let again = unsafe { submitter.start(handle, fill.into(), false) };
        assert_eq!(again, Err(StartError::Busy));
    }
    assert!(handles[1].cancel());
    assert!(!handles[1].cancel(), "once");
    assert_eq!(handles[1].look(), Look::Pending);
    while handles.iter().any(|handle| handle.look() == Look::Pending) {
        let _ = step(&mut driver);
    }
    let outcome = ended(handles[1].look());
    assert!(outcome.withdrawn);
    assert_eq!(
        (outcome.completion.status(), outcome.completion.user_data),
        (Status(0), 7)
    );
    assert!(!handles[0].cancel(), "it has ended");
    assert_eq!(bytes[..8], [255; 8]);
    assert_eq!(bytes[8..16], [0; 8]);
    assert_eq!(bytes[16..], [255; 8]);
}

/// The first two are in the device, the third waits for a slot.
#[test]
fn what_a_device_has_is_not_cancelled_and_a_wait_for_it_times_out() {
    let (gate, _device, submitter, driver) = gated();
    let handles = [const { Handle::new() }; 3];
    let mut bytes = [0_u8; 24];
    let at = address(&mut bytes);
    for (n, handle) in handles.iter().enumerate() {
        start(
            &submitter,
            handle,
            Operation::fill(u64::MAX, at + 8 * n as u64, 8),
            false,
        );
    }
    let third = loop {
        let timed_out = handles[0].wait(Some(Duration::from_millis(1)));
        assert_eq!(timed_out, Look::Pending);
        assert!(!handles[2].cancel() || ended(handles[2].wait(None)).withdrawn);
        if let Look::Ended(third) = handles[2].look() {
            break third;
        }
    };
    assert!(third.withdrawn);
    assert!(!handles[0].cancel(), "the device has it");
    gate.open();
    for handle in &handles[..2] {
        assert_eq!(
            ended(handle.wait(None)).completion.status(),
            Status::SUCCESS
        );
    }
    assert_eq!(bytes[..16], [255; 16]);
    assert_eq!(bytes[16..], [0; 8]);
    drop(submitter);
    driver.join().expect("it ends");
}

fn usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::uninit();
    // SAFETY: a place for it.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: it was written.
    unsafe { usage.assume_init() }
}

#[test]
fn threads_that_wait_sleep_and_all_are_woken() {
    let (gate, _device, submitter, driver) = gated();
    let handle = Handle::new();
    start(
        &submitter,
        &handle,
        Operation::compare(address(&mut [0_u8; 8]), 0, 0),
        false,
    );
    thread::scope(|scope| {
        let waiting = [(); 2].map(|()| {
            scope.spawn(|| {
                let before = usage();
                let start = Instant::now();
                assert_eq!(handle.wait(Some(Duration::from_millis(40))), Look::Pending);
                let (after, passed) = (usage(), start.elapsed());
                // It has left the processor, and used less than a tenth of the time.
                assert!(after.ru_nvcsw > before.ru_nvcsw);
                let micros = |usage: libc::rusage| {
                    let of = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
                    of(usage.ru_utime) + of(usage.ru_stime)
                };
                let used = micros(after) - micros(before);
                assert!(
                    (used as u128) < passed.as_micros() / 10,
                    "{used} us of {passed:?}"
                );
                ended(handle.wait(None))
            })
        });
        thread::sleep(Duration::from_millis(60));
        gate.open();
        let outcomes = waiting.map(|thread| thread.join().expect("no panic"));
        assert_eq!(outcomes[0], outcomes[1]);
    });
    drop(submitter);
    driver.join().expect("it ends");
}

fn is_readable(fd: i32) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

#[test]
fn the_descriptor_is_readable_while_handles_are_listed() {
    let (submitter, mut driver) = task::share(CpuMover::new(4));
    let handles = [const { Handle::new() }; 3];
    let list = |handle| start(&submitter, handle, Operation::noop(), true);
    list(&handles[0]);
    let _ = step(&mut driver);
    // Also for what has ended before.
    let fd = submitter.event().expect("a descriptor");
    assert!(is_readable(fd));
    list(&handles[1]);
    list(&handles[2]);
    let _ = step(&mut driver);
    let mut one = [null_mut()];
    for handle in &handles {
        assert!(is_readable(fd));
        assert!(matches!(handle.look(), Look::Ended(_)));
        // SAFETY: it is refused: it is in the list.
        let again = unsafe { submitter.start(handle, Operation::noop().into(), true) };
        assert_eq!(again, Err(StartError::Busy));
        assert_eq!(submitter.take_ended(&mut one), 1);
        assert_eq!(one[0].cast_const(), std::ptr::from_ref(handle));
    }
    assert!(!is_readable(fd));
    assert_eq!(submitter.take_ended(&mut one), 0);
    list(&handles[0]);
    let _ = step(&mut driver);
    assert!(is_readable(fd));
    assert_eq!(submitter.take_ended(&mut one), 1);
}

#[test]
fn a_driver_that_ends_leaves_nobody_waiting() {
    let gate = Opener(Gate::default());
    let config = device(1, vec![queue(0, WorkQueueMode::Dedicated, 8)]);
    let started = VirtualDevice::start_in(config, Options::default(), gate.0.clone(), |_| {});
    let device = started.expect("a device");
    let mover = device.open(0, 1).expect("a queue");
    let mover = mover.with_drop_timeout(Duration::from_millis(1));
    let (submitter, driver) = task::share(mover);
    let driver = driver.with_drop_timeout(Duration::from_millis(1));
    let driver = thread::spawn(move || driver.run());
    let handles = [const { Handle::new() }; 2];
    let mut bytes = [0_u8; 16];
    let at = address(&mut bytes);
    start(
        &submitter,
        &handles[0],
        Operation::fill(u64::MAX, at, 8),
        false,
    );
    // Until the device has it.
    while handles[0].cancel() {
        ended(handles[0].wait(None));
        start(
            &submitter,
            &handles[0],
            Operation::fill(u64::MAX, at, 8),
            false,
        );
    }
    start(
        &submitter,
        &handles[1],
        Operation::fill(u64::MAX, at + 8, 8),
        false,
    );
    submitter.close();
    assert!(ended(handles[1].wait(None)).withdrawn);
    assert_eq!(handles[0].wait(None), Look::Lost);
    driver.join().expect("it ends");
    // SAFETY: it is refused.
    let closed = unsafe { submitter.start(&handles[1], Operation::noop().into(), false) };
    assert_eq!(closed, Err(StartError::Closed));
    gate.open();
    drop(device);
}

#[test]
fn a_child_of_fork_waits_for_nothing() {
    let (gate, _device, submitter, driver) = gated();
    let (handle, new, done) = (Handle::new(), Handle::new(), Handle::new());
    let mut bytes = [0_u8; 8];
    start(
        &submitter,
        &handle,
        Operation::fill(u64::MAX, address(&mut bytes), 8),
        false,
    );
    in_child(|| {
        // SAFETY: it is refused.
        let started = unsafe { submitter.start(&new, Operation::noop().into(), false) };
        let waited = handle.wait(None);
        let taken = submitter.take_ended(&mut [null_mut()]);
        started == Err(StartError::Inherited)
            && waited == Look::Inherited
            && !handle.cancel()
            && taken == 0
    });
    gate.open();
    start(&submitter, &done, Operation::noop(), false);
    let outcome = ended(done.wait(None));
    assert_eq!(
        ended(handle.wait(None)).completion.status(),
        Status::SUCCESS
    );
    // What has ended is in the child's copy.
    in_child(|| done.wait(None) == Look::Ended(outcome));
    drop(submitter);
    driver.join().expect("it ends");
}

static IN_HANDLER: std::sync::atomic::AtomicPtr<(Submitter, Handle)> =
    std::sync::atomic::AtomicPtr::new(null_mut());

extern "C" fn starts_and_waits(_: libc::c_int) {
    let both = IN_HANDLER.load(std::sync::atomic::Ordering::Acquire);
    // SAFETY: set by the test, which keeps it.
    let (submitter, handle) = unsafe { &*both };
    // SAFETY: as above.
    let started = unsafe { submitter.start(handle, Operation::noop().into(), false) };
    if started.is_ok() {
        handle.wait(None);
    }
}

#[test]
fn a_signal_handler_starts_and_waits() {
    let (submitter, driver) = task::share(CpuMover::new(1));
    let driver = thread::spawn(move || driver.run());
    let both = Box::new((submitter, Handle::new()));
    IN_HANDLER.store(
        (&raw const *both).cast_mut(),
        std::sync::atomic::Ordering::Release,
    );
    // SAFETY: a handler that allocates nothing and takes no lock.
    unsafe {
        libc::signal(
            libc::SIGUSR2,
            starts_and_waits as *const () as libc::sighandler_t,
        )
    };
    for _ in 0..100 {
        // SAFETY: on this thread, which goes on when the handler has returned.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert!(matches!(both.1.look(), Look::Ended(_)));
    }
    drop(both);
    driver.join().expect("it ends");
}
