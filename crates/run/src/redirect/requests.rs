//! What programs ask for by the socket, where no file system asks for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_idxd::driver::Errno;
use dray_wire::{NodeName, Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType, bind, sendmsg, shutdown, socketpair, sockopt,
};
use rustix::process::geteuid;
use zerocopy::IntoBytes;

use super::Files;
use crate::clients::Clients;
use crate::desk::Desk;
use crate::tree::{Tree, node};

/// The files of the session, and its open nodes.
#[derive(Debug)]
pub(crate) struct Redirected {
    clients: Arc<Clients>,
    files: Mutex<Files>,
    /// The other end of each open node, and its cookie: when it hangs up, the last descriptor of the
    /// node is closed.
    nodes: Mutex<Vec<(Arc<OwnedFd>, u64)>>,
    /// Name of the service.
    service: String,
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
        Tree {
            machine: &self.clients.machine,
        }
    }

    /// The ends of open nodes, to be polled.
    pub(crate) fn nodes(&self) -> Vec<Arc<OwnedFd>> {
        let nodes = lock(&self.nodes);
        nodes.iter().map(|(socket, _)| socket.clone()).collect()
    }

    /// Closes the nodes whose last descriptor is closed. What a program has closed before it asks for
    /// something is closed before that is done.
    pub(crate) fn close_nodes(self: &Arc<Redirected>, desk: &Desk) {
        let mut nodes = lock(&self.nodes);
        nodes.retain(|(socket, cookie)| {
            if !has_hung_up(socket.as_fd()) {
                return true;
            }
            let (redirected, cookie) = (self.clone(), *cookie);
            desk.hand_in(move || {
                redirected.clients.close(cookie);
                redirected.bring_up_to_date();
            });
            false
        });
    }

    /// Carries out a request and answers it.
    pub(crate) fn attend(
        self: &Arc<Redirected>,
        request: Request<'_>,
        socket: Arc<OwnedFd>,
        desk: &Desk,
    ) {
        let peer = sockopt::socket_peercred(&socket).ok();
        let Some(peer) = peer.filter(|peer| peer.uid == geteuid()) else {
            return answer(&socket, Err(Errno::EPERM), None);
        };
        let pid = peer.pid.as_raw_nonzero().get() as u32;
        match request {
            Request::Refresh { path } => {
                let refreshed = text(path).and_then(|path| {
                    let mut files = lock(&self.files);
                    files.refresh(&self.tree(), &path)
                });
                answer(&socket, refreshed.map(|()| 0), None);
            }
            Request::Submit { cookie, bytes } => {
                let written = self.clients.write(cookie, pid, bytes);
                answer(&socket, written.map(u64::from), None);
            }
            Request::Store { path, bytes } => {
                let (path, bytes) = (text(path), bytes.to_vec());
                let redirected = self.clone();
                desk.hand_in(move || {
                    let stored = path.and_then(|path| redirected.tree().write(&path, &bytes));
                    redirected.bring_up_to_date();
                    answer(&socket, stored.map(|()| bytes.len() as u64), None);
                });
            }
            Request::Open { path, flags } => {
                let path = text(path);
                let redirected = self.clone();
                desk.hand_in(move || {
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
        // There is nothing to be read.
        shutdown(&ours, Shutdown::Write)?;
        lock(&self.nodes).push((Arc::new(ours), name.cookie));
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

fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut files = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
    let none = Timespec::default();
    poll(&mut files, Some(&none)).is_ok() && files[0].revents().contains(PollFlags::HUP)
}

/// Whoever does not take the answer has closed the connection.
fn answer(socket: &OwnedFd, result: Result<u64, Errno>, file: Option<BorrowedFd<'_>>) {
    let reply = match result {
        Ok(bytes) => Reply::done(bytes),
        Err(errno) => Reply::refused(errno.0),
    };
    let files: Vec<_> = file.into_iter().collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    let bytes = [io::IoSlice::new(reply.as_bytes())];
    let _ = sendmsg(socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL);
}
