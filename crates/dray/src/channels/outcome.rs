//! How an operation of several channels ended, and who did what of it.

use crate::{Completion, Executor, Failure, Operation, Output};

/// Why the core executed an operation, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoreReason {
    /// It was to execute all that it can.
    Chosen,
    /// The operation is below the threshold.
    BelowThreshold,
    /// The cost model takes the core for faster.
    Faster,
    /// The cost model tries out whether the core is faster by now.
    Tried,
    /// No channel leads to a device with this operation.
    NoDevice,
    /// Every queue was full.
    QueueFull,
    /// A device met a page that was not present.
    PageFault,
}

/// An operation that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended. Its executor is the core if that has executed any of it, or else the device.
    pub completion: Completion,
    /// Bytes that devices have done.
    pub device_bytes: u64,
    /// Bytes that the core has done.
    pub core_bytes: u64,
    /// Channels that it was striped over; 0 if no device had any of it.
    pub stripes: u32,
    /// It travelled in a batch with others that were enqueued singly.
    pub gathered: bool,
    /// Page faults after which the device went on.
    pub resumed_faults: u32,
    /// Why the core has executed any of it.
    pub core_reason: Option<CoreReason>,
    /// Every queue was full, and the operation was not to wait.
    pub queue_was_full: bool,
}

impl Default for Outcome {
    /// A place for [`Channels::poll_outcomes`](super::Channels::poll_outcomes) to fill.
    fn default() -> Outcome {
        Outcome::of(Completion::default())
    }
}

impl Outcome {
    pub(super) fn of(completion: Completion) -> Outcome {
        Outcome {
            completion,
            device_bytes: 0,
            core_bytes: 0,
            stripes: 0,
            gathered: false,
            resumed_faults: 0,
            core_reason: None,
            queue_was_full: false,
        }
    }

    /// What it gives, or how it failed.
    ///
    /// # Errors
    /// As [`Completion::output`]; [`Failure::QueueFull`].
    pub fn output(&self, operation: &Operation) -> Result<Output, Failure> {
        match self.queue_was_full && self.completion.record.status == 0 {
            true => Err(Failure::QueueFull),
            false => self.completion.output(operation),
        }
    }

    /// Who has executed it, as one word: a device alone, the core alone, or both.
    pub fn executor(&self) -> Executor {
        self.completion.executor
    }
}
