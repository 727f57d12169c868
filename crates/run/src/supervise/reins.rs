//! How the command comes under the supervisor: it says that it is there, is seized, and goes on.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use rustix::io::{read, write};
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};

use super::filter;
use super::ptrace::{self, Tid};
use super::supervisor::Supervisor;
use crate::RunError;
use crate::clients::Clients;
use crate::desk::Desk;
use crate::error::system;

/// What the command says, and is answered.
const HERE: u8 = 1;
const SEIZED: u8 = 2;
const LEFT_ALONE: u8 = 3;

/// The launcher's end of the line to the command.
#[derive(Debug)]
pub(crate) struct Reins(OwnedFd);

/// The command's end.
#[derive(Debug)]
pub(crate) struct Followed(OwnedFd);

impl Reins {
    /// Both ends.
    ///
    /// # Errors
    /// No sockets.
    pub(crate) fn new() -> Result<(Reins, Followed), RunError> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, theirs) =
            socketpair(family, kind, SocketFlags::CLOEXEC, None).map_err(system("socketpair"))?;
        // The sender's number comes as this process numbers it.
        set_socket_passcred(&ours, true).map_err(system("setsockopt"))?;
        Ok((Reins(ours), Followed(theirs)))
    }

    /// Starts the thread that waits for the command and supervises it.
    ///
    /// # Errors
    /// No more threads.
    pub(crate) fn drive(self, clients: Arc<Clients>, desk: Desk) -> Result<(), RunError> {
        let drive = move || {
            let Some(tid) = self.wait() else {
                // The session has ended before the command was there.
                return;
            };
            let answer = match ptrace::seize(tid) {
                Ok(()) => SEIZED,
                Err(error) => {
                    complain(&error);
                    LEFT_ALONE
                }
            };
            let mut supervisor = Supervisor::new(clients, desk);
            supervisor.begin(tid);
            if write(&self.0, &[answer]).is_ok() && answer == SEIZED {
                supervisor.run();
            }
        };
        thread::Builder::new()
            .name("dray-supervisor".into())
            .spawn(drive)
            .map_err(system("starting a thread"))?;
        Ok(())
    }

    fn wait(&self) -> Option<Tid> {
        let mut byte = [0];
        let mut part = [IoSliceMut::new(&mut byte)];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(&self.0, &mut part, &mut ancillary, RecvFlags::empty()).ok()?;
        let sender = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.pid),
            _ => None,
        });
        match got.bytes {
            1 => sender.map(|pid| pid.as_raw_nonzero().get()),
            _ => None,
        }
    }
}

fn complain(error: &io::Error) {
    eprintln!("warning: ptrace cannot be had here: {error}; the command gets no portal");
    eprintln!(
        "hint: a process is traced by one alone, and not under gdb, strace or another supervisor; in \
         a container --cap-add SYS_PTRACE; sysctl kernel.yama.ptrace_scope below 3. write(2) works \
         without it: --require write"
    );
}

impl Followed {
    /// Waits, in the process that is to become the command, until it is seized, and has its system
    /// calls stop from now on.
    ///
    /// # Errors
    /// No filters; the launcher has gone.
    pub(crate) fn follow(&self) -> io::Result<()> {
        write(&self.0, &[HERE])?;
        let mut answer = [0];
        match (read(&self.0, &mut answer)?, answer[0]) {
            (1, SEIZED) => filter::install(),
            (1, LEFT_ALONE) => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
