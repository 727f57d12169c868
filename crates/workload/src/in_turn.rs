//! One thread that keeps several queues busy.

use dray::hw::HwMover;
use dray::{
    BatchError, Capabilities, Completion, Executor, Full, Mover, Operation, Outcome, Progress,
    QueueLost, Ticket, Timestamp,
};

/// Movers that are given operations in turn. Tickets are those of each of them: two may be alike.
#[derive(Debug)]
pub(crate) struct InTurn<'a> {
    movers: &'a mut [HwMover],
    next: usize,
}

impl<'a> InTurn<'a> {
    /// Over at least one mover.
    pub(crate) fn over(movers: &'a mut [HwMover]) -> InTurn<'a> {
        InTurn { movers, next: 0 }
    }

    fn turn(&mut self) -> &mut HwMover {
        let turn = self.next;
        self.next = (turn + 1) % self.movers.len();
        &mut self.movers[turn]
    }
}

// SAFETY: each operation is the business of one of the movers, which are movers themselves.
unsafe impl Mover for InTurn<'_> {
    fn slots(&self) -> usize {
        self.movers.iter().map(Mover::slots).sum()
    }

    fn in_flight(&self) -> usize {
        self.movers.iter().map(Mover::in_flight).sum()
    }

    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.turn().enqueue(operation) }
    }

    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        // SAFETY: as above.
        unsafe { self.turn().enqueue_batch(operations) }
    }

    fn submit(&mut self) -> Progress {
        let mut progress = Progress::Done;
        for mover in &mut *self.movers {
            if mover.submit() == Progress::Pending {
                progress = Progress::Pending;
            }
        }
        progress
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        let mut count = 0;
        for mover in &mut *self.movers {
            count += mover.poll(&mut into[count..]);
        }
        count
    }

    fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        let mut count = 0;
        for mover in &mut *self.movers {
            count += mover.poll_outcomes(&mut into[count..]);
        }
        count
    }

    /// Each of them gets its turn: with one that is lost, some of what is enqueued is not executed.
    fn lost(&self) -> Option<QueueLost> {
        self.movers.iter().find_map(Mover::lost)
    }

    fn now(&self) -> Timestamp {
        self.movers[0].now()
    }

    fn capabilities(&self) -> Capabilities {
        self.movers[0].capabilities()
    }

    fn oldest_record(&self) -> Option<u64> {
        self.movers.iter().find_map(Mover::oldest_record)
    }

    fn executor(&self) -> Option<Executor> {
        Some(Executor::Hardware)
    }

    fn withdraw(&mut self) -> usize {
        self.movers.iter_mut().map(Mover::withdraw).sum()
    }

    unsafe fn touch(&mut self, addr: u64, write: bool) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.movers[0].touch(addr, write) }
    }
}
