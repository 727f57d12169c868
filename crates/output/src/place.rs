//! A name in a directory that is open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, renameat, statat, unlinkat};

/// A name in a directory that is open: whoever may rename directories above it changes nothing any more.
#[derive(Debug)]
pub(crate) struct Place {
    directory: OwnedFd,
    name: OsString,
}

impl Place {
    /// A name in a directory whose path is absolute and has no links.
    ///
    /// # Errors
    /// The directory does not exist, or a link has taken the place of a part of its path.
    pub(crate) fn new(directory: &Path, name: &OsStr) -> io::Result<Place> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(CWD, "/", flags, Mode::empty())?;
        for part in directory.components() {
            if let Component::Normal(part) = part {
                at = openat(&at, part, flags, Mode::empty())?;
            }
        }
        Ok(Place {
            directory: at,
            name: name.to_owned(),
        })
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// What is there.
    ///
    /// # Errors
    /// Nothing is.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(statat(
            &self.directory,
            &self.name,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Opens it. A link is an error: one that is there now was made since the path was followed.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(&self, flags: OFlags) -> io::Result<File> {
        self.open_beside(&self.name, flags)
    }

    /// Opens another name of the directory. A file that it makes has the mode that the process's umask leaves.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open_beside(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.directory, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Another name of the directory becomes this one.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn take(&self, name: &OsStr) -> io::Result<()> {
        Ok(renameat(
            &self.directory,
            name,
            &self.directory,
            &self.name,
        )?)
    }

    /// Removes another name of the directory.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn remove_beside(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.directory, name, AtFlags::empty())?)
    }
}

/// What kind of file it is.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_that_becomes_a_link_after_it_was_opened_leads_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        for name in ["mine", "theirs"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let place = Place::new(&root.join("mine"), OsStr::new("result")).unwrap();
        fs::rename(root.join("mine"), root.join("moved")).unwrap();
        symlink("theirs", root.join("mine")).unwrap();
        drop(place.open(OFlags::WRONLY | OFlags::CREATE).unwrap());
        assert!(root.join("moved/result").exists());
        assert!(!root.join("theirs/result").exists());
        assert!(Place::new(&root.join("mine"), OsStr::new("result")).is_err());
        symlink("other", root.join("moved/link")).unwrap();
        let link = Place::new(&root.join("moved"), OsStr::new("link")).unwrap();
        assert!(link.open(OFlags::WRONLY | OFlags::CREATE).is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
