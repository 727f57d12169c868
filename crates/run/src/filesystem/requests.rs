//! What FUSE asks for, one function each.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use dray_idxd::driver::Errno;
use dray_wire::CLIENT;
use fuser::{
    BsdFileFlags, Errno as FuseErrno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    IoctlFlags, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, ReplyPoll,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use zerocopy::IntoBytes;

use super::{Access, Files, errno, lock};
use crate::clients::Clients;
use crate::pollers::Waiters;
use crate::serial_executor::SerialExecutor;
use crate::tree::{Thing, counts_clients};

/// Nothing is cached: another process may bind or unbind in between.
const AT_ONCE: Duration = Duration::ZERO;

/// Longest write to an attribute: a page, less the zero that the kernel adds.
const LONGEST: usize = 4095;

/// The handle of files that are no nodes; theirs is the cookie.
const ATTRIBUTE: FileHandle = FileHandle(0);

/// A node that is made again has the owner and mode that udev gives a new one.
fn forget_nodes(changed: &Mutex<HashMap<Arc<str>, Access>>, clients: &Clients) {
    let mut changed = lock(changed);
    if changed.keys().any(|path| path.starts_with("/dev/dsa/")) {
        let nodes = clients.machine.nodes();
        changed.retain(|path, _| {
            let node = path.strip_prefix("/dev/dsa/");
            node.is_none_or(|name| nodes.iter().any(|node| node.name == name))
        });
    }
}

/// Answers read(2) with the part of an attribute that is asked for.
fn answer_read(read: Result<Vec<u8>, Errno>, offset: u64, size: u32, reply: ReplyData) {
    match read {
        Ok(bytes) => {
            let from = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            let to = from.saturating_add(size as usize).min(bytes.len());
            reply.data(&bytes[from..to]);
        }
        Err(error) => reply.error(errno(error)),
    }
}

/// open(2) of a node by a thread.
struct Opening {
    clients: Arc<Clients>,
    executor: SerialExecutor,
    node: (u32, u16),
    thread: u32,
    reply: ReplyOpen,
}

/// How often a queue is tried whose client is about to end, and how long after each time. A device that moves
/// the client's bytes at that moment holds its memory, and so the file of the queue, for a moment longer than the
/// process is there.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);

impl Opening {
    fn attempt(self, left: u32) {
        let (device, wq) = self.node;
        match self.clients.open(device, wq, self.thread) {
            Ok(cookie) => {
                // The driver has no llseek.
                let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NONSEEKABLE;
                self.reply.opened(FileHandle(cookie), flags);
            }
            Err(Errno::EBUSY) if left > 0 && self.clients.is_ending(device, wq) => {
                std::thread::sleep(PAUSE);
                let executor = self.executor.clone();
                // After what has come meanwhile.
                executor.submit(Some(device), move || self.attempt(left - 1));
            }
            Err(error) => self.reply.error(errno(error)),
        }
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = || {
            let name = name.to_str().ok_or(Errno::ENOENT)?;
            let path = format!("{}/{name}", self.path(parent)?);
            let thing = self.tree().find(&path)?;
            Ok(self.attributes(&path, &thing))
        };
        match found() {
            Ok(attributes) => reply.entry(&AT_ONCE, &attributes, Generation(0)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.thing(inode) {
            Ok((path, thing)) => reply.attr(&AT_ONCE, &self.attributes(&path, &thing)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // Truncation does nothing, as to any file of sysfs.
        let (path, thing) = match self.thing(inode) {
            Ok(found) => found,
            Err(error) => return reply.error(errno(error)),
        };
        if mode.is_some() || uid.is_some() || gid.is_some() {
            let mut access = self.access(&path, &thing);
            access.mode = mode.map_or(access.mode, |mode| mode & 0o7777);
            access.uid = uid.unwrap_or(access.uid);
            access.gid = gid.unwrap_or(access.gid);
            lock(&self.changed).insert(path.clone(), access);
        }
        reply.attr(&AT_ONCE, &self.attributes(&path, &thing));
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.thing(inode) {
            Ok((_, Thing::Link(target))) => reply.data(target.as_bytes()),
            Ok(_) => reply.error(FuseErrno::EINVAL),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.admit(inode, flags) {
            Ok(Some((device, wq))) => {
                let thread = request.pid();
                let supervision = self.supervision.clone();
                let opening = Opening {
                    clients: self.clients.clone(),
                    executor: self.executor.clone(),
                    node: (device, wq),
                    thread,
                    reply,
                };
                self.after_mappings.submit(Some(device), move || {
                    supervision.attend_opener(thread);
                    opening.attempt(ATTEMPTS);
                });
            }
            // With pages in the kernel's cache, writes would come late and in other pieces.
            Ok(None) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if handle != ATTRIBUTE {
            // The node has no read(2).
            return reply.error(FuseErrno::EINVAL);
        }
        let path = match self.path(inode) {
            Ok(path) => path,
            Err(error) => return reply.error(errno(error)),
        };
        if counts_clients(&path) {
            // close(2) does not wait for FUSE_RELEASE: pending closes are done before the count is read.
            let clients = self.clients.clone();
            let device = clients.machine.device_of(&path, &[]);
            return self.after_mappings.submit(device, move || {
                answer_read(clients.tree().read(&path), offset, size, reply);
            });
        }
        answer_read(self.tree().read(&path), offset, size, reply);
    }

    fn write(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if handle != ATTRIBUTE {
            return match self.clients.write(handle.0, request.pid(), data) {
                Ok(bytes) => reply.written(bytes),
                Err(error) => reply.error(errno(error)),
            };
        }
        // Wherever it is written, it is the whole of it (`kernfs_fop_write_iter`).
        let bytes = data[..data.len().min(LONGEST)].to_vec();
        let path = match self.path(inode) {
            Ok(path) => path,
            Err(error) => return reply.error(errno(error)),
        };
        let (clients, changed) = (self.clients.clone(), self.changed.clone());
        let device = clients.machine.device_of(&path, &bytes);
        self.after_mappings
            .submit(device, move || match clients.tree().write(&path, &bytes) {
                Ok(()) => {
                    forget_nodes(&changed, &clients);
                    reply.written(bytes.len() as u32);
                }
                Err(error) => reply.error(errno(error)),
            });
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        if handle != ATTRIBUTE {
            let clients = self.clients.clone();
            clients.machine.pollers.remove(handle.0);
            let device = clients.get(handle.0).map(|client| client.device);
            self.executor
                .submit(device, move || clients.close(handle.0));
        }
        reply.ok();
    }

    fn poll(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        notifier: PollNotifier,
        _: PollEvents,
        flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let Some(client) = self.clients.get(handle.0) else {
            // An attribute, as any file of sysfs.
            let both = PollEvents::POLLIN | PollEvents::POLLOUT;
            let normal = PollEvents::POLLRDNORM | PollEvents::POLLWRNORM;
            return reply.poll(both | normal);
        };
        let machine = &self.clients.machine;
        // First, so that no error is missed that comes in between.
        if flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY) {
            let waiters = Waiters::Notified(notifier);
            machine.pollers.add(handle.0, client.device, waiters);
        }
        reply.poll(match machine.has_error(client.device) {
            true => PollEvents::POLLIN | PollEvents::POLLRDNORM,
            false => PollEvents::empty(),
        });
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.listing(inode) {
            Ok(listing) => {
                let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
                lock(&self.listings).insert(handle, Arc::new(listing));
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if offset == 0 {
            // A reader that rewinds gets a new listing.
            match self.listing(inode) {
                Ok(listing) => drop(lock(&self.listings).insert(handle.0, Arc::new(listing))),
                Err(error) => return reply.error(errno(error)),
            }
        }
        let Some(listing) = lock(&self.listings).get(&handle.0).cloned() else {
            return reply.error(FuseErrno::EBADF);
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let entries = listing.iter().enumerate().skip(from);
        for (index, (number, kind, name)) in entries {
            if reply.add(INodeNo(*number), index as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        lock(&self.listings).remove(&handle.0);
        reply.ok();
    }

    // What sysfs has no way to do.

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(FuseErrno::EACCES);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(FuseErrno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(FuseErrno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(FuseErrno::EPERM);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(FuseErrno::EPERM);
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: IoctlFlags,
        command: u32,
        _: &[u8],
        room: u32,
        reply: ReplyIoctl,
    ) {
        let node = match command {
            CLIENT => self.clients.node(handle.0),
            _ => None,
        };
        match node {
            Some(node) if room as usize >= size_of_val(&node) => reply.ioctl(0, node.as_bytes()),
            _ => reply.error(FuseErrno::ENOTTY),
        }
    }
}
