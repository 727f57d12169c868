//! The directory of a session: only its user may enter it, gone when the session is.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dray_wire::MARK;
use rustix::fs::{FlockOperation, StatVfsMountFlags, flock, statvfs};
use rustix::process::geteuid;

use crate::RunError;
use crate::clients::random;

/// How directories of sessions begin.
pub(super) const PREFIX: &str = "dray-redirect-";
/// Locked as long as the launcher or the first process lives: either removes the directory, and all
/// processes that could need it end with them.
const LOCK: &str = "lock";
/// The directory that stands for `/`.
const ROOT: &str = "root";
/// Where every user has a place. They are the system's, whatever owner they show: in a namespace
/// of users root can have another number.
const COMMON: [&str; 3] = ["/tmp", "/dev/shm", "/var/tmp"];
/// Longest name of a directory in which there is a place: programs have room for so much.
const LONGEST: usize = 128;

/// The directory.
#[derive(Debug)]
pub(crate) struct SessionDirectory {
    path: PathBuf,
    lock: File,
    owner: u32,
}

impl SessionDirectory {
    /// Makes one, where users have theirs, and removes those of launchers that were killed.
    ///
    /// # Errors
    /// There is no place for one, with what is wrong with each that was tried.
    pub(crate) fn new() -> Result<SessionDirectory, RunError> {
        let named = ["XDG_RUNTIME_DIR", "TMPDIR"].map(std::env::var_os);
        let named = named.into_iter().flatten().map(PathBuf::from);
        let common = COMMON.map(PathBuf::from);
        let mut tried = Vec::new();
        for parent in named.chain(common) {
            match SessionDirectory::within(&parent) {
                Ok(directory) => return Ok(directory),
                Err(error) => tried.push((parent, error)),
            }
        }
        Err(RunError::NoPlace { tried })
    }

    fn within(parent: &Path) -> io::Result<SessionDirectory> {
        if !parent.is_absolute() {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        // The preload library compares what the kernel calls a file with the name of the directory.
        let parent = &fs::canonicalize(parent)?;
        let bytes = parent.as_os_str().as_bytes();
        // LD_PRELOAD is parted at spaces and colons, and ours at bars.
        let parting = |byte: &u8| byte.is_ascii_whitespace() || b":|".contains(byte);
        if bytes.len() > LONGEST || bytes.iter().any(parting) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        safe(parent)?;
        // The loader maps the library from there.
        if statvfs(parent)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return Err(io::Error::other("is mounted noexec"));
        }
        clear(parent);
        loop {
            let path = parent.join(format!("{PREFIX}{:016x}", random()));
            DirBuilder::new().mode(0o700).create(&path)?;
            if let Some(lock) = hold(&path)? {
                let directory = SessionDirectory {
                    path,
                    lock,
                    owner: std::process::id(),
                };
                DirBuilder::new().mode(0o755).create(directory.root())?;
                directory.write(&directory.root().join(MARK), &[], 0o644)?;
                return Ok(directory);
            }
            // Another launcher took it for one that was left behind.
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that stands for `/`.
    pub(crate) fn root(&self) -> PathBuf {
        self.path.join(ROOT)
    }

    /// Writes a file that can be executed beside the tree.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        let path = self.path.join(name);
        let parent = path.parent().unwrap_or(&self.path);
        DirBuilder::new()
            .mode(0o755)
            .recursive(true)
            .create(parent)
            .and_then(|()| self.write(&path, bytes, 0o755))
            .map_err(|source| RunError::Files { path, source })
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        use io::Write;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
        file.write_all(bytes)
    }

    /// Removes it. In a forked process that is for it to say: its copy does nothing at its end.
    pub(crate) fn remove(&self) {
        // What cannot be removed is left to the next launcher.
        let _ = remove(&self.path);
    }
}

impl Drop for SessionDirectory {
    fn drop(&mut self) {
        if std::process::id() == self.owner {
            self.remove();
            let _ = flock(&self.lock, FlockOperation::Unlock);
        }
    }
}

/// Whether only the user and root can put something else in the place of what is made in
/// `parent`: programs load a library from there.
fn safe(parent: &Path) -> io::Result<()> {
    let refused = |text: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    let is_common = COMMON.iter().any(|common| parent == Path::new(common));
    for directory in parent
        .ancestors()
        .take(if is_common { 1 } else { usize::MAX })
    {
        let there = fs::metadata(directory)?;
        if !is_common && ![geteuid().as_raw(), 0].contains(&there.uid()) {
            return refused("belongs, or what it is in, to another user");
        }
        if there.mode() & 0o022 != 0 && there.mode() & libc::S_ISVTX == 0 {
            return refused("can be changed, or what it is in, by other users: it is not sticky");
        }
    }
    Ok(())
}

/// Locks a directory that was made just now; `None` if another launcher has removed it.
fn hold(path: &Path) -> io::Result<Option<File>> {
    let file = path.join(LOCK);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let lock = match options.open(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    flock(&lock, FlockOperation::LockExclusive)?;
    let ours = lock.metadata()?;
    match fs::metadata(&file) {
        Ok(there) if there.ino() == ours.ino() => Ok(Some(lock)),
        _ => Ok(None),
    }
}

/// Removes directories of sessions of which no process is left.
fn clear(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_one = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        let owned = |path: &Path| {
            let metadata = fs::symlink_metadata(path);
            metadata.is_ok_and(|m| m.is_dir() && m.uid() == geteuid().as_raw())
        };
        if is_one && owned(&path) {
            remove_left(&path);
        }
    }
}

/// Removes a directory and what is in it. The lock goes last: what stays is known by it.
fn remove(path: &Path) -> io::Result<()> {
    // The other of the two processes may be at it as well.
    let gone = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    // At once, for those who still write there: to them the session has ended.
    let _ = fs::rename(path.join(ROOT), path.join("removed"));
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            gone(match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            })?;
        }
    }
    gone(fs::remove_file(path.join(LOCK)))?;
    gone(fs::remove_dir(path))
}

fn remove_left(path: &Path) {
    let lock = match File::open(path.join(LOCK)) {
        Ok(lock) => lock,
        Err(_) => {
            // Made just now by another launcher, or as it was killed: it makes another one.
            let _ = fs::remove_dir(path);
            return;
        }
    };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        // What cannot be removed is tried again next time.
        let _ = remove(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_session_directory_is_private_and_removed_with_its_session() {
        let parent = tempfile::tempdir().unwrap();
        let directory = SessionDirectory::within(parent.path()).unwrap();
        let mode = fs::metadata(directory.path()).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o700);
        assert!(directory.root().join(MARK).exists());
        // One that is in use stays.
        let other = SessionDirectory::within(parent.path()).unwrap();
        assert!(directory.path().exists());
        drop((directory, other));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn directories_of_ended_sessions_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(format!("{PREFIX}1"));
        fs::create_dir_all(left.join("root/sys")).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        let empty = parent.path().join(format!("{PREFIX}2"));
        fs::create_dir(&empty).unwrap();
        let another = parent.path().join("dray-something");
        fs::create_dir(&another).unwrap();
        let directory = SessionDirectory::within(parent.path()).unwrap();
        assert!(!left.exists() && !empty.exists());
        assert!(another.exists() && directory.path().exists());
    }

    #[test]
    fn links_in_the_path_of_a_session_directory_are_resolved() {
        let parent = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(parent.path()).unwrap().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", parent.path().join("link")).unwrap();
        for name in ["link", "/real/", "real//../link/."] {
            let named = PathBuf::from(format!("{}/{name}", parent.path().display()));
            let directory = SessionDirectory::within(&named).unwrap();
            assert_eq!(directory.path().parent(), Some(&*real), "{name}");
        }
        // What counts is the name in the end.
        std::os::unix::fs::symlink("real", parent.path().join("a b")).unwrap();
        assert!(SessionDirectory::within(&parent.path().join("a b")).is_ok());
    }

    #[test]
    fn a_failed_removal_is_tried_again_and_nobody_finds_the_files_meanwhile() {
        use rustix::fs::IFlags;
        let parent = tempfile::tempdir().unwrap();
        let directory = SessionDirectory::within(parent.path()).unwrap();
        let (path, root) = (directory.path().to_owned(), directory.root());
        let within = root.join("within");
        fs::create_dir(&within).unwrap();
        fs::write(within.join("kept"), "").unwrap();
        // Neither permissions nor, for root, anything but this keeps a file.
        let kept = File::open(&within).unwrap();
        let flags = |flags| rustix::fs::ioctl_setflags(&kept, flags);
        kept.set_permissions(fs::Permissions::from_mode(0o500))
            .unwrap();
        if geteuid().is_root() && flags(IFlags::IMMUTABLE).is_err() {
            dray_skip::skip("this file system has no immutable directories");
            return;
        }
        drop(directory);
        let found = path.join(LOCK).exists() && !root.exists();
        if geteuid().is_root() {
            flags(IFlags::empty()).unwrap();
        }
        assert!(found);
        kept.set_permissions(fs::Permissions::from_mode(0o700))
            .unwrap();
        clear(parent.path());
        assert!(!path.exists());
    }

    #[test]
    fn directories_that_other_users_can_write_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let within = parent.path().join("within");
        fs::create_dir(&within).unwrap();
        let allowed = |mode: u32| {
            fs::set_permissions(parent.path(), fs::Permissions::from_mode(mode)).unwrap();
            [parent.path(), &within].map(|path| match SessionDirectory::within(path) {
                Ok(_) => true,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                    false
                }
            })
        };
        for (mode, answer) in [(0o700, true), (0o755, true), (0o775, false), (0o702, false)] {
            assert_eq!(allowed(mode), [answer; 2], "{mode:o}");
            assert_eq!(allowed(mode | 0o1000), [true; 2], "{mode:o}");
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(parent.path(), Some(65534), None).unwrap();
            assert_eq!(allowed(0o1700), [false; 2]);
        }
    }

    #[test]
    fn paths_with_list_separators_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["a b", "a:b", "a|b"] {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            let refused = SessionDirectory::within(&path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidFilename);
        }
        assert!(SessionDirectory::within(Path::new("tmp")).is_err());
    }
}
