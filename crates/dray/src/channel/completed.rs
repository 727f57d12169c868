//! Operations that are complete.

use super::Buffers;
use crate::{Executor, Failure, Outcome, Output, Ticket};

/// An operation that is complete, with its buffers.
///
/// ```
/// use dray::{Channel, Reason, CpuMover, Executor, Output, Request, WaitPolicy};
///
/// let mut channel = Channel::new(CpuMover::new(1));
/// channel.push(Request::copy(vec![7; 64], vec![0; 64]).with_user_data(3)).map_err(|r| r.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// assert_eq!((done.user_data, done.result, done.executor), (3, Ok(Output::Done), Executor::Cpu));
/// assert_eq!(done.outcome.core_reason, Some(Reason::Chosen));
/// assert_eq!(done.outcome.core_bytes, 64);
/// assert_eq!(done.buffers.destination, Some(vec![7; 64]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Completed<B> {
    /// What [`Channel`](super::Channel) gave for it.
    pub ticket: Ticket,
    /// The caller's number; 0 if none was given.
    pub user_data: u64,
    /// What it gives, or how it failed.
    pub result: Result<Output, Failure>,
    /// Who executed it.
    pub executor: Executor,
    /// Who did what of it and why: bytes of device and core, retries, resumed faults. Its completion is
    /// that of the mover, with the caller's number.
    pub outcome: Outcome,
    /// The buffers, which are the caller's again.
    pub buffers: Buffers<B>,
}
