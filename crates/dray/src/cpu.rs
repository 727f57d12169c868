//! The mover that is the calling core itself.

mod execute;

use std::time::Instant;

use dray_device::CAN_FLUSH;
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

use execute::execute;
pub(crate) use execute::{execute_single, touch};

use crate::{
    BatchError, Capabilities, Completion, Executor, Full, Mover, Operation, Progress, Ticket,
    Timestamp,
};

/// Executes operations on the calling core, at submission, on this process's memory.
///
/// ```
/// use dray::{Completion, CpuMover, Mover, Operation};
///
/// let (source, mut target) = ([7_u8; 64], [0_u8; 64]);
/// let from = source.as_ptr().expose_provenance() as u64;
/// let to = target.as_mut_ptr().expose_provenance() as u64;
/// let mut mover = CpuMover::new(8);
/// // SAFETY: both buffers outlive the operation, which ends within `submit`.
/// unsafe { mover.enqueue(&Operation::memmove(from, to, 64)) }?;
/// mover.submit();
/// assert_eq!(mover.poll(&mut [Completion::default(); 8]), 1);
/// assert_eq!(target, source);
/// # Ok::<(), dray::Full>(())
/// ```
#[derive(Debug)]
pub struct CpuMover {
    /// A ring: operations that have ended, then those that wait for their submission.
    slots: Box<[Slot]>,
    /// The slot of the oldest.
    first: usize,
    ended: usize,
    queued: usize,
    /// What the core cannot access is a page fault.
    checked: bool,
    /// Ticket of the oldest.
    ticket: u32,
    batch: BatchState,
    start: Instant,
}

/// An operation, and its record once it has ended: one after the other in memory, from the beginning of a line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Slot {
    descriptor: Descriptor,
    record: CompletionRecord,
    user_data: u64,
    role: BatchRole,
}

/// Where an operation is in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchRole {
    /// It is in none.
    Single,
    First,
    Next,
}

/// How far the batch that is executed has got.
#[derive(Debug, Clone, Copy, Default)]
struct BatchState {
    /// An operation of it has not succeeded.
    failed: bool,
    /// A fence has stopped it.
    stopped: bool,
}

impl CpuMover {
    /// With room for `slots` operations.
    pub fn new(slots: usize) -> CpuMover {
        let empty = Slot {
            descriptor: Descriptor::default(),
            record: CompletionRecord::default(),
            user_data: 0,
            role: BatchRole::Single,
        };
        CpuMover {
            slots: vec![empty; slots].into_boxed_slice(),
            first: 0,
            ended: 0,
            queued: 0,
            checked: false,
            ticket: 0,
            batch: BatchState::default(),
            start: Instant::now(),
        }
    }

    /// The same, but memory that the core cannot access ends an operation with a page fault, as on a
    /// device and after the bytes before it, instead of the process with a signal. Costs system calls: see
    /// [`Checked`](crate::Checked).
    ///
    /// ```
    /// use dray::{Completion, CpuMover, Failure, Mover, Operation};
    /// let mut mover = CpuMover::checked(1);
    /// let fill = Operation::fill(0, 8, 64);
    /// // SAFETY: the mover looks at the address.
    /// unsafe { mover.enqueue(&fill) }?;
    /// mover.submit();
    /// let mut ended = [Completion::default()];
    /// mover.poll(&mut ended);
    /// let address = 8;
    /// let fault = Failure::PageFault { address, write: true, bytes_completed: 0 };
    /// assert_eq!(ended[0].output(&fill), Err(fault));
    /// # Ok::<(), dray::Full>(())
    /// ```
    pub fn checked(slots: usize) -> CpuMover {
        CpuMover {
            checked: true,
            ..CpuMover::new(slots)
        }
    }

    /// Slots that are taken.
    #[inline]
    fn taken(&self) -> usize {
        self.ended + self.queued
    }

    /// The slot so many behind the oldest; there is one.
    #[inline]
    fn at(&self, offset: usize) -> usize {
        let index = self.first + offset;
        match index >= self.slots.len() {
            true => index - self.slots.len(),
            false => index,
        }
    }

    /// Takes the next slot, which is free.
    #[inline]
    fn push(&mut self, operation: &Operation, role: BatchRole) {
        let index = self.at(self.taken());
        self.slots[index].set(operation, role);
        self.queued += 1;
    }

    /// `count` slots from the one so many behind the oldest: those up to the end of the ring, and those at
    /// its beginning.
    #[inline]
    fn run(&mut self, offset: usize, count: usize) -> [&mut [Slot]; 2] {
        let start = self.at(offset);
        let (beginning, end) = self.slots.split_at_mut(start);
        let upper = count.min(end.len());
        [&mut end[..upper], &mut beginning[..count - upper]]
    }

    /// Ticket of the operation so many behind the oldest.
    #[inline]
    fn ticket(&self, offset: usize) -> Ticket {
        Ticket(self.ticket.wrapping_add(offset as u32))
    }
}

impl Slot {
    #[inline]
    fn set(&mut self, operation: &Operation, role: BatchRole) {
        self.descriptor = *operation.descriptor();
        self.user_data = operation.user_data();
        self.role = role;
    }

    /// How its operation ends: as it does in its place in a batch, if it is in one (spec 3.9).
    ///
    /// # Safety
    /// As [`execute`].
    #[inline]
    unsafe fn execute(&mut self, batch: &mut BatchState, checked: bool) {
        let fence = self.descriptor.flags().contains(Flags::FENCE);
        match self.role {
            BatchRole::Single if fence => {
                // SAFETY: the caller's promise is the same.
                self.record = unsafe { execute_single(&self.descriptor, checked) };
                return;
            }
            BatchRole::Single => {}
            BatchRole::First => *batch = BatchState::default(),
            BatchRole::Next => batch.stopped |= fence && batch.failed,
        }
        if batch.stopped && self.role != BatchRole::Single {
            self.record = CompletionRecord::default();
            return;
        }
        // SAFETY: the caller's promise is the same.
        self.record = unsafe { execute(&self.descriptor, checked) };
        batch.failed |= self.record.status() != Status::SUCCESS;
    }
}

// SAFETY: operations are executed within `submit`, and complete afterwards.
unsafe impl Mover for CpuMover {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn in_flight(&self) -> usize {
        self.taken()
    }

    #[inline]
    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        let (slots, taken) = (self.slots.len(), self.taken());
        if taken >= slots {
            return Err(Full { slots });
        }
        self.push(operation, BatchRole::Single);
        Ok(self.ticket(taken))
    }

    #[inline]
    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        let (slots, count) = (self.slots.len(), operations.len());
        let Some((first, rest)) = operations.split_first().filter(|_| count <= slots) else {
            return Err(BatchError::Size {
                operations: count,
                max: self.capabilities().max_batch,
            });
        };
        let taken = self.taken();
        if taken + count > slots {
            return Err(Full { slots }.into());
        }
        self.push(first, BatchRole::First);
        let [end, beginning] = self.run(taken + 1, rest.len());
        let (upper, lower) = rest.split_at(end.len());
        for (slot, operation) in end.iter_mut().zip(upper) {
            slot.set(operation, BatchRole::Next);
        }
        for (slot, operation) in beginning.iter_mut().zip(lower) {
            slot.set(operation, BatchRole::Next);
        }
        self.queued += rest.len();
        Ok(self.ticket(taken))
    }

    #[inline]
    fn submit(&mut self) -> Progress {
        let (checked, queued) = (self.checked, self.queued);
        // Not written to memory at each operation.
        let mut batch = self.batch;
        for slots in self.run(self.ended, queued) {
            for slot in slots {
                // SAFETY: `enqueue` had its caller promise that the addresses stay valid until now.
                unsafe { slot.execute(&mut batch, checked) };
            }
        }
        self.batch = batch;
        self.queued = 0;
        self.ended += queued;
        Progress::Done
    }

    #[inline]
    fn poll(&mut self, into: &mut [Completion]) -> usize {
        let count = self.ended.min(into.len());
        let mut ticket = self.ticket;
        let [end, beginning] = self.run(0, count);
        let (upper, lower) = into[..count].split_at_mut(end.len());
        for (slots, places) in [(end, upper), (beginning, lower)] {
            for (slot, place) in slots.iter().zip(places) {
                *place = Completion {
                    ticket: Ticket(ticket),
                    user_data: slot.user_data,
                    record: slot.record,
                    executor: Executor::Cpu,
                };
                ticket = ticket.wrapping_add(1);
            }
        }
        self.ticket = ticket;
        self.first = self.at(count);
        self.ended -= count;
        count
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_duration(self.start.elapsed())
    }

    fn capabilities(&self) -> Capabilities {
        let mut software = Capabilities {
            max_batch: u32::try_from(self.slots.len()).unwrap_or(u32::MAX),
            ..Capabilities::software()
        };
        if !CAN_FLUSH {
            software.operations.0[0] &= !(1 << Opcode::CacheFlush as u8);
        }
        software
    }

    fn executor(&self) -> Option<Executor> {
        Some(Executor::Cpu)
    }

    unsafe fn touch(&mut self, addr: u64, write: bool) {
        // SAFETY: the caller's promise is the same.
        unsafe { touch(addr, write) };
    }
}
