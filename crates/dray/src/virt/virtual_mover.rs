//! The mover behind which the virtual device is.

use std::sync::Arc;

use dray_device::Submission;
use dray_realtime::MappedPortal;
use dray_spec::Descriptor;

use super::device::Inner;
use crate::queue::{Port, Queue, mover_on_queue};
use crate::slots::SlotMemory;
use crate::{Capabilities, Executor};

/// Submits to one portal of a virtual device.
///
/// An operation whose descriptor was aborted, or that was under way when the device ended, has no
/// record: its completion has the status 0. While the queue is disabled, what is enqueued waits for
/// it to be enabled again. Dropping a mover waits for what it has under way.
#[derive(Debug)]
pub struct VirtualMover {
    pub(super) queue: Queue<VirtualPort>,
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
        self.portal.submit(descriptor)
    }

    #[inline]
    fn credits(&self) -> usize {
        // So many cannot overflow the queue.
        self.portal.size().into()
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.inner.device.has_ended()
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
        }
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
        self.queue.drain(None);
        let inner = &self.queue.port.inner;
        inner.memories.remove(self.queue.memory());
    }
}
