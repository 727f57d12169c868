//! What those who start operations and their driver share.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use atomic_waker::AtomicWaker;

use super::handle::{self, After, Handle, StartError};
use super::stack::{Fifo, Stack};
use super::work::Work;
use crate::{Capabilities, Home, Outcome};

/// Queues of handles, and who is to be woken.
#[derive(Debug)]
pub(super) struct Shared {
    started: Stack<Handle>,
    /// Handles that have ended, of those that are to be listed.
    ended: Stack<Handle>,
    /// Those of them that were looked at, and not given out.
    seen: Mutex<Fifo<Handle>>,
    /// An eventfd, readable while there are any; -1: none. A signal handler may interrupt whoever uses it, and start: no lock.
    event: AtomicI32,
    /// Calls that use it.
    event_users: AtomicUsize,
    /// What wakes a driver that is polled as a future.
    driver: AtomicWaker,
    is_future: AtomicBool,
    /// Counts what a thread that drives is woken for.
    calls: AtomicU32,
    sleeps: AtomicBool,
    pub(super) submitters: AtomicUsize,
    closed: AtomicBool,
    cancelled: AtomicBool,
    pub(super) capabilities: Capabilities,
    pub(super) home: Home,
}

impl Shared {
    pub(super) fn new(capabilities: Capabilities) -> Shared {
        Shared {
            started: Stack::new(),
            ended: Stack::new(),
            seen: Mutex::new(Fifo::new()),
            event: AtomicI32::new(-1),
            event_users: AtomicUsize::new(0),
            driver: AtomicWaker::new(),
            is_future: AtomicBool::new(false),
            calls: AtomicU32::new(0),
            sleeps: AtomicBool::new(false),
            submitters: AtomicUsize::new(1),
            closed: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            capabilities,
            home: Home::here(),
        }
    }

    /// Hands an operation over to the driver.
    ///
    /// # Safety
    /// The handle stays valid, and where it is, and its buffers are the driver's, until it has ended.
    pub(super) unsafe fn start(
        &self,
        handle: *mut Handle,
        work: Work,
        listed: bool,
        after: Option<After>,
    ) -> Result<(), StartError> {
        if self.home.is_inherited() {
            return Err(StartError::Inherited);
        }
        if self.is_closed() {
            return Err(StartError::Closed);
        }
        // SAFETY: a handle, by the caller's promise.
        unsafe { &*handle }.claim(self, work, listed, after)?;
        // SAFETY: it was claimed.
        unsafe { self.started.push(handle) };
        // Either the driver finds it when it ends, or this call finds that it has ended.
        fence(Ordering::SeqCst);
        match self.is_closed() {
            true => self.withdraw_all(),
            false => self.wake(),
        }
        Ok(())
    }

    pub(super) fn has_started(&self) -> bool {
        !self.started.is_empty()
    }

    pub(super) fn take_started(&self) -> Fifo<Handle> {
        self.started.take_all()
    }

    /// Some of what was started may be cancelled.
    pub(super) fn was_cancelled(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(super) fn take_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) && self.cancelled.swap(false, Ordering::SeqCst)
    }

    pub(super) fn has_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Nothing is started any more, and the driver ends.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the driver. A signal handler that interrupts this call, and starts, wakes it all the same: nothing is left out for
    /// another call that is about to.
    pub(super) fn wake(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.sleeps.load(Ordering::SeqCst) {
            handle::wake(&raw const self.calls);
        }
        if self.is_future.load(Ordering::SeqCst) {
            self.driver.wake();
        }
    }

    /// The driver is polled as a future, and this wakes it.
    pub(super) fn register(&self, waker: &Waker) {
        self.is_future.store(true, Ordering::SeqCst);
        self.driver.register(waker);
        // With the one behind a start: either that finds this waker, or who registers it finds what was started.
        fence(Ordering::SeqCst);
    }

    /// The thread that drives sleeps until it is woken, for so long at most, if there is still nothing to do.
    pub(super) fn sleep(&self, most: Option<Duration>, has_nothing_to_do: impl FnOnce() -> bool) {
        self.sleeps.store(true, Ordering::SeqCst);
        let calls = self.calls.load(Ordering::SeqCst);
        if has_nothing_to_do() {
            handle::sleep(&self.calls, calls, most);
        }
        self.sleeps.store(false, Ordering::SeqCst);
    }

    /// Ends all that was started and not taken by the driver, which has ended.
    pub(super) fn withdraw_all(&self) {
        let mut all = self.take_started();
        while let Some(handle) = all.pop() {
            // SAFETY: it was started, and nobody else has taken it.
            unsafe { Handle::end(handle, Some(withdrawn(handle))) };
        }
    }

    /// Lists a handle that has ended.
    ///
    /// # Safety
    /// It is valid until it is taken.
    pub(super) unsafe fn list(&self, handle: *mut Handle) {
        // SAFETY: by the caller's promise.
        if unsafe { self.ended.push(handle) } {
            self.tell();
        }
    }

    /// Makes the event readable, if there is one.
    fn tell(&self) {
        self.with_event(|event| {
            let one = 1_u64;
            // SAFETY: an open descriptor, and 8 bytes. It fails if the counter is at its highest: then it is readable.
            unsafe { libc::write(event, (&raw const one).cast(), 8) };
        });
    }

    /// The descriptor stays open during the call.
    fn with_event(&self, does: impl FnOnce(RawFd)) {
        self.event_users.fetch_add(1, Ordering::SeqCst);
        let event = self.event.load(Ordering::SeqCst);
        if event >= 0 {
            does(event);
        }
        self.event_users.fetch_sub(1, Ordering::SeqCst);
    }

    /// The descriptor that is readable while handles are listed.
    pub(super) fn event(&self) -> io::Result<RawFd> {
        let mut fd = self.event.load(Ordering::SeqCst);
        if fd < 0 {
            // SAFETY: a system call.
            let made = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            let (one, other) = (Ordering::SeqCst, Ordering::SeqCst);
            fd = match self.event.compare_exchange(-1, made, one, other) {
                Ok(_) => made,
                Err(first) => {
                    // SAFETY: it was made above, and is nobody else's.
                    unsafe { libc::close(made) };
                    first
                }
            };
        }
        // Some may have ended before.
        if !self.ended.is_empty() || !self.seen().is_empty() {
            self.tell();
        }
        Ok(fd)
    }

    /// Takes away the descriptor.
    pub(super) fn close_event(&self) {
        let event = self.event.swap(-1, Ordering::SeqCst);
        while self.event_users.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        if event >= 0 {
            // SAFETY: it was made in `event`, and nobody uses it any more.
            unsafe { libc::close(event) };
        }
    }

    fn seen(&self) -> MutexGuard<'_, Fifo<Handle>> {
        // A panic has left a list that holds together.
        self.seen.lock().unwrap_or_else(|held| held.into_inner())
    }

    /// Takes handles from the list, in the order in which they have ended: how many.
    pub(super) fn take_ended(&self, into: &mut [*mut Handle]) -> usize {
        let mut seen = self.seen();
        self.with_event(|event| {
            let mut count = 0_u64;
            // SAFETY: an open descriptor, and room for 8 bytes. It fails if it is not readable. What is listed from now on makes
            // it so again.
            unsafe { libc::read(event, (&raw mut count).cast(), 8) };
        });
        seen.append(self.ended.take_all());
        let mut count = 0;
        while let Some(place) = into.get_mut(count)
            && let Some(handle) = seen.pop()
        {
            // SAFETY: it is valid until it is taken, which is now.
            unsafe { &*handle }.unlist();
            *place = handle;
            count += 1;
        }
        if !seen.is_empty() {
            self.tell();
        }
        count
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close_event();
    }
}

/// The outcome of a handle that was not begun.
pub(super) fn withdrawn(handle: *mut Handle) -> Outcome {
    // SAFETY: it was started, and has not ended.
    let handle = unsafe { &*handle };
    // SAFETY: as above.
    let user_data = unsafe { handle.work() }.operation().user_data();
    let mut outcome = Outcome {
        withdrawn: true,
        ..Outcome::default()
    };
    outcome.completion.user_data = user_data;
    outcome
}
