//! A sysfs: this machine's, a session's or a captured one.

use std::io;

use dray_idxd::driver::{Driver, Errno};

/// Longest attribute that is read; sysfs has a page.
pub(crate) const MAX_BYTES: u64 = 64 << 10;

/// Reads and writes files below `/sys`; paths are relative to it.
pub trait Tree {
    /// What a file holds.
    ///
    /// # Errors
    /// As read(2), and for what is no attribute.
    fn read(&self, path: &str) -> Result<Vec<u8>, TreeError>;

    /// Writes a file at once.
    ///
    /// # Errors
    /// As write(2).
    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), TreeError>;

    /// Names in a directory.
    ///
    /// # Errors
    /// As readdir(3).
    fn names(&self, path: &str) -> Result<Vec<String>, TreeError>;
}

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct TreeError {
    /// The file.
    pub path: String,
    /// Why.
    pub source: io::Error,
}

impl TreeError {
    pub(crate) fn new(path: impl Into<String>, source: io::Error) -> TreeError {
        TreeError {
            path: path.into(),
            source,
        }
    }

    fn errno(path: &str, errno: Errno) -> TreeError {
        TreeError::new(path, io::Error::from_raw_os_error(errno.0))
    }

    /// Whether the file is not there.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the user may not.
    pub fn is_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }
}

impl Tree for Driver {
    fn read(&self, path: &str) -> Result<Vec<u8>, TreeError> {
        let result = Driver::read(self, path);
        result.map_err(|errno| TreeError::errno(path, errno))
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), TreeError> {
        let result = Driver::write(self, path, bytes);
        result.map_err(|errno| TreeError::errno(path, errno))
    }

    fn names(&self, path: &str) -> Result<Vec<String>, TreeError> {
        let entries = self.list(path);
        let entries = entries.map_err(|errno| TreeError::errno(path, errno))?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }
}

/// Path of an object's attribute.
pub(crate) fn attribute(object: &str, name: &str) -> String {
    format!("bus/dsa/devices/{object}/{name}")
}
