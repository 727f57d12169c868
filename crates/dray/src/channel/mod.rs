//! The safe way to a mover: buffers belong to the channel until their operation is complete.

mod batch;
mod buffer;
mod completed;
mod error;
mod operations;
mod request;

use std::time::Duration;

use crate::idle::Idle;
use crate::wait::wait_with;
use crate::{Full, Mover, Operation, Outcome, Progress, Ticket, WaitError, WaitPolicy};

pub use batch::{ChannelBatch, NotSubmitted};
pub use buffer::{Buffer, Buffers, PageBuffer};
pub use completed::Completed;
pub use error::{ChannelError, Rejected};
pub use request::Request;

/// Outcomes that one call of the mover gives at most.
const POLLED_AT_ONCE: usize = 32;

/// How long a channel that is dropped waits without a completion by default.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// An operation under way.
#[derive(Debug)]
struct InFlight<B> {
    operation: Operation,
    buffers: Buffers<B>,
    user_data: u64,
}

/// Operations on buffers that the channel owns until they are complete.
///
/// Buffers go in by value and come back in [`Completed`]. Dropping a channel takes back what no queue has
/// accepted, and waits for what is in flight, but no longer than ten seconds without a completion
/// ([`with_drop_timeout`](Channel::with_drop_timeout)): the buffers of what a device holds then stay
/// allocated for ever, as do those of a channel that is forgotten, so a device never writes to memory
/// that has another owner. One thread uses a channel at a
/// time: all that hands operations over takes it exclusively.
///
/// Nothing is allocated after [`Channel::new`].
///
/// ```
/// use dray::{Channel, CpuMover, Output, WaitPolicy};
///
/// let mut channel = Channel::new(CpuMover::new(8));
/// channel.copy(vec![7_u8; 4096], vec![0_u8; 4096]).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// assert_eq!(done.result, Ok(Output::Done));
/// assert_eq!(done.buffers.source, done.buffers.destination);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Two threads do not use one channel:
///
/// ```compile_fail,E0499
/// use dray::{Channel, CpuMover};
///
/// let mut channel = Channel::new(CpuMover::new(8));
/// std::thread::scope(|scope| {
///     scope.spawn(|| channel.fill(1, vec![0_u8; 64]));
///     scope.spawn(|| channel.fill(2, vec![0_u8; 64]));
/// });
/// ```
///
/// Nothing is asked of a channel that was dropped, and no buffer is used while the channel has it:
///
/// ```compile_fail,E0382
/// let mut channel = dray::Channel::<_, Vec<u8>>::new(dray::CpuMover::new(8));
/// drop(channel);
/// channel.poll();
/// ```
///
/// ```compile_fail,E0382
/// let mut channel = dray::Channel::new(dray::CpuMover::new(8));
/// let buffer = vec![0_u8; 64];
/// channel.fill(1, buffer).unwrap();
/// assert_eq!(buffer[0], 1);
/// ```
#[derive(Debug)]
pub struct Channel<M: Mover, B: Buffer = Vec<u8>> {
    mover: M,
    /// By slot; the slot is the operation's user data.
    slots: Vec<Option<InFlight<B>>>,
    free: Vec<u32>,
    /// Operations of a batch that is not yet submitted.
    batch: Vec<Operation>,
    /// What has ended and was looked at, of which `given` were given out, and `found` are there.
    seen: Box<[Outcome]>,
    given: usize,
    found: usize,
    drop_timeout: Duration,
}

impl<M: Mover, B: Buffer> Channel<M, B> {
    /// A channel on a mover that nothing else uses.
    pub fn new(mover: M) -> Channel<M, B> {
        let count = mover.slots();
        Channel {
            mover,
            slots: (0..count).map(|_| None).collect(),
            free: (0..count as u32).rev().collect(),
            batch: Vec::with_capacity(count),
            seen: vec![Outcome::default(); POLLED_AT_ONCE].into_boxed_slice(),
            given: 0,
            found: 0,
            drop_timeout: DROP_TIMEOUT,
        }
    }

    /// The same, but dropping it waits no longer than this without a completion. Its mover has a
    /// timeout of its own.
    #[must_use]
    pub fn with_drop_timeout(mut self, drop_timeout: Duration) -> Channel<M, B> {
        self.drop_timeout = drop_timeout;
        self
    }

    /// Takes an operation and its buffers. It is handed over with the next [`submit`](Channel::submit),
    /// [`poll`](Channel::poll) or [`wait`](Channel::wait).
    ///
    /// # Errors
    /// No slot, lengths that do not go together, an operation that the mover does not have; with the
    /// buffers.
    pub fn push(&mut self, request: Request<B>) -> Result<Ticket, Box<Rejected<B>>> {
        let (slot, operation) = self.keep(request)?;
        // SAFETY: the buffers are the channel's until the completion has been polled; see `keep`.
        let enqueued = unsafe { self.mover.enqueue(&operation) };
        enqueued.map_err(|full| {
            let buffers = self.release(slot.into());
            Box::new(Rejected {
                error: full.into(),
                buffers: buffers.unwrap_or_else(Buffers::none),
            })
        })
    }

    /// A batch to add operations to.
    pub fn batch(&mut self) -> ChannelBatch<'_, M, B> {
        // Of one that was forgotten.
        self.drop_batch();
        ChannelBatch { channel: self }
    }

    /// Operations that are neither complete nor given out.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len() - self.batch.len()
    }

    /// Hands over what was given.
    pub fn submit(&mut self) -> Progress {
        self.mover.submit()
    }

    /// Takes back what was given and no queue has accepted: how many operations. They complete as
    /// [not executed](crate::Failure::NotExecuted), with their buffers.
    pub fn withdraw(&mut self) -> usize {
        self.mover.withdraw()
    }

    /// Hands over what was given, and takes one operation that is complete, if there is one.
    pub fn poll(&mut self) -> Option<Completed<B>> {
        if self.given == self.found {
            self.mover.submit();
            self.given = 0;
            self.found = self.mover.poll_outcomes(&mut self.seen);
        }
        self.next_seen()
    }

    /// Waits for one operation to complete.
    ///
    /// # Errors
    /// The deadline has passed; a way to wait that this processor does not have.
    pub fn wait(
        &mut self,
        policy: WaitPolicy,
        deadline: Option<Duration>,
    ) -> Result<Completed<B>, WaitError> {
        loop {
            if let Some(completed) = self.next_seen() {
                return Ok(completed);
            }
            if self.in_flight() == 0 {
                return Err(WaitError::Nothing);
            }
            let seen = &mut self.seen;
            let poll = |mover: &mut M| mover.poll_outcomes(seen);
            let found = wait_with(&mut self.mover, policy, deadline, poll)?;
            (self.given, self.found) = (0, found);
        }
    }

    /// The mover.
    pub fn mover(&self) -> &M {
        &self.mover
    }

    /// Keeps the buffers of an operation, in the slot that is its user data, until its completion has
    /// been polled: they are valid, stay where they are, and nothing else accesses them. They belong to
    /// this operation alone, since they came by value.
    fn keep(&mut self, mut request: Request<B>) -> Result<(u32, Operation), Box<Rejected<B>>> {
        match self.check(&mut request) {
            Ok((slot, operation)) => {
                self.free.pop();
                self.slots[slot as usize] = Some(InFlight {
                    operation,
                    user_data: request.user_data,
                    buffers: request.into_buffers(),
                });
                Ok((slot, operation))
            }
            Err(error) => {
                let buffers = request.into_buffers();
                Err(Box::new(Rejected { error, buffers }))
            }
        }
    }

    fn check(&mut self, request: &mut Request<B>) -> Result<(u32, Operation), ChannelError> {
        let operation = request.operation()?;
        if !self.mover.capabilities().supports(&operation) {
            let (opcode, len) = (operation.opcode(), operation.len() as usize);
            return Err(ChannelError::Unsupported { opcode, len });
        }
        let slots = self.slots.len();
        let slot = *self.free.last().ok_or(Full { slots })?;
        Ok((slot, operation.with_user_data(slot.into())))
    }

    /// Gives the buffers of a slot back, whose operation no device has.
    fn release(&mut self, slot: u64) -> Option<Buffers<B>> {
        let place = self.slots.get_mut(slot as usize)?;
        let kept = place.take()?;
        self.free.push(slot as u32);
        Some(kept.buffers)
    }

    /// Leaves the buffers of what is in flight where they are, for ever.
    fn leave(&mut self) {
        self.free.clear();
        // The device may still access them.
        std::mem::forget(std::mem::take(&mut self.slots));
    }

    fn drop_batch(&mut self) {
        while let Some(operation) = self.batch.pop() {
            drop(self.release(operation.user_data()));
        }
    }

    fn next_seen(&mut self) -> Option<Completed<B>> {
        while self.given < self.found {
            let mut outcome = self.seen[self.given];
            self.given += 1;
            let slot = outcome.completion.user_data as usize;
            let place = self.slots.get_mut(slot).and_then(Option::take);
            let Some(kept) = place else {
                debug_assert!(false, "a completion without an operation");
                continue;
            };
            self.free.push(slot as u32);
            outcome.completion.user_data = kept.user_data;
            let outcome = outcome.with_bytes_of(&kept.operation);
            return Some(Completed {
                ticket: outcome.completion.ticket,
                user_data: kept.user_data,
                result: outcome.output(&kept.operation),
                executor: outcome.executor(),
                outcome,
                buffers: kept.buffers,
            });
        }
        None
    }
}

impl<M: Mover, B: Buffer> Drop for Channel<M, B> {
    fn drop(&mut self) {
        self.drop_batch();
        self.mover.withdraw();
        let mut idle = Idle::new(self.drop_timeout);
        while self.in_flight() > 0 {
            if self.poll().is_some() {
                idle = Idle::new(self.drop_timeout);
            } else if !idle.rest() {
                self.leave();
                return;
            }
        }
    }
}
