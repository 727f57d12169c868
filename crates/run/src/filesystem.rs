//! The tree as FUSE asks for it.

mod requests;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use dray_idxd::driver::Errno;
use fuser::{Errno as FuseErrno, FileAttr, FileType, INodeNo, OpenAccMode, OpenFlags};

use crate::clients::Clients;
use crate::fault_injection::Countdown;
use crate::inodes::Inodes;
use crate::serial_executor::SerialExecutor;
use crate::service::AfterMappings;
use crate::supervise::Supervision;
use crate::tree::{Thing, Tree, node};

/// The file system.
#[derive(Debug)]
pub(crate) struct Files {
    clients: Arc<Clients>,
    executor: SerialExecutor,
    after_mappings: AfterMappings,
    supervision: Arc<Supervision>,
    inodes: Inodes,
    /// Directories as they were when they were opened.
    listings: Mutex<HashMap<u64, Arc<Listing>>>,
    next_handle: AtomicU64,
    /// Owners and permissions that have been changed, by path.
    changed: Arc<Mutex<HashMap<Arc<str>, Access>>>,
    since: SystemTime,
    countdown: Countdown,
}

type Listing = Vec<(u64, FileType, String)>;

/// Who may access a file.
#[derive(Debug, Clone, Copy)]
struct Access {
    mode: u32,
    uid: u32,
    gid: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn errno(errno: Errno) -> FuseErrno {
    FuseErrno::from_i32(errno.0)
}

fn file_type(thing: &Thing) -> FileType {
    match thing {
        Thing::Directory => FileType::Directory,
        Thing::Link(_) => FileType::Symlink,
        // A character device would be the kernel's: FUSE serves regular files alone.
        Thing::Attribute(_) | Thing::Node => FileType::RegularFile,
    }
}

impl Files {
    pub(crate) fn new(
        clients: Arc<Clients>,
        executor: SerialExecutor,
        after_mappings: AfterMappings,
        supervision: Arc<Supervision>,
        countdown: Countdown,
    ) -> Files {
        Files {
            clients,
            executor,
            after_mappings,
            supervision,
            inodes: Inodes::new(),
            listings: Mutex::default(),
            next_handle: AtomicU64::new(1),
            changed: Arc::default(),
            since: SystemTime::now(),
            countdown,
        }
    }

    fn tree(&self) -> Tree<'_> {
        self.clients.tree()
    }

    fn path(&self, inode: INodeNo) -> Result<Arc<str>, Errno> {
        self.inodes.path(inode.0).ok_or(Errno::ENOENT)
    }

    /// Path and kind of a number that the kernel knows.
    fn thing(&self, inode: INodeNo) -> Result<(Arc<str>, Thing), Errno> {
        let path = self.path(inode)?;
        let thing = self.tree().find(&path)?;
        Ok((path, thing))
    }

    fn access(&self, path: &str, thing: &Thing) -> Access {
        let mode = match thing {
            Thing::Directory => 0o755,
            Thing::Attribute(mode) => *mode,
            Thing::Link(_) => 0o777,
            Thing::Node => 0o600,
        };
        let fresh = Access {
            mode,
            uid: 0,
            gid: 0,
        };
        lock(&self.changed).get(path).copied().unwrap_or(fresh)
    }

    fn attributes(&self, path: &str, thing: &Thing) -> FileAttr {
        let access = self.access(path, thing);
        let size = match thing {
            Thing::Attribute(_) => 4096,
            Thing::Link(target) => target.len() as u64,
            // A device has no size, but a file must be as long as what is mapped of it: Python looks.
            Thing::Node => 4096,
            Thing::Directory => 0,
        };
        FileAttr {
            ino: INodeNo(self.inodes.number(path)),
            size,
            blocks: 0,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: UNIX_EPOCH,
            kind: file_type(thing),
            perm: access.mode as u16,
            nlink: if *thing == Thing::Directory { 2 } else { 1 },
            uid: access.uid,
            gid: access.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn listing(&self, inode: INodeNo) -> Result<Listing, Errno> {
        self.countdown.count();
        let path = self.path(inode)?;
        let names = self.tree().list(&path)?;
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let number = |path: &str| self.inodes.number(path);
        let mut listing = vec![
            (inode.0, FileType::Directory, ".".to_owned()),
            (number(parent), FileType::Directory, "..".to_owned()),
        ];
        listing.extend(names.into_iter().map(|(name, thing)| {
            let number = number(&format!("{path}/{name}"));
            (number, file_type(&thing), name)
        }));
        Ok(listing)
    }

    /// open(2) of a file, and which work queue's node it is: sysfs looks at the permissions of an
    /// attribute even for root (`kernfs_fop_open`).
    fn admit(&self, inode: INodeNo, flags: OpenFlags) -> Result<Option<(u32, u16)>, Errno> {
        let (path, thing) = self.thing(inode)?;
        let (reads, writes) = match flags.acc_mode() {
            OpenAccMode::O_RDONLY => (true, false),
            OpenAccMode::O_WRONLY => (false, true),
            OpenAccMode::O_RDWR => (true, true),
        };
        match thing {
            Thing::Attribute(mode) => {
                let refused = (reads && mode & 0o444 == 0) || (writes && mode & 0o222 == 0);
                if refused {
                    Err(Errno::EACCES)
                } else {
                    Ok(None)
                }
            }
            Thing::Node => node(&path).ok_or(Errno::ENXIO).map(Some),
            Thing::Directory | Thing::Link(_) => Err(Errno::EISDIR),
        }
    }
}
