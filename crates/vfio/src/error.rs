//! What ends a server or a session with a client.

use std::io;
use std::path::PathBuf;

use dray_realtime::StartError;
use thiserror::Error;

/// Why a server could not be started, or a session with a client ended.
#[derive(Debug, Error)]
pub enum VfioError {
    /// A server answers on this socket already.
    #[error("{path}: another server answers on this socket")]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// What is there is no socket.
    #[error("{path} exists and is no socket")]
    NoSocket {
        /// What is there.
        path: PathBuf,
    },
    /// The socket could not be made.
    #[error("{path}: the socket could not be made")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The device could not be started.
    #[error("the device could not be started")]
    Start(#[from] StartError),
    /// The system refused what every server needs.
    #[error("{what}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// A message is longer than any that there is, or shorter than its header: where the next one
    /// begins is not known.
    #[error("a message of {size} bytes: messages have {least} to {most}")]
    MessageSize {
        /// What its header says.
        size: u32,
        /// Bytes of a header.
        least: usize,
        /// Longest message.
        most: usize,
    },
    /// The client left, or fell silent, in the middle of a message.
    #[error("the client sent {received} of {size} bytes of a message")]
    Cut {
        /// Bytes that came.
        received: usize,
        /// Bytes that its header says, or those of a header.
        size: usize,
        /// What the system said, if it was not the end of the stream.
        source: Option<io::Error>,
    },
    /// A reply could not be sent.
    #[error("the client takes no reply")]
    Reply(#[source] io::Error),
}
