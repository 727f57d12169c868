//! From an open node to a portal: device and queue of the node, and the connection to the device's process.

use std::ffi::CStr;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use dray_ring::{AttachError, RegionLayout};
use dray_wire::{Attach, Attached, Node, SOCKET_VARIABLE, SocketName, WireError};
use rustix::fs::fstat;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use zerocopy::IntoBytes;

use crate::mapping;
pub(crate) use crate::node::Wanted;
use crate::node::{check, identify};
use crate::redirect::redirection;
use crate::redirect::text::{has_environment, variable};
use crate::remote::{self, Key};
use crate::syscall::Answer;
use crate::table::PORTALS;
use crate::tsan;

/// The device's process answers at once, or something is wrong with it.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections have high descriptor numbers, since programs rely on the order of low ones.
pub(crate) const HIGH: i32 = 768;

/// Why a node cannot be mapped, other than that the driver refuses.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{SOCKET_VARIABLE} names no socket")]
    Name,
    #[error("the process that owns the device cannot be reached")]
    Socket(#[from] Errno),
    #[error("the process that owns the device has closed the connection")]
    Closed,
    #[error("the process that owns the device sends what it should not")]
    Wire(#[from] WireError),
    #[error("its answer has no rings with it")]
    NoRings,
    #[error("the rings cannot be mapped")]
    Attach(#[from] AttachError),
    #[error("more than {PORTALS} portals are mapped")]
    TooMany,
    #[error(transparent)]
    Sanitizer(#[from] tsan::Missing),
    #[error("refused")]
    Refused(i32),
}

/// The socket that the environment names, as it was when this was first called.
pub(crate) fn socket_name() -> Option<SocketName<'static>> {
    SocketName::parse(socket_variable()?.to_bytes())
}

/// The value of the variable, as it was when this was first called. Nothing here waits: memory checkers
/// initialise themselves within, and call back.
pub(crate) fn socket_variable() -> Option<&'static CStr> {
    /// The longest name of a socket, with its `@` and its end.
    const LONGEST: usize = 112;
    const UNKNOWN: u8 = 0;
    const MISSING: u8 = 1;
    const THERE: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
    static VALUE: [AtomicU8; LONGEST] = [const { AtomicU8::new(0) }; LONGEST];
    if STATE.load(Ordering::Acquire) == UNKNOWN {
        let value = variable(SOCKET_VARIABLE).filter(|value| value.len() < LONGEST);
        // Threads that are here at once store the same.
        for (place, byte) in VALUE.iter().zip(value.unwrap_or_default()) {
            place.store(*byte, Ordering::Relaxed);
        }
        match value {
            Some(_) => STATE.store(THERE, Ordering::Release),
            None if has_environment() => STATE.store(MISSING, Ordering::Release),
            None => {}
        }
    }
    if STATE.load(Ordering::Acquire) != THERE {
        return None;
    }
    // SAFETY: they were written before the state became what it is, and are not written again.
    let value = unsafe { std::slice::from_raw_parts(VALUE.as_ptr().cast::<u8>(), LONGEST) };
    CStr::from_bytes_until_nul(value).ok()
}

/// Maps the portal of the node that is open as `fd`; `None` if it is another file.
pub(crate) fn map(fd: i32, wanted: &Wanted) -> Option<Answer> {
    // SAFETY: it is open, or every use of it is refused.
    let node_fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let node = identify(node_fd)?;
    if let Err(errno) = check(node_fd, wanted) {
        return Some(Err(errno.raw_os_error()));
    }
    // The driver's rule for the length is the other side's; the kernel rounds up before.
    let bytes = wanted.bytes.next_multiple_of(4096);
    // A redirected node is a socket, which cannot be mapped.
    let file = redirection().is_none().then_some(fd);
    let attach = Attach::new(node.cookie, bytes as u64).held_by_file(file.is_some());
    let portal = match attached(&attach, &node) {
        Ok(portal) => portal,
        Err(ConnectError::Refused(errno)) => return Some(Err(errno)),
        Err(error) => {
            complain(&node, &error);
            return Some(Err(libc::EIO));
        }
    };
    after_fork();
    let Wanted {
        address,
        protection,
        flags,
        ..
    } = *wanted;
    let mapped = mapping::map(address, bytes, protection, flags, file, portal);
    if mapped.is_err() {
        portal.submit().unmapped();
    }
    Some(mapped)
}

fn attached(attach: &Attach, node: &Node) -> Result<&'static crate::Portal, ConnectError> {
    tsan::look()?;
    let connection = connect()?;
    let part = [IoSlice::new(attach.as_bytes())];
    let flags = SendFlags::NOSIGNAL;
    retry(|| rustix::net::sendmsg(&connection, &part, &mut Default::default(), flags))?;
    let (attached, rings) = receive(&connection)?;
    if attached.errno != 0 {
        return Err(ConnectError::Refused(attached.errno));
    }
    let rings = rings.ok_or(ConnectError::NoRings)?;
    let stat = fstat(&rings)?;
    let key = Key {
        file: (stat.st_dev, stat.st_ino),
        wq: attached.wq,
        client: attached.client,
        pasid: attached.pasid,
    };
    let shape = RegionLayout {
        queues: attached.rings,
        entries: attached.ring_entries,
    };
    remote::mapping(key, node, &rings, shape, connection)?.ok_or(ConnectError::TooMany)
}

pub(crate) fn connect() -> Result<OwnedFd, ConnectError> {
    Ok(dial(socket_name().ok_or(ConnectError::Name)?)?)
}

/// Connects to the device's process.
pub(crate) fn dial(name: SocketName<'_>) -> Result<OwnedFd, Errno> {
    let address = match name {
        SocketName::Abstract(name) => SocketAddrUnix::new_abstract_name(name)?,
        SocketName::Path(path) => SocketAddrUnix::new(path)?,
    };
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    let socket = match fcntl_dupfd_cloexec(&socket, HIGH) {
        Ok(high) => high,
        // There are fewer.
        Err(_) => socket,
    };
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, timeout, Some(REPLY_TIMEOUT))?;
    }
    retry(|| rustix::net::connect(&socket, &address))?;
    Ok(socket)
}

fn receive(socket: &OwnedFd) -> Result<(Attached, Option<OwnedFd>), ConnectError> {
    // One byte more, so that a longer message shows.
    let mut bytes = [0u8; size_of::<Attached>() + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = {
        let mut part = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        retry(|| rustix::net::recvmsg(socket.as_fd(), &mut part, &mut ancillary, flags))?.bytes
    };
    if got == 0 {
        return Err(ConnectError::Closed);
    }
    let mut rings = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message {
            rings = fds.next();
        }
    }
    Ok((Attached::from_message(&bytes[..got])?, rings))
}

/// A handler of the program may interrupt a call.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => (),
            answer => return answer,
        }
    }
}

/// Makes forked children leave their parent's connections alone.
fn after_fork() {
    static ONCE: Once = Once::new();
    extern "C" fn child() {
        crate::chain::forked();
        remote::forked();
        tsan::forked();
    }
    // SAFETY: the function does what is allowed in a child of a process with threads.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(child));
    });
}

/// Prints the cause of a failure: the program gets only EIO.
fn complain(node: &Node, error: &ConnectError) {
    use std::error::Error;
    let mut text = format!(
        "dray: wq{}.{} cannot be mapped: {error}",
        node.device, node.wq
    );
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text.push('\n');
    // SAFETY: standard error is open, or this is refused.
    let stderr = unsafe { BorrowedFd::borrow_raw(2) };
    // No other side could be informed.
    let _ = rustix::io::write(stderr, text.as_bytes());
}
