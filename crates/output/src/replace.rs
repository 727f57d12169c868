//! A regular file that is written beside and renamed.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, fchown};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use crate::place::Place;

/// Names that are tried for the file beside.
const MAX_TRIES: usize = 100;

/// A temporary file, removed unless it was renamed.
struct Temporary<'a> {
    place: &'a Place,
    name: OsString,
    kept: bool,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // The error that led here is on its way.
            let _ = self.place.remove_beside(&self.name);
        }
    }
}

/// Whether a file can be written: an existing one itself, and its directory.
///
/// # Errors
/// Permissions, a file system that is read-only.
pub(crate) fn check(place: &Place, exists: bool) -> io::Result<()> {
    if exists {
        // Without truncation: it must not change before there is a result.
        place.open(OFlags::WRONLY)?;
    }
    // Made and removed at once: permissions alone say too little, as on /proc or for root.
    match temporary(place) {
        // A file of one's own in a directory of others is written in place.
        Err(_) if exists => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Writes beside the place, then renames. Where the directory does not let it, as with a mount point or a
/// directory that only others may change, an existing file is written in place.
///
/// # Errors
/// What the system says; the old file is as it was, unless it had to be written in place.
pub(crate) fn replace(place: &Place, bytes: &[u8]) -> io::Result<()> {
    let there = match place.stat() {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match beside(place, bytes, there.as_ref()) {
        Err(error) if there.is_some() && is_forbidden_to_replace(&error) => in_place(place, bytes),
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

fn in_place(place: &Place, bytes: &[u8]) -> io::Result<()> {
    let mut file = place.open(OFlags::WRONLY | OFlags::TRUNC)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn beside(place: &Place, bytes: &[u8], there: Option<&Stat>) -> io::Result<()> {
    let (mut file, mut temporary) = temporary(place)?;
    if let Some(there) = there {
        // The new file is whose the old one was, as far as this process may give it away.
        let _ = fchown(&file, Some(there.st_uid), Some(there.st_gid));
        file.set_permissions(Permissions::from_mode(there.st_mode & 0o777))?;
    }
    file.write_all(bytes)?;
    // Without it, a power cut after the rename can leave an empty file under the right name.
    file.sync_all()?;
    place.take(&temporary.name)?;
    temporary.kept = true;
    Ok(())
}

/// Makes a file beside the place; never one that is there, nor one that a link leads to.
fn temporary(place: &Place) -> io::Result<(File, Temporary<'_>)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for _ in 0..MAX_TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut name = OsString::from(".");
        name.push(place.name());
        name.push(format!(".{}.{number}.tmp", std::process::id()));
        match place.open_beside(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                let temporary = Temporary {
                    place,
                    name,
                    kept: false,
                };
                return Ok((file?, temporary));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
