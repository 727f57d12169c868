//! The socket for requests of programs for portals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dray_wire::{Attach, Attached, Request, Supervise, Unmapped};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, listen, recv, sendmsg, socket_with, sockopt,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use zerocopy::IntoBytes;

use crate::RunError;
use crate::admission::Admission;
use crate::clients::{Clients, Mapping, random};
use crate::error::system;
use crate::redirect::Redirected;
use crate::serial_executor::{Job, SerialExecutor};
use crate::supervise::Supervision;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// How long a connection may stay without a request.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// Connections without a request at a time; more are not accepted meanwhile.
const WITHOUT_REQUEST: usize = 64;
/// How long the service rests when it can accept nothing more.
const REST: Duration = Duration::from_millis(20);

/// A connection, and the mapping that it holds after its request.
struct Connection {
    socket: Arc<OwnedFd>,
    mapping: Held,
    /// Number of the device whose portal it asked for.
    device: Option<u32>,
    asked: bool,
    since: Instant,
    /// The process behind a mapping that no file holds.
    process: Option<Peer>,
}

/// The mapping of a connection, once it has one.
type Held = Arc<Mutex<Option<Mapping>>>;

/// A mapping whose connection its process has closed by a direct system call, as programs do that close all
/// descriptors: it lasts until the process ends.
struct Survivor {
    process: Peer,
    mapping: Held,
    device: Option<u32>,
}

/// The process at the other end of a connection.
struct Peer {
    number: Pid,
    file: OwnedFd,
}

impl Peer {
    fn of(socket: &OwnedFd) -> Option<Peer> {
        let number = sockopt::socket_peercred(socket).ok()?.pid;
        let file = pidfd_open(number, PidfdFlags::empty()).ok()?;
        Some(Peer { number, file })
    }

    fn has_ended(&self) -> bool {
        let mut files = [PollFd::new(&self.file, PollFlags::IN)];
        poll(&mut files, Some(&Timespec::default())).is_ok() && !files[0].revents().is_empty()
    }
}

/// Has jobs done after the mappings that ended before them: a program that unmaps its portal, or ends, closes a socket, and
/// its next call may reach the file system before the service has seen that. The kernel's driver ends mappings before
/// munmap(2) returns and before a process can be waited for.
#[derive(Debug, Clone)]
pub(crate) struct AfterMappings {
    jobs: Sender<DeviceJob>,
    bell: Arc<OwnedFd>,
}

/// What is to be done, and the device that it concerns, if it is one alone.
type DeviceJob = (Option<u32>, Job);

impl AfterMappings {
    /// Has something done after the end of all mappings of a device that have ended by now, and after all that was handed
    /// in before for the device; without one, of all devices.
    pub(crate) fn submit(&self, device: Option<u32>, job: impl FnOnce() + Send + 'static) {
        // The service ends only with the session.
        let _ = self.jobs.send((device, Box::new(job)));
        // It cannot be full: the service takes what is in it as one.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }
}

/// The other end.
struct Waiting {
    jobs: Receiver<DeviceJob>,
    bell: Arc<OwnedFd>,
}

impl Waiting {
    /// The submitted jobs.
    fn take(&self) -> Vec<DeviceJob> {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        self.jobs.try_iter().collect()
    }
}

/// The socket, before anyone serves it.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    name: String,
}

impl Listener {
    /// Opens it.
    ///
    /// # Errors
    /// No socket.
    pub(crate) fn new() -> Result<Listener, RunError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(system("socket"))?;
        let name = format!("dray-{}-{:016x}", std::process::id(), random());
        // In the abstract namespace nothing is left of it, however this process ends.
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(system("bind"))?;
        bind(&socket, &address).map_err(system("bind"))?;
        listen(&socket, BACKLOG).map_err(system("listen"))?;
        Ok(Listener {
            socket,
            name: format!("@{name}"),
        })
    }

    /// Its name, as the environment of programs holds it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Starts the service. Jobs that must run after the ends of mappings go through the returned [`AfterMappings`].
    ///
    /// # Errors
    /// No more threads or descriptors.
    pub(crate) fn serve(
        self,
        clients: Arc<Clients>,
        executor: SerialExecutor,
        supervision: Arc<Supervision>,
        redirected: Option<Arc<Redirected>>,
        admission: Admission,
    ) -> Result<AfterMappings, RunError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = Arc::new(eventfd(0, flags).map_err(system("eventfd"))?);
        let (sender, jobs) = channel();
        let after = AfterMappings {
            jobs: sender,
            bell: bell.clone(),
        };
        let waiting = Waiting { jobs, bell };
        let handlers = Handlers {
            clients,
            executor,
            supervision,
            redirected,
            admission,
        };
        let serve = move || serve(&self.socket, &waiting, &handlers);
        thread::Builder::new()
            .name("dray-service".into())
            .spawn(serve)
            .map_err(system("starting a thread"))?;
        Ok(after)
    }
}

/// Carries out the requests.
struct Handlers {
    clients: Arc<Clients>,
    executor: SerialExecutor,
    supervision: Arc<Supervision>,
    redirected: Option<Arc<Redirected>>,
    admission: Admission,
}

impl Handlers {
    /// The connection of a mapping has ended; whether the mapping has, too, or a file may hold it.
    fn end_mapping(&self, mapping: &Held, device: Option<u32>, unmapped: bool) {
        let (clients, mapping) = (self.clients.clone(), mapping.clone());
        self.executor.submit(device, move || {
            let mapping = mapping
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            match mapping {
                Some(mapping) if mapping.held_by_file && !unmapped => clients.keep(mapping),
                Some(mapping) => clients.unmap(mapping),
                None => {}
            }
        });
    }
}

fn serve(listener: &OwnedFd, waiting: &Waiting, handlers: &Handlers) {
    let mut connections: Vec<Connection> = Vec::new();
    let mut survivors: Vec<Survivor> = Vec::new();
    let mut complained = false;
    loop {
        let silent = connections.iter().filter(|connection| !connection.asked);
        let (waiting_for, oldest) = (silent.clone().count(), silent.map(|c| c.since).min());
        let accepts = match waiting_for < WITHOUT_REQUEST {
            true => PollFlags::IN,
            false => PollFlags::empty(),
        };
        let mut files = vec![PollFd::from_borrowed_fd(listener.as_fd(), accepts)];
        files.extend(
            connections
                .iter()
                .map(|c| PollFd::from_borrowed_fd(c.socket.as_fd(), PollFlags::IN)),
        );
        let redirected = handlers.redirected.as_ref();
        let nodes = redirected.map_or(Vec::new(), |redirected| redirected.nodes());
        let ends = nodes.iter().map(|node| node.as_fd());
        files.extend(ends.map(|end| PollFd::from_borrowed_fd(end, PollFlags::empty())));
        let processes = survivors
            .iter()
            .map(|survivor| survivor.process.file.as_fd());
        let first_survivor = files.len();
        files.extend(processes.map(|process| PollFd::from_borrowed_fd(process, PollFlags::IN)));
        files.push(PollFd::from_borrowed_fd(
            waiting.bell.as_fd(),
            PollFlags::IN,
        ));
        // It is interrupted by no signal; and if it fails, so does the next one.
        let left = oldest.map(|since| REQUEST_WITHIN.saturating_sub(since.elapsed()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let _ = poll(&mut files, left.as_ref());
        let jobs = waiting.take();
        if !jobs.is_empty() {
            // What ended before they were handed in shows now.
            let _ = poll(&mut files, Some(&Timespec::default()));
        }
        let ready: Vec<bool> = files
            .iter()
            .map(|file| !file.revents().is_empty())
            .collect();
        if let Some(redirected) = redirected {
            redirected.notice(&handlers.executor);
        }
        let mut index = first_survivor;
        survivors.retain(|survivor| {
            index += 1;
            let ended = ready[index - 1];
            if ended {
                handlers.end_mapping(&survivor.mapping, survivor.device, true);
            }
            !ended
        });
        let mut index = 0;
        connections.retain_mut(|connection| {
            index += 1;
            match ready[index] {
                true => serve_connection(connection, handlers, &mut survivors),
                false => connection.asked || connection.since.elapsed() < REQUEST_WITHIN,
            }
        });
        for (device, job) in jobs {
            handlers.executor.submit(device, job);
        }
        if ready[0] {
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) if !handlers.admission.admits(&socket) => {}
                Ok(socket) => connections.push(Connection {
                    socket: Arc::new(socket),
                    mapping: Arc::default(),
                    device: None,
                    asked: false,
                    since: Instant::now(),
                    process: None,
                }),
                Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => {
                    if !complained {
                        complained = true;
                        eprintln!("warning: a program cannot be given a portal for now: {error}");
                    }
                    thread::sleep(REST);
                }
            }
        }
    }
}

/// Reads what has come; whether the connection goes on.
fn serve_connection(
    connection: &mut Connection,
    handlers: &Handlers,
    survivors: &mut Vec<Survivor>,
) -> bool {
    // One byte more than the longest, so that a longer one shows.
    let mut message = [0; Request::MAX_BYTES + 1];
    let length = match recv(&connection.socket, &mut message, RecvFlags::empty()) {
        Ok((_, length)) => length.min(message.len()),
        Err(rustix::io::Errno::AGAIN) => return true,
        Err(_) => 0,
    };
    let message = &message[..length];
    if let (false, Ok(asked)) = (connection.asked, Supervise::from_message(message)) {
        connection.asked = true;
        handlers
            .supervision
            .answer(connection.socket.clone(), asked);
        return true;
    }
    if let (false, Ok(attach)) = (connection.asked, Attach::from_message(message)) {
        connection.asked = true;
        if !attach.is_held_by_file() {
            connection.process = Peer::of(&connection.socket);
        }
        let clients = handlers.clients.clone();
        let (socket, mapping) = (connection.socket.clone(), connection.mapping.clone());
        connection.device = clients.get(attach.cookie).map(|client| client.device);
        handlers.executor.submit(connection.device, move || {
            answer(&clients, &socket, attach, &mapping)
        });
        return true;
    }
    if let (Some(redirected), false, Ok(request)) = (
        &handlers.redirected,
        connection.asked,
        Request::from_message(message),
    ) {
        connection.asked = true;
        redirected.serve(request, connection.socket.clone(), &handlers.executor);
        return true;
    }
    if let (false, Ok(unmapped)) = (connection.asked, Unmapped::from_message(message)) {
        end_survivor(&connection.socket, &unmapped, handlers, survivors);
        return false;
    }
    // Closed, or something that has no meaning here: that is the end of the connection, and of the mapping if
    // the program says so or nothing else shows it.
    let unmapped = Unmapped::from_message(message).is_ok();
    let process = connection.process.take().filter(|_| !unmapped);
    match process.filter(|process| !process.has_ended()) {
        Some(process) => survivors.push(Survivor {
            process,
            mapping: connection.mapping.clone(),
            device: connection.device,
        }),
        None => handlers.end_mapping(&connection.mapping, connection.device, unmapped),
    }
    false
}

/// A process has unmapped a portal whose connection it has closed before.
fn end_survivor(
    socket: &OwnedFd,
    unmapped: &Unmapped,
    handlers: &Handlers,
    survivors: &mut Vec<Survivor>,
) {
    let Ok(peer) = sockopt::socket_peercred(socket) else {
        return;
    };
    let found = survivors.iter().position(|survivor| {
        let mapping = survivor.mapping.lock();
        let mapping = mapping.unwrap_or_else(PoisonError::into_inner);
        let cookie = mapping.as_ref().map(|mapping| mapping.cookie);
        survivor.process.number == peer.pid && cookie.is_some_and(|cookie| unmapped.is_of(cookie))
    });
    if let Some(survivor) = found.map(|index| survivors.swap_remove(index)) {
        handlers.end_mapping(&survivor.mapping, survivor.device, true);
    }
}

fn answer(clients: &Clients, socket: &OwnedFd, attach: Attach, slot: &Mutex<Option<Mapping>>) {
    let map = || {
        let peer = sockopt::socket_peercred(socket).map_err(|_| libc::EPERM)?;
        let pid = peer.pid.as_raw_nonzero().get() as u32;
        let mapped = clients.map(attach.cookie, pid, attach.length);
        mapped.map_err(|errno| errno.0)
    };
    let sent = match map() {
        Ok((attached, mut mapping)) => {
            mapping.held_by_file = attach.is_held_by_file();
            let device = clients.machine.device(attached.device);
            let region = device.and_then(|device| device.region());
            let sent = send(
                socket,
                attached.as_bytes(),
                region.map(|region| region.fd()),
            );
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(mapping);
            sent
        }
        Err(errno) => send(socket, Attached::refused(errno).as_bytes(), None),
    };
    // A client that does not take the answer has closed the connection, which ends the mapping.
    drop(sent);
}

/// Sends a message, and a file with it.
pub(crate) fn send(
    socket: &OwnedFd,
    message: &[u8],
    file: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let files: Vec<_> = file.into_iter().collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    let bytes = [io::IoSlice::new(message)];
    sendmsg(socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
