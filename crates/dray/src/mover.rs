//! The offload interface.

use dray_spec::{CompletionRecord, Status};
use thiserror::Error;

use crate::{Capabilities, Operation, Outcome, QueueLost, Timestamp};

/// Completions that become outcomes together.
const AT_ONCE: usize = 8;

/// Names an operation of one mover until its completion has been polled. To find what belongs to an
/// operation, use [`Operation::with_user_data`].
///
/// ```
/// use dray::{CpuMover, Mover, Operation, Ticket};
///
/// let mut mover = CpuMover::new(2);
/// // SAFETY: a NOOP has no operands.
/// assert_eq!(unsafe { mover.enqueue(&Operation::noop()) }?, Ticket(0));
/// # Ok::<(), dray::Full>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub u32);

/// Who executed an operation.
///
/// ```
/// use dray::{CpuMover, Executor, Mover};
///
/// assert_eq!(CpuMover::new(1).executor(), Some(Executor::Cpu));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Executor {
    /// A core of this machine.
    Cpu,
    /// The virtual device in real time.
    Virtual,
    /// A device of this machine, through its driver. Inside `dray run` that is the virtual device.
    Hardware,
    /// The device in modelled time.
    Model,
    /// The core beside it in modelled time.
    ModelCpu,
}

impl Executor {
    /// Whether the addresses of its operations are those of this process.
    pub(crate) fn is_of_this_process(self) -> bool {
        matches!(self, Executor::Cpu | Executor::Virtual | Executor::Hardware)
    }
}

/// An operation that has ended.
///
/// ```
/// use dray::{Completion, CpuMover, Mover, Operation};
/// use dray_spec::Status;
///
/// let mut mover = CpuMover::new(1);
/// // SAFETY: a NOOP has no operands.
/// unsafe { mover.enqueue(&Operation::noop().with_user_data(9)) }?;
/// mover.submit();
/// let mut ended = [Completion::default()];
/// mover.poll(&mut ended);
/// assert_eq!((ended[0].user_data, ended[0].status()), (9, Status::SUCCESS));
/// # Ok::<(), dray::Full>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Which one.
    pub ticket: Ticket,
    /// What the operation was given with [`Operation::with_user_data`].
    pub user_data: u64,
    /// How it ended, as the device writes it.
    pub record: CompletionRecord,
    /// Who executed it.
    pub executor: Executor,
}

impl Completion {
    /// How it ended.
    pub fn status(&self) -> Status {
        self.record.status()
    }
}

/// All of a mover's slots are taken: poll completions first.
///
/// ```
/// use dray::{CpuMover, Full, Mover, Operation};
///
/// let mut mover = CpuMover::new(1);
/// // SAFETY: a NOOP has no operands.
/// let enqueued = [(); 2].map(|()| unsafe { mover.enqueue(&Operation::noop()) });
/// assert_eq!(enqueued[1], Err(Full { slots: 1 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("all {slots} slots of the mover are taken: poll completions before enqueuing more")]
pub struct Full {
    /// Slots that there are.
    pub slots: usize,
}

/// Why a batch could not be enqueued.
///
/// ```
/// use dray::{BatchError, CpuMover, Mover, Operation};
///
/// let mut mover = CpuMover::new(2);
/// // SAFETY: a NOOP has no operands.
/// let refused = unsafe { mover.enqueue_batch(&[Operation::noop(); 3]) };
/// assert_eq!(refused, Err(BatchError::Size { operations: 3, max: 2 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BatchError {
    /// There are not enough neighbouring slots.
    #[error(transparent)]
    Full(#[from] Full),
    /// It has no operations, or more than [`Capabilities::max_batch`].
    #[error("a batch of {operations} operations: this mover takes 1 to {max}")]
    Size {
        /// Operations in it.
        operations: usize,
        /// Operations of the largest batch.
        max: u32,
    },
}

/// How far a submission got.
///
/// ```
/// use dray::{CpuMover, Mover, Progress};
///
/// assert_eq!(CpuMover::new(1).submit(), Progress::Done);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All that was enqueued has been handed over.
    Done,
    /// Something is left: the queue is full, or an answer is awaited. Submit again later.
    Pending,
}

/// Executes memory operations. Poll-mode, never blocks, never allocates once it is set up.
///
/// In a child of fork(2) a mover of its parent that submits to a device executes nothing: what is enqueued or in
/// flight completes at the next poll with the status 0, [`lost`](Mover::lost) is [`QueueLost::Inherited`], and a
/// drop waits for nothing. Neither the parent's device nor its memory is touched. [`Home`](crate::Home) says on
/// which kernels.
///
/// # Safety
/// An implementation gives a completion when nothing will access the operation's memory any more,
/// not before, and with the user data of that operation: callers reuse and free the memory then.
///
/// ```
/// use dray::{Completion, CpuMover, Mover, Operation, WaitPolicy, wait};
///
/// /// CRC32C of a buffer, by whatever executes operations.
/// fn crc(mover: &mut impl Mover, bytes: &[u8]) -> Option<u32> {
///     let from = bytes.as_ptr().expose_provenance() as u64;
///     let operation = Operation::crc(from, bytes.len() as u32, 0);
///     // SAFETY: the bytes are borrowed until the operation has ended.
///     unsafe { mover.enqueue(&operation) }.ok()?;
///     let mut ended = [Completion::default()];
///     wait(mover, &mut ended, WaitPolicy::Yield, None).ok()?;
///     Some(ended[0].record.crc32())
/// }
///
/// assert_eq!(crc(&mut CpuMover::new(1), b"123456789"), Some(0xe306_9283));
/// ```
pub unsafe trait Mover {
    /// Operations that can be enqueued or in flight at once.
    fn slots(&self) -> usize;

    /// Operations that were enqueued and whose completions have not been polled.
    fn in_flight(&self) -> usize;

    /// Prepares an operation.
    ///
    /// # Errors
    /// [`Full`] if no slot is free.
    ///
    /// # Safety
    /// Until the completion has been polled, the addresses of `operation` must be valid for what
    /// it does: sources readable and not written, destinations writable and not accessed otherwise.
    /// (Modelled memory checks itself; nothing can go wrong there.)
    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full>;

    /// Prepares operations that are handed over together, by one batch descriptor, and start in
    /// order. An operation [with a fence](Operation::with_fence) starts when all before it in the
    /// batch have ended; if one of them has not succeeded, neither it nor what follows is executed,
    /// and their completions have the status 0 (spec 3.9). Each operation has a completion of its
    /// own. The ticket is that of the first.
    ///
    /// # Errors
    /// Not enough slots; more operations than [`Capabilities::max_batch`], or none.
    ///
    /// # Safety
    /// As [`enqueue`](Mover::enqueue), for each of the operations.
    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError>;

    /// Hands over what has been enqueued.
    fn submit(&mut self) -> Progress;

    /// Takes completions, as many as there are and `into` can hold; how many they were.
    fn poll(&mut self, into: &mut [Completion]) -> usize;

    /// As [`poll`](Mover::poll), with who did what of each operation, and why.
    fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        let mut count = 0;
        for places in into.chunks_mut(AT_ONCE) {
            let mut seen = [Completion::default(); AT_ONCE];
            let found = self.poll(&mut seen[..places.len()]);
            for (place, completion) in places.iter_mut().zip(&seen[..found]) {
                *place = Outcome::of_one_executor(*completion);
            }
            count += found;
            if found < places.len() {
                break;
            }
        }
        count
    }

    /// Why nothing that is enqueued from now on is executed; `None`: the mover goes on.
    fn lost(&self) -> Option<QueueLost> {
        None
    }

    /// The calling core's time, since the mover was opened: real, or modelled.
    fn now(&self) -> Timestamp;

    /// What it can do, and up to which size. An operation that is not supported can be enqueued all
    /// the same: it ends with the status that a device gives.
    fn capabilities(&self) -> Capabilities;

    /// Address of the completion record that will be written next if operations end in order, for
    /// UMONITOR; `None` where no device writes records to this process's memory.
    fn oldest_record(&self) -> Option<u64> {
        None
    }

    /// Who executes what is enqueued, if that is known beforehand and the same for all.
    fn executor(&self) -> Option<Executor> {
        None
    }

    /// Takes back what was enqueued and not yet handed over, because its queue is full or disabled:
    /// how many operations. Each completes once, with the status 0, not executed
    /// ([`Outcome::withdrawn`]). Of one that travels in parts those that a device has had stay done: its
    /// `bytes_completed` counts them from the beginning up to the first that was taken back. A mover that
    /// hands everything over at once takes nothing back.
    fn withdraw(&mut self) -> usize {
        0
    }

    /// The calling core does something else for so many picoseconds: modelled time passes. In real
    /// time it passes by itself, and nothing is done here.
    fn spend(&mut self, _picoseconds: u64) {}

    /// From now on, and before anything is enqueued: an operation that meets a page that is not present is resumed by
    /// this mover, `most` times at a page without a byte done between them; 0: it ends with the fault. Whether it does: a mover
    /// that meets no page faults, or resumes none, does nothing here.
    fn resume_page_faults(&mut self, _most: u32) -> bool {
        false
    }

    /// Makes the page of `addr` present, by a write or a read of the core.
    ///
    /// # Safety
    /// `addr` must be mapped, and writable if `write`; nothing else may write the byte meanwhile.
    unsafe fn touch(&mut self, addr: u64, write: bool);
}

// SAFETY: it is the mover behind it, whose promise is the same.
// A method that is not forwarded would be the default, and not what the mover behind it does.
#[deny(clippy::missing_trait_methods)]
unsafe impl<M: Mover + ?Sized> Mover for &mut M {
    fn slots(&self) -> usize {
        (**self).slots()
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    unsafe fn enqueue(&mut self, operation: &Operation) -> Result<Ticket, Full> {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).enqueue(operation) }
    }

    unsafe fn enqueue_batch(&mut self, operations: &[Operation]) -> Result<Ticket, BatchError> {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).enqueue_batch(operations) }
    }

    fn submit(&mut self) -> Progress {
        (**self).submit()
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        (**self).poll(into)
    }

    fn poll_outcomes(&mut self, into: &mut [Outcome]) -> usize {
        (**self).poll_outcomes(into)
    }

    fn lost(&self) -> Option<QueueLost> {
        (**self).lost()
    }

    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn oldest_record(&self) -> Option<u64> {
        (**self).oldest_record()
    }

    fn executor(&self) -> Option<Executor> {
        (**self).executor()
    }

    fn withdraw(&mut self) -> usize {
        (**self).withdraw()
    }

    fn spend(&mut self, picoseconds: u64) {
        (**self).spend(picoseconds);
    }

    fn resume_page_faults(&mut self, most: u32) -> bool {
        (**self).resume_page_faults(most)
    }

    unsafe fn touch(&mut self, addr: u64, write: bool) {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).touch(addr, write) };
    }
}

impl Default for Completion {
    /// A place for [`Mover::poll`] to fill.
    fn default() -> Self {
        Completion {
            ticket: Ticket(u32::MAX),
            user_data: 0,
            record: CompletionRecord::default(),
            executor: Executor::Cpu,
        }
    }
}
