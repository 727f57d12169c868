//! The first process of a session's namespace: it starts the command, reaps ended processes, and ends with
//! the command. When it ends, the kernel kills all others.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, write};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::RunError;
use crate::child::{Program, exit, fork};
use crate::error::{Facility, forbidden};
use crate::mounts;
use crate::redirect::SessionDirectory;
use crate::redirect::descendants::{self, Descendants};
use crate::signals::Signals;
use crate::supervise::Followed;

/// What the launcher says when all is mounted.
pub(crate) const GO: u8 = 1;

/// What the first process answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// The command ended, with this status of wait(2).
    Ended(i32),
    /// The error number of a system call: no `/proc`.
    NoProc(i32),
    /// The error number of a system call: no process.
    NoProcess(i32),
}

impl Word {
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        let (kind, value) = match self {
            Word::Ended(status) => (1_u32, status),
            Word::NoProc(errno) => (2, errno),
            Word::NoProcess(errno) => (3, errno),
        };
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Option<Word> {
        let [a, b, c, d, e, f, g, h] = bytes;
        let value = i32::from_ne_bytes([e, f, g, h]);
        match u32::from_ne_bytes([a, b, c, d]) {
            1 => Some(Word::Ended(value)),
            2 => Some(Word::NoProc(value)),
            3 => Some(Word::NoProcess(value)),
            _ => None,
        }
    }
}

/// Is the first process, until the command has ended or the launcher has.
pub(crate) fn be(
    launcher: &OwnedFd,
    signals: &Signals,
    program: &Program,
    followed: &Followed,
    directory: Option<&SessionDirectory>,
) -> ! {
    // A stopped process would not see the launcher's end.
    // SAFETY: it says which signal comes at the parent's end.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT) };
    let mut byte = [0];
    if read(launcher, &mut byte) != Ok(1) {
        // The launcher gave up, and has said why.
        exit(1);
    }
    let Ok(signals) = signals.again() else {
        exit(1)
    };
    let session = match directory {
        None => {
            if let Err(error) = processes() {
                say(launcher, Word::NoProc(number(&error)));
                exit(1);
            }
            None
        }
        Some(directory) => match descendants::adopt() {
            Ok(descendants) => Some((directory, descendants)),
            Err(error) => {
                say(launcher, Word::NoProcess(number(&error)));
                exit(1);
            }
        },
    };
    let early = signals.early();
    let command = match fork() {
        Ok(0) => {
            if directory.is_some() {
                // SAFETY: it says which signal comes at the parent's end.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            }
            program.become_it(followed)
        }
        Ok(command) => command,
        Err(error) => {
            say(launcher, Word::NoProcess(number(&error)));
            exit(1)
        }
    };
    for number in early {
        // SAFETY: the command is a child that has not been waited for.
        unsafe { libc::kill(command, number) };
    }
    watch(launcher, &signals, command, session.as_ref())
}

/// The namespace's own `/proc`, which the launcher does not see: it looks processes up by the numbers
/// that they have outside.
pub(crate) fn processes() -> Result<(), RunError> {
    // SAFETY: no file is closed by it, and this process has one thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(forbidden(Facility::Proc))?;
    mounts::proc()?;
    mounts::modules();
    Ok(())
}

fn number(error: &RunError) -> i32 {
    match error {
        RunError::Forbidden { source, .. }
        | RunError::System { source, .. }
        | RunError::Mount { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
        _ => libc::EIO,
    }
}

fn say(launcher: &OwnedFd, word: Word) {
    // If the launcher has ended, there is no reader.
    let _ = write(launcher, &word.to_bytes());
}

fn watch(
    launcher: &OwnedFd,
    signals: &Signals,
    command: libc::pid_t,
    session: Option<&(&SessionDirectory, Descendants)>,
) -> ! {
    loop {
        let mut files = [
            PollFd::new(launcher, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        if poll(&mut files, None).is_err_and(|errno| errno != Errno::INTR) {
            exit(1);
        }
        if !files[0].revents().is_empty() {
            eprintln!(
                "error: the process that owned the virtual device has ended; its programs are killed"
            );
            if let Some((directory, descendants)) = session {
                descendants.end();
                directory.remove();
            }
            exit(1);
        }
        while let Some(signal) = signals.next() {
            if signal.number == libc::SIGCHLD {
                if let Some(status) = reap(command) {
                    say(launcher, Word::Ended(status));
                    if let Some((_, descendants)) = session {
                        descendants.end();
                    }
                    exit(0);
                }
            } else if signal.sent {
                // SAFETY: the command is a child that has not been waited for.
                unsafe { libc::kill(command, signal.number) };
            }
        }
    }
}

/// Waits for all children that have ended; the status of the command, if it is among them.
fn reap(command: libc::pid_t) -> Option<i32> {
    let mut found = None;
    loop {
        let mut status = 0;
        // SAFETY: the status is ours.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if pid <= 0 {
            return found;
        }
        if pid == command {
            found = Some(status);
        }
    }
}

/// Both ends of the line between launcher and first process.
pub(crate) fn line() -> Result<(OwnedFd, OwnedFd), RunError> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(crate::error::system("socketpair"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_round_trip_through_bytes() {
        for word in [Word::Ended(0x100), Word::NoProc(1), Word::NoProcess(11)] {
            assert_eq!(Word::from_bytes(word.to_bytes()), Some(word));
        }
        assert_eq!(Word::from_bytes([9; 8]), None);
    }
}
