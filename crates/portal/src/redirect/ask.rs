//! Requests to the process that owns the device.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

use dray_wire::{Reply, Request};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg,
    sendmsg,
};
use zerocopy::IntoBytes;

use crate::connect::{connect, retry};

/// Has `request` carried out; how many bytes were taken.
///
/// # Errors
/// The error number of the call that it stands for; `EIO` if there is no answer.
pub(crate) fn ask(request: Request<'_>) -> Result<usize, i32> {
    let (reply, _) = exchange(request, true)?;
    Ok(reply.bytes as usize)
}

/// Opens a node; its descriptor.
///
/// # Errors
/// As for [`ask`].
pub(crate) fn open(path: &[u8], flags: i32) -> Result<i32, i32> {
    let close_on_exec = flags & libc::O_CLOEXEC != 0;
    let (_, file) = exchange(Request::Open { path, flags }, close_on_exec)?;
    file.map(IntoRawFd::into_raw_fd).ok_or(libc::EIO)
}

fn exchange(request: Request<'_>, close_on_exec: bool) -> Result<(Reply, Option<OwnedFd>), i32> {
    let socket = connect().map_err(|_| libc::EIO)?;
    // A command waits for what is in flight as long as it takes; the end of the other side is noticed.
    set_socket_timeout(&socket, Timeout::Recv, None).map_err(|_| libc::EIO)?;
    let (head, path, bytes) = request.parts();
    let parts = [head.as_bytes(), path, bytes].map(IoSlice::new);
    let mut none = SendAncillaryBuffer::default();
    let sent = retry(|| sendmsg(&socket, &parts, &mut none, SendFlags::NOSIGNAL));
    match sent {
        Ok(_) => {}
        // What is to be written is not the program's to read.
        Err(rustix::io::Errno::FAULT) => return Err(libc::EFAULT),
        Err(_) => return Err(libc::EIO),
    }
    let mut answer = [0; size_of::<Reply>() + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = match close_on_exec {
        true => RecvFlags::CMSG_CLOEXEC,
        false => RecvFlags::empty(),
    };
    let got = {
        let mut part = [IoSliceMut::new(&mut answer)];
        retry(|| recvmsg(socket.as_fd(), &mut part, &mut ancillary, flags))
    };
    let got = got.map_err(|_| libc::EIO)?.bytes;
    let mut file = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut files) = message {
            file = files.next();
        }
    }
    let reply = Reply::from_message(&answer[..got]).map_err(|_| libc::EIO)?;
    match reply.errno {
        0 => Ok((reply, file)),
        errno => Err(errno),
    }
}
