//! Names: which path is what.

use super::attribute::Attribute;
use super::attributes::{DEVICE, ENGINE, GROUP, WORK_QUEUE};
use super::enable::Bound;
use super::show::is_present;
use super::{Driver, Errno, Registers};

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A file with these permission bits.
    File(u32),
    /// A symbolic link.
    Link(String),
    /// A character device.
    Node {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

/// A driver of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusDriver {
    Idxd,
    Queue(Bound),
}

impl BusDriver {
    const ALL: [BusDriver; 3] = [
        Self::Idxd,
        Self::Queue(Bound::DmaEngine),
        Self::Queue(Bound::User),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Idxd => "idxd",
            Self::Queue(bound) => bound.name(),
        }
    }

    fn of(name: &str) -> Option<BusDriver> {
        Self::ALL.into_iter().find(|driver| driver.name() == name)
    }
}

/// What has attributes: a device, or something of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    Device,
    Group(u16),
    Engine(u16),
    Queue(u16),
}

impl Object {
    pub(super) fn attributes(self) -> &'static [Attribute] {
        match self {
            Self::Device => DEVICE,
            Self::Group(_) => GROUP,
            Self::Engine(_) => ENGINE,
            Self::Queue(_) => WORK_QUEUE,
        }
    }

    pub(super) fn index(self) -> usize {
        match self {
            Self::Device => 0,
            Self::Group(index) | Self::Engine(index) | Self::Queue(index) => index.into(),
        }
    }
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathTarget {
    /// A directory that only holds others.
    Directory(Directory),
    Object(usize, Object),
    Attribute(usize, Object, &'static Attribute),
    Bind(BusDriver),
    Unbind(BusDriver),
    /// Of the PCI bus.
    BindFunction,
    UnbindFunction,
}

/// Directories that only hold others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directory {
    Root,
    Bus,
    BusDsa,
    BusDevices,
    BusDrivers,
    BusDriver(BusDriver),
    BusPci,
    PciDrivers,
    PciDriver,
    Module,
    ModuleIdxd,
    Devices,
    PciRoot(usize),
    Pci(usize),
}

fn numbers(name: &str) -> Option<(u32, u16)> {
    let (device, index) = name.split_once('.')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !plain(device) || !plain(index) || (index.len() > 1 && index.starts_with('0')) {
        return None;
    }
    Some((device.parse().ok()?, index.parse().ok()?))
}

/// `pci0000:6a` of `0000:6a:01.0`.
fn pci_root(address: &str) -> String {
    let bus = address.rsplit_once(':').map_or(address, |(bus, _)| bus);
    format!("pci{bus}")
}

impl<R: Registers> Driver<R> {
    /// The object with a name such as `dsa0` or `wq0.1`.
    pub(super) fn object(&self, name: &str) -> Option<(usize, Object)> {
        let found = |device: u32, index: u16, count: fn(&super::state::Device<R>) -> usize| {
            let at = self.index_of(device)?;
            let device = &self.devices[at];
            (device.present && usize::from(index) < count(device)).then_some((at, index))
        };
        if let Some(rest) = name.strip_prefix("wq") {
            let (device, index) = numbers(rest)?;
            let (at, index) = found(device, index, |device| device.queues.len())?;
            return Some((at, Object::Queue(index)));
        }
        if let Some(rest) = name.strip_prefix("group") {
            let (device, index) = numbers(rest)?;
            let (at, index) = found(device, index, |device| device.groups.len())?;
            return Some((at, Object::Group(index)));
        }
        if let Some(rest) = name.strip_prefix("engine") {
            let (device, index) = numbers(rest)?;
            let (at, index) = found(device, index, |device| device.engines.len())?;
            return Some((at, Object::Engine(index)));
        }
        let mut devices = self.devices.iter();
        let at = devices.position(|d| d.present && d.part.name() == name)?;
        Some((at, Object::Device))
    }

    fn object_name(&self, at: usize, object: Object) -> String {
        let id = self.devices[at].part.id;
        match object {
            Object::Device => self.devices[at].part.name(),
            Object::Group(index) => format!("group{id}.{index}"),
            Object::Engine(index) => format!("engine{id}.{index}"),
            Object::Queue(index) => format!("wq{id}.{index}"),
        }
    }

    /// Path of an object below `/sys`.
    fn object_path(&self, at: usize, object: Object) -> String {
        let part = &self.devices[at].part;
        let root = pci_root(&part.pci_address);
        let device = format!("devices/{root}/{}/{}", part.pci_address, part.name());
        match object {
            Object::Device => device,
            _ => format!("{device}/{}", self.object_name(at, object)),
        }
    }

    fn objects(&self, at: usize) -> Vec<Object> {
        let device = &self.devices[at];
        let groups = (0..device.groups.len()).map(|index| Object::Group(index as u16));
        let engines = (0..device.engines.len()).map(|index| Object::Engine(index as u16));
        let queues = (0..device.queues.len()).map(|index| Object::Queue(index as u16));
        queues.chain(engines).chain(groups).collect()
    }

    /// What a path below `/sys` names, links followed.
    pub(super) fn locate(&self, path: &str) -> Result<PathTarget, Errno> {
        let path = path.strip_prefix("/sys").unwrap_or(path);
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let directory = |directory| Ok(PathTarget::Directory(directory));
        match parts.as_slice() {
            [] => directory(Directory::Root),
            ["bus"] => directory(Directory::Bus),
            ["bus", "dsa"] => directory(Directory::BusDsa),
            ["bus", "dsa", "devices"] => directory(Directory::BusDevices),
            ["bus", "dsa", "devices", name, rest @ ..] => {
                let (at, object) = self.object(name).ok_or(Errno::ENOENT)?;
                self.locate_object(at, object, rest)
            }
            ["bus", "dsa", "drivers"] => directory(Directory::BusDrivers),
            ["bus", "dsa", "drivers", name, rest @ ..] => {
                self.locate_driver(BusDriver::of(name).ok_or(Errno::ENOENT)?, rest)
            }
            ["bus", "pci"] => directory(Directory::BusPci),
            ["bus", "pci", "drivers"] => directory(Directory::PciDrivers),
            ["bus", "pci", "drivers", "idxd", rest @ ..] => self.locate_pci_driver(rest),
            ["module"] => directory(Directory::Module),
            ["module", "idxd"] => directory(Directory::ModuleIdxd),
            ["devices"] => directory(Directory::Devices),
            ["devices", root, rest @ ..] => {
                let mut parts = self.devices.iter().map(|device| &device.part);
                let at = parts.position(|part| pci_root(&part.pci_address) == *root);
                let at = at.ok_or(Errno::ENOENT)?;
                let address = &self.devices[at].part.pci_address;
                match rest {
                    [] => directory(Directory::PciRoot(at)),
                    [pci, ..] if pci != address => Err(Errno::ENOENT),
                    [_] => directory(Directory::Pci(at)),
                    _ if !self.devices[at].present => Err(Errno::ENOENT),
                    [_, "driver", rest @ ..] => self.locate_pci_driver(rest),
                    [_, name, rest @ ..] if *name == self.devices[at].part.name() => {
                        self.locate_object(at, Object::Device, rest)
                    }
                    _ => Err(Errno::ENOENT),
                }
            }
            _ => Err(Errno::ENOENT),
        }
    }

    fn locate_object(&self, at: usize, object: Object, rest: &[&str]) -> Result<PathTarget, Errno> {
        match rest {
            [] => Ok(PathTarget::Object(at, object)),
            ["driver", rest @ ..] => {
                let driver = self.bound_driver(at, object).ok_or(Errno::ENOENT)?;
                self.locate_driver(driver, rest)
            }
            ["subsystem", ..] => Err(Errno::ENOENT),
            [name, rest @ ..] => {
                if object == Object::Device
                    && let Some((home, below)) = self.object(name)
                    && home == at
                    && below != Object::Device
                {
                    return self.locate_object(at, below, rest);
                }
                let mut attributes = object.attributes().iter();
                let attribute = attributes
                    .find(|attribute| attribute.name == *name)
                    .filter(|attribute| is_present(attribute, &self.devices[at], &self.options))
                    .ok_or(Errno::ENOENT)?;
                match rest {
                    [] => Ok(PathTarget::Attribute(at, object, attribute)),
                    _ => Err(Errno::ENOTDIR),
                }
            }
        }
    }

    fn locate_pci_driver(&self, rest: &[&str]) -> Result<PathTarget, Errno> {
        match rest {
            [] => Ok(PathTarget::Directory(Directory::PciDriver)),
            ["bind"] => Ok(PathTarget::BindFunction),
            ["unbind"] => Ok(PathTarget::UnbindFunction),
            ["module"] => Ok(PathTarget::Directory(Directory::ModuleIdxd)),
            [address, rest @ ..] => {
                let at = self.addressed(address.as_bytes())?;
                match (self.devices[at].present, rest) {
                    (false, _) => Err(Errno::ENOENT),
                    (true, []) => Ok(PathTarget::Directory(Directory::Pci(at))),
                    (true, ["driver", rest @ ..]) => self.locate_pci_driver(rest),
                    (true, [name, rest @ ..]) if *name == self.devices[at].part.name() => {
                        self.locate_object(at, Object::Device, rest)
                    }
                    (true, _) => Err(Errno::ENOENT),
                }
            }
        }
    }

    fn locate_driver(&self, driver: BusDriver, rest: &[&str]) -> Result<PathTarget, Errno> {
        match rest {
            [] => Ok(PathTarget::Directory(Directory::BusDriver(driver))),
            ["bind"] => Ok(PathTarget::Bind(driver)),
            ["unbind"] => Ok(PathTarget::Unbind(driver)),
            [name, rest @ ..] => {
                let (at, object) = self.object(name).ok_or(Errno::ENOENT)?;
                match self.bound_driver(at, object) == Some(driver) {
                    true => self.locate_object(at, object, rest),
                    false => Err(Errno::ENOENT),
                }
            }
        }
    }

    /// The driver that an object is bound to.
    pub(super) fn bound_driver(&self, at: usize, object: Object) -> Option<BusDriver> {
        let device = &self.devices[at];
        match object {
            Object::Device => device.bound.then_some(BusDriver::Idxd),
            Object::Queue(wq) => {
                let queue = device.queues.get(usize::from(wq))?;
                queue.bound.map(BusDriver::Queue)
            }
            Object::Group(_) | Object::Engine(_) => None,
        }
    }

    /// The entries of a directory below `/sys`, in no order that means anything.
    ///
    /// # Errors
    /// `ENOENT` where there is nothing, `ENOTDIR` for a file.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, Errno> {
        match self.locate(path)? {
            PathTarget::Directory(directory) => Ok(self.list_directory(directory)),
            PathTarget::Object(at, object) => Ok(self.list_object(at, object)),
            PathTarget::Attribute(..)
            | PathTarget::Bind(_)
            | PathTarget::Unbind(_)
            | PathTarget::BindFunction
            | PathTarget::UnbindFunction => Err(Errno::ENOTDIR),
        }
    }

    fn list_directory(&self, directory: Directory) -> Vec<Entry> {
        let all = || (0..self.devices.len()).filter(|at| self.devices[*at].present);
        match directory {
            Directory::Root => ["bus", "devices", "module"].map(folder).into(),
            Directory::Bus => ["dsa", "pci"].map(folder).into(),
            Directory::BusPci => vec![folder("drivers")],
            Directory::PciDrivers => vec![folder("idxd")],
            Directory::PciDriver => {
                let mut entries = vec![file("bind", 0o200), file("unbind", 0o200)];
                entries.push(link("module", "../../../../module/idxd".to_owned()));
                entries.extend(all().map(|at| {
                    let address = &self.devices[at].part.pci_address;
                    let root = pci_root(address);
                    link(address, format!("../../../../devices/{root}/{address}"))
                }));
                entries
            }
            Directory::BusDsa => ["devices", "drivers"].map(folder).into(),
            Directory::BusDevices => {
                let objects = all().flat_map(|at| {
                    let below = self.objects(at).into_iter();
                    std::iter::once(Object::Device)
                        .chain(below)
                        .map(move |object| (at, object))
                });
                let links = objects.map(|(at, object)| self.link(at, object, "../../../"));
                links.collect()
            }
            Directory::BusDrivers => BusDriver::ALL.map(|driver| folder(driver.name())).into(),
            Directory::BusDriver(driver) => {
                let mut entries = vec![file("bind", 0o200), file("unbind", 0o200)];
                for at in all() {
                    for object in std::iter::once(Object::Device).chain(self.objects(at)) {
                        if self.bound_driver(at, object) == Some(driver) {
                            entries.push(self.link(at, object, "../../../../"));
                        }
                    }
                }
                entries
            }
            Directory::Module => vec![folder("idxd")],
            Directory::ModuleIdxd => Vec::new(),
            Directory::Devices => {
                let devices = self.devices.iter();
                let roots = devices.map(|device| pci_root(&device.part.pci_address));
                roots.map(|name| folder(&name)).collect()
            }
            Directory::PciRoot(at) => vec![folder(&self.devices[at].part.pci_address)],
            Directory::Pci(at) => match self.devices[at].present {
                true => vec![
                    folder(&self.devices[at].part.name()),
                    link("driver", "../../../bus/pci/drivers/idxd".to_owned()),
                ],
                false => Vec::new(),
            },
        }
    }

    fn link(&self, at: usize, object: Object, up: &str) -> Entry {
        let target = format!("{up}{}", self.object_path(at, object));
        link(&self.object_name(at, object), target)
    }

    fn list_object(&self, at: usize, object: Object) -> Vec<Entry> {
        let device = &self.devices[at];
        let attributes = object.attributes().iter();
        let present = attributes.filter(|attribute| is_present(attribute, device, &self.options));
        let mut entries: Vec<Entry> = present
            .map(|attribute| file(attribute.name, attribute.mode()))
            .collect();
        let depth = match object {
            Object::Device => {
                let below = self.objects(at).into_iter();
                entries.extend(below.map(|below| folder(&self.object_name(at, below))));
                4
            }
            _ => 5,
        };
        if let Some(driver) = self.bound_driver(at, object) {
            let target = format!("{}bus/dsa/drivers/{}", "../".repeat(depth), driver.name());
            entries.push(link("driver", target));
        }
        entries
    }

    /// The entries of `/dev/dsa`.
    pub fn nodes(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for device in &self.devices {
            for (wq, queue) in device.queues.iter().enumerate() {
                if let Some(minor) = queue.minor {
                    entries.push(Entry {
                        name: format!("wq{}.{wq}", device.part.id),
                        kind: EntryKind::Node {
                            major: self.options.cdev_major,
                            minor,
                        },
                    });
                }
            }
        }
        entries
    }
}

fn link(name: &str, target: String) -> Entry {
    Entry {
        name: name.to_owned(),
        kind: EntryKind::Link(target),
    }
}

fn folder(name: &str) -> Entry {
    Entry {
        name: name.to_owned(),
        kind: EntryKind::Directory,
    }
}

fn file(name: &str, mode: u32) -> Entry {
    Entry {
        name: name.to_owned(),
        kind: EntryKind::File(mode),
    }
}
