//! What can go wrong.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::protocol::Request;

/// Errors of this crate.
#[derive(Debug, Error)]
pub enum VhostError {
    /// A message that is not of the protocol; the connection cannot go on.
    #[error("the front end sent a header that is not vhost-user version 1 (flags {flags:#x})")]
    Version {
        /// Flags of the header.
        flags: u32,
    },
    /// A payload longer than any request has.
    #[error("request {request} announces a payload of {size} bytes; the longest is {limit}")]
    PayloadSize {
        /// Id of the request.
        request: u32,
        /// Bytes announced.
        size: u32,
        /// Bytes allowed.
        limit: u32,
    },
    /// A request whose payload or file descriptors are not what the protocol says.
    #[error("{request:?}: {reason}")]
    Malformed {
        /// The request.
        request: Request,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A request for a queue that the port does not have.
    #[error("queue {index} does not exist: the port has {count}")]
    NoQueue {
        /// Index asked for.
        index: u32,
        /// Queues of the port.
        count: usize,
    },
    /// A request that cannot be granted in this state.
    #[error("{request:?} is refused: {reason}")]
    Refused {
        /// The request.
        request: Request,
        /// Why.
        reason: &'static str,
    },
    /// A request with an id that is not known.
    #[error("request {id} is not known")]
    UnknownRequest {
        /// The id.
        id: u32,
    },
    /// A memory region that cannot be used.
    #[error("the memory region at guest address {guest:#x}, {size} bytes: {reason}")]
    Region {
        /// Guest physical address.
        guest: u64,
        /// Bytes.
        size: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A log of written pages that cannot be used.
    #[error("the log of {bytes} bytes at offset {offset:#x} of its file: {reason}")]
    Log {
        /// Bytes of the log.
        bytes: u64,
        /// Offset in the file.
        offset: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The kernel refused to map a region.
    #[error("cannot map the memory region at guest address {guest:#x}, {size} bytes")]
    Map {
        /// Guest physical address.
        guest: u64,
        /// Bytes.
        size: u64,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A ring that cannot be used.
    #[error("the ring of queue {index}: {reason}")]
    Ring {
        /// Index of the queue.
        index: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Copies of a queue did not end within the deadline.
    #[error("{in_flight} packets of the queues did not end within the deadline of a drain")]
    Drain {
        /// Packets whose copies are under way.
        in_flight: usize,
    },
    /// Input or output on the control socket.
    #[error("the control socket")]
    Socket(#[from] io::Error),
    /// A socket that cannot be listened on or connected to.
    #[error("cannot {action} {path:?}")]
    Path {
        /// What was tried.
        action: &'static str,
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Descriptors were lost on their way through the socket.
    #[error("file descriptors of a message were lost (MSG_CTRUNC)")]
    DescriptorsLost,
    /// A network interface that cannot be opened.
    #[error("cannot open the interface {name:?}: {action}")]
    Interface {
        /// Name of the interface.
        name: String,
        /// The step that failed.
        action: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A mover that cannot be opened.
    #[error("cannot open the {executor} mover")]
    Mover {
        /// Which one.
        executor: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A thread cannot be bound to a core, or not be started.
    #[error("cannot run a thread on core {core}")]
    Core {
        /// Number of the core.
        core: usize,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Guests cannot be notified.
    #[error(
        "cannot set up the asynchronous I/O that notifies guests (io_setup; see fs.aio-max-nr)"
    )]
    Notifier(#[source] io::Error),
    /// The guard against truncated memory files cannot be set up.
    #[error("cannot install the handler of SIGBUS")]
    Guard(#[source] io::Error),
}
