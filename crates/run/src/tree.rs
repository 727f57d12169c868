//! The files that programs find: the driver's, and those that a machine has around them.

use dray_idxd::driver::{Entry, EntryKind, Errno};

use crate::machine::Machine;
use crate::pci::{self, Function};

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    Directory,
    /// An attribute with its permission bits.
    Attribute(u32),
    Link(String),
    /// The node of a work queue.
    Node,
}

impl From<EntryKind> for Thing {
    fn from(kind: EntryKind) -> Thing {
        match kind {
            EntryKind::Directory => Thing::Directory,
            EntryKind::File(mode) => Thing::Attribute(mode),
            EntryKind::Link(target) => Thing::Link(target),
            EntryKind::Node { .. } => Thing::Node,
        }
    }
}

/// The tree. Paths begin with `/sys` or `/dev/dsa`; the root's is empty.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) machine: &'a Machine,
}

impl Tree<'_> {
    /// The names in a directory.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<(String, Thing)>, Errno> {
        let folders = |names: &[&str]| {
            let entry = |name: &&str| ((*name).to_owned(), Thing::Directory);
            names.iter().map(entry).collect::<Vec<_>>()
        };
        match path {
            "" => return Ok(folders(&["sys", "dev"])),
            "/dev" => return Ok(folders(&["dsa", "char"])),
            "/dev/char" => {
                let links = self.machine.char_links().into_iter();
                return Ok(links
                    .map(|(name, target)| (name, Thing::Link(target)))
                    .collect());
            }
            "/dev/dsa" => return Ok(named(self.machine.nodes())),
            _ => {}
        }
        if path.starts_with("/dev/") {
            return match self.find(path)? {
                Thing::Directory => Err(Errno::ENOENT),
                _ => Err(Errno::ENOTDIR),
            };
        }
        let beside = self.machine.iax().and_then(|iax| iax.list(path));
        let mut names = match (self.machine.list(path), beside) {
            (Ok(entries), _) => named(entries),
            (Err(_), Some(_)) => Vec::new(),
            (Err(errno), None) => return Err(errno),
        };
        names.extend(beside.into_iter().flatten().cloned());
        if self
            .function_of(path)
            .is_some_and(|(_, rest)| rest.is_empty())
        {
            let files = pci::FILES.iter();
            names.extend(files.map(|(name, mode)| ((*name).to_owned(), Thing::Attribute(*mode))));
        }
        Ok(names)
    }

    /// What a path names; links are not followed.
    pub(crate) fn find(&self, path: &str) -> Result<Thing, Errno> {
        let Some((parent, name)) = path.rsplit_once('/') else {
            return Ok(Thing::Directory);
        };
        let names = self.list(parent)?;
        let found = names.into_iter().find(|(other, _)| other == name);
        found.map(|(_, thing)| thing).ok_or(Errno::ENOENT)
    }

    /// What reading an attribute gives.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        if let Some((function, rest)) = self.function_of(path)
            && let Some(bytes) = function.read(rest)
        {
            return Ok(bytes);
        }
        if let Some(bytes) = self.machine.iax().and_then(|iax| iax.read(path)) {
            return Ok(bytes.to_vec());
        }
        self.machine.read(path)
    }

    /// The same for many at once: each device is asked once.
    pub(crate) fn read_all(&self, paths: &[String]) -> Vec<Result<Vec<u8>, Errno>> {
        let beside = |path: &String| {
            let function = self.function_of(path);
            let function = function.and_then(|(function, rest)| function.read(rest));
            let iax = || self.machine.iax()?.read(path).map(<[u8]>::to_vec);
            function.or_else(iax)
        };
        let mut read: Vec<Option<Vec<u8>>> = paths.iter().map(beside).collect();
        let left = paths.iter().zip(&read).filter(|(_, found)| found.is_none());
        let left: Vec<&str> = left.map(|(path, _)| path.as_str()).collect();
        let mut left = self.machine.read_all(&left).into_iter();
        let read = read.iter_mut().map(|found| match found.take() {
            Some(bytes) => Ok(bytes),
            None => left.next().unwrap_or(Err(Errno::ENOENT)),
        });
        read.collect()
    }

    /// What writing an attribute does.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        if let Some(result) = self.machine.iax().and_then(|iax| iax.write(path, bytes)) {
            return result;
        }
        self.machine.write(path, bytes)
    }

    /// A PCI function, and what follows its directory, without the slash.
    fn function_of<'p>(&self, path: &'p str) -> Option<(Function, &'p str)> {
        let rest = path.strip_prefix("/sys/devices/pci")?;
        let (_, rest) = rest.split_once('/')?;
        let (address, rest) = rest.split_once('/').unwrap_or((rest, ""));
        Some((self.machine.pci_function(address)?, rest))
    }
}

/// Device and queue of `/dev/dsa/wq0.1`.
pub(crate) fn node(path: &str) -> Option<(u32, u16)> {
    let (device, wq) = path.strip_prefix("/dev/dsa/wq")?.split_once('.')?;
    Some((device.parse().ok()?, wq.parse().ok()?))
}

fn named(entries: Vec<Entry>) -> Vec<(String, Thing)> {
    let entries = entries.into_iter();
    entries
        .map(|entry| (entry.name, entry.kind.into()))
        .collect()
}
