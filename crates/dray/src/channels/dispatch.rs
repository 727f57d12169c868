//! What was enqueued is handed over: to the core, to channels, in batches.

use dray_spec::CompletionRecord;

use super::engine::{Channels, QueueState, takes};
use super::parts_table::NONE;
use super::{FullQueuePolicy, QueueLost, Reason};
use crate::cpu;
use crate::outcome::done_bytes;
use crate::parts::{next_part, part, rest};
use crate::{Completion, Executor, Mover, Operation, Progress};

/// Submissions in a row that leave something, before a queue counts as full.
const SUBMISSIONS_BEFORE_FULL: u32 = 64;

impl<M: Mover> Channels<M> {
    pub(super) fn dispatch(&mut self) -> Progress {
        self.execute_on_core();
        self.dispatch_large();
        self.dispatch_groups();
        self.dispatch_small();
        let mut pending = !self.large.is_empty() || !self.small.is_empty();
        pending |= !self.grouped.is_empty();
        for index in 0..self.queues.len() {
            let queue = &mut self.queues[index];
            if queue.in_flight == 0 || queue.mover.submit() == Progress::Done {
                queue.stuck = 0;
                continue;
            }
            if queue.mover.lost().is_some() {
                // What it has not accepted comes back with the next look at it.
                self.exclude(index);
                continue;
            }
            let queue = &mut self.queues[index];
            pending = true;
            queue.stuck = queue.stuck.saturating_add(1);
            if self.options.full_queue != FullQueuePolicy::Wait
                && queue.stuck > SUBMISSIONS_BEFORE_FULL
            {
                // They complete as not executed, and are treated by the policy then.
                queue.mover.withdraw();
            }
        }
        match pending {
            true => Progress::Pending,
            false => Progress::Done,
        }
    }

    fn execute_on_core(&mut self) {
        while let Some(slot) = self.on_core.pop_front() {
            let entry = self.slots[slot as usize];
            let begin = entry.timed.map(|_| self.nanoseconds());
            let checked = self.options.check_core;
            // SAFETY: `enqueue` had its caller promise that the addresses are valid.
            let record = unsafe { cpu::execute_single(entry.operation.descriptor(), checked) };
            if let (Some((class, _)), Some(begin)) = (entry.timed, begin) {
                let took = self.nanoseconds().saturating_sub(begin);
                if let Some(learned) = &mut self.learned {
                    learned.add(class, false, took as f64);
                }
            }
            let outcome = &mut self.slots[slot as usize].outcome;
            outcome.core_bytes = done_bytes(&entry.operation, &record);
            self.end_slot(slot, record, Executor::Cpu);
        }
    }

    /// The channel that an operation goes to: with room, with the least load, the local first.
    fn choose(&self, operation: &Operation, room: usize) -> Option<usize> {
        let usable = self.queues.iter().enumerate().filter(|(_, queue)| {
            queue.mover.slots().saturating_sub(queue.in_flight) >= room
                && queue.stuck <= SUBMISSIONS_BEFORE_FULL
                && queue.lost.is_none()
        });
        let remote = self.options.remote_bytes;
        let load = |queue: &QueueState<M>| match queue.is_local {
            true => queue.load,
            false => queue.load.saturating_add(remote),
        };
        let capable = self.has_device(operation);
        usable
            // If none is capable, any of them refuses it by name.
            .filter(|(_, queue)| !capable || takes(queue, operation))
            .min_by_key(|(_, queue)| load(queue))
            .map(|(index, _)| index)
    }

    /// The next descriptor of a part on a channel.
    fn descriptor(&mut self, index: u32, queue: usize) -> Operation {
        let most = self.queues[queue].capabilities.max_transfer_bytes;
        let part_ = self.parts.get_mut(index);
        let len = part_.operation.len();
        let piece = match part_.done == 0 && u64::from(len) <= most {
            true => None,
            false => next_part(&part_.operation, rest(&part_.operation, part_.done), most),
        };
        let operation = match piece {
            Some(piece) => {
                part_.in_flight = piece.bytes as u32;
                let offset = piece.offset as u32;
                let before = Some(&part_.record);
                part(&part_.operation, offset, part_.in_flight, before)
            }
            // What fits, and what cannot be divided: that is refused by the device, or has begun again.
            None => {
                part_.in_flight = len;
                part_.operation
            }
        };
        operation.with_user_data(index.into())
    }

    fn took(&mut self, index: u32, queue: usize) {
        let bytes = u64::from(self.parts.get(index).in_flight);
        let queue = &mut self.queues[queue];
        queue.in_flight += 1;
        queue.load += bytes;
    }

    fn dispatch_large(&mut self) {
        while let Some(index) = self.large.front().copied() {
            let operation = self.parts.get(index).operation;
            if let Some(reason) = self.cut_off(&operation) {
                self.large.pop_front();
                self.when_lost(index, reason, false);
                continue;
            }
            let chosen = self.choose(&operation, 1).filter(|queue| {
                let descriptor = self.descriptor(index, *queue);
                // SAFETY: a part of an operation, for which `enqueue` had its caller promise this.
                unsafe { self.queues[*queue].mover.enqueue(&descriptor) }.is_ok()
            });
            match chosen {
                Some(queue) => {
                    self.large.pop_front();
                    self.took(index, queue);
                }
                None if self.options.full_queue == FullQueuePolicy::Wait => return,
                None => {
                    self.large.pop_front();
                    self.when_full(index);
                }
            }
        }
    }

    fn dispatch_small(&mut self) {
        while !self.small.is_empty() {
            let first = self.parts.get(self.small[0]).operation;
            if let (Some(reason), Some(index)) = (self.cut_off(&first), self.small.front()) {
                let index = *index;
                self.small.pop_front();
                self.when_lost(index, reason, false);
                continue;
            }
            let Some(queue) = self.choose(&first, 1) else {
                if self.options.full_queue == FullQueuePolicy::Wait {
                    return;
                }
                if let Some(index) = self.small.pop_front() {
                    self.when_full(index);
                }
                continue;
            };
            let mover = &self.queues[queue].mover;
            let room = mover.slots().saturating_sub(self.queues[queue].in_flight);
            let most = (self.options.max_gathered as usize)
                .min(self.queues[queue].capabilities.max_batch as usize)
                // Two batches are in flight.
                .min((mover.slots() / 2).max(1))
                .min(room)
                .max(1);
            let mut count = most.min(self.small.len());
            loop {
                self.batch.clear();
                for position in 0..count {
                    let index = self.small[position];
                    if position > 0 && !takes(&self.queues[queue], &self.parts.get(index).operation)
                    {
                        count = position;
                        break;
                    }
                    let descriptor = self.descriptor(index, queue);
                    self.batch.push(descriptor);
                }
                let mover = &mut self.queues[queue].mover;
                let taken = match self.batch.as_slice() {
                    // SAFETY: operations for which `enqueue` had its caller promise this.
                    [one] => unsafe { mover.enqueue(one) }.is_ok(),
                    // SAFETY: as above.
                    batch => unsafe { mover.enqueue_batch(batch) }.is_ok(),
                };
                if taken {
                    break;
                }
                // There are not so many neighbouring slots.
                if count == 1 {
                    return self.no_room_for_small();
                }
                count /= 2;
            }
            for _ in 0..count {
                if let Some(index) = self.small.pop_front() {
                    let slot = self.parts.get(index).slot as usize;
                    self.slots[slot].outcome.gathered = count > 1;
                    self.took(index, queue);
                }
            }
        }
    }

    fn no_room_for_small(&mut self) {
        if self.options.full_queue != FullQueuePolicy::Wait {
            while let Some(index) = self.small.pop_front() {
                self.when_full(index);
            }
        }
    }

    fn dispatch_groups(&mut self) {
        while let Some(count) = self.groups.front().map(|count| *count as usize) {
            let on_core = self.queues.is_empty()
                || self.core_allowed && self.options.choice == super::Choice::Core;
            if on_core {
                self.execute_group(count, Reason::Chosen);
                continue;
            }
            let first = self.parts.get(self.grouped[0]).operation;
            if let Some(reason) = self.cut_off(&first) {
                self.lose_group(count, reason);
                continue;
            }
            let chosen = self.choose(&first, count).filter(|queue| {
                self.batch.clear();
                for position in 0..count {
                    let index = self.grouped[position];
                    let part_ = self.parts.get_mut(index);
                    part_.in_flight = part_.operation.len();
                    let operation = part_.operation.with_user_data(index.into());
                    self.batch.push(operation);
                }
                let mover = &mut self.queues[*queue].mover;
                // SAFETY: `enqueue_batch` had its caller promise this.
                unsafe { mover.enqueue_batch(&self.batch) }.is_ok()
            });
            match (chosen, self.options.full_queue) {
                (Some(queue), _) => {
                    self.groups.pop_front();
                    for _ in 0..count {
                        if let Some(index) = self.grouped.pop_front() {
                            self.took(index, queue);
                        }
                    }
                }
                (None, FullQueuePolicy::Wait) => return,
                (None, FullQueuePolicy::Core) if self.core_allowed => {
                    self.execute_group(count, Reason::QueueFull);
                }
                (None, _) => {
                    self.groups.pop_front();
                    for _ in 0..count {
                        if let Some(index) = self.grouped.pop_front() {
                            self.refuse(index);
                        }
                    }
                }
            }
        }
    }

    /// No channel executes a batch of the caller's, which no queue has had.
    #[cold]
    fn lose_group(&mut self, count: usize, reason: QueueLost) {
        let mut members = self.grouped.iter().take(count);
        if members.all(|index| self.core_replaces(&self.parts.get(*index).operation)) {
            return self.execute_group(count, Reason::QueueLost);
        }
        self.groups.pop_front();
        for _ in 0..count {
            if let Some(index) = self.grouped.pop_front() {
                self.lose(index, reason);
            }
        }
    }

    /// A batch of the caller's on the core, in order, with its fences.
    fn execute_group(&mut self, count: usize, reason: Reason) {
        self.groups.pop_front();
        self.batch.clear();
        for index in self.grouped.drain(..count) {
            let slot = self.parts.get(index).slot;
            let operation = self.slots[slot as usize].operation;
            self.batch.push(operation.with_user_data(slot.into()));
        }
        // SAFETY: `enqueue_batch` had its caller promise this.
        let taken = unsafe { self.core.enqueue_batch(&self.batch) };
        debug_assert!(taken.is_ok(), "it has as many slots");
        self.core.submit();
        let mut seen = [Completion::default(); 32];
        loop {
            let ended = self.core.poll(&mut seen);
            if ended == 0 {
                return;
            }
            for completion in &seen[..ended] {
                let slot = completion.user_data as u32;
                let entry = &mut self.slots[slot as usize];
                entry.outcome.core_reason = Some(reason);
                entry.outcome.core_bytes = done_bytes(&entry.operation, &completion.record);
                let first = std::mem::replace(&mut entry.first, NONE);
                self.parts.release(first);
                self.end_slot(slot, completion.record, Executor::Cpu);
            }
        }
    }

    /// Every queue that could take a part is full, and it is not to wait.
    pub(super) fn when_full(&mut self, index: u32) {
        match self.options.full_queue == FullQueuePolicy::Core && self.core_allowed {
            true => self.finish_on_core(index, Reason::QueueFull),
            false => self.refuse(index),
        }
    }

    /// A part ends because every queue was full.
    pub(super) fn refuse(&mut self, index: u32) {
        let slot = self.parts.get(index).slot as usize;
        self.slots[slot].outcome.queue_was_full = true;
        let record = CompletionRecord {
            bytes_completed: self.parts.get(index).done,
            ..CompletionRecord::default()
        };
        self.end_part(index, record);
    }
}
