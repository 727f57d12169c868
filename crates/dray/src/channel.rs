//! The safe way to a mover: buffers belong to the channel until their operation is complete.

use std::time::Duration;

use thiserror::Error;

use crate::{
    Completion, Executor, Failure, Full, Mover, Operation, Output, Progress, Ticket, WaitError,
    WaitPolicy, wait,
};

/// Completions that are looked at together.
const LOOK: usize = 32;

/// A buffer that a device can read and write while a [`Channel`] owns it.
///
/// # Safety
/// `stable_ptr` must give the address of `len` initialized bytes that stay where they are, also when
/// the value itself is moved, and that nothing else accesses as long as the value is not borrowed. (A
/// box is none: moving it tells the compiler that no other pointer to its bytes is used.)
pub unsafe trait Buffer {
    /// Address of the first byte, valid for reads and writes.
    fn stable_ptr(&mut self) -> *mut u8;

    /// Number of bytes.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// SAFETY: the bytes of a vector lie on the heap, and the vector owns them.
unsafe impl Buffer for Vec<u8> {
    fn stable_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn len(&self) -> usize {
        self.len()
    }
}

/// Why an operation was not taken. The buffers come back in [`Rejected`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// All slots are taken.
    #[error(transparent)]
    Full(#[from] Full),
    /// The mover has no such operation, or not of this size.
    #[error("the mover does not support {opcode:?} of {len} bytes")]
    Unsupported {
        /// The operation.
        opcode: dray_spec::Opcode,
        /// Its length.
        len: usize,
    },
    /// Buffers of one operation must have the same length.
    #[error("buffers of {first} and {second} bytes for one operation")]
    Lengths {
        /// Bytes of the first.
        first: usize,
        /// Bytes of the second.
        second: usize,
    },
    /// An operation has at least 1 byte, and less than 4 GiB.
    #[error("an operation on {len} bytes: 1 to 4294967295 are possible")]
    Length {
        /// Bytes asked for.
        len: usize,
    },
}

/// An operation that was not taken, and its buffers.
#[derive(Debug)]
pub struct Rejected<B> {
    /// Why.
    pub error: ChannelError,
    /// What was given.
    pub buffers: Buffers<B>,
}

/// The buffers of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buffers<B> {
    /// What it reads, or the first of two that it compares.
    pub source: Option<B>,
    /// What it writes, or the second of two that it compares.
    pub destination: Option<B>,
}

/// An operation that is complete, with its buffers.
#[derive(Debug)]
pub struct Completed<B> {
    /// What [`Channel`] gave for it.
    pub ticket: Ticket,
    /// What it gives, or how it failed.
    pub result: Result<Output, Failure>,
    /// Who executed it.
    pub executor: Executor,
    /// The buffers, which are the caller's again.
    pub buffers: Buffers<B>,
}

/// An operation under way.
#[derive(Debug)]
struct InFlight<B> {
    operation: Operation,
    buffers: Buffers<B>,
}

/// Operations on buffers that the channel owns until they are complete.
///
/// Buffers go in by value and come back in [`Completed`]. Dropping a channel waits for what is in
/// flight; a channel that is forgotten keeps its buffers for ever, so a device never writes to memory
/// that somebody else has.
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
#[derive(Debug)]
pub struct Channel<M: Mover, B: Buffer = Vec<u8>> {
    mover: M,
    /// By slot; the slot is the operation's user data.
    slots: Vec<Option<InFlight<B>>>,
    free: Vec<u32>,
    /// Completions that were seen and not given out, the next one last.
    seen: Vec<Completion>,
}

impl<M: Mover, B: Buffer> Channel<M, B> {
    /// A channel on a mover that nobody else uses.
    pub fn new(mover: M) -> Channel<M, B> {
        let count = mover.slots();
        Channel {
            mover,
            slots: (0..count).map(|_| None).collect(),
            free: (0..count as u32).rev().collect(),
            seen: Vec::with_capacity(LOOK),
        }
    }

    /// Copies `source` to `destination`, which is as long.
    ///
    /// # Errors
    /// No slot, other lengths, an operation that the mover does not have; with the buffers.
    pub fn copy(&mut self, source: B, destination: B) -> Result<Ticket, Box<Rejected<B>>> {
        self.two(source, destination, Operation::memmove)
    }

    /// Compares two buffers of the same length.
    ///
    /// # Errors
    /// As [`copy`](Channel::copy).
    pub fn compare(&mut self, first: B, second: B) -> Result<Ticket, Box<Rejected<B>>> {
        self.two(first, second, Operation::compare)
    }

    /// Copies `source` to `destination`, which is as long, and takes its CRC32C.
    ///
    /// # Errors
    /// As [`copy`](Channel::copy).
    pub fn copy_crc(
        &mut self,
        source: B,
        destination: B,
        seed: u32,
    ) -> Result<Ticket, Box<Rejected<B>>> {
        self.two(source, destination, |from, to, len| {
            Operation::copy_crc(from, to, len, seed)
        })
    }

    /// Fills a buffer with an 8-byte pattern.
    ///
    /// # Errors
    /// As [`copy`](Channel::copy).
    pub fn fill(&mut self, pattern: u64, destination: B) -> Result<Ticket, Box<Rejected<B>>> {
        let buffers = Buffers {
            source: None,
            destination: Some(destination),
        };
        self.push(buffers, |_, to, len| Operation::fill(pattern, to, len))
    }

    /// CRC32C of a buffer.
    ///
    /// # Errors
    /// As [`copy`](Channel::copy).
    pub fn crc(&mut self, source: B, seed: u32) -> Result<Ticket, Box<Rejected<B>>> {
        let buffers = Buffers {
            source: Some(source),
            destination: None,
        };
        self.push(buffers, |from, _, len| Operation::crc(from, len, seed))
    }

    /// Compares a buffer with an 8-byte pattern.
    ///
    /// # Errors
    /// As [`copy`](Channel::copy).
    pub fn compare_pattern(&mut self, source: B, pattern: u64) -> Result<Ticket, Box<Rejected<B>>> {
        let buffers = Buffers {
            source: Some(source),
            destination: None,
        };
        self.push(buffers, |from, _, len| {
            Operation::compare_pattern(from, pattern, len)
        })
    }

    /// Operations that are neither complete nor given out.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Hands over what was given, and takes one operation that is complete, if there is one.
    pub fn poll(&mut self) -> Option<Completed<B>> {
        if self.seen.is_empty() {
            self.mover.submit();
            let mut look = [Completion::default(); LOOK];
            let count = self.mover.poll(&mut look);
            self.seen.extend(look[..count].iter().rev());
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
            let mut look = [Completion::default(); LOOK];
            let count = wait(&mut self.mover, &mut look, policy, deadline)?;
            self.seen.extend(look[..count].iter().rev());
        }
    }

    /// The mover.
    pub fn mover(&self) -> &M {
        &self.mover
    }

    fn two(
        &mut self,
        source: B,
        destination: B,
        operation: impl FnOnce(u64, u64, u32) -> Operation,
    ) -> Result<Ticket, Box<Rejected<B>>> {
        let (first, second) = (source.len(), destination.len());
        let buffers = Buffers {
            source: Some(source),
            destination: Some(destination),
        };
        if first != second {
            let error = ChannelError::Lengths { first, second };
            return Err(Box::new(Rejected { error, buffers }));
        }
        self.push(buffers, operation)
    }

    fn push(
        &mut self,
        mut buffers: Buffers<B>,
        operation: impl FnOnce(u64, u64, u32) -> Operation,
    ) -> Result<Ticket, Box<Rejected<B>>> {
        match self.enqueue(&mut buffers, operation) {
            Ok((ticket, slot, operation)) => {
                self.slots[slot as usize] = Some(InFlight { operation, buffers });
                Ok(ticket)
            }
            Err(error) => Err(Box::new(Rejected { error, buffers })),
        }
    }

    fn enqueue(
        &mut self,
        buffers: &mut Buffers<B>,
        operation: impl FnOnce(u64, u64, u32) -> Operation,
    ) -> Result<(Ticket, u32, Operation), ChannelError> {
        let address = |buffer: &mut Option<B>| {
            let buffer = buffer.as_mut();
            buffer.map_or(0, |buffer| buffer.stable_ptr().expose_provenance() as u64)
        };
        let any = buffers.source.as_ref().or(buffers.destination.as_ref());
        let len = any.map_or(0, |buffer| buffer.len());
        let bytes = u32::try_from(len).ok().filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(ChannelError::Length { len })?;
        let source = address(&mut buffers.source);
        let operation = operation(source, address(&mut buffers.destination), bytes);
        if !self.mover.capabilities().supports(&operation) {
            let opcode = operation.opcode();
            return Err(ChannelError::Unsupported { opcode, len });
        }
        let slots = self.slots.len();
        let slot = *self.free.last().ok_or(Full { slots })?;
        let operation = operation.with_user_data(slot.into());
        // SAFETY: the buffers are the channel's until the completion has been polled: they are
        // valid, stay where they are, and nobody else accesses them. They belong to this operation
        // alone, since they came by value.
        let ticket = unsafe { self.mover.enqueue(&operation) }?;
        self.free.pop();
        Ok((ticket, slot, operation))
    }

    fn next_seen(&mut self) -> Option<Completed<B>> {
        while let Some(completion) = self.seen.pop() {
            let slot = completion.user_data as usize;
            let place = self.slots.get_mut(slot).and_then(Option::take);
            let Some(InFlight { operation, buffers }) = place else {
                debug_assert!(false, "a completion of nobody");
                continue;
            };
            self.free.push(slot as u32);
            return Some(Completed {
                ticket: completion.ticket,
                result: completion.output(&operation),
                executor: completion.executor,
                buffers,
            });
        }
        None
    }
}

impl<M: Mover, B: Buffer> Drop for Channel<M, B> {
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            let progress = self.mover.submit();
            if self.poll().is_none() && progress == Progress::Done {
                std::thread::yield_now();
            }
        }
    }
}
