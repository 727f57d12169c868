//! The mover behind which a device of this machine is.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::port::HwPort;
use super::{HwError, QueueInfo, SubmitPath, Submitting};
use crate::Capabilities;
use crate::queue::{Queue, mover_on_queue};
use crate::slots::SlotMemory;

/// Units in flight that are looked at: those behind the first that has not ended.
const WINDOW: usize = 32;

/// How a mover is opened.
///
/// ```
/// use dray::hw::{HwOptions, Submitting};
///
/// let options = HwOptions { submitting: Some(Submitting::Portal), ..HwOptions::default() };
/// assert_eq!(options.slots, 128);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HwOptions {
    /// Operations that can be enqueued or in flight at once.
    pub slots: usize,
    /// The only method; `None`: the portal, and write(2) where the kernel refuses to map it.
    pub submitting: Option<Submitting>,
    /// Each descriptor goes to another line of the portal: writes to one line wait for each other.
    pub portal_rotates: bool,
    /// How long a mover that is dropped waits without a completion. Then it leaves the memory that the
    /// device may still write to where it is. Two seconds by default.
    pub drop_timeout: Duration,
    /// An operation that meets a page that is not present is resumed: the core makes the page present, so many times
    /// at a page without a byte done between them; 64 by default. 0: it ends with
    /// [`Status::PAGE_FAULT`](dray_spec::Status::PAGE_FAULT), as on the device. What the core cannot access either ends
    /// with the fault whatever this is.
    pub page_faults: u32,
}

impl Default for HwOptions {
    fn default() -> HwOptions {
        HwOptions {
            slots: 128,
            submitting: None,
            portal_rotates: true,
            drop_timeout: Duration::from_secs(2),
            page_faults: 64,
        }
    }
}

/// Submits to one work queue of this machine.
///
/// An operation that is larger than the queue's largest transfer travels in parts, one after the
/// other, and completes once, as if it were one; a member of a batch does not. It keeps no more descriptors in flight than the queue has entries, so that a dedicated queue
/// that it has to itself loses none. Several movers of a process use one dedicated queue by a
/// [`OpenQueue`](super::OpenQueue).
///
/// An operation that meets a page that is not present is resumed, as [`HwOptions::page_faults`] says. A member of a batch
/// goes on alone, and the members behind a fence after it follow one by one.
///
/// A queue that was disabled, or whose device was reset, while it was open executes nothing more, also
/// if it is enabled again: within a tenth of a second of polling, all that was not complete completes
/// with the status 0, and [`failure`](HwMover::failure) says why. Dropping a mover takes back what is
/// not submitted and waits for the rest, but without a completion no longer than
/// [`HwOptions::drop_timeout`].
///
/// ```no_run
/// use dray::hw::{self, HwOptions};
/// use dray::{Channel, Executor, WaitPolicy};
///
/// let mut channel = Channel::new(hw::open(Some("wq0.1"), HwOptions::default())?);
/// channel.copy(vec![7; 4096], vec![0; 4096]).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// assert_eq!(done.executor, Executor::Hardware);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HwMover {
    queue: Queue<HwPort>,
    info: QueueInfo,
    drop_timeout: Duration,
}

impl HwMover {
    /// Opens a work queue.
    ///
    /// # Errors
    /// It cannot be opened, or mapped; no slots.
    pub fn open(info: &QueueInfo, options: HwOptions) -> Result<HwMover, HwError> {
        let port = HwPort::open(info, options.submitting, options.portal_rotates)?;
        HwMover::on_port(info, port, options)
    }

    pub(super) fn on_port(
        info: &QueueInfo,
        port: HwPort,
        options: HwOptions,
    ) -> Result<HwMover, HwError> {
        let most = u32::MAX >> 1;
        let slots = u32::try_from(options.slots).ok();
        let slots = slots.filter(|slots| (1..=most).contains(slots));
        let slots = slots.ok_or(HwError::Slots {
            asked: options.slots,
            most,
        })?;
        let capabilities = match port.submit_path() {
            SubmitPath::Movdir64b | SubmitPath::Enqcmd => info.capabilities,
            // The kernel reads one descriptor, and on some devices refuses batches.
            SubmitPath::Write => Capabilities {
                max_batch: 1,
                ..info.capabilities
            },
        };
        let memory = Arc::new(SlotMemory::new(slots));
        let mut queue = Queue::new(port, capabilities, memory, WINDOW).dividing();
        queue.resume_page_faults(options.page_faults);
        Ok(HwMover {
            queue,
            info: info.clone(),
            drop_timeout: options.drop_timeout,
        })
    }

    /// The work queue.
    pub fn info(&self) -> &QueueInfo {
        &self.info
    }

    /// How descriptors are submitted.
    pub fn submit_path(&self) -> SubmitPath {
        self.queue.port.submit_path()
    }

    /// Why it submits by write(2), where the kernel has refused to map the portal. `None`: the portal is
    /// mapped, or write(2) was asked for.
    pub fn map_refusal(&self) -> Option<&io::Error> {
        self.queue.port.map_refusal()
    }

    /// How often a shared queue had no room: ENQCMDs that were answered with retry, or write(2)s with EAGAIN.
    pub fn retries(&self) -> u64 {
        self.queue.port.retries()
    }

    /// Why nothing more can be submitted, if a submission has failed for good. What was not
    /// submitted completes with the status 0.
    pub fn failure(&self) -> Option<&HwError> {
        self.queue.port.failure()
    }
}

mover_on_queue!(HwMover);

impl Drop for HwMover {
    fn drop(&mut self) {
        if !self.queue.drain(self.drop_timeout) {
            // The device may still write to it.
            std::mem::forget(self.queue.memory().clone());
        }
    }
}
