//! A machine as it was when it was captured.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::archive::{self, ArchiveError, INDEX, ROOT};
use super::{FileKind, Machine, Reading, Stat, Unreadable};

/// Version of the form of captures.
pub(super) const FORMAT: u32 = 1;
/// Longest accepted file of a capture.
pub(super) const MAX_MEMBER_BYTES: u64 = 8 << 20;
/// Most files that a capture has; one of a machine with 16 devices has some two thousand.
pub(super) const MAX_MEMBERS: usize = 20_000;
/// How deep a directory of a capture is looked into; sysfs paths have some ten parts.
const MAX_DEPTH: usize = 32;
/// How many captures may stand upon each other.
const MAX_BASES: usize = 4;

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapturedError {
    /// The file or directory cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Its name.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The archive is not one, or a hostile one.
    #[error("{path} is no capture of `dray doctor`")]
    Archive {
        /// Its name.
        path: PathBuf,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// The directory holds something else than files and directories.
    #[error("{path} is neither a file nor a directory; links of the machine stand in {INDEX}")]
    FileKind {
        /// Its name.
        path: PathBuf,
    },
    /// The directory is no capture, or one of another version.
    #[error("{path}: {reason}")]
    Directory {
        /// Its name.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// What of a capture is not the content of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    pub(super) format: u32,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made_by: Option<String>,
    /// The directory beside this one that this one differs from; not in archives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<String>,
    /// What the base has and this machine has not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) removed: Vec<String>,
    /// What was looked for in vain; if it is not given, all that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) missing: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) directories: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) links: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) nodes: BTreeMap<String, Stat>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) unreadable: BTreeMap<String, Unreadable>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            format: FORMAT,
            made_by: None,
            base: None,
            removed: Vec::new(),
            missing: None,
            directories: BTreeMap::new(),
            links: BTreeMap::new(),
            nodes: BTreeMap::new(),
            unreadable: BTreeMap::new(),
        }
    }
}

/// A machine as it was captured, in memory: nothing of an archive is ever written to disk.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Captured {
    pub(super) index: Index,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Captured {
    /// Reads an archive, or a directory with the same content.
    ///
    /// # Errors
    /// [`CapturedError`]
    pub fn open(path: &Path) -> Result<Self, CapturedError> {
        let read = |source| CapturedError::Read {
            path: path.to_owned(),
            source,
        };
        if fs::metadata(path).map_err(read)?.is_dir() {
            return Self::directory(path, MAX_BASES);
        }
        let file = fs::File::open(path).map_err(read)?;
        archive::unpack(file).map_err(|source| CapturedError::Archive {
            path: path.to_owned(),
            source,
        })
    }

    /// The archive of this capture: the same bytes for the same content.
    ///
    /// # Errors
    /// [`ArchiveError`] when a file is longer than a capture may hold.
    pub fn pack(&self) -> Result<Vec<u8>, ArchiveError> {
        archive::pack(self)
    }

    /// What it holds, sorted: every path and how many bytes, links and nodes with none.
    pub fn contents(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        let files = self.files.iter().map(|(p, b)| (p.as_str(), Some(b.len())));
        let links = self.index.links.keys().map(|p| (p.as_str(), None));
        let nodes = self.index.nodes.keys().map(|p| (p.as_str(), None));
        let mut all: Vec<_> = files.chain(links).chain(nodes).collect();
        all.sort_unstable_by_key(|&(path, bytes)| (path, bytes.is_none()));
        all.dedup_by_key(|(path, _)| *path);
        all.into_iter()
    }

    fn directory(path: &Path, bases: usize) -> Result<Self, CapturedError> {
        let wrong = |reason: String| CapturedError::Directory {
            path: path.to_owned(),
            reason,
        };
        let index = path.join(INDEX);
        let index = match fs::read(&index) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(wrong(format!("there is no {INDEX} in it")));
            }
            Err(source) => {
                return Err(CapturedError::Read {
                    path: index,
                    source,
                });
            }
        };
        let index = archive::index(&index).map_err(|error| wrong(error.to_string()))?;
        let mut captured = Self {
            index,
            files: BTreeMap::new(),
        };
        let root = path.join(ROOT);
        if root.exists() {
            captured.gather(&root, "", MAX_DEPTH)?;
        }
        let Some(base) = captured.index.base.take() else {
            return Ok(captured);
        };
        if bases == 0 {
            return Err(wrong(format!("more than {MAX_BASES} bases")));
        }
        if base.is_empty() || base.contains(['/', '\\']) || base.starts_with('.') {
            return Err(wrong(format!("base {base:?} is no name of a directory")));
        }
        let base = Self::directory(&path.with_file_name(&base), bases - 1)?;
        Ok(captured.over(base))
    }

    /// Reads a directory below the root; `prefix` is its path on the machine.
    fn gather(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), CapturedError> {
        let read = |path: &Path| {
            let path = path.to_owned();
            move |source| CapturedError::Read { path, source }
        };
        for entry in fs::read_dir(dir).map_err(read(dir))? {
            let path = entry.map_err(read(dir))?.path();
            let metadata = fs::symlink_metadata(&path).map_err(read(&path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = match prefix.is_empty() && name.starts_with('@') {
                true => name.into_owned(),
                false => format!("{prefix}/{name}"),
            };
            if metadata.is_dir() && depth > 0 {
                self.gather(&path, &name, depth - 1)?;
            } else if !metadata.is_file() {
                return Err(CapturedError::FileKind { path });
            } else if metadata.len() > MAX_MEMBER_BYTES || self.files.len() == MAX_MEMBERS {
                return Err(CapturedError::Directory {
                    path,
                    reason: "more than a capture holds".to_owned(),
                });
            } else {
                let bytes = fs::read(&path).map_err(read(&path))?;
                self.files.insert(name, bytes);
            }
        }
        Ok(())
    }

    /// This capture where it differs from `base`, and the base elsewhere.
    fn over(self, mut base: Self) -> Self {
        let removed = &self.index.removed;
        let gone = |path: &String| {
            removed.iter().any(|prefix| {
                path.strip_prefix(prefix.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        base.files.retain(|path, _| !gone(path));
        base.index.links.retain(|path, _| !gone(path));
        base.index.nodes.retain(|path, _| !gone(path));
        base.index.unreadable.retain(|path, _| !gone(path));
        base.index.directories.retain(|path, _| !gone(path));
        base.files.extend(self.files);
        base.index.links.extend(self.index.links);
        base.index.nodes.extend(self.index.nodes);
        base.index.directories.extend(self.index.directories);
        for (path, reason) in self.index.unreadable {
            base.files.remove(&path);
            base.index.unreadable.insert(path, reason);
        }
        base
    }

    /// Why a path has no answer.
    fn absent(&self, path: &str) -> Unreadable {
        if let Some(reason) = self.index.unreadable.get(path) {
            return reason.clone();
        }
        match &self.index.missing {
            Some(missing) if !missing.iter().any(|known| known == path) => Unreadable::NotCaptured,
            _ => Unreadable::Missing,
        }
    }

    /// The names below a directory, from the paths that are known.
    fn names(&self, path: &str) -> Vec<String> {
        let index = &self.index;
        let paths = self.files.keys().chain(index.links.keys());
        let paths = paths
            .chain(index.nodes.keys())
            .chain(index.unreadable.keys());
        let below = paths.filter_map(|known| known.strip_prefix(path)?.strip_prefix('/'));
        let names = below.filter_map(|rest| rest.split('/').next());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Machine for Captured {
    fn read(&self, path: &str) -> Reading<Vec<u8>> {
        let bytes = self.files.get(path);
        bytes.cloned().ok_or_else(|| self.absent(path))
    }

    fn list(&self, path: &str) -> Reading<Vec<String>> {
        if let Some(names) = self.index.directories.get(path) {
            return Ok(names.clone());
        }
        if self.index.missing.is_some() || self.index.unreadable.contains_key(path) {
            return Err(self.absent(path));
        }
        let names = self.names(path);
        match names.is_empty() {
            true => Err(Unreadable::Missing),
            false => Ok(names),
        }
    }

    fn link(&self, path: &str) -> Reading<String> {
        let target = self.index.links.get(path);
        target.cloned().ok_or_else(|| self.absent(path))
    }

    fn stat(&self, path: &str) -> Reading<Stat> {
        if let Some(stat) = self.index.nodes.get(path) {
            return Ok(*stat);
        }
        if self.index.missing.is_some() {
            return Err(self.absent(path));
        }
        // Made by hand: what is there belongs to root and can be read by all.
        let kind = match self.files.contains_key(path) {
            true => FileKind::File,
            false if self.names(path).is_empty() => return Err(self.absent(path)),
            false => FileKind::Directory,
        };
        Ok(Stat {
            kind,
            mode: 0o644,
            uid: 0,
            gid: 0,
        })
    }
}
