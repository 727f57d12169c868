//! Files that are written whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}; check that its directory exists, is writable and has room", path.display())]
pub struct WriteError {
    /// The file that was asked for.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// A temporary file, removed unless it was renamed.
struct Temporary {
    path: PathBuf,
    kept: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // There is no one left to tell; the error that led here is on its way.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes beside `path`, then renames: a reader finds the old file or the new one, never half.
///
/// Errors: the directory is missing, not writable or full, or `path` is a directory.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write(path, bytes).map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path names no file",
        ));
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.{number}.tmp", std::process::id()));
    let beside = path.with_file_name(beside);

    // Truncates what a killed process of the same number may have left behind.
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&beside)?;
    let mut temporary = Temporary {
        path: beside,
        kept: false,
    };
    file.write_all(bytes)?;
    // Without it, a power cut after the rename can leave an empty file under the right name.
    file.sync_all()?;
    fs::rename(&temporary.path, path)?;
    temporary.kept = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn replaces_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fig3.svg");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["fig3.svg"]);
    }

    #[test]
    fn a_failed_rename_removes_the_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        fs::create_dir(&path).unwrap();
        let error = write_atomic(&path, b"bytes").unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(names(directory.path()), ["taken"]);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = write_atomic(&directory.path().join("no/fig3.svg"), b"").unwrap_err();
        assert!(error.to_string().contains("no/fig3.svg"), "{error}");
        assert!(write_atomic(Path::new("/"), b"").is_err());
    }
}
