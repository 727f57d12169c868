//! Frames through a socket. Never blocks.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};

use crate::VhostError;
use crate::protocol::{Decoder, Frame};

/// File descriptors that one read can bring.
const DESCRIPTORS: usize = 8;
/// Answers that a front end has not read, in bytes; more and it is cut off.
const MAX_UNSENT: usize = 64 << 10;

/// What a read has brought.
#[derive(Debug)]
pub enum Received {
    /// A whole message.
    Frame(Frame),
    /// Nothing more at the moment.
    Nothing,
    /// The front end has closed the connection.
    Closed,
}

/// A connection to a front end.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    decoder: Decoder,
    unsent: Vec<u8>,
}

impl Connection {
    /// Over a connected socket.
    ///
    /// # Errors
    /// The socket cannot be made non-blocking.
    pub fn new(stream: UnixStream) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream,
            decoder: Decoder::new(),
            unsent: Vec::new(),
        })
    }

    /// Reads on, until a frame is whole.
    ///
    /// # Errors
    /// The stream is not the protocol, descriptors were lost, or the socket failed.
    pub fn receive(&mut self) -> Result<Received, VhostError> {
        loop {
            let mut bytes = [0; 4096];
            let wanted = self.decoder.wanted().min(bytes.len());
            let (count, descriptors) = match self.read(&mut bytes[..wanted]) {
                Ok(read) => read,
                Err(VhostError::Socket(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Received::Nothing);
                }
                Err(error) => return Err(error),
            };
            if count == 0 {
                return Ok(Received::Closed);
            }
            if let Some(frame) = self.decoder.feed(&bytes[..count], descriptors)? {
                return Ok(Received::Frame(frame));
            }
        }
    }

    fn read(&self, into: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), VhostError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(into)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message =
            recvmsg(&self.stream, &mut slices, &mut control, flags).map_err(io::Error::from)?;
        let mut descriptors = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                descriptors.extend(rights);
            }
        }
        if message.flags.contains(ReturnFlags::CTRUNC) {
            return Err(VhostError::DescriptorsLost);
        }
        Ok((message.bytes, descriptors))
    }

    /// Sends an answer, now or as soon as the socket takes it.
    ///
    /// # Errors
    /// The socket failed, or the front end does not read.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), VhostError> {
        if self.unsent.len() + bytes.len() > MAX_UNSENT {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        self.unsent.extend_from_slice(bytes);
        self.flush()
    }

    /// Sends what the socket did not take before.
    ///
    /// # Errors
    /// The socket failed.
    pub fn flush(&mut self) -> Result<(), VhostError> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_end_that_reads_no_answer_is_cut_off() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let mut connection = Connection::new(ours).expect("a socket");
        // More than any socket takes.
        let refused = (0..100_000).find_map(|_| connection.send(&[7; 1024]).err());
        assert!(
            matches!(refused, Some(VhostError::Socket(_))),
            "{refused:?}"
        );
        assert!(connection.unsent.len() <= MAX_UNSENT);
    }
}
