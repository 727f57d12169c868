//! What a program asks for by the socket where there is no file system that would ask for it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{MAGIC, VERSION, WireError, greets, read};

/// Longest path in a request.
pub const MAX_PATH: usize = 256;
/// Most bytes that one request writes: an attribute takes fewer, a node that many descriptors.
pub const MAX_DATA: usize = 16 << 10;

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// An attribute is about to be read: its file is to hold what the driver shows. The answer has
    /// what read(2) would fail with.
    Refresh {
        /// Path of the attribute.
        path: &'a [u8],
    },
    /// write(2) to an attribute. The answer has how much was taken.
    Store {
        /// Path of the attribute.
        path: &'a [u8],
        /// What is written.
        bytes: &'a [u8],
    },
    /// open(2) of a work queue's node. The open file comes with the answer; its name is a
    /// [`NodeName`](crate::NodeName).
    Open {
        /// Path of the node.
        path: &'a [u8],
        /// Flags of open(2).
        flags: i32,
    },
    /// write(2) to an open node. The answer has how much was taken.
    Submit {
        /// As the node's name says.
        cookie: u64,
        /// Descriptors.
        bytes: &'a [u8],
    },
}

const REFRESH: u32 = 1;
const STORE: u32 = 2;
const OPEN: u32 = 3;
const SUBMIT: u32 = 4;

/// What a request begins with; its path follows, and then its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RequestHead {
    magic: u64,
    version: u32,
    kind: u32,
    cookie: u64,
    flags: i32,
    path_bytes: u32,
    data_bytes: u32,
    reserved: [u8; 4],
}

// Longer than an `Attach`: so they are distinguished.
const _: () = assert!(size_of::<RequestHead>() == 40);

impl<'a> Request<'a> {
    /// Longest message of this kind.
    pub const MAX_BYTES: usize = size_of::<RequestHead>() + MAX_PATH + MAX_DATA;

    /// The three parts of the message: head, path, bytes. Path and bytes are not longer than
    /// [`MAX_PATH`] and [`MAX_DATA`], or it is not read.
    pub fn parts(self) -> (RequestHead, &'a [u8], &'a [u8]) {
        let none: &[u8] = &[];
        let (kind, cookie, flags, path, bytes) = match self {
            Request::Refresh { path } => (REFRESH, 0, 0, path, none),
            Request::Store { path, bytes } => (STORE, 0, 0, path, bytes),
            Request::Open { path, flags } => (OPEN, 0, flags, path, none),
            Request::Submit { cookie, bytes } => (SUBMIT, cookie, 0, none, bytes),
        };
        let head = RequestHead {
            magic: MAGIC,
            version: VERSION,
            kind,
            cookie,
            flags,
            path_bytes: path.len() as u32,
            data_bytes: bytes.len() as u32,
            reserved: [0; 4],
        };
        (head, path, bytes)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is no such message.
    pub fn from_message(message: &'a [u8]) -> Result<Request<'a>, WireError> {
        let wrong = |expected| WireError::Length {
            expected,
            got: message.len(),
        };
        let (head, rest) =
            RequestHead::read_from_prefix(message).map_err(|_| wrong(size_of::<RequestHead>()))?;
        greets(head.magic, head.version)?;
        let (path_bytes, data_bytes) = (head.path_bytes as usize, head.data_bytes as usize);
        if path_bytes > MAX_PATH || data_bytes > MAX_DATA || rest.len() != path_bytes + data_bytes {
            return Err(wrong(size_of::<RequestHead>().saturating_add(path_bytes)));
        }
        let (path, bytes) = rest.split_at(path_bytes);
        match head.kind {
            REFRESH => Ok(Request::Refresh { path }),
            STORE => Ok(Request::Store { path, bytes }),
            OPEN => Ok(Request::Open {
                path,
                flags: head.flags,
            }),
            SUBMIT => Ok(Request::Submit {
                cookie: head.cookie,
                bytes,
            }),
            kind => Err(WireError::Kind { kind }),
        }
    }
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reply {
    magic: u64,
    version: u32,
    /// What the call fails with, positive as in `errno`; 0 if it does not.
    pub errno: i32,
    /// How many bytes were taken.
    pub bytes: u64,
}

const _: () = assert!(size_of::<Reply>() == 24);

impl Reply {
    /// It is done, and so many bytes were taken.
    pub const fn done(bytes: u64) -> Reply {
        Reply {
            magic: MAGIC,
            version: VERSION,
            errno: 0,
            bytes,
        }
    }

    /// It fails.
    pub const fn refused(errno: i32) -> Reply {
        Reply {
            errno,
            ..Reply::done(0)
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is no such message.
    pub fn from_message(bytes: &[u8]) -> Result<Reply, WireError> {
        let reply = read::<Reply>(bytes)?;
        greets(reply.magic, reply.version)?;
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn message(request: Request<'_>) -> Vec<u8> {
        let (head, path, bytes) = request.parts();
        [head.as_bytes(), path, bytes].concat()
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_written(
            path in prop::collection::vec(any::<u8>(), 0..40),
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            cookie: u64,
            flags: i32,
        ) {
            let (path, bytes) = (&path[..], &bytes[..]);
            let requests = [
                Request::Refresh { path },
                Request::Store { path, bytes },
                Request::Open { path, flags },
                Request::Submit { cookie, bytes },
            ];
            for request in requests {
                let message = message(request);
                prop_assert_eq!(Request::from_message(&message), Ok(request));
                prop_assert!(crate::Attach::from_message(&message).is_err());
            }
        }

        #[test]
        fn lengths_that_are_not_there_are_refused(path: u32, data: u32, rest in 0..100usize) {
            let (mut head, _, _) = Request::Refresh { path: &[] }.parts();
            (head.path_bytes, head.data_bytes) = (path, data);
            let message = [head.as_bytes(), &std::vec![0; rest]].concat();
            let fits = u64::from(path) + u64::from(data) == rest as u64;
            prop_assert_eq!(Request::from_message(&message).is_ok(), fits);
        }
    }

    #[test]
    fn replies_and_unknown_kinds() {
        assert_eq!(
            Reply::from_message(Reply::done(7).as_bytes()),
            Ok(Reply::done(7))
        );
        assert_eq!(Reply::refused(22).errno, 22);
        let (mut head, _, _) = Request::Refresh { path: &[] }.parts();
        head.kind = 9;
        let refused = Request::from_message(head.as_bytes());
        assert_eq!(refused, Err(WireError::Kind { kind: 9 }));
    }
}
