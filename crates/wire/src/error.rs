//! Bytes that are no message.

use crate::VERSION;

/// Why bytes are not the message that was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Too few or too many.
    #[error("a message of {got} bytes where {expected} were expected")]
    Length {
        /// Bytes that the message has.
        expected: usize,
        /// Bytes that came.
        got: usize,
    },
    /// They ask for something that is not known.
    #[error("a request of the unknown kind {kind}")]
    Kind {
        /// Which.
        kind: u32,
    },
    /// They do not begin as messages of dray do.
    #[error("this is not dray run's")]
    NotOurs,
    /// The other side is of another build.
    #[error("the other side speaks version {version}, this one {VERSION}")]
    Version {
        /// What the other side speaks.
        version: u32,
    },
}
