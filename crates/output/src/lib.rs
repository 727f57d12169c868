//! Where a command writes a result.
//!
//! One rule for every output option: a regular file is written beside and renamed, so that readers
//! find the old file or the new one; a device, a pipe or a socket is opened and written; symbolic
//! links of this user and of root are followed, those of others are an error. [`Output::prepare`] notices before the work begins what cannot be written.

mod input;
mod output;
mod place;
mod replace;
mod shown;
mod target;
mod words;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

pub use input::{read_bytes, read_text};
pub use output::Output;
pub use shown::shown;
pub use words::{counted, quoted, rough};

/// A place that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct OutputError {
    /// The path as it was given.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Opens a file of a program's own that is read and then appended to, or makes it. A link is an error.
///
/// # Errors
/// What the system says.
pub fn growing(path: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    options.custom_flags(no_link).open(path)
}

/// Writes a result of which the place was not prepared.
///
/// # Errors
/// As [`Output::prepare`] and [`Output::write`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    Output::prepare(path)?.write(bytes)
}

/// As the standard library's, but a standard error that nobody reads any more is no panic: `2>&1 | head` is no reason to
/// leave a device, or its programs, behind.
#[macro_export]
macro_rules! eprintln {
    () => {
        $crate::eprintln!("")
    };
    ($($argument:tt)*) => {{
        let _ = ::std::io::Write::write_fmt(
            &mut ::std::io::stderr(),
            ::std::format_args!("{}\n", ::std::format_args!($($argument)*)),
        );
    }};
}
