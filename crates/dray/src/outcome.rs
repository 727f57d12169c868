//! How an operation ended, who did what of it, and why.

use dray_placement::Reason;
use dray_spec::{CompletionRecord, Status};
use thiserror::Error;

use crate::{Completion, Executor, Failure, Operation, Output};

/// Why a queue executes nothing more.
///
/// ```
/// use dray::{CpuMover, Mover, QueueLost};
///
/// assert_eq!(CpuMover::new(1).lost(), None);
/// let lost = QueueLost::Disabled;
/// assert_eq!(lost.to_string(), "the work queue was disabled or reset");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum QueueLost {
    /// The queue was disabled, or it or its device was reset, since it was opened.
    #[error("the work queue was disabled or reset")]
    Disabled,
    /// Its device has ended, or has failed.
    #[error("the device of the work queue has ended")]
    DeviceEnded,
    /// The kernel refuses descriptors, with this error number.
    #[error("the kernel refuses descriptors: error {errno}")]
    Refused {
        /// errno of write(2); 0 if it has written only a part.
        errno: i32,
    },
    /// This process is a child of the one that has opened it: see [`Home`](crate::Home).
    #[error("the mover is of the process that has forked this one")]
    Inherited,
}

/// An operation that has ended, with who did what of it.
///
/// ```
/// use dray::{CpuMover, Executor, Mover, Operation, Outcome, Output};
///
/// let mut mover = CpuMover::new(1);
/// // SAFETY: a NOOP has no operands.
/// unsafe { mover.enqueue(&Operation::noop()) }?;
/// mover.submit();
/// let mut ended = [Outcome::default()];
/// assert_eq!(mover.poll_outcomes(&mut ended), 1);
/// assert_eq!(ended[0].executor(), Executor::Cpu);
/// assert_eq!(ended[0].output(&Operation::noop()), Ok(Output::Done));
/// assert_eq!((ended[0].retries, ended[0].resumed_faults), (0, 0));
/// # Ok::<(), dray::Full>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// How it ended. Its executor is the core if that has executed any of it, or else the device; of one that
    /// was not executed that of the first channel.
    pub completion: Completion,
    /// Bytes that devices have done.
    pub device_bytes: u64,
    /// Bytes that the core has done.
    pub core_bytes: u64,
    /// Stripes of it that queues have accepted; 0 if no device had any of it. Of one queue alone: 1.
    pub stripes: u32,
    /// It travelled in a batch with others that were enqueued singly.
    pub gathered: bool,
    /// Page faults after which the device went on.
    pub resumed_faults: u32,
    /// Submissions of its descriptors that a queue without room did not accept.
    pub retries: u32,
    /// Times that it, or a part of it, went to another executor because its queue was lost.
    pub moved: u32,
    /// Why the core has executed any of it.
    pub core_reason: Option<Reason>,
    /// Every queue was full, and the operation was not to wait.
    pub queue_was_full: bool,
    /// Its queue was lost, and nothing else has executed it.
    pub queue_lost: Option<QueueLost>,
    /// It, or a part of it, was taken back by [`Mover::withdraw`](crate::Mover::withdraw) and not executed.
    pub withdrawn: bool,
    /// A queue may have accepted it, so that a device may have done some of it.
    pub(crate) accepted: bool,
}

impl Default for Outcome {
    /// A place for [`Mover::poll_outcomes`](crate::Mover::poll_outcomes) to fill.
    fn default() -> Outcome {
        Outcome::of(Completion::default())
    }
}

impl Outcome {
    pub(crate) fn of(completion: Completion) -> Outcome {
        Outcome {
            completion,
            device_bytes: 0,
            core_bytes: 0,
            stripes: 0,
            gathered: false,
            resumed_faults: 0,
            retries: 0,
            moved: 0,
            core_reason: None,
            queue_was_full: false,
            queue_lost: None,
            withdrawn: false,
            accepted: true,
        }
    }

    /// Of a mover that has one executor, which does all of an operation or fails.
    pub(crate) fn of_one_executor(completion: Completion) -> Outcome {
        let by_core = matches!(completion.executor, Executor::Cpu | Executor::ModelCpu);
        Outcome {
            stripes: u32::from(!by_core),
            core_reason: by_core.then_some(Reason::Chosen),
            ..Outcome::of(completion)
        }
    }

    /// The same with the bytes that `operation` has had done, where its mover has not counted them.
    pub(crate) fn with_bytes_of(mut self, operation: &Operation) -> Outcome {
        if self.device_bytes == 0 && self.core_bytes == 0 {
            let bytes = done_bytes(operation, &self.completion.record);
            match self.core_reason {
                Some(_) => self.core_bytes = bytes,
                None => self.device_bytes = bytes,
            }
        }
        self
    }

    /// What it gives, or how it failed.
    ///
    /// # Errors
    /// As [`Completion::output`]; [`Failure::QueueFull`]; [`Failure::QueueLost`]. What was
    /// [withdrawn](Outcome::withdrawn) is [`Failure::NotExecuted`].
    pub fn output(&self, operation: &Operation) -> Result<Output, Failure> {
        if self.completion.record.status == 0 && !self.withdrawn {
            if let Some(reason) = self.queue_lost {
                return Err(Failure::QueueLost { reason });
            }
            if self.queue_was_full {
                return Err(Failure::QueueFull);
            }
        }
        self.completion.output(operation)
    }

    /// Who has executed it, as one word: a device alone, the core alone, or both.
    pub fn executor(&self) -> Executor {
        self.completion.executor
    }
}

/// Bytes of an operation that its record says are done.
pub(crate) fn done_bytes(operation: &Operation, record: &CompletionRecord) -> u64 {
    match record.status() {
        status if status.is_success() => operation.len().into(),
        status if status.code() == Status::PAGE_FAULT.code() => record.bytes_completed.into(),
        _ => 0,
    }
}
