//! Where a command writes a result.
//!
//! One rule for every output option: a regular file is written beside and renamed, so that readers
//! find the old file or the new one; a device, a pipe or a socket is opened and written; symbolic
//! links are followed. [`Output::prepare`] notices before the work begins what cannot be written.

mod input;
mod output;
mod replace;
mod target;
mod words;

use std::io;
use std::path::{Path, PathBuf};

pub use input::{read_bytes, read_text};
pub use output::Output;
pub use words::{counted, rough};

/// A place that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct OutputError {
    /// The path as it was given.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Writes a result of which the place was not prepared.
///
/// # Errors
/// As [`Output::prepare`] and [`Output::write`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    Output::prepare(path)?.write(bytes)
}
