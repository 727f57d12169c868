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
    /// Slots (1 to 1048576), channels or stripes (1 to 1024), slots of a channel (1 to 4294967295) or slots times
    /// stripes (1 to 1048576) outside their limits.
    #[error("{asked} {what} are outside 1 to {most}")]
    Count {
        /// What is counted, as above.
        what: &'static str,
        /// How many were asked for.
        asked: usize,
        /// At most.
        most: usize,
    },
}
