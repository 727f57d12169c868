//! The mover behind which the virtual device is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use dray_device::Submission;
use dray_realtime::MappedPortal;
use dray_spec::{CompletionRecord, Descriptor};

use super::device::Inner;
use crate::{
    Capabilities, Completion, Executor, Full, Mover, Operation, Progress, Ticket, Timestamp,
};

/// Submits to one portal of a virtual device.
///
/// An operation whose descriptor was aborted, or that was under way when the device ended, has no
/// record: its completion has the status 0. While the queue is disabled, what is enqueued waits for
/// it to be enabled again. Dropping a mover waits for what it has under way.
#[derive(Debug)]
pub struct VirtualMover {
    inner: Arc<Inner>,
    portal: MappedPortal,
    capabilities: Capabilities,
    slots: Vec<Slot>,
    free: Vec<u32>,
    queued: VecDeque<u32>,
    /// In the order of their submission.
    in_flight: VecDeque<u32>,
    /// Descriptors that may be under way when one before them has not ended.
    overtakers: usize,
    start: Instant,
}

/// An operation's own.
#[derive(Debug)]
struct Slot {
    /// Number of its record in the arena.
    record: u32,
    user_data: u64,
    descriptor: Descriptor,
}

impl VirtualMover {
    pub(super) fn new(
        inner: Arc<Inner>,
        portal: MappedPortal,
        capabilities: Capabilities,
        records: Vec<u32>,
    ) -> VirtualMover {
        let count = records.len();
        let slots = records
            .into_iter()
            .map(|record| {
                inner.arena.clear(record);
                Slot {
                    record,
                    user_data: 0,
                    descriptor: Descriptor::default(),
                }
            })
            .collect();
        VirtualMover {
            overtakers: inner.device.reach(portal.portal().wq),
            inner,
            portal,
            capabilities,
            slots,
            free: (0..count as u32).rev().collect(),
            queued: VecDeque::with_capacity(count),
            in_flight: VecDeque::with_capacity(count),
            start: Instant::now(),
        }
    }

    /// The first of those in flight that has ended, and its record.
    #[inline]
    fn find_ended(&mut self) -> Option<(u32, CompletionRecord)> {
        let looked_at = self.in_flight.len().min(self.overtakers);
        for position in 0..looked_at {
            let slot = self.in_flight[position];
            if let Some(record) = self.inner.arena.read(self.slots[slot as usize].record) {
                self.in_flight.remove(position);
                return Some((slot, record));
            }
        }
        None
    }

    /// The device has ended, and what it has not told it never will.
    #[cold]
    fn give_up(&mut self) -> Option<(u32, CompletionRecord)> {
        if let Some(found) = self.find_ended() {
            return Some(found);
        }
        let slot = self.in_flight.pop_front().or(self.queued.pop_front())?;
        let record = self.inner.arena.read(self.slots[slot as usize].record);
        Some((slot, record.unwrap_or_default()))
    }
}

impl Mover for VirtualMover {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        let slots = self.slots.len();
        let slot = self.free.pop().ok_or(Full { slots })?;
        let place = &mut self.slots[slot as usize];
        let address = self.inner.arena.address(place.record);
        place.user_data = operation.user_data();
        place.descriptor = operation.descriptor().with_completion(address);
        self.queued.push_back(slot);
        Ok(Ticket(slot))
    }

    #[inline]
    fn submit(&mut self) -> Progress {
        while let Some(&slot) = self.queued.front() {
            // So many cannot overflow the queue.
            if self.in_flight.len() >= self.portal.size().into() {
                return Progress::Pending;
            }
            match self.portal.submit(&self.slots[slot as usize].descriptor) {
                Submission::Accepted => {
                    self.queued.pop_front();
                    self.in_flight.push_back(slot);
                }
                _ => return Progress::Pending,
            }
        }
        Progress::Done
    }

    #[inline]
    fn poll(&mut self, into: &mut [Completion]) -> usize {
        let mut count = 0;
        while count < into.len() {
            let found = match self.find_ended() {
                None if self.inner.device.has_ended() => self.give_up(),
                found => found,
            };
            let Some((slot, record)) = found else {
                break;
            };
            self.inner.arena.clear(self.slots[slot as usize].record);
            self.free.push(slot);
            into[count] = Completion {
                ticket: Ticket(slot),
                user_data: self.slots[slot as usize].user_data,
                record,
                executor: Executor::Virtual,
            };
            count += 1;
        }
        count
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_duration(self.start.elapsed())
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    unsafe fn touch(&mut self, addr: u64, write: bool) {
        // SAFETY: the caller's promise is the same.
        unsafe { crate::cpu::touch(addr, write) };
    }
}

impl Drop for VirtualMover {
    fn drop(&mut self) {
        self.queued.clear();
        let mut ended = [Completion::default(); 16];
        while !self.in_flight.is_empty() {
            if self.poll(&mut ended) == 0 {
                std::thread::yield_now();
            }
        }
        let records = self.slots.iter().map(|slot| slot.record);
        self.inner.arena.give_back(records);
    }
}
