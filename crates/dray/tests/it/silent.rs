//! A mover on a queue that takes nothing, and does not say why.

use dray::virt::VirtualMover;
use dray::{
    BatchError, Capabilities, Completion, Executor, Full, Mover, Operation, Outcome, Progress,
    QueueLost, Ticket, Timestamp,
};

/// As the mover in it, but never lost.
pub(crate) struct Silent(pub(crate) VirtualMover);

// SAFETY: the mover in it does all of it.
unsafe impl Mover for Silent {
    fn slots(&self) -> usize {
        self.0.slots()
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.enqueue(operation) }
    }

    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.enqueue_batch(operations) }
    }

    fn submit(&mut self) -> Progress {
        self.0.submit()
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        self.0.poll(into)
    }

    fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        self.0.poll_outcomes(into)
    }

    fn lost(&self) -> Option<QueueLost> {
        None
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn executor(&self) -> Option<Executor> {
        self.0.executor()
    }

    fn withdraw(&mut self) -> usize {
        self.0.withdraw()
    }

    unsafe fn touch(&mut self, addr: u64, write: bool) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.touch(addr, write) };
    }
}
