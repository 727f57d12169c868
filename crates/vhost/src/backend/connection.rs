//! Frames through a socket. Never blocks.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};

use crate::VhostError;
use crate::protocol::{Decoder, Frame, is_file};

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
    /// Files that messages brought, once more: see [`Connection::take_files`].
    files: Vec<OwnedFd>,
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
            files: Vec::new(),
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

    /// The files that messages have brought since the last call. Whatever became of a message, these are the last to be
    /// closed: where a front end has closed its own, the kernel then frees all of the file.
    pub fn take_files(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.files)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), VhostError> {
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
        for descriptor in descriptors.iter().filter(|d| is_file(d)) {
            self.files.push(descriptor.try_clone()?);
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
    use std::io::IoSlice;

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fs::{MemfdFlags, fstat, memfd_create};
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;
    use crate::protocol::Request;

    /// Who drops a message does not free the memory that came with it: the connection still has it open.
    #[test]
    fn files_of_messages_stay_open_until_they_are_taken() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let mut connection = Connection::new(ours).expect("a socket");
        let memory = memfd_create(c"message", MemfdFlags::CLOEXEC).expect("a memfd");
        let event = eventfd(0, EventfdFlags::CLOEXEC).expect("an event");
        let identity = |file: &OwnedFd| fstat(file).expect("it is open").st_ino;
        let expected = identity(&memory);
        let (header, rights) = (
            [Request::SetVringKick as u32, 1, 8, 0, 0].map(u32::to_ne_bytes),
            [memory.as_fd(), event.as_fd()],
        );
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&rights)));
        let bytes = [IoSlice::new(header.as_flattened())];
        sendmsg(&theirs, &bytes, &mut control, SendFlags::empty()).expect("it takes it");
        drop(memory);
        let received = connection.receive();
        assert!(
            matches!(&received, Ok(Received::Frame(frame)) if frame.descriptors.len() == 2),
            "{received:?}"
        );
        drop(received);
        let files: Vec<u64> = connection.take_files().iter().map(identity).collect();
        assert_eq!(files, [expected], "and no event");
        assert!(connection.take_files().is_empty());
    }

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
