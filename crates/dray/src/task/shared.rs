//! What those who start operations and their driver share.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, RwLock};

use atomic_waker::AtomicWaker;

use super::handle::{After, Handle, StartError};
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
    /// An eventfd, readable while there are any.
    event: RwLock<Option<File>>,
    pub(super) driver: AtomicWaker,
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
            event: RwLock::new(None),
            driver: AtomicWaker::new(),
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
            false => self.driver.wake(),
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
        self.driver.wake();
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
        self.driver.wake();
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
        let event = self.event.read().unwrap_or_else(|held| held.into_inner());
        if let Some(mut event) = event.as_ref() {
            // It fails if the counter is at its highest: then it is readable.
            let _ = event.write(&1_u64.to_ne_bytes());
        }
    }

    /// The descriptor that is readable while handles are listed.
    pub(super) fn event(&self) -> io::Result<RawFd> {
        let mut event = self.event.write().unwrap_or_else(|held| held.into_inner());
        if event.is_none() {
            // SAFETY: a system call.
            let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: it was made above, and is nobody else's.
            *event = Some(unsafe { File::from_raw_fd(fd) });
        }
        let fd = event.as_ref().map_or(-1, |event| event.as_raw_fd());
        drop(event);
        // Some may have ended before.
        if !self.ended.is_empty() || !self.seen().is_empty() {
            self.tell();
        }
        Ok(fd)
    }

    /// Takes away the descriptor.
    pub(super) fn close_event(&self) {
        *self.event.write().unwrap_or_else(|held| held.into_inner()) = None;
    }

    fn seen(&self) -> MutexGuard<'_, Fifo<Handle>> {
        // A panic has left a list that holds together.
        self.seen.lock().unwrap_or_else(|held| held.into_inner())
    }

    /// Takes handles from the list, in the order in which they have ended: how many.
    pub(super) fn take_ended(&self, into: &mut [*mut Handle]) -> usize {
        let mut seen = self.seen();
        if let Some(mut event) = self
            .event
            .read()
            .unwrap_or_else(|held| held.into_inner())
            .as_ref()
        {
            // It fails if it is not readable. What is listed from now on makes it so again.
            let _ = event.read(&mut [0; 8]);
        }
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
