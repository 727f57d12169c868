//! The files that programs find: the driver's, and those that a machine has around them.

use dray_idxd::driver::{Entry, EntryKind, Errno};

use crate::machine::SessionDevices;
use crate::pci::{self, Function};
use crate::{cpu, module, uevent};

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
    pub(crate) machine: &'a SessionDevices,
}

/// Whether an attribute says how many clients have work queues open.
pub(crate) fn counts_clients(path: &str) -> bool {
    matches!(
        path.rsplit('/').next(),
        Some("clients" | module::REFERENCES)
    )
}

impl Tree<'_> {
    /// The names in a directory.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<(String, Thing)>, Errno> {
        let folders = |names: &[&str]| {
            let entry = |name: &&str| ((*name).to_owned(), Thing::Directory);
            names.iter().map(entry).collect::<Vec<_>>()
        };
        match path {
            "" => return Ok(folders(&["sys", "dev", "proc"])),
            "/proc" => {
                let files = ["modules", "cpuinfo"];
                let files = files.map(|name| (name.to_owned(), Thing::Attribute(0o444)));
                return Ok(files.into());
            }
            "/dev" => return Ok(folders(&["dsa", "char"])),
            "/sys/dev" => return Ok(folders(&["char"])),
            "/sys/dev/char" => return Ok(links(self.machine.sys_char_links())),
            "/dev/char" => return Ok(links(self.machine.char_links())),
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
        let model = uevent::beside(self.machine, path);
        let mut names = match (self.machine.list(path), beside, &model) {
            (Ok(entries), ..) => named(entries),
            (Err(_), Some(_), _) | (Err(_), _, Some(_)) => Vec::new(),
            (Err(errno), None, None) => return Err(errno),
        };
        names.extend(beside.into_iter().flatten().cloned());
        names.extend(model.into_iter().flatten());
        match path {
            "/sys" => names.push(("dev".to_owned(), Thing::Directory)),
            MODULE => {
                let fixed = module::FILES.iter().map(|(name, _)| *name);
                let files = fixed.chain([module::REFERENCES]);
                names.extend(files.map(|name| (name.to_owned(), Thing::Attribute(0o444))));
            }
            _ => {}
        }
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
        if let Some(bytes) = self.read_model(path) {
            return Ok(bytes);
        }
        self.machine.read(path)
    }

    /// Files that are the kernel's and not the driver's.
    fn read_model(&self, path: &str) -> Option<Vec<u8>> {
        if path == module::MODULES {
            let modules = std::fs::read_to_string(path).unwrap_or_default();
            return Some(module::list(&modules).into_bytes());
        }
        if path == cpu::CPUINFO {
            return Some(cpu::shown().as_bytes().to_vec());
        }
        let Some(name) = path.strip_prefix(MODULE).and_then(|p| p.strip_prefix('/')) else {
            return uevent::read(self.machine, path);
        };
        if name == module::REFERENCES {
            return Some(format!("{}\n", self.machine.references()).into_bytes());
        }
        let (_, text) = module::FILES.iter().find(|(file, _)| *file == name)?;
        Some(text.as_bytes().to_vec())
    }

    /// The same for several paths at once: each device is read once.
    pub(crate) fn read_all(&self, paths: &[String]) -> Vec<Result<Vec<u8>, Errno>> {
        let beside = |path: &String| {
            let function = self.function_of(path);
            let function = function.and_then(|(function, rest)| function.read(rest));
            let iax = || self.machine.iax()?.read(path).map(<[u8]>::to_vec);
            function.or_else(iax).or_else(|| self.read_model(path))
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
        if uevent::is_trigger(self.machine, path) {
            return Ok(());
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

const MODULE: &str = "/sys/module/idxd";

fn links(links: Vec<(String, String)>) -> Vec<(String, Thing)> {
    let links = links.into_iter();
    links
        .map(|(name, target)| (name, Thing::Link(target)))
        .collect()
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
