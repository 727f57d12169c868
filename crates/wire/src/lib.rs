//! What a program under `dray run` and the process that owns the device say to each other.
//!
//! 1. A work queue's node is asked who it is: [`CLIENT`], an ioctl that answers with a [`Node`].
//! 2. The Unix socket that [`SOCKET_VARIABLE`] names takes an [`Attach`] with the node's cookie, and
//!    answers with an [`Attached`]; the memory of the submission rings comes with it as a file
//!    descriptor (`SCM_RIGHTS`), unless it is a refusal.
//! 3. The connection stays open as long as the portal is mapped; [`Unmapped`] is the end of that. Where the page
//!    is a mapping of the node's file, a connection that ends without it says nothing: programs close
//!    descriptors that they do not know, and the last close of the file ends the mapping. Elsewhere the
//!    connection's end is that of the mapping. If the other side ends it, the device is gone.
//!
//! The same socket takes a [`Supervise`] of a thread that is about to execute a program which cannot
//! load the preload library, and answers with a [`Supervised`].
//!
//! Where there is no file system to be asked (`dray run --redirect`), the tree is a plain directory, and
//! a [`Request`] takes the place of open, read and write; each has a [`Reply`], and its connection
//! ends with that. An open node is a socket then, whose name says the cookie.
//!
//! The socket is of type `SOCK_SEQPACKET`: one message each. Numbers are in the machine's byte
//! order, since nothing leaves it. Each message begins with [`MAGIC`] and [`VERSION`].

#![no_std]

use zerocopy::FromBytes;

mod attach;
mod attached;
mod error;
mod node;
mod node_name;
mod redirection;
mod request;
mod sanitize;
mod session;
mod socket;
mod supervise;
mod unmapped;

pub use attach::Attach;
pub use attached::{Attached, Flags};
pub use error::WireError;
pub use node::{CLIENT, Node};
pub use node_name::NodeName;
pub use redirection::{MARK, REDIRECT_VARIABLE, Redirection, SEPARATOR};
pub use request::{MAX_DATA, MAX_PATH, Reply, Request, RequestHead};
pub use sanitize::{SANITIZE_VARIABLE, THREAD};
pub use session::STATE_DIRECTORY;
pub use socket::{SOCKET_VARIABLE, SocketName};
pub use supervise::{Hold, NONE, Reason, SUPERVISE_VARIABLE, Supervise, Supervised};
pub use unmapped::Unmapped;

/// First eight bytes of every message: `drayrun`, and a byte that no text has.
pub const MAGIC: u64 = u64::from_le_bytes(*b"drayrun\xd5");

/// Both sides are of one build or do not talk.
pub const VERSION: u32 = 2;

/// The bytes of a message, not yet looked at.
fn read<T: FromBytes>(bytes: &[u8]) -> Result<T, WireError> {
    T::read_from_bytes(bytes).map_err(|_| WireError::Length {
        expected: size_of::<T>(),
        got: bytes.len(),
    })
}

/// Whether a message begins as it must.
fn greets(magic: u64, version: u32) -> Result<(), WireError> {
    match (magic == MAGIC, version == VERSION) {
        (true, true) => Ok(()),
        (true, false) => Err(WireError::Version { version }),
        (false, _) => Err(WireError::NotOurs),
    }
}
