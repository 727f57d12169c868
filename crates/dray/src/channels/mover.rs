//! Channels as one mover.

use dray_spec::CompletionRecord;

use super::parts_table::{NONE, Part};
use super::{Channels, Outcome, QueueLost, Require};
use crate::stalled_faults::StalledFaults;
use crate::{
    BatchError, Capabilities, Completion, Executor, Full, Mover, Operation, Progress, Ticket,
    Timestamp,
};

// SAFETY: an operation's outcome is given when all its parts have completed on their movers, and the
// core has done with it.
unsafe impl<M: Mover> Mover for Channels<M> {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len() + self.ended.len()
    }

    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        let slots = self.slots.len();
        if self.room() == 0 || self.parts.available() == 0 {
            return Err(Full { slots });
        }
        let (slot, ticket) = self.open(operation);
        match self.core_reason(slot) {
            Some(reason) => {
                self.slots[slot as usize].outcome.core_reason = Some(reason);
                self.on_core.push_back(slot);
            }
            None => self.stripe(slot),
        }
        Ok(ticket)
    }

    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        let (slots, count) = (self.slots.len(), operations.len());
        let max = self.capabilities.max_batch;
        if count == 0 || count > max as usize {
            return Err(BatchError::Size {
                operations: count,
                max,
            });
        }
        if self.room() < count || self.parts.available() < count {
            return Err(Full { slots }.into());
        }
        let ticket = Ticket(self.next_ticket);
        for operation in operations {
            let (slot, _) = self.open(operation);
            let index = self.parts.add(Part {
                slot,
                next: NONE,
                operation: self.for_device(operation),
                offset: 0,
                done: 0,
                in_flight: 0,
                faults: StalledFaults::default(),
                record: CompletionRecord::default(),
                accepted: false,
                in_batch: true,
            });
            self.slots[slot as usize].first = index;
            self.slots[slot as usize].left = 1;
            self.grouped.push_back(index);
        }
        self.groups.push_back(count as u32);
        Ok(ticket)
    }

    fn submit(&mut self) -> Progress {
        self.dispatch()
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        self.reap();
        let count = into.len().min(self.ended.len());
        for (place, outcome) in into.iter_mut().zip(self.ended.drain(..count)) {
            *place = outcome.completion;
        }
        count
    }

    fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        Channels::poll_outcomes(self, into)
    }

    /// Once all queues are lost and the core takes no operation in their place.
    fn lost(&self) -> Option<QueueLost> {
        let all = self.lost_queues > 0 && self.lost_queues == self.queues.len();
        let replaced = self.core_replaces(&Operation::noop());
        match all && !replaced {
            true => self.queues.iter().find_map(|queue| queue.lost),
            false => None,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_duration(self.start.elapsed())
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Of one channel alone: with several any may be next.
    fn oldest_record(&self) -> Option<u64> {
        match &self.queues[..] {
            [only] => only.mover.oldest_record(),
            _ => None,
        }
    }

    fn executor(&self) -> Option<Executor> {
        match self.options.require {
            Require::Hardware => Some(Executor::Hardware),
            _ => None,
        }
    }

    fn withdraw(&mut self) -> usize {
        self.withdraw_all()
    }

    unsafe fn touch(&mut self, addr: u64, write: bool) {
        // SAFETY: the caller's promise is the same.
        unsafe { crate::cpu::touch(addr, write) };
    }
}

impl<M: Mover> Channels<M> {
    /// As [`Mover::poll`], with who did what of each operation, and why.
    pub fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        self.reap();
        let count = into.len().min(self.ended.len());
        for (place, outcome) in into.iter_mut().zip(self.ended.drain(..count)) {
            *place = outcome;
        }
        count
    }
}
