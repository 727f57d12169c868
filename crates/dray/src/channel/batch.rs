//! Batches of operations on buffers that are given by value.

use std::fmt;

use super::{Buffer, Buffers, Channel, ChannelError, Rejected, Request};
use crate::{BatchError, Mover, Ticket};

/// Operations that are handed over together, by one batch descriptor. What is not
/// [submitted](ChannelBatch::submit) is dropped, and was never executed.
///
/// ```
/// use dray::{Channel, CpuMover, Request, WaitPolicy};
///
/// let mut channel = Channel::new(CpuMover::new(4));
/// let mut batch = channel.batch();
/// batch.push(Request::fill(u64::MAX, vec![0; 64])).map_err(|rejected| rejected.error)?;
/// batch.push(Request::crc32c(vec![0; 64], 0).with_fence()).map_err(|rejected| rejected.error)?;
/// batch.submit().map_err(|not| not.error)?;
/// let filled = channel.wait(WaitPolicy::Pause, None)?;
/// assert_eq!(filled.buffers.destination, Some(vec![255; 64]));
/// assert!(channel.wait(WaitPolicy::Pause, None)?.result.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChannelBatch<'c, M: Mover, B: Buffer> {
    pub(super) channel: &'c mut Channel<M, B>,
}

/// A batch that was not handed over, which can be tried again when operations have ended.
///
/// ```
/// use dray::{BatchError, Channel, CpuMover, Request};
///
/// let mut channel = Channel::<_, Vec<u8>>::new(CpuMover::new(4));
/// let not = channel.batch().submit().unwrap_err();
/// assert!(matches!(not.error, BatchError::Size { operations: 0, .. }));
/// // The batch is there, to add to and try again.
/// let mut batch = not.batch;
/// batch.push(Request::fill(1, vec![0; 8])).map_err(|rejected| rejected.error)?;
/// assert!(batch.submit().is_ok());
/// # Ok::<(), dray::ChannelError>(())
/// ```
pub struct NotSubmitted<'c, M: Mover, B: Buffer> {
    /// Why.
    pub error: BatchError,
    /// What was to be submitted.
    pub batch: ChannelBatch<'c, M, B>,
}

impl<M: Mover, B: Buffer> fmt::Debug for NotSubmitted<'_, M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotSubmitted")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<'c, M: Mover, B: Buffer> ChannelBatch<'c, M, B> {
    /// Adds an operation.
    ///
    /// # Errors
    /// As [`Channel::push`]; more operations than the mover has in a batch.
    pub fn push(&mut self, request: Request<B>) -> Result<(), Box<Rejected<B>>> {
        let channel = &mut *self.channel;
        let max = channel.mover.capabilities().max_batch;
        if channel.batch.len() >= max as usize {
            let operations = channel.batch.len() + 1;
            let error = ChannelError::Batch(BatchError::Size { operations, max });
            let buffers = request.into_buffers();
            return Err(Box::new(Rejected { error, buffers }));
        }
        let (_, operation) = channel.keep(request)?;
        channel.batch.push(operation);
        Ok(())
    }

    /// Operations so far.
    pub fn len(&self) -> usize {
        self.channel.batch.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.channel.batch.is_empty()
    }

    /// Hands the operations over; the ticket is that of the first.
    ///
    /// # Errors
    /// None, or no room for all of them: the batch comes back.
    pub fn submit(self) -> Result<Ticket, NotSubmitted<'c, M, B>> {
        let channel = &mut *self.channel;
        // SAFETY: the buffers are the channel's until the completions have been polled; see `keep`.
        match unsafe { channel.mover.enqueue_batch(&channel.batch) } {
            Ok(ticket) => {
                channel.batch.clear();
                channel.mover.submit();
                Ok(ticket)
            }
            Err(error) => Err(NotSubmitted { error, batch: self }),
        }
    }

    /// Gives the buffers back, of an operation each.
    pub fn take(self) -> Vec<Buffers<B>> {
        let channel = &mut *self.channel;
        let mut all = Vec::with_capacity(channel.batch.len());
        while let Some(operation) = channel.batch.pop() {
            all.extend(channel.release(operation.user_data()));
        }
        all.reverse();
        all
    }
}

impl<M: Mover, B: Buffer> Drop for ChannelBatch<'_, M, B> {
    fn drop(&mut self) {
        self.channel.drop_batch();
    }
}
