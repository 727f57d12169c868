//! A socket in the file system that this process listens at, and removes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::VhostError;

/// A listening socket; its file is removed with it.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file.
    created: Option<(u64, u64)>,
}

impl Listener {
    /// Listens at a path. A socket without a listener is replaced; no other file is.
    ///
    /// # Errors
    /// Somebody listens there, it is another file, or it cannot be created.
    pub fn bind(path: &Path) -> Result<Listener, VhostError> {
        let error = |source| VhostError::Path {
            action: "listen at",
            path: path.to_owned(),
            source,
        };
        let listener = match UnixListener::bind(path) {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && !is_socket(path) => {
                Err(io::Error::other("it is there, and is no socket"))
            }
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
                std::fs::remove_file(path).map_err(error)?;
                UnixListener::bind(path)
            }
            result => result,
        }
        .map_err(error)?;
        listener.set_nonblocking(true).map_err(error)?;
        Ok(Listener {
            listener,
            path: path.to_owned(),
            created: identity(path),
        })
    }

    /// Takes a connection. Never blocks.
    ///
    /// # Errors
    /// There is none.
    pub fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another process may have put its own socket there meanwhile.
        if self.created.is_some() && identity(&self.path) == self.created {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Connects without waiting for room in the listener's backlog.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// Device and inode of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket())
}

/// Whether nobody listens at a socket.
fn is_stale(path: &Path) -> bool {
    connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}
