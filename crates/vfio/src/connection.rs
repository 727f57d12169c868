//! Whole messages from a stream socket, with the file descriptors that come along.

use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send,
};
use zerocopy::FromBytes;

use crate::VfioError;
use crate::protocol::{HEADER_BYTES, Header, MAX_MESSAGE_BYTES, MAX_MESSAGE_FDS};
use crate::server::Stopper;

/// How long a client may fall silent in the middle of a message, or take no reply.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A message as it came.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) header: Header,
    /// What follows the header.
    pub(crate) payload: Vec<u8>,
    pub(crate) files: Files,
}

/// The files of a message.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) fds: Vec<OwnedFd>,
    /// Not all have arrived: this process may open no more.
    pub(crate) lost: bool,
}

/// A client's end of the socket.
pub(crate) struct Connection<'a> {
    stream: UnixStream,
    stopper: &'a Stopper,
    /// Where others ask to connect, until that is reported.
    listener: Cell<Option<&'a UnixListener>>,
    others: &'a dyn Fn(),
}

/// How far reading has come.
enum Read {
    Whole,
    /// The client left, or the server is to stop, after so many bytes.
    Ended(usize),
}

impl<'a> Connection<'a> {
    /// `others` is called once if another client asks to connect meanwhile.
    pub(crate) fn new(
        stream: UnixStream,
        stopper: &'a Stopper,
        listener: &'a UnixListener,
        others: &'a dyn Fn(),
    ) -> Connection<'a> {
        Connection {
            stream,
            stopper,
            listener: Cell::new(Some(listener)),
            others,
        }
    }

    /// The next message; `None` once the client has left or the server is to stop.
    ///
    /// # Errors
    /// A message that is cut, or whose length cannot be.
    pub(crate) fn receive(&self) -> Result<Option<Message>, VfioError> {
        let mut files = Files::default();
        let mut header = [0; HEADER_BYTES];
        match self.read(&mut header, &mut files, None)? {
            Read::Whole => {}
            Read::Ended(0) => return Ok(None),
            Read::Ended(received) => return Err(cut(received, HEADER_BYTES)),
        }
        let Ok(header) = Header::read_from_bytes(&header) else {
            return Ok(None);
        };
        let size = header.size as usize;
        if !(HEADER_BYTES..=MAX_MESSAGE_BYTES).contains(&size) {
            return Err(VfioError::MessageSize {
                size: header.size,
                least: HEADER_BYTES,
                most: MAX_MESSAGE_BYTES,
            });
        }
        let mut payload = vec![0; size - HEADER_BYTES];
        match self.read(
            &mut payload,
            &mut files,
            Some(Instant::now() + MESSAGE_TIMEOUT),
        )? {
            Read::Whole => Ok(Some(Message {
                header,
                payload,
                files,
            })),
            Read::Ended(received) => Err(cut(HEADER_BYTES + received, size)),
        }
    }

    /// Fills `bytes`. The first byte may take its time, unless there is a `deadline`.
    fn read(
        &self,
        bytes: &mut [u8],
        files: &mut Files,
        mut deadline: Option<Instant>,
    ) -> Result<Read, VfioError> {
        let (mut received, size) = (0, bytes.len());
        while received < size {
            if !self
                .wait(PollFlags::IN, deadline)
                .map_err(|source| VfioError::Cut {
                    received,
                    size,
                    source: Some(source),
                })?
            {
                return Ok(Read::Ended(received));
            }
            match self.receive_some(&mut bytes[received..], files) {
                Ok(0) => return Ok(Read::Ended(received)),
                Ok(n) => received += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A client that is gone with a reply unread has left, too.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Read::Ended(received));
                }
                Err(source) => {
                    let source = Some(source);
                    return Err(VfioError::Cut {
                        received,
                        size,
                        source,
                    });
                }
            }
            deadline.get_or_insert(Instant::now() + MESSAGE_TIMEOUT);
        }
        Ok(Read::Whole)
    }

    fn receive_some(&self, into: &mut [u8], files: &mut Files) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_MESSAGE_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let message = recvmsg(
            &self.stream,
            &mut [IoSliceMut::new(into)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for ancillary in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = ancillary {
                // More than one message may have: those are closed at once.
                files.fds.extend(received);
                files.fds.truncate(MAX_MESSAGE_FDS);
            }
        }
        // A message with more than there may be has as many as there may be, which is for the request to judge.
        let cut = message.flags.contains(ReturnFlags::CTRUNC);
        files.lost |= cut && files.fds.len() < MAX_MESSAGE_FDS;
        Ok(message.bytes)
    }

    /// Sends a reply as a whole.
    ///
    /// # Errors
    /// The client is gone, or takes nothing.
    pub(crate) fn send(&self, mut bytes: &[u8]) -> Result<(), VfioError> {
        let deadline = Instant::now() + MESSAGE_TIMEOUT;
        while !bytes.is_empty() {
            if !self
                .wait(PollFlags::OUT, Some(deadline))
                .map_err(VfioError::Reply)?
            {
                return Err(VfioError::Reply(io::ErrorKind::Interrupted.into()));
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.stream, bytes, flags) {
                Ok(n) => bytes = &bytes[n..],
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(VfioError::Reply(error.into())),
            }
        }
        Ok(())
    }

    /// Waits until the stream is ready. False if the server is to stop.
    fn wait(&self, flags: PollFlags, deadline: Option<Instant>) -> io::Result<bool> {
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = vec![
                PollFd::new(&self.stream, flags),
                PollFd::from_borrowed_fd(self.stopper.as_fd(), PollFlags::IN),
            ];
            let listener = self.listener.get();
            fds.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if fds.get(2).is_some_and(|other| !other.revents().is_empty()) {
                self.listener.set(None);
                (self.others)();
                continue;
            }
            return Ok(fds[1].revents().is_empty());
        }
    }
}

fn cut(received: usize, size: usize) -> VfioError {
    VfioError::Cut {
        received,
        size,
        source: None,
    }
}
