//! Operations that the caller takes back before they are handed over.

use dray_spec::CompletionRecord;

use super::engine::Channels;
use crate::{Executor, Mover};

impl<M: Mover> Channels<M> {
    /// Ends all that no queue has accepted and the core has not executed, as withdrawn: how many operations.
    pub(super) fn withdraw_all(&mut self) -> usize {
        self.withdrawing = Some(0);
        while let Some(slot) = self.on_core.pop_front() {
            self.slots[slot as usize].outcome.core_reason = None;
            self.count_withdrawn(slot);
            self.end_slot(slot, CompletionRecord::default(), Executor::Cpu);
        }
        for queue in &mut self.queues {
            queue.mover.withdraw();
        }
        // What the movers took back has completed. Parts of lost queues may come to wait here meanwhile.
        self.reap_queues();
        self.groups.clear();
        while let Some(index) = self
            .large
            .pop_front()
            .or_else(|| self.small.pop_front())
            .or_else(|| self.grouped.pop_front())
        {
            self.withdraw_part(index);
        }
        self.withdrawing.take().unwrap_or(0)
    }

    /// A part ends that was not, or not wholly, executed: its operation ends as withdrawn.
    pub(super) fn withdraw_part(&mut self, index: u32) {
        let part = *self.parts.get(index);
        self.count_withdrawn(part.slot);
        let record = CompletionRecord {
            bytes_completed: part.done,
            ..CompletionRecord::default()
        };
        self.end_part(index, record);
    }

    /// Once an operation, however many parts it has.
    fn count_withdrawn(&mut self, slot: u32) {
        let outcome = &mut self.slots[slot as usize].outcome;
        if !outcome.withdrawn
            && let Some(count) = &mut self.withdrawing
        {
            *count += 1;
        }
        outcome.withdrawn = true;
    }
}
