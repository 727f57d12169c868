//! The mover behind which the virtual device is.

use std::sync::Arc;
use std::time::Duration;

use dray_device::Submission;
use dray_realtime::MappedPortal;
use dray_spec::Descriptor;

use super::device::Inner;
use crate::queue::{Port, Queue, mover_on_queue};
use crate::slots::SlotMemory;
use crate::{Capabilities, Executor, QueueLost};

/// How long a mover that is dropped waits without a completion by default.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// Submits to one portal of a virtual device.
///
/// An operation whose descriptor was aborted, or that was under way when the device ended, has no
/// record: its completion has the status 0. While the queue is disabled, what is enqueued waits for
/// it to be enabled again, and [`lost`](crate::Mover::lost) says so. Dropping a mover takes back what is not submitted and waits for the rest, but
/// no longer than ten seconds without a completion ([`with_drop_timeout`](VirtualMover::with_drop_timeout)).
/// Then it leaves the device running, and the memory that it may still write to where it is.
///
/// ```
/// use std::time::Duration;
///
/// use dray::Mover;
/// use dray::virt::{Options, VirtualDevice};
/// use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
///
/// let queue = WorkQueueConfig::new(0, WorkQueueMode::Shared, 16);
/// let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
/// let device = VirtualDevice::start(config, Options::default())?;
/// let mover = device.open(0, 32)?.dividing().with_drop_timeout(Duration::from_secs(1));
/// assert!(mover.slots() == 32 && mover.capabilities().divides);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct VirtualMover {
    pub(super) queue: Queue<VirtualPort>,
    drop_timeout: Duration,
}

/// A portal of a virtual device of this process.
#[derive(Debug)]
pub(super) struct VirtualPort {
    inner: Arc<Inner>,
    portal: MappedPortal,
}

impl Port for VirtualPort {
    const EXECUTOR: Executor = Executor::Virtual;

    #[inline]
    fn submit(&mut self, descriptor: &Descriptor) -> Submission {
        match self.inner.home.is_inherited() {
            true => Submission::Ignored,
            false => self.portal.submit(descriptor),
        }
    }

    #[inline]
    fn credits(&self) -> usize {
        // So many cannot overflow the queue.
        self.portal.size().into()
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.inner.home.is_inherited() || self.inner.device.has_ended()
    }

    fn lost(&self) -> Option<QueueLost> {
        if self.inner.home.is_inherited() {
            return Some(QueueLost::Inherited);
        }
        match (self.has_ended(), self.portal.is_enabled()) {
            (true, _) => Some(QueueLost::DeviceEnded),
            (false, false) => Some(QueueLost::Disabled),
            (false, true) => None,
        }
    }
}

impl VirtualMover {
    pub(super) fn new(
        inner: Arc<Inner>,
        portal: MappedPortal,
        capabilities: Capabilities,
        memory: Arc<SlotMemory>,
    ) -> VirtualMover {
        let window = inner.device.reach(portal.portal().wq);
        let port = VirtualPort { inner, portal };
        VirtualMover {
            queue: Queue::new(port, capabilities, memory, window),
            drop_timeout: DROP_TIMEOUT,
        }
    }

    /// The same, but dropping it waits no longer than this without a completion.
    #[must_use]
    pub fn with_drop_timeout(mut self, drop_timeout: Duration) -> VirtualMover {
        self.drop_timeout = drop_timeout;
        self
    }

    /// The same, but an operation that is larger than the queue's largest transfer travels in parts,
    /// as on hardware, instead of being refused. Before anything is enqueued.
    #[must_use]
    pub fn dividing(mut self) -> VirtualMover {
        self.queue.divide_from_now_on();
        self
    }
}

mover_on_queue!(VirtualMover);

impl Drop for VirtualMover {
    fn drop(&mut self) {
        if !self.queue.drain(self.drop_timeout) {
            // An engine is held, and its thread would be waited for.
            std::mem::forget(self.queue.port.inner.clone());
            return;
        }
        let inner = &self.queue.port.inner;
        if inner.home.is_inherited() {
            // A thread of the device, which is not in this process, may have had the lock.
            return;
        }
        inner.memories.remove(self.queue.memory());
    }
}
