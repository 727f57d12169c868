//! A driver's files as a plain directory.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use dray_idxd::driver::{Driver, EntryKind};

use crate::directory::Directory;
use crate::tree::{Tree, TreeError};

/// Writes all files of a driver below a directory that does not exist yet, or is empty. All of them or
/// none: what was made is removed again when one cannot be written.
///
/// # Errors
/// The directory has something in it, or cannot be written.
pub fn render(driver: &Driver, root: &Path) -> Result<(), TreeError> {
    let failed = |source| TreeError::new(root.display().to_string(), source);
    let was_there = root.exists();
    fs::create_dir_all(root).map_err(failed)?;
    if fs::read_dir(root).map_err(failed)?.next().is_some() {
        return Err(failed(io::ErrorKind::DirectoryNotEmpty.into()));
    }
    let written = write_directory(driver, "", root);
    if written.is_err() {
        // The first error is what the user must know.
        let _ = clear(root, was_there);
    }
    written
}

/// Removes what was written below a directory that was empty, and the directory itself if it was not
/// there.
fn clear(root: &Path, was_there: bool) -> io::Result<()> {
    if !was_there {
        return fs::remove_dir_all(root);
    }
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

fn write_directory(driver: &Driver, path: &str, to: &Path) -> Result<(), TreeError> {
    let entries = driver.list(path).unwrap_or_default();
    for entry in entries {
        let below = format!("{path}/{}", entry.name);
        let file = to.join(&entry.name);
        let failed = |source| TreeError::new(file.display().to_string(), source);
        match entry.kind {
            EntryKind::Directory => {
                fs::create_dir(&file).map_err(failed)?;
                write_directory(driver, &below, &file)?;
            }
            EntryKind::Link(target) => symlink(target, &file).map_err(failed)?,
            EntryKind::File(_) => match driver.read(&below) {
                Ok(bytes) => fs::write(&file, bytes).map_err(failed)?,
                // What can only be written is there, and empty.
                Err(_) if below.ends_with("bind") => fs::write(&file, "").map_err(failed)?,
                // What cannot be read now is not there.
                Err(_) => {}
            },
            EntryKind::Node { .. } => {}
        }
    }
    Ok(())
}

/// Brings a plain directory from one state of a driver to another: attributes that have other
/// values, and the links of what was bound or unbound. When a write fails, those before it are taken
/// back.
///
/// # Errors
/// A file cannot be written.
pub fn refresh(tree: &mut Directory, before: &Driver, after: &Driver) -> Result<(), TreeError> {
    let mut changes = Vec::new();
    compare(before, after, "devices", &mut changes);
    compare(before, after, "bus/dsa/drivers", &mut changes);
    for (done, change) in changes.iter().enumerate() {
        if let Err(error) = change.make(tree, true) {
            for change in changes[..done].iter().rev() {
                // The first error is what the user must know.
                let _ = change.make(tree, false);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// A file or a link that is not as it was; `None` where it is not there.
struct FileChange {
    path: String,
    is_link: bool,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl FileChange {
    fn make(&self, tree: &mut Directory, forward: bool) -> Result<(), TreeError> {
        let want = if forward { &self.to } else { &self.from };
        let (parent, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let file = tree.resolve(parent)?.join(name);
        let failed = |source| TreeError::new(file.display().to_string(), source);
        match want {
            Some(bytes) if self.is_link => {
                let target = String::from_utf8_lossy(bytes).into_owned();
                symlink(target, &file).map_err(failed)
            }
            Some(bytes) if file.exists() => tree.write(&self.path, bytes),
            Some(bytes) => fs::write(&file, bytes).map_err(failed),
            None => match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            },
        }
    }
}

fn compare(before: &Driver, after: &Driver, path: &str, changes: &mut Vec<FileChange>) {
    let list = |driver: &Driver| driver.list(path).unwrap_or_default();
    let (old, new) = (list(before), list(after));
    let mut names: Vec<&str> = old.iter().chain(&new).map(|e| e.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let below = format!("{path}/{name}");
        let kind = |entries: &[dray_idxd::driver::Entry]| {
            let entry = entries.iter().find(|entry| entry.name == name);
            entry.map(|entry| entry.kind.clone())
        };
        let bytes = |driver: &Driver, kind: Option<EntryKind>| match kind? {
            EntryKind::Link(target) => Some(target.into_bytes()),
            EntryKind::File(_) => driver.read(&below).ok(),
            EntryKind::Directory | EntryKind::Node { .. } => None,
        };
        let kinds = (kind(&old), kind(&new));
        if kinds.1 == Some(EntryKind::Directory) {
            compare(before, after, &below, changes);
            continue;
        }
        let is_link = |kind: &Option<EntryKind>| matches!(kind, Some(EntryKind::Link(_)));
        let is_link = is_link(&kinds.0) || is_link(&kinds.1);
        let (from, to) = (bytes(before, kinds.0), bytes(after, kinds.1));
        if from != to {
            changes.push(FileChange {
                path: below,
                is_link,
                from,
                to,
            });
        }
    }
}
