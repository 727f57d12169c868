//! What movers on a work queue have in common: slots, batches, credits, completions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_device::Submission;
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use crate::idle::Idle;
use crate::parts;
use crate::slots::{SlotMemory, SlotRing};
use crate::{
    BatchError, Capabilities, Completion, Executor, Full, Operation, Outcome, Progress, QueueLost,
    Ticket, Timestamp,
};

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

/// Operations that one descriptor names: one, or a batch of neighbours.
#[derive(Debug, Clone, Copy)]
struct Unit {
    first: u32,
    members: u32,
    /// It is larger than a descriptor may be, and travels in parts.
    divided: bool,
    /// Submissions that were not accepted.
    retries: u32,
}

/// An operation that travels in parts, one after the other.
#[derive(Debug, Clone, Copy)]
struct Divided {
    operation: Operation,
    /// Bytes of the parts that have ended.
    done: u32,
    /// Bytes of the part in flight.
    part: u32,
    /// From the last part to the first.
    backward: bool,
}

impl Divided {
    /// The next part, of at most `most` bytes.
    fn next(&mut self, most: u32, before: Option<&CompletionRecord>) -> Operation {
        let left = self.operation.len() - self.done;
        self.part = most.min(left);
        let offset = match self.backward {
            true => left - self.part,
            false => self.done,
        };
        parts::part(&self.operation, offset, self.part, before)
    }
}

/// A unit that has ended, and its next member to report.
#[derive(Debug, Clone, Copy)]
struct Ended {
    unit: Unit,
    next: u32,
    /// The record of the unit's descriptor.
    record: CompletionRecord,
    /// It was taken back before a queue accepted it.
    withdrawn: bool,
    /// A queue may have accepted it.
    accepted: bool,
}

impl Ended {
    fn new(unit: Unit, record: CompletionRecord) -> Ended {
        Ended {
            unit,
            next: 0,
            record,
            withdrawn: false,
            accepted: true,
        }
    }
}

/// A client's side of a work queue.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    pub(crate) port: P,
    capabilities: Capabilities,
    memory: Arc<SlotMemory>,
    ring: SlotRing,
    /// By slot.
    user_data: Vec<u64>,
    /// By slot, of operations in parts; empty if the queue does not divide operations.
    divided: Vec<Option<Divided>>,
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
            divided: Vec::new(),
            queued: VecDeque::with_capacity(slots),
            withdrawn: VecDeque::with_capacity(slots),
            in_flight: VecDeque::with_capacity(slots),
            ended: None,
            window: window.max(1),
            start: Instant::now(),
        }
    }

    /// Divides operations that are larger than the largest transfer.
    #[cfg(feature = "hw")]
    pub(crate) fn dividing(mut self) -> Queue<P> {
        self.divide_from_now_on();
        self
    }

    /// The same; before anything is enqueued.
    pub(crate) fn divide_from_now_on(&mut self) {
        self.capabilities.divides = true;
        self.divided = vec![None; self.slots()];
    }

    pub(crate) fn slots(&self) -> usize {
        self.memory.slots() as usize
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
        let divided = u64::from(operation.len()) > self.capabilities.max_transfer_bytes
            && self.divide(slot, operation);
        if !divided {
            self.prepare(slot, operation);
        }
        self.queued.push_back(Unit {
            first: slot,
            members: 1,
            divided,
            retries: 0,
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
        self.queued.push_back(Unit {
            first,
            members,
            divided: false,
            retries: 0,
        });
        Ok(Ticket(first))
    }

    /// Prepares the first part of an operation. False if it cannot be divided: the device then
    /// refuses it.
    #[cold]
    fn divide(&mut self, slot: u32, operation: &Operation) -> bool {
        let most = parts::largest_part(operation, self.capabilities.max_transfer_bytes);
        let (Some(most), false) = (most, self.divided.is_empty()) else {
            return false;
        };
        // What breaks a rule as a whole is refused as a whole.
        if dray_device::check_operands(operation.opcode(), operation.descriptor()).is_err() {
            return false;
        }
        let mut divided = Divided {
            operation: *operation,
            done: 0,
            part: 0,
            backward: parts::is_backward(operation),
        };
        let first = divided.next(most, None);
        self.divided[slot as usize] = Some(divided);
        self.prepare(slot, &first);
        true
    }

    /// A part has ended. True if another follows, which is prepared then.
    #[cold]
    fn continue_divided(&mut self, unit: Unit, record: &mut CompletionRecord) -> bool {
        let slot = unit.first as usize;
        let Some(mut divided) = self.divided.get_mut(slot).and_then(Option::take) else {
            return false;
        };
        let operation = divided.operation;
        if !parts::goes_on(&operation, record) || divided.done + divided.part >= operation.len() {
            *record = parts::finish(&operation, divided.done, *record);
            return false;
        }
        divided.done += divided.part;
        let most = parts::largest_part(&operation, self.capabilities.max_transfer_bytes);
        let next = divided.next(most.unwrap_or(1), Some(record));
        self.divided[slot] = Some(divided);
        self.prepare(unit.first, &next);
        self.queued.push_front(unit);
        true
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

    /// The first of the units in flight that has ended.
    #[inline]
    fn find_ended(&mut self) -> Option<Ended> {
        for position in 0..self.in_flight.len().min(self.window) {
            let unit = self.in_flight[position];
            if let Some(record) = self.memory.read(self.record_of(unit)) {
                self.in_flight.remove(position);
                self.port.ended();
                return Some(Ended::new(unit, record));
            }
        }
        None
    }

    /// The device has ended, and what it has not reported it never will.
    #[cold]
    fn give_up(&mut self) -> Option<Ended> {
        if let Some(ended) = self.find_ended() {
            return Some(ended);
        }
        if let Some(unit) = self.in_flight.pop_front() {
            self.port.ended();
            let record = self.memory.read(self.record_of(unit)).unwrap_or_default();
            return Some(Ended::new(unit, record));
        }
        let unit = self.queued.pop_front()?;
        Some(Ended {
            accepted: unit.divided,
            ..Ended::new(unit, CompletionRecord::default())
        })
    }

    #[inline]
    pub(crate) fn poll(&mut self, into: &mut [Completion]) -> usize {
        self.poll_with(into, |place, completion, _, _| *place = completion)
    }

    /// As `poll`, with who did what.
    pub(crate) fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        self.poll_with(into, |place, completion, ended, port| {
            let missing = completion.record.status == 0 && !ended.withdrawn;
            *place = Outcome {
                retries: ended.unit.retries,
                queue_lost: if missing { port.lost() } else { None },
                stripes: ended.accepted.into(),
                withdrawn: ended.withdrawn,
                accepted: ended.accepted,
                ..Outcome::of_one_executor(completion)
            };
        })
    }

    /// Puts what has ended into places, as many as there are.
    #[inline]
    fn poll_with<T>(
        &mut self,
        into: &mut [T],
        put: impl Fn(&mut T, Completion, &Ended, &P),
    ) -> usize {
        let mut count = 0;
        while let Some(place) = into.get_mut(count) {
            let ended = match self.ended.take() {
                Some(ended) => Some(ended),
                None => match self.find_ended() {
                    None if self.port.has_ended()
                        || self.port.is_closed() && self.in_flight.is_empty() =>
                    {
                        self.give_up().or_else(|| self.take_withdrawn())
                    }
                    None => self.take_withdrawn(),
                    found => found,
                },
            };
            let Some(mut ended) = ended else {
                return count;
            };
            if ended.unit.divided && self.continue_divided(ended.unit, &mut ended.record) {
                // The next part goes at once: its caller has submitted all it knows of.
                self.submit();
                continue;
            }
            let slot = ended.unit.first + ended.next;
            let completion = Completion {
                ticket: Ticket(slot),
                user_data: self.user_data[slot as usize],
                record: self.member_record(slot, &ended),
                executor: P::EXECUTOR,
            };
            put(place, completion, &ended, &self.port);
            self.ring.give_back(slot);
            count += 1;
            ended.next += 1;
            if ended.next < ended.unit.members {
                self.ended = Some(ended);
            }
        }
        count
    }

    /// Takes back what has not been submitted.
    pub(crate) fn withdraw(&mut self) -> usize {
        let count = self.queued.iter().map(|unit| unit.members as usize).sum();
        self.withdrawn.append(&mut self.queued);
        count
    }

    #[inline]
    fn take_withdrawn(&mut self) -> Option<Ended> {
        let unit = self.withdrawn.pop_front()?;
        Some(Ended {
            withdrawn: true,
            accepted: unit.divided,
            ..Ended::new(unit, CompletionRecord::default())
        })
    }

    #[inline]
    fn member_record(&self, slot: u32, ended: &Ended) -> CompletionRecord {
        if ended.unit.members == 1 {
            return ended.record;
        }
        let record = self.memory.peek(slot);
        if record.status == 0 && ended.record.status == 0 {
            // What else is there is of an earlier operation.
            return CompletionRecord::default();
        }
        let ran = matches!(
            ended.record.status(),
            Status::SUCCESS | Status::BATCH_FAIL | Status(0)
        );
        // A batch that was refused says so in its own record alone.
        match record.status == 0 && !ran {
            true => ended.record,
            false => record,
        }
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.ended.is_none()
    }

    /// Waits until nothing is in flight, or until nothing has completed for so long: false then.
    pub(crate) fn drain(&mut self, patience: Duration) -> bool {
        self.queued.clear();
        // The part in flight is the last.
        self.divided.clear();
        let mut ended = [Completion::default(); 16];
        let mut idle = Idle::new(patience);
        while !self.is_idle() {
            if self.poll(&mut ended) > 0 {
                idle = Idle::new(patience);
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

/// The [`Mover`](crate::Mover) of a type whose field `queue` is a [`Queue`].
macro_rules! mover_on_queue {
    ($mover:ty) => {
        // SAFETY: an operation completes when the device has written its record, or that of its
        // batch, which it does last; or when the device has ended and accesses nothing any more.
        unsafe impl $crate::Mover for $mover {
            fn slots(&self) -> usize {
                self.queue.slots()
            }

            #[inline]
            unsafe fn enqueue(
                &mut self,
                operation: &$crate::Operation,
            ) -> Result<$crate::Ticket, $crate::Full> {
                self.queue.enqueue(operation)
            }

            unsafe fn enqueue_batch(
                &mut self,
                operations: &[$crate::Operation],
            ) -> Result<$crate::Ticket, $crate::BatchError> {
                self.queue.enqueue_batch(operations)
            }

            #[inline]
            fn submit(&mut self) -> $crate::Progress {
                self.queue.submit()
            }

            #[inline]
            fn poll(&mut self, into: &mut [$crate::Completion]) -> usize {
                self.queue.poll(into)
            }

            fn poll_outcomes(&mut self, into: &mut [$crate::Outcome]) -> usize {
                self.queue.poll_outcomes(into)
            }

            fn lost(&self) -> Option<$crate::QueueLost> {
                $crate::queue::Port::lost(&self.queue.port)
            }

            fn now(&self) -> $crate::Timestamp {
                self.queue.now()
            }

            fn capabilities(&self) -> $crate::Capabilities {
                self.queue.capabilities()
            }

            fn oldest_record(&self) -> Option<u64> {
                self.queue.oldest_record()
            }

            fn executor(&self) -> Option<$crate::Executor> {
                Some(self.queue.executor())
            }

            fn withdraw(&mut self) -> usize {
                self.queue.withdraw()
            }

            unsafe fn touch(&mut self, addr: u64, write: bool) {
                // SAFETY: the caller's promise is the same.
                unsafe { $crate::cpu::touch(addr, write) };
            }
        }
    };
}

pub(crate) use mover_on_queue;
