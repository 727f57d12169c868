//! Threads of a switch. Each has a lock on its work, which it holds for one step at a time: between two steps
//! the thread that handles messages changes what is to be done.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};

use super::worker::Worker;
use crate::VhostError;
use crate::notify;
use crate::port::Port;

/// Steps without work before a thread sleeps, if it may.
pub const IDLE_STEPS: u32 = 64;
/// Longest sleep.
const SLEEP: Duration = Duration::from_millis(100);

/// A thread of a switch.
#[derive(Debug)]
pub(super) struct Thread {
    worker: Mutex<Worker>,
    /// Others that wait for the lock: it is not taken again before they have had it.
    waiting: AtomicUsize,
    /// Ends a sleep.
    wake: OwnedFd,
}

impl Thread {
    pub(super) fn new(worker: Worker) -> Result<Arc<Thread>, VhostError> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Arc::new(Thread {
            worker: Mutex::new(worker),
            waiting: AtomicUsize::new(0),
            wake: wake.map_err(io::Error::from)?,
        }))
    }

    /// Its work, for the thread itself.
    #[inline]
    pub(super) fn work(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its work, between two of its steps.
    pub(super) fn between_steps(&self) -> MutexGuard<'_, Worker> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let worker = self.work();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        worker
    }

    /// Ends its sleep, if it sleeps.
    pub(super) fn wake(&self) {
        // A full counter wakes it as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Works until `stop` is set.
    pub(super) fn run(&self, stop: &AtomicBool, may_sleep: bool) {
        let mut idle = 0;
        while !stop.load(Ordering::Relaxed) {
            let busy = self.work().step();
            while self.waiting.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
            idle = if busy { 0 } else { idle + 1 };
            if may_sleep && idle >= IDLE_STEPS {
                self.sleep(&[], SLEEP);
            }
        }
    }

    /// Sleeps until there may be something to do, or one of `others` is readable, for at most so long. Copies in
    /// flight are not waited for.
    pub(super) fn sleep(&self, others: &[BorrowedFd<'_>], at_most: Duration) {
        let mut worker = self.work();
        let ready = worker.set_notification(true);
        let (kicks, interfaces) = worker.waits_on();
        drop(worker);
        if !ready {
            let own = kicks.iter().map(|kick| kick.as_fd());
            let interfaces = interfaces
                .iter()
                .filter_map(|port: &Arc<Port>| port.ready());
            let all = own.chain(interfaces).chain(others.iter().copied());
            let mut polled: Vec<PollFd<'_>> = all
                .chain([self.wake.as_fd()])
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let timeout = Timespec {
                tv_sec: at_most.as_secs() as i64,
                tv_nsec: at_most.subsec_nanos().into(),
            };
            let _ = rustix::event::poll(&mut polled, Some(&timeout));
        }
        notify::clear(&self.wake);
        let mut worker = self.work();
        // Of its pairs alone: what notifies of one that was handed over meanwhile is waited for elsewhere.
        let (kicks, _) = worker.waits_on();
        kicks.iter().for_each(notify::clear);
        worker.set_notification(false);
    }
}
