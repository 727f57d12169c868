//! Who starts operations.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handle::{Handle, StartError};
use super::shared::Shared;
use super::work::Work;
use crate::Capabilities;

/// Starts operations on the mover of a [`Driver`](super::Driver), from any thread and from signal handlers: without a lock,
/// without allocation, and as many as there are handles. Clones start on the same mover. The driver begins them
/// in the order in which they were started, as the mover has slots.
///
/// ```
/// use dray::task::{Handle, Look};
/// use dray::{CpuMover, Operation, task};
///
/// let (submitter, driver) = task::share(CpuMover::new(8));
/// let handle = Handle::new();
/// let other = submitter.clone();
/// // SAFETY: the handle stays until it has ended.
/// unsafe { other.start(&handle, Operation::noop().into(), true) }?;
/// # drop((submitter, other));
/// driver.run();
/// assert!(matches!(handle.look(), Look::Ended(_)));
/// # Ok::<(), dray::task::StartError>(())
/// ```
pub struct Submitter {
    pub(super) shared: Arc<Shared>,
}

impl Submitter {
    pub(super) fn new(shared: Arc<Shared>) -> Submitter {
        Submitter { shared }
    }

    /// Starts an operation. If it is `listed`, [`take_ended`](Submitter::take_ended) gives its handle when it has ended.
    ///
    /// # Errors
    /// The handle's operation has not ended; the driver has ended, or is in another process.
    ///
    /// # Safety
    /// The handle stays where it is until its operation has ended, and was taken from the list if it is listed. So do
    /// the buffers, which nothing else accesses as the operation does not allow it, and lists of segments. This
    /// submitter, or a clone of it, stays until all calls on the handle are over. The operation is one that the
    /// mover [supports](Capabilities::supports), or ends with a status that says that it does not.
    pub unsafe fn start(
        &self,
        handle: *const Handle,
        work: Work,
        listed: bool,
    ) -> Result<(), StartError> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.shared.start(handle.cast_mut(), work, listed, None) }
    }

    /// What the mover can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    /// A file descriptor (an eventfd) that is readable while [`take_ended`](Submitter::take_ended) has handles to give, for
    /// poll(2) and epoll(7); nobody reads it. It is the same in each call, and open until
    /// [`close_event`](Submitter::close_event), or until driver and submitters are gone.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn event(&self) -> io::Result<RawFd> {
        self.shared.event()
    }

    /// Closes the descriptor of [`event`](Submitter::event).
    pub fn close_event(&self) {
        self.shared.close_event();
    }

    /// Takes handles that have ended from the list, in the order in which they have: how many. Any thread may; it takes a
    /// lock, so no signal handler does.
    pub fn take_ended(&self, into: &mut [*mut Handle]) -> usize {
        match self.shared.home.is_inherited() {
            true => 0,
            false => self.shared.take_ended(into),
        }
    }

    /// The driver ends, though there are submitters, and nothing is started any more.
    pub fn close(&self) {
        self.shared.close();
    }
}

impl Clone for Submitter {
    fn clone(&self) -> Submitter {
        self.shared.submitters.fetch_add(1, Ordering::Relaxed);
        Submitter {
            shared: self.shared.clone(),
        }
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        let is_last = self.shared.submitters.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && !self.shared.home.is_inherited() {
            self.shared.wake();
        }
    }
}

impl fmt::Debug for Submitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Submitter")
    }
}
