//! Directories of sessions, where all users have temporary files: a random name that nobody can take first.
//!
//! Others find them by the owner. Every user may enter one, for a program of the session that becomes another user loads
//! the library from there; the session's file is its owner's alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How their names begin; the number of the command and a random one follow.
const PREFIX: &str = "dray-tier.";

/// A directory, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Place(pub(super) PathBuf);

impl Place {
    pub(super) fn new() -> io::Result<Place> {
        let parent = std::env::temp_dir();
        loop {
            let name = format!("{PREFIX}{}.{:016x}", std::process::id(), random()?);
            let path = parent.join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let place = Place(path);
                    // Whatever the umask is.
                    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o711))?;
                    return Ok(place);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Those of this user: the number of the command, and the directory.
pub(super) fn all() -> Vec<(u32, PathBuf)> {
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    within(&std::env::temp_dir(), user)
}

fn within(parent: &Path, user: u32) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let (number, _) = name.to_str()?.strip_prefix(PREFIX)?.split_once('.')?;
            let metadata = fs::symlink_metadata(entry.path()).ok()?;
            let ours = metadata.is_dir() && metadata.uid() == user;
            ours.then_some((number.parse().ok()?, entry.path()))
        })
        .collect()
}

fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: it fills so many bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match got {
        8 => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_the_user_are_found() {
        let parent = tempfile::tempdir().expect("a directory");
        let at = |name: &str| parent.path().join(name);
        fs::create_dir(at("dray-tier.77.0123456789abcdef")).expect("a directory");
        fs::create_dir(at("dray-tier.x.0")).expect("a directory");
        fs::create_dir(at("dray-tier-0")).expect("a directory");
        fs::write(at("dray-tier.78.0"), "").expect("a file");
        std::os::unix::fs::symlink("/", at("dray-tier.79.0")).expect("a link");
        let user = fs::metadata(parent.path()).expect("it is there").uid();
        let expected = vec![(77, at("dray-tier.77.0123456789abcdef"))];
        assert_eq!(within(parent.path(), user), expected);
        assert_eq!(within(parent.path(), user + 1), vec![]);
    }
}
