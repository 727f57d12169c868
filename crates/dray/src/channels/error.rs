//! Why movers cannot be used together.

use thiserror::Error;

use crate::Executor;

/// Why movers cannot be used together as asked.
///
/// ```
/// use dray::CpuMover;
/// use dray::channels::{Channels, ChannelsError, ChannelsOptions, Require};
///
/// let options = ChannelsOptions { require: Require::Device, ..ChannelsOptions::default() };
/// let none = Channels::<CpuMover>::new([], options);
/// assert_eq!(none.err(), Some(ChannelsError::NoChannel));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChannelsError {
    /// There is no mover, and a device is required.
    #[error("a device is required, and no channel to one was given")]
    NoChannel,
    /// Hardware is required, and a channel leads elsewhere.
    #[error("hardware is required, and channel {channel} is executed by {executor:?}")]
    NotHardware {
        /// Which of the movers given.
        channel: usize,
        /// Who executes what it is given; `None`: it does not say.
        executor: Option<Executor>,
    },
    /// A device is required, and a policy would let the core take its place.
    #[error("a device is required, and the {policy} policy leaves operations to the core")]
    CoreExcluded {
        /// Which policy.
        policy: &'static str,
    },
    /// Blocking on page faults was asked for, and a queue does not allow it.
    #[error("the queue of channel {channel} does not block on page faults")]
    NoBlockOnFault {
        /// Which of the movers given.
        channel: usize,
    },
    /// More slots, or channels, than can be counted.
    #[error("1 to {most} {what} are possible, not {asked}")]
    Count {
        /// Slots or channels.
        what: &'static str,
        /// How many.
        asked: usize,
        /// At most.
        most: usize,
    },
}
