//! A place for a result, found writable before there is one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::place::{Place, kind};
use crate::target::{Target, follow};
use crate::{OutputError, replace};

/// How long a pipe may be without a reader: one that is started in the same line of a shell.
const READER_COMES: Duration = Duration::from_secs(2);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(5);

/// A place for a result.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// A device, a pipe, a socket or an open file of this process: opened now, written as it is.
    Stream(File),
    /// A regular file, or none yet.
    Regular { place: Place, exists: bool },
}

impl Output {
    /// Finds out what a path leads to and whether it can be written; opens it unless it is a regular
    /// file. What is there stays as it is, and no file is left.
    ///
    /// # Errors
    /// The directory does not exist or cannot be written, `path` is a directory, a pipe that is not
    /// opened for reading within two seconds, a socket without a listener.
    pub fn prepare(path: &Path) -> Result<Output, OutputError> {
        let sink = sink(path).map_err(|source| OutputError {
            path: path.to_owned(),
            source,
        })?;
        Ok(Output {
            path: path.to_owned(),
            sink,
        })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a device, a pipe, a socket or an open file is written, and no file replaced.
    pub fn is_stream(&self) -> bool {
        matches!(self.sink, Sink::Stream(_))
    }

    /// Whether there was a regular file when it was prepared.
    pub fn replaces(&self) -> bool {
        matches!(self.sink, Sink::Regular { exists: true, .. })
    }

    /// Writes all of a result: a regular file becomes it as a whole, a stream takes it after what it
    /// took before.
    ///
    /// # Errors
    /// What the system says, such as a full disk: a regular file is as it was then.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OutputError> {
        match &self.sink {
            Sink::Stream(file) => {
                let mut file = file;
                file.write_all(bytes)
            }
            Sink::Regular { place, .. } => replace::replace(place, bytes),
        }
        .map_err(|source| self.failed(source))
    }

    /// The open file, for a result that grows while others read it: a regular file is made or emptied.
    ///
    /// # Errors
    /// What the system says.
    pub fn into_file(self) -> Result<File, OutputError> {
        match self.sink {
            Sink::Stream(file) => Ok(file),
            Sink::Regular { ref place, .. } => place
                .open(OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)
                .map_err(|source| self.failed(source)),
        }
    }

    /// The open file, to be mapped while it grows: a new one, in the place of a regular file. That is not emptied, for a
    /// program may have it mapped, and would end by a signal.
    ///
    /// # Errors
    /// It is a device, a pipe, a socket or an open file of this process; what the system says.
    pub fn into_mapped(self) -> Result<File, OutputError> {
        match self.sink {
            Sink::Stream(_) => {
                let message = "it is no regular file, and programs map it";
                Err(self.failed(io::Error::new(io::ErrorKind::InvalidInput, message)))
            }
            Sink::Regular { ref place, exists } => {
                let removed = match exists {
                    true => place.remove_beside(place.name()),
                    false => Ok(()),
                };
                removed
                    .and_then(|()| place.open(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL))
                    .map_err(|source| self.failed(source))
            }
        }
    }

    fn failed(&self, source: io::Error) -> OutputError {
        OutputError {
            path: self.path.clone(),
            source,
        }
    }
}

fn sink(path: &Path) -> io::Result<Sink> {
    let (place, path) = match follow(path)? {
        Target::Descriptor(number) => return descriptor(number).map(Sink::Stream),
        Target::Foreign(path) => {
            let file = OpenOptions::new().append(true).open(path)?;
            return Ok(Sink::Stream(file));
        }
        Target::Place { place, path } => (place, path),
    };
    let exists = match place.stat() {
        Ok(there) => match kind(&there) {
            FileType::RegularFile => true,
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            FileType::Socket => {
                let socket = UnixStream::connect(&path)?;
                return Ok(Sink::Stream(OwnedFd::from(socket).into()));
            }
            _ => return open(&place).map(Sink::Stream),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    replace::check(&place, exists)?;
    Ok(Sink::Regular { place, exists })
}

/// An open file of this process, with its place in the file.
fn descriptor(number: i32) -> io::Result<File> {
    if number < 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: it is borrowed for one call, which reports a number that no file has.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let file = borrowed.try_clone_to_owned()?;
    if fcntl_getfl(&file)? & OFlags::ACCMODE == OFlags::RDONLY {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is open for reading only",
        ));
    }
    Ok(file.into())
}

/// Opens a device or a pipe. A pipe without a reader is waited for, and not for ever.
fn open(place: &Place) -> io::Result<File> {
    let since = Instant::now();
    let file = loop {
        match place.open(OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
            Err(error)
                if error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
                    && kind(&place.stat()?) == FileType::Fifo =>
            {
                if since.elapsed() > READER_COMES {
                    return Err(io::Error::new(
                        io::ErrorKind::NotConnected,
                        "the pipe has no reader",
                    ));
                }
                thread::sleep(LOOK);
            }
            opened => break opened?,
        }
    };
    // What cannot be taken at once is waited for.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}
