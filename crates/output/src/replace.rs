//! A regular file that is written beside and renamed.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Names that are tried for the file beside.
const MAX_TRIES: usize = 100;

/// A temporary file, removed unless it was renamed.
struct Temporary {
    path: PathBuf,
    kept: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // The error that led here is on its way.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a file can be written: an existing one itself, and its directory.
///
/// # Errors
/// Permissions, a file system that is read-only.
pub(crate) fn check(path: &Path, there: Option<&Metadata>) -> io::Result<()> {
    if there.is_some() {
        // Without truncation: it must not change before there is a result.
        OpenOptions::new().write(true).open(path)?;
    }
    // Made and removed at once: permissions alone say too little, as on /proc or for root.
    match temporary(path) {
        // A file of one's own in a directory of others is written in place.
        Err(_) if there.is_some() => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Writes beside `path`, then renames. Where the directory does not let it, as with a mount point or a
/// directory that only others may change, an existing file is written in place.
///
/// # Errors
/// What the system says; the old file is as it was, unless it had to be written in place.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = match fs::metadata(path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match beside(path, bytes, there.as_ref()) {
        Err(error) if there.is_some() && is_forbidden_to_replace(&error) => in_place(path, bytes),
        result => result,
    }
}

fn is_forbidden_to_replace(error: &io::Error) -> bool {
    let refusals = [Errno::ACCESS, Errno::PERM, Errno::BUSY, Errno::ROFS];
    let code = error.raw_os_error();
    refusals
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

fn in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).custom_flags(no_link);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn beside(path: &Path, bytes: &[u8], there: Option<&Metadata>) -> io::Result<()> {
    let (mut file, mut temporary) = temporary(path)?;
    if let Some(there) = there {
        // The new file is whose the old one was, as far as this process may give it away.
        let _ = fchown(&file, Some(there.uid()), Some(there.gid()));
        file.set_permissions(Permissions::from_mode(there.mode() & 0o777))?;
    }
    file.write_all(bytes)?;
    // Without it, a power cut after the rename can leave an empty file under the right name.
    file.sync_all()?;
    fs::rename(&temporary.path, path)?;
    temporary.kept = true;
    Ok(())
}

/// Makes a file beside `path`; never one that is there, nor one that a link leads to.
fn temporary(path: &Path) -> io::Result<(File, Temporary)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default();
    for _ in 0..MAX_TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}.{number}.tmp", std::process::id()));
        let beside = path.with_file_name(beside);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                let temporary = Temporary {
                    path: beside,
                    kept: false,
                };
                return Ok((file?, temporary));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
