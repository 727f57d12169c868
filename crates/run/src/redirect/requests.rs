//! Requests of programs by the socket, in place of FUSE requests.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_idxd::driver::Errno;
use dray_wire::{NodeName, Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socketpair, sockopt,
};
use rustix::process::geteuid;
use zerocopy::IntoBytes;

use super::Files;
use crate::clients::Clients;
use crate::pollers::Waiters;
use crate::serial_executor::SerialExecutor;
use crate::service::send;
use crate::tree::{Tree, node};

/// The files of the session, and its open nodes.
#[derive(Debug)]
pub(crate) struct Redirected {
    clients: Arc<Clients>,
    files: Mutex<Files>,
    nodes: Mutex<Vec<Node>>,
    /// Name of the service.
    service: String,
}

/// An open node.
#[derive(Debug)]
struct Node {
    /// The other end: when it hangs up, the last descriptor of the node is closed.
    socket: Arc<OwnedFd>,
    cookie: u64,
    device: u32,
    /// A thread is about to close it.
    noticed: bool,
}

impl Node {
    fn has_ended(&self) -> bool {
        let mut files = [PollFd::new(&self.socket, PollFlags::empty())];
        let none = Timespec::default();
        poll(&mut files, Some(&none)).is_ok() && files[0].revents().contains(PollFlags::HUP)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Redirected {
    pub(crate) fn new(clients: Arc<Clients>, files: Files, service: &str) -> Redirected {
        Redirected {
            clients,
            files: Mutex::new(files),
            nodes: Mutex::default(),
            service: service.trim_start_matches('@').to_owned(),
        }
    }

    fn tree(&self) -> Tree<'_> {
        self.clients.tree()
    }

    /// The ends of open nodes, to be polled.
    pub(crate) fn nodes(&self) -> Vec<Arc<OwnedFd>> {
        let nodes = lock(&self.nodes);
        let left = nodes.iter().filter(|node| !node.noticed);
        left.map(|node| node.socket.clone()).collect()
    }

    /// Has the nodes closed whose last descriptor is closed.
    pub(crate) fn notice(self: &Arc<Redirected>, executor: &SerialExecutor) {
        let mut devices = BTreeSet::new();
        for node in lock(&self.nodes).iter_mut() {
            if !node.noticed && node.has_ended() {
                node.noticed = true;
                devices.insert(node.device);
            }
        }
        for device in devices {
            let redirected = self.clone();
            executor.submit(Some(device), move || {
                redirected.close_nodes(device);
                redirected.bring_up_to_date();
            });
        }
    }

    /// Closes the nodes of a device whose last descriptor is closed: for the thread that opens them, which holds
    /// one itself for a moment.
    fn close_nodes(&self, device: u32) {
        let closed: Vec<u64> = {
            let nodes = lock(&self.nodes);
            let of_device = nodes.iter().filter(|node| node.device == device);
            let gone = of_device.filter(|node| node.has_ended());
            gone.map(|node| node.cookie).collect()
        };
        for cookie in &closed {
            self.clients.machine.pollers.remove(*cookie);
            self.clients.close(*cookie);
        }
        // They are among the nodes until they are closed, for others to see that there are such.
        lock(&self.nodes).retain(|node| !closed.contains(&node.cookie));
    }

    /// Carries out a request and answers it.
    pub(crate) fn serve(
        self: &Arc<Redirected>,
        request: Request<'_>,
        socket: Arc<OwnedFd>,
        executor: &SerialExecutor,
    ) {
        let peer = sockopt::socket_peercred(&socket).ok();
        let Some(peer) = peer.filter(|peer| peer.uid == geteuid()) else {
            return answer(&socket, Err(Errno::EPERM), None);
        };
        let pid = peer.pid.as_raw_nonzero().get() as u32;
        match request {
            Request::Refresh { path } => {
                let path = text(path);
                let redirected = self.clone();
                let refresh = move || {
                    let refreshed = path.and_then(|path| {
                        let mut files = lock(&redirected.files);
                        files.refresh(&redirected.tree(), &path)
                    });
                    answer(&socket, refreshed.map(|()| 0), None);
                };
                // Nodes that the program has closed before this request are closed first. Otherwise readers do not
                // wait for writers.
                let closed: BTreeSet<u32> = {
                    let nodes = lock(&self.nodes);
                    let gone = nodes.iter().filter(|node| node.has_ended());
                    gone.map(|node| node.device).collect()
                };
                if closed.is_empty() {
                    return refresh();
                }
                for device in &closed {
                    let (redirected, device) = (self.clone(), *device);
                    executor.submit(Some(device), move || redirected.close_nodes(device));
                }
                let only = closed.first().copied().filter(|_| closed.len() == 1);
                executor.submit(only, refresh);
            }
            Request::Submit { cookie, bytes } => {
                let written = self.clients.write(cookie, pid, bytes);
                answer(&socket, written.map(u64::from), None);
            }
            Request::Store { path, bytes } => {
                let (path, bytes) = (text(path), bytes.to_vec());
                let redirected = self.clone();
                let device = path
                    .as_ref()
                    .ok()
                    .and_then(|path| self.clients.machine.device_of(path, &bytes));
                executor.submit(device, move || {
                    let stored = path.and_then(|path| redirected.tree().write(&path, &bytes));
                    redirected.bring_up_to_date();
                    answer(&socket, stored.map(|()| bytes.len() as u64), None);
                });
            }
            Request::Open { path, flags } => {
                let path = text(path);
                let redirected = self.clone();
                let device = path.as_ref().ok().and_then(|path| node(path));
                let device = device.map(|(device, _)| device);
                executor.submit(device, move || {
                    // What the program has closed before is closed.
                    device
                        .into_iter()
                        .for_each(|device| redirected.close_nodes(device));
                    let opened = path.and_then(|path| redirected.open(&path, flags, pid));
                    redirected.bring_up_to_date();
                    match &opened {
                        Ok(node) => answer(&socket, Ok(0), Some(node.as_fd())),
                        Err(errno) => answer(&socket, Err(*errno), None),
                    }
                });
            }
        }
    }

    /// Opens a node; what the program gets.
    fn open(&self, path: &str, flags: i32, pid: u32) -> Result<OwnedFd, Errno> {
        let (device, wq) = node(path).ok_or(Errno::ENXIO)?;
        let cookie = self.clients.open(device, wq, pid)?;
        let name = NodeName {
            device,
            wq,
            mode: (flags & libc::O_ACCMODE) as u8,
            cookie,
        };
        self.socket(name).map_err(|error| {
            self.clients.close(cookie);
            Errno(error.raw_os_error())
        })
    }

    /// A socket with this name; its other end is kept.
    fn socket(&self, name: NodeName) -> rustix::io::Result<OwnedFd> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        let text = format!("{}{name}", self.service);
        bind(
            &theirs,
            &SocketAddrUnix::new_abstract_name(text.as_bytes())?,
        )?;
        // There is nothing to be read, and nobody is to wait for it.
        ioctl_fionbio(&theirs, true)?;
        let ours = Arc::new(ours);
        let machine = &self.clients.machine;
        let waiters = Waiters::Socket(ours.clone());
        machine.pollers.add(name.cookie, name.device, waiters);
        if machine.has_error(name.device) {
            machine.pollers.wake(name.device);
        }
        lock(&self.nodes).push(Node {
            socket: ours,
            cookie: name.cookie,
            device: name.device,
            noticed: false,
        });
        Ok(theirs)
    }

    fn bring_up_to_date(&self) {
        let mut files = lock(&self.files);
        if let Err(error) = files.bring_up_to_date(&self.tree()) {
            eprintln!("warning: the session's files are not up to date: {error}");
        }
    }
}

fn text(path: &[u8]) -> Result<String, Errno> {
    String::from_utf8(path.to_vec()).map_err(|_| Errno::ENOENT)
}

/// A client that does not take the answer has closed the connection.
fn answer(socket: &OwnedFd, result: Result<u64, Errno>, file: Option<BorrowedFd<'_>>) {
    let reply = match result {
        Ok(bytes) => Reply::done(bytes),
        Err(errno) => Reply::refused(errno.0),
    };
    let _ = send(socket, reply.as_bytes(), file);
}
