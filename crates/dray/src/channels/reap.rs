//! What has ended: parts that go on, page faults, and the record of the whole.

use dray_ops::crc32c_combine;
use dray_spec::{CompletionRecord, Opcode, Status};

use super::engine::Channels;
use super::parts_table::NONE;
use super::{Outcome, PageFaultPolicy, Reason};
use crate::outcome::done_bytes;
use crate::parts::{self, goes_on, is_backward};
use crate::populate::populate;
use crate::{Executor, Mover, cpu, stalled_faults};

impl<M: Mover> Channels<M> {
    /// Looks at what has ended on all channels.
    pub(super) fn reap(&mut self) {
        self.reap_queues();
        // The rest of what is under way goes at once: its caller has submitted all it knows of.
        if !self.large.is_empty() {
            self.dispatch();
        }
    }

    /// The same, but nothing more is handed over.
    pub(super) fn reap_queues(&mut self) {
        let mut seen = std::mem::take(&mut self.seen);
        for queue in 0..self.queues.len() {
            while self.queues[queue].in_flight > 0 {
                let count = self.queues[queue].mover.poll_outcomes(&mut seen);
                if count > 0 {
                    self.queues[queue].stuck = 0;
                }
                for outcome in &seen[..count] {
                    self.take(queue, outcome);
                }
                if count < seen.len() {
                    break;
                }
            }
        }
        self.seen = seen;
    }

    fn take(&mut self, queue: usize, ended: &Outcome) {
        let completion = &ended.completion;
        let index = completion.user_data as u32;
        let record = completion.record;
        let accepted = ended.accepted && !(ended.withdrawn && record.bytes_completed == 0);
        self.parts.get_mut(index).accepted |= accepted;
        let part = *self.parts.get(index);
        let counters = &mut self.queues[queue];
        counters.in_flight -= 1;
        counters.load -= u64::from(part.in_flight);
        let status = record.status();
        let outcome = &mut self.slots[part.slot as usize].outcome;
        outcome.completion.executor = completion.executor;
        outcome.retries = outcome.retries.saturating_add(ended.retries);
        outcome.resumed_faults += ended.resumed_faults;
        if status == Status(0) {
            if outcome.withdrawn || ended.withdrawn && self.withdrawing.is_some() {
                return self.withdraw_part(index);
            }
            if let Some(reason) = self.exclude(queue) {
                return match part.in_batch {
                    // Its batch has ended, and it is behind a fence.
                    true if accepted && ended.queue_lost.is_none() => self.end_part(index, record),
                    true => self.lose(index, reason),
                    false => self.when_lost(index, reason, accepted),
                };
            }
            // A queue that is full: it was taken back. Or the device has aborted it, or it is behind a fence.
            return match !accepted && self.takes_back_from_full_queues() {
                // The rest of its batch has come back, too, and its fences mean nothing to one alone.
                true if part.in_batch => self.refuse(index),
                true => self.when_full(index),
                false => self.end_part(index, record),
            };
        }
        let slot = &mut self.slots[part.slot as usize];
        if status.code() == Status::BATCH_PAGE_FAULT.code() && slot.outcome.gathered {
            // The device could not read the list of its batch, which was none of the caller's: it goes alone.
            slot.outcome.gathered = false;
            return match slot.outcome.withdrawn {
                true => self.withdraw_part(index),
                false => self.large.push_back(index),
            };
        }
        if goes_on(&part.operation, &record) {
            slot.outcome.device_bytes += u64::from(part.in_flight);
            let part = self.parts.get_mut(index);
            part.done += part.in_flight;
            part.record = record;
            match part.done < part.operation.len() {
                // Another part was taken back: this one does not go on either.
                true if slot.outcome.withdrawn => self.withdraw_part(index),
                true => self.large.push_back(index),
                false => self.end_part(index, record),
            }
            return;
        }
        let fault = status.code() == Status::PAGE_FAULT.code();
        if !fault || part.in_batch {
            let bytes = match fault {
                true => record.bytes_completed,
                false if status.is_success() => part.in_flight,
                false => 0,
            };
            slot.outcome.device_bytes += u64::from(bytes);
            let record = parts::finish(&part.operation, part.done, record);
            return self.end_part(index, record);
        }
        self.page_fault(queue, index, record, completion.executor);
    }

    /// Only the policies that do not wait do that.
    fn takes_back_from_full_queues(&self) -> bool {
        self.options.full_queue != super::FullQueuePolicy::Wait
    }

    fn page_fault(
        &mut self,
        queue: usize,
        index: u32,
        record: CompletionRecord,
        executor: Executor,
    ) {
        let part = self.parts.get_mut(index);
        let has_parts = parts::granule(&part.operation).is_some();
        let bytes = parts::done_at_fault(&part.operation, &record, part.in_flight);
        if bytes > 0 || part.done == 0 {
            part.record = record;
        }
        part.done += bytes;
        let goes_on = match self.options.page_fault {
            // It has done so already, as often as was asked for.
            _ if self.queues[queue].resumes => false,
            PageFaultPolicy::TouchAndResume { most } => {
                let pages = stalled_faults::pages(&part.operation);
                part.faults
                    .goes_on(record.fault_address, bytes > 0, most, pages)
            }
            _ => false,
        };
        let (done, slot) = (part.done, part.slot as usize);
        let is_done = bytes > 0 && done >= part.operation.len();
        self.slots[slot].outcome.device_bytes += u64::from(bytes);
        let write = record.status().is_write_fault();
        let fault = match has_parts {
            true => CompletionRecord {
                bytes_completed: done,
                ..record
            },
            false => record,
        };
        match self.options.page_fault {
            // Another part was taken back: this one does not go on either. Nor does one of which nothing is
            // left, whatever faulted then.
            _ if self.slots[slot].outcome.withdrawn || is_done => self.end_at_fault(index, fault),
            PageFaultPolicy::TouchAndResume { .. } if goes_on => {
                let address = record.fault_address;
                let here = executor.is_of_this_process();
                if here && populate(address, 1, write).is_err() {
                    return self.end_at_fault(index, fault);
                }
                if !here {
                    // SAFETY: the page belongs to an operation, which its caller has promised to be
                    // mapped.
                    unsafe { self.queues[queue].mover.touch(address, write) };
                }
                self.slots[slot].outcome.resumed_faults += 1;
                self.large.push_back(index);
            }
            PageFaultPolicy::FinishOnCore if self.core_allowed => {
                self.finish_on_core(index, Reason::PageFault);
            }
            _ => self.end_at_fault(index, fault),
        }
    }

    /// A part has ended at a page fault, after which it does not go on.
    fn end_at_fault(&mut self, index: u32, fault: CompletionRecord) {
        let part = self.parts.get(index);
        // Those of what has parts are counted as they are done.
        if parts::granule(&part.operation).is_none() {
            let bytes = u64::from(fault.bytes_completed);
            self.slots[part.slot as usize].outcome.device_bytes += bytes;
        }
        self.end_part(index, fault);
    }

    /// The core does what is left of a part, if it can access the memory.
    pub(super) fn finish_on_core(&mut self, index: u32, reason: Reason) {
        let part = *self.parts.get(index);
        let left = part.operation.len() - part.done;
        let rest = match (part.done, is_backward(&part.operation)) {
            (0, _) => part.operation,
            (_, true) => parts::part(&part.operation, 0, left, None),
            (done, false) => parts::part(&part.operation, done, left, Some(&part.record)),
        };
        let outcome = &mut self.slots[part.slot as usize].outcome;
        outcome.core_reason = Some(reason);
        outcome.completion.executor = Executor::Cpu;
        // SAFETY: a part of an operation, for which `enqueue` had its caller promise this.
        let record = unsafe { cpu::execute_single(rest.descriptor(), true) };
        outcome.core_bytes += done_bytes(&rest, &record);
        let record = parts::finish(&part.operation, part.done, record);
        self.end_part(index, record);
    }

    /// A part has ended.
    pub(super) fn end_part(&mut self, index: u32, record: CompletionRecord) {
        let part = self.parts.get_mut(index);
        part.record = record;
        let slot = part.slot;
        let entry = &mut self.slots[slot as usize];
        entry.left -= 1;
        if entry.left > 0 {
            return;
        }
        let first = std::mem::replace(&mut entry.first, NONE);
        let (record, stripes) = self.merged(slot, first);
        let entry = &mut self.slots[slot as usize];
        entry.outcome.stripes = stripes;
        let timed = entry.timed;
        let executor = match entry.outcome.core_reason {
            Some(_) => Executor::Cpu,
            None => entry.outcome.completion.executor,
        };
        self.parts.release(first);
        let is_timed = executor != Executor::Cpu && record.status().is_success();
        if let Some((class, begin)) = timed.filter(|_| is_timed) {
            let now = self.nanoseconds();
            let took = now.saturating_sub(begin.max(self.last_end));
            self.last_end = now;
            if let Some(learned) = &mut self.learned {
                learned.add(class, true, took as f64);
            }
        }
        self.end_slot(slot, record, executor);
    }

    /// The record of all parts together, and how many of them a queue has accepted.
    fn merged(&self, slot: u32, first: u32) -> (CompletionRecord, u32) {
        let operation = &self.slots[slot as usize].operation;
        let crc = matches!(operation.opcode(), Opcode::CrcGenerate | Opcode::CopyCrc);
        let mut stripes = 0;
        let mut merged: Option<CompletionRecord> = None;
        let mut stopped = false;
        let mut index = first;
        while index != NONE {
            let part = self.parts.get(index);
            index = part.next;
            stripes += u32::from(part.accepted);
            if stopped {
                continue;
            }
            let mut record = part.record;
            if !goes_on(operation, &record) {
                record.bytes_completed = record.bytes_completed.saturating_add(part.offset);
                stopped = true;
            } else if let (Some(before), true) = (&merged, crc) {
                let both =
                    crc32c_combine(before.crc32(), record.crc32(), part.operation.len().into());
                record.set_crc32(both);
            }
            merged = Some(record);
        }
        let merged = merged.unwrap_or_default();
        let record = match self.slots[slot as usize].outcome.withdrawn {
            true => CompletionRecord {
                bytes_completed: merged.bytes_completed,
                ..CompletionRecord::default()
            },
            false => parts::finish(operation, 0, merged),
        };
        (record, stripes)
    }

    pub(super) fn end_slot(&mut self, slot: u32, record: CompletionRecord, executor: Executor) {
        let entry = &mut self.slots[slot as usize];
        entry.outcome.completion.record = record;
        entry.outcome.completion.executor = executor;
        let outcome = entry.outcome;
        self.free.push(slot);
        self.ended.push_back(outcome);
        debug_assert!(self.ended.len() <= self.free.len() && self.free.len() <= self.slots.len());
    }
}
