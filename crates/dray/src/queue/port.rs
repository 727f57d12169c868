//! Where a queue's descriptors are submitted.

use dray_device::Submission;
use dray_spec::Descriptor;

use crate::{Executor, QueueLost};

/// Where descriptors are submitted.
pub(crate) trait Port {
    /// Who executes them.
    const EXECUTOR: Executor;

    /// Submits one. All but `Accepted` is tried again.
    fn submit(&mut self, descriptor: &Descriptor) -> Submission;

    /// Descriptors in flight at most, so that a dedicated queue loses none.
    fn credits(&self) -> usize;

    /// A descriptor that was accepted has ended: its entry of the queue is free.
    #[inline]
    fn ended(&mut self) {}

    /// Whether the device has ended: what it has not completed it never will.
    fn has_ended(&self) -> bool {
        false
    }

    /// Whether nothing more can be submitted, though the device still completes what it has.
    fn is_closed(&self) -> bool {
        false
    }

    /// Why nothing more is executed, if it is so.
    fn lost(&self) -> Option<QueueLost>;
}
