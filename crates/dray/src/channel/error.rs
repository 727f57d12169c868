//! Why operations are not taken.

use thiserror::Error;

use super::Buffers;
use crate::{BatchError, Full};

/// Why an operation was not taken. The buffers come back in [`Rejected`].
///
/// ```
/// use dray::{Channel, ChannelError, CpuMover};
///
/// let mut channel = Channel::new(CpuMover::new(1));
/// let rejected = channel.copy(vec![1; 3], vec![0; 4]).unwrap_err();
/// assert_eq!(rejected.error, ChannelError::Lengths { first: 3, second: 4 });
/// ```
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
    /// Buffers of one operation have lengths that do not go together.
    #[error("buffers of {first} and {second} bytes for one operation")]
    Lengths {
        /// Bytes of the first, or that the second should have.
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
    /// A buffer that is not of whole blocks.
    #[error("{len} bytes are not whole blocks of {block} bytes")]
    Blocks {
        /// Bytes of the buffer.
        len: usize,
        /// Bytes of a block.
        block: usize,
    },
    /// Too many operations for a batch.
    #[error(transparent)]
    Batch(BatchError),
    /// The driver that polls has ended.
    #[error("the driver of the channel has ended")]
    Closed,
    /// The driver has ended before the operation: its buffers stay with the device, and do not come back.
    #[error(
        "the driver of the channel has ended before the operation, whose buffers stay with the device"
    )]
    InFlight,
}

/// An operation that was not taken, and its buffers.
///
/// ```
/// use dray::{Channel, CpuMover};
///
/// let mut channel = Channel::new(CpuMover::new(1));
/// let rejected = channel.fill(7, vec![]).unwrap_err();
/// assert_eq!(rejected.error.to_string(), "an operation on 0 bytes: 1 to 4294967295 are possible");
/// assert_eq!(rejected.buffers.destination, Some(vec![]));
/// ```
#[derive(Debug)]
pub struct Rejected<B> {
    /// Why.
    pub error: ChannelError,
    /// What was given.
    pub buffers: Buffers<B>,
}
