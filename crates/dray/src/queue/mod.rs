//! What movers on a work queue have in common: slots, batches, credits, completions.

mod in_parts;
mod mover;
mod port;
mod reap;
mod unit;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_device::Submission;
use dray_spec::{Descriptor, Flags};

use in_parts::InParts;
pub(crate) use mover::mover_on_queue;
pub(crate) use port::Port;
use unit::{Ended, Unit};

use crate::idle::Idle;
use crate::slots::{SlotMemory, SlotRing};
use crate::{
    BatchError, Capabilities, Completion, Executor, Full, Operation, Progress, Ticket, Timestamp,
};

/// A client's side of a work queue.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    pub(crate) port: P,
    capabilities: Capabilities,
    memory: Arc<SlotMemory>,
    ring: SlotRing,
    /// By slot.
    user_data: Vec<u64>,
    /// By slot, of operations in parts; empty if no operation travels in parts.
    in_parts: Vec<Option<InParts>>,
    /// Times that a page is made present without progress; 0: a page fault ends an operation.
    most_faults: u32,
    /// Batches that wait for a member that goes on alone.
    batches: Vec<Ended>,
    queued: VecDeque<Unit>,
    /// Taken back, and not yet reported.
    withdrawn: VecDeque<Unit>,
    /// In the order of their submission.
    in_flight: VecDeque<Unit>,
    ended: Option<Ended>,
    /// Units in flight that are looked at: so many may overtake one that has not ended.
    window: usize,
    start: Instant,
}

impl<P: Port> Queue<P> {
    pub(crate) fn new(
        port: P,
        capabilities: Capabilities,
        memory: Arc<SlotMemory>,
        window: usize,
    ) -> Queue<P> {
        let slots = memory.slots() as usize;
        Queue {
            port,
            capabilities: Capabilities {
                max_batch: capabilities.max_batch.min(memory.slots()),
                ..capabilities
            },
            ring: SlotRing::new(memory.slots()),
            memory,
            user_data: vec![0; slots],
            in_parts: Vec::new(),
            most_faults: 0,
            batches: Vec::new(),
            queued: VecDeque::with_capacity(slots),
            withdrawn: VecDeque::with_capacity(slots),
            in_flight: VecDeque::with_capacity(slots),
            ended: None,
            window: window.max(1),
            start: Instant::now(),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.memory.slots() as usize
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.ring.out() as usize
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_duration(self.start.elapsed())
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        let slots = self.slots();
        let slot = self.ring.take(1).ok_or(Full { slots })?;
        let in_parts = u64::from(operation.len()) > self.capabilities.max_transfer_bytes
            && self.divide(slot, operation);
        if !in_parts {
            self.prepare(slot, operation);
        }
        self.queued.push_back(Unit {
            in_parts,
            ..Unit::new(slot, 1)
        });
        Ok(Ticket(slot))
    }

    pub(crate) fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        let slots = self.slots();
        let max = self.capabilities.max_batch;
        let members = u32::try_from(operations.len()).unwrap_or(u32::MAX);
        if let [one] = operations {
            // It travels without a batch, where there is nothing that a fence could wait for.
            let plain = one.with_changed_flags(Flags::FENCE, Flags::EMPTY);
            return Ok(self.enqueue(&plain)?);
        }
        if members == 0 || members > max {
            return Err(BatchError::Size {
                operations: operations.len(),
                max,
            });
        }
        let first = self.ring.take(members).ok_or(Full { slots })?;
        for (slot, operation) in (first..).zip(operations) {
            self.prepare(slot, operation);
        }
        self.queued.push_back(Unit::new(first, members));
        Ok(Ticket(first))
    }

    #[inline]
    fn prepare(&mut self, slot: u32, operation: &Operation) {
        let address = self.memory.record_address(slot);
        let descriptor = operation.descriptor().with_completion(address);
        self.memory.clear(slot);
        self.memory.set_descriptor(slot, &descriptor);
        self.user_data[slot as usize] = operation.user_data();
    }

    #[inline]
    pub(crate) fn submit(&mut self) -> Progress {
        while let Some(&unit) = self.queued.front() {
            if self.in_flight.len() >= self.port.credits() {
                return Progress::Pending;
            }
            let descriptor = self.descriptor(unit);
            match self.port.submit(&descriptor) {
                Submission::Accepted => {
                    self.queued.pop_front();
                    self.in_flight.push_back(unit);
                }
                _ => {
                    if let Some(unit) = self.queued.front_mut() {
                        unit.retries = unit.retries.saturating_add(1);
                    }
                    return Progress::Pending;
                }
            }
        }
        Progress::Done
    }

    #[inline]
    fn descriptor(&self, unit: Unit) -> Descriptor {
        if unit.members == 1 {
            return self.memory.get_descriptor(unit.first);
        }
        let record = self.memory.batch_record(unit.first);
        self.memory.clear(record);
        let list = self.memory.descriptor_address(unit.first);
        Descriptor::batch(list, unit.members).with_completion(self.memory.record_address(record))
    }

    #[inline]
    fn record_of(&self, unit: Unit) -> u32 {
        match unit.members {
            1 => unit.first,
            _ => self.memory.batch_record(unit.first),
        }
    }

    /// Takes back what has not been submitted.
    pub(crate) fn withdraw(&mut self) -> usize {
        let count = self.queued.iter().map(|unit| unit.members as usize).sum();
        self.withdrawn.append(&mut self.queued);
        count
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.ended.is_none()
    }

    /// Waits until nothing is in flight, or until nothing has completed for so long: false then.
    pub(crate) fn drain(&mut self, timeout: Duration) -> bool {
        self.queued.clear();
        // The part in flight is the last.
        self.in_parts.clear();
        self.most_faults = 0;
        let mut ended = [Completion::default(); 16];
        let mut idle = Idle::new(timeout);
        while !self.is_idle() {
            if self.poll(&mut ended) > 0 {
                idle = Idle::new(timeout);
            } else if !idle.rest() {
                return false;
            }
        }
        true
    }

    /// The status byte of the unit that was submitted first and is in flight.
    pub(crate) fn oldest_record(&self) -> Option<u64> {
        let unit = *self.in_flight.front()?;
        Some(self.memory.record_address(self.record_of(unit)))
    }

    /// Who executes what is submitted here.
    pub(crate) fn executor(&self) -> Executor {
        P::EXECUTOR
    }

    /// The memory that the device writes to.
    pub(crate) fn memory(&self) -> &Arc<SlotMemory> {
        &self.memory
    }
}
