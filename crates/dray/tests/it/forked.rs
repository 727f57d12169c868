//! A child of fork, which has inherited movers with operations in flight.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dray::task::{OperationFuture, TaskError};
use dray::virt::{OpenError, Options, VirtualDevice};
use dray::{
    ChannelError, Completion, CpuMover, Home, Mover, Operation, Outcome, QueueLost, Request,
    WaitPolicy, task, wait,
};
use dray_device::WorkQueueMode;
use dray_spec::Status;

use crate::gate::{Gate, Opener};
use crate::machine::{device, queue};

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// Runs `work` in a child of fork, which must end with true; a child that hangs is killed.
pub(crate) fn in_child(work: impl FnOnce() -> bool) {
    // SAFETY: the child calls only what this test is about, and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: a system call.
        unsafe { libc::alarm(60) };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the child, without what the parent has registered.
        unsafe { libc::_exit(i32::from(!matches!(done, Ok(true)))) };
    }
    let mut status = 0;
    // SAFETY: a child of this test, and a place for its status.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
}

/// Drops what the parent keeps.
fn child_drops<T>(value: &T) {
    // SAFETY: the child does not use it any more, and the parent's is another.
    drop(unsafe { std::ptr::read(value) });
}

#[test]
fn a_child_gets_errors_at_once_and_leaves_the_parent_alone() {
    let gate = Opener(Gate::default());
    let config = device(1, vec![queue(0, WorkQueueMode::Dedicated, 8)]);
    let space = gate.0.clone();
    let device = VirtualDevice::start_in(config, Options::default(), space, |_| {});
    let device = device.expect("a device");
    let open = || device.open(0, 8).expect("a queue");
    let mut mover = open().with_drop_timeout(FOR_EVER);
    let (from, mut to) = (vec![7_u8; 4096], vec![0_u8; 4096]);
    let addresses = (from.as_ptr() as u64, to.as_mut_ptr() as u64);
    let copy = Operation::memmove(addresses.0, addresses.1, 4096);
    // SAFETY: both buffers stay until the copy has ended.
    unsafe { mover.enqueue(&copy) }.expect("a slot");
    mover.submit();
    in_child(|| {
        let mut ended = [Outcome::default(); 2];
        let lost = mover.lost() == Some(QueueLost::Inherited);
        let in_flight = mover.poll_outcomes(&mut ended) == 1
            && ended[0].completion.status() == Status::NONE
            && ended[0].queue_lost == Some(QueueLost::Inherited);
        // SAFETY: nothing executes it.
        unsafe { mover.enqueue(&copy) }.expect("a slot");
        let mut ended = [Completion::default()];
        let waited = wait(&mut mover, &mut ended, WaitPolicy::Pause, None) == Ok(1);
        let new = waited && ended[0].status() == Status::NONE;
        let opened = device.open(0, 8).err() == Some(OpenError::Inherited);
        child_drops(&device);
        child_drops(&mover);
        lost && in_flight && new && opened
    });
    assert_eq!(mover.lost(), None);
    gate.open();
    let mut ended = [Completion::default()];
    let waited = wait(&mut mover, &mut ended, WaitPolicy::Yield, None);
    assert_eq!((waited, ended[0].status()), (Ok(1), Status::SUCCESS));
    assert_eq!(from, to);
}

#[test]
fn futures_of_a_child_end_though_their_driver_is_not_there() {
    let (client, driver) = task::channel(CpuMover::new(4));
    let mut context = Context::from_waker(Waker::noop());
    let mut begun = client.request(Request::fill(1, vec![0; 8]));
    assert!(Pin::new(&mut begun).poll(&mut context).is_pending());
    let mut new = client.request(Request::fill(2, vec![0; 8]));
    in_child(|| {
        let mut context = Context::from_waker(Waker::noop());
        let mut error =
            |future: &mut OperationFuture<Vec<u8>>| match Pin::new(future).poll(&mut context) {
                Poll::Ready(Err(rejected)) => Some(rejected.error),
                _ => None,
            };
        let errors = [error(&mut begun), error(&mut new)];
        child_drops(&begun);
        child_drops(&new);
        child_drops(&client);
        matches!(
            errors,
            [
                Some(TaskError::Refused(ChannelError::InFlight)),
                Some(TaskError::Refused(ChannelError::Closed))
            ]
        )
    });
    let driver = std::thread::spawn(move || driver.run());
    drop(client);
    driver.join().expect("it ends");
}

#[test]
fn a_child_has_a_home_of_its_own_and_so_has_its_child() {
    let parent = Home::here();
    in_child(|| {
        let own = Home::here();
        let right = parent.is_inherited() && !own.is_inherited();
        in_child(|| parent.is_inherited() && own.is_inherited() && !Home::here().is_inherited());
        right
    });
    assert!(!parent.is_inherited());
}
