//! The tree as plain files.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use dray_idxd::driver::Errno;

use crate::tree::{Thing, Tree};

/// A device has no size, but a file must be as long as what is mapped of it: Python looks.
const NODE_BYTES: u64 = 4096;

/// The files, and what is in them.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    shown: BTreeMap<String, Shown>,
}

/// What there is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    thing: Thing,
    /// What an attribute holds: nothing where it cannot be read.
    bytes: Vec<u8>,
}

impl Files {
    /// Files below a directory in which there are none of ours yet.
    pub(crate) fn new(root: PathBuf) -> Files {
        Files {
            root,
            shown: BTreeMap::new(),
        }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Makes the files what the tree is now. A file stays the same one as long as it is there: programs
    /// have it open.
    ///
    /// # Errors
    /// What could not be written is tried again next time.
    pub(crate) fn bring_up_to_date(&mut self, tree: &Tree<'_>) -> io::Result<()> {
        let wanted = survey(tree);
        let gone: Vec<String> = self
            .shown
            .iter()
            .filter(|(path, shown)| {
                let same = wanted.get(*path).is_some_and(|w| w.thing == shown.thing);
                !same
            })
            .map(|(path, _)| path.clone())
            .collect();
        let mut failed = None;
        // What is below comes after.
        for path in gone.iter().rev() {
            failed = self.remove(path).err().or(failed);
        }
        for (path, wanted) in wanted {
            let file = self.file(&path);
            // A program that does not load our library may have removed it.
            let there = fs::symlink_metadata(&file).is_ok();
            let done = match self.shown.get(&path) {
                Some(shown) if there && *shown == wanted => continue,
                Some(shown) if there && shown.thing == wanted.thing => write(&file, &wanted.bytes),
                _ => create(&file, &wanted),
            };
            match done {
                Ok(()) => drop(self.shown.insert(path, wanted)),
                // The others are not to be stale because of one.
                Err(error) => failed = Some(error),
            }
        }
        self.outcome(failed)
    }

    /// The session's end removes the directory, and the last nodes may be closed after that: the files have no readers.
    fn outcome(&self, failed: Option<io::Error>) -> io::Result<()> {
        match failed {
            Some(error) if fs::symlink_metadata(&self.root).is_ok() => Err(error),
            _ => Ok(()),
        }
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        let file = self.file(path);
        let is_directory = self
            .shown
            .get(path)
            .is_some_and(|shown| shown.thing == Thing::Directory);
        let removed = match is_directory {
            true => fs::remove_dir_all(&file),
            false => fs::remove_file(&file),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.shown.remove(path);
        Ok(())
    }

    /// Makes one attribute's file what the tree shows now, whatever a program has made of it. What is
    /// none of the tree's is removed: files cannot be created in sysfs.
    ///
    /// # Errors
    /// What read(2) of the attribute fails with; `EACCES` for a file that is none of the tree's.
    pub(crate) fn refresh(&mut self, tree: &Tree<'_>, path: &str) -> Result<(), Errno> {
        let file = self.file(path);
        let Some(shown) = self.shown.get_mut(path) else {
            self.remove_foreign(path);
            return Err(Errno::EACCES);
        };
        if !matches!(shown.thing, Thing::Attribute(_)) {
            return Ok(());
        }
        let bytes = match tree.read(path) {
            Err(Errno::EACCES) => Vec::new(),
            read => read?,
        };
        let thing = shown.thing.clone();
        let wanted = Shown { thing, bytes };
        let made = match fs::read(&file) {
            Ok(there) if there == wanted.bytes => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => create(&file, &wanted),
            _ => write(&file, &wanted.bytes),
        };
        made.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))?;
        *shown = wanted;
        Ok(())
    }

    /// Removes a plain file from a directory of the tree. Links to what the machine has are none.
    fn remove_foreign(&self, path: &str) {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let parent = self.shown.get(parent);
        let is_ours = parent.is_some_and(|parent| parent.thing == Thing::Directory);
        let file = self.file(path);
        if is_ours && fs::symlink_metadata(&file).is_ok_and(|there| there.is_file()) {
            // Another thread may have been quicker.
            let _ = fs::remove_file(file);
        }
    }
}

/// All paths of the tree.
fn survey(tree: &Tree<'_>) -> BTreeMap<String, Shown> {
    let mut found = BTreeMap::new();
    let mut directories = vec![String::new()];
    let mut attributes = Vec::new();
    while let Some(directory) = directories.pop() {
        for (name, thing) in tree.list(&directory).unwrap_or_default() {
            let path = format!("{directory}/{name}");
            match thing {
                Thing::Directory => directories.push(path.clone()),
                Thing::Attribute(_) => attributes.push(path.clone()),
                Thing::Link(_) | Thing::Node => {}
            }
            let bytes = Vec::new();
            found.insert(path, Shown { thing, bytes });
        }
    }
    let read = tree.read_all(&attributes);
    for (path, bytes) in attributes.iter().zip(read) {
        if let (Some(shown), Ok(bytes)) = (found.get_mut(path), bytes) {
            shown.bytes = bytes;
        }
    }
    found
}

/// Makes a file in the place of whatever is there: of one that could not be written to its end.
fn create(file: &Path, wanted: &Shown) -> io::Result<()> {
    match make(file, wanted) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(file)?;
            make(file, wanted)
        }
        made => made,
    }
}

fn make(file: &Path, wanted: &Shown) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match &wanted.thing {
        // Of a directory that is there already, what is in it may be new.
        Thing::Directory => match DirBuilder::new().mode(0o755).create(file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        },
        Thing::Link(target) => symlink(target, file),
        Thing::Attribute(mode) => {
            let there = options.open(file)?;
            there.write_all_at(&wanted.bytes, 0)?;
            there.set_permissions(Permissions::from_mode(*mode))
        }
        Thing::Node => options.open(file)?.set_len(NODE_BYTES),
    }
}

/// Replaces the contents of a file. A concurrent reader may find the end of the former contents, and never an
/// empty file.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = open(file)?;
    there.write_all_at(bytes, 0)?;
    there.set_len(bytes.len() as u64)
}

/// Opens a file for writing, also one without write permission: its permissions are for programs.
fn open(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    match options.open(file) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        opened => return opened,
    }
    let permissions = fs::metadata(file)?.permissions();
    let writable = Permissions::from_mode(permissions.mode() | 0o200);
    fs::set_permissions(file, writable)?;
    let opened = options.open(file);
    fs::set_permissions(file, permissions)?;
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_in_directories_of_the_tree_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("sys/other")).unwrap();
        let mut files = Files::new(root.clone());
        let thing = Thing::Directory;
        let bytes = Vec::new();
        files
            .shown
            .insert("/sys".to_owned(), Shown { thing, bytes });
        symlink("/dev/null", root.join("sys/link")).unwrap();
        for name in [
            "root/.mark",
            "root/sys/new",
            "root/sys/other/new",
            "library",
        ] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        for path in [
            "/.mark",
            "/../library",
            "/sys/../../library",
            "/sys/other/new",
            "/sys/link",
            "/sys/new",
            "/sys/",
            "",
        ] {
            files.remove_foreign(path);
        }
        let left = ["root/.mark", "root/sys/other/new", "library"];
        assert!(left.iter().all(|name| directory.path().join(name).exists()));
        assert!(fs::symlink_metadata(root.join("sys/link")).is_ok());
        assert!(!root.join("sys/new").exists());
    }

    #[test]
    fn missing_files_are_no_error_after_the_session_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        let files = Files::new(root.clone());
        let failed = || Some(io::Error::from(io::ErrorKind::NotFound));
        assert!(files.outcome(failed()).is_ok());
        fs::create_dir(root).unwrap();
        assert!(files.outcome(failed()).is_err());
        assert!(files.outcome(None).is_ok());
    }

    #[test]
    fn a_partly_written_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("size");
        let wanted = Shown {
            thing: Thing::Attribute(0o444),
            bytes: b"16\n".to_vec(),
        };
        for left in ["1", "longer than it"] {
            fs::write(&file, left).unwrap();
            create(&file, &wanted).unwrap();
            assert_eq!(fs::read(&file).unwrap(), wanted.bytes);
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o444);
        }
        let link = Shown {
            thing: Thing::Link("elsewhere".into()),
            bytes: Vec::new(),
        };
        create(&file, &link).unwrap();
        assert_eq!(fs::read_link(&file).unwrap(), Path::new("elsewhere"));
    }
}
