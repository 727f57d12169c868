//! A socket, and the clients that come to it one after the other.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::connection::Connection;
use crate::counts::SharedCounts;
use crate::protocol::{Errno, Refusal};
use crate::{Counts, Door, Options, VfioError};

/// Ends a server, from any thread or from a signal handler's.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<OwnedFd>);

impl Stopper {
    fn new() -> Result<Stopper, VfioError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        match eventfd(0, flags) {
            Ok(fd) => Ok(Stopper(Arc::new(fd))),
            Err(error) => Err(VfioError::System {
                what: "no eventfd",
                source: error.into(),
            }),
        }
    }

    /// The server stops as soon as it has answered the message that it is at.
    pub fn stop(&self) {
        // It is full only if this has been said before.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Stopper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A vfio-user server on a unix socket.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    stopper: Stopper,
    counts: SharedCounts,
}

/// What the server says as it goes.
#[derive(Debug)]
pub enum Report<'a> {
    /// A client has connected.
    Connected,
    /// Another client asks to connect, and waits until this one has left.
    Waiting,
    /// It has left; the error says why, if it did not simply end.
    Left(Option<&'a VfioError>),
}

impl Server {
    /// Makes the socket. One that a server has left behind is replaced. `log` gets one line for each
    /// thing that clients ask for and the function does not model.
    ///
    /// # Errors
    /// Another server answers there, what is there is no socket, or it cannot be made.
    pub fn bind(path: &Path, log: impl FnMut(&str) + Send + 'static) -> Result<Server, VfioError> {
        let bind = |source| VfioError::Bind {
            path: path.into(),
            source,
        };
        match path.symlink_metadata() {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(VfioError::NoSocket { path: path.into() });
            }
            Ok(_) => match UnixStream::connect(path) {
                Ok(_) => return Err(VfioError::InUse { path: path.into() }),
                Err(_) => std::fs::remove_file(path).map_err(bind)?,
            },
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        Ok(Server {
            listener,
            path: path.into(),
            stopper: Stopper::new()?,
            counts: SharedCounts::new(log),
        })
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// What went through, of all clients.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Serves clients until it is stopped, or until the first has left if it is to serve `once`. Each
    /// finds a device as after power-on.
    ///
    /// # Errors
    /// A device that cannot be started, a socket that fails. What clients do wrong is reported, not an
    /// error.
    pub fn serve(
        &self,
        options: &Options,
        once: bool,
        report: impl FnMut(Report<'_>),
    ) -> Result<(), VfioError> {
        let report = RefCell::new(report);
        let report = |what: Report<'_>| (report.borrow_mut())(what);
        let waiting = || report(Report::Waiting);
        while let Some(stream) = self.accept()? {
            report(Report::Connected);
            let mut door = Door::with_counts(options, self.counts.clone())?;
            let connection = Connection::new(stream, &self.stopper, &self.listener, &waiting);
            let ended = session(&connection, &mut door);
            drop(door);
            report(Report::Left(ended.as_ref().err()));
            if once {
                break;
            }
        }
        Ok(())
    }

    /// The next client; `None` once the server is to stop.
    fn accept(&self) -> Result<Option<UnixStream>, VfioError> {
        let system = |source: io::Error| VfioError::System {
            what: "no client can be accepted",
            source,
        };
        loop {
            let mut fds = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::from_borrowed_fd(self.stopper.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(system(error.into())),
                Ok(_) => {}
            }
            if !fds[1].revents().is_empty() {
                return Ok(None);
            }
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(system)?;
                    return Ok(Some(stream));
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::Interrupted
                            | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => return Err(system(error)),
            }
        }
    }
}

/// Without its file a region of memory could be mapped, and the device would fault at each access.
const FILES_LOST: Refusal = Refusal::new(
    Errno::TooManyFiles,
    "a message with more files than this process may open (ulimit -n)",
);

/// Answers a client until it leaves or the server is to stop.
fn session(connection: &Connection<'_>, door: &mut Door) -> Result<(), VfioError> {
    while let Some(message) = connection.receive()? {
        let reply = match message.files.lost {
            true => door.refuse(&message.header, FILES_LOST),
            false => door.handle(&message.header, &message.payload, message.files.fds),
        };
        if let Some(reply) = reply {
            connection.send(&reply)?;
        }
    }
    Ok(())
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it has been removed already, no harm is done.
        let _ = std::fs::remove_file(&self.path);
    }
}
