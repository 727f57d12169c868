//! Signals as something to be read.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::RunError;
use crate::error::system;

/// All signals that can be blocked, blocked for this thread and those that it starts, and read.
#[derive(Debug)]
pub(crate) struct Signals {
    file: OwnedFd,
    before: libc::sigset_t,
}

/// A signal that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Which.
    pub(crate) number: i32,
    /// A process has sent it, and not the terminal, which sends it to all in the foreground.
    pub(crate) sent: bool,
}

/// Signals that say what this very thread has done wrong; to block them does not help.
const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
];

impl Signals {
    pub(crate) fn block() -> Result<Signals, RunError> {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it fills the set.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: it has been filled.
        let mut all = unsafe { all.assume_init() };
        for fault in FAULTS {
            // SAFETY: the set is one, and the signal is one.
            unsafe { libc::sigdelset(&raw mut all, fault) };
        }
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both are sets, one to be read and one to be written.
        let result = unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, before.as_mut_ptr())
        };
        if result != 0 {
            return Err(system("pthread_sigmask")(io::Error::from_raw_os_error(
                result,
            )));
        }
        // SAFETY: the call has written it.
        let before = unsafe { before.assume_init() };
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is one.
        let file = unsafe { libc::signalfd(-1, &raw const all, flags) };
        if file < 0 {
            return Err(system("signalfd")(io::Error::last_os_error()));
        }
        // SAFETY: the call has opened it for us.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        Ok(Signals { file, before })
    }

    /// For a forked process: what its parent has pending is not its own.
    pub(crate) fn again(&self) -> Result<Signals, RunError> {
        let fresh = Signals::block()?;
        Ok(Signals {
            before: self.before,
            ..fresh
        })
    }

    /// The mask that was before, for a program to begin with.
    pub(crate) fn before(&self) -> libc::sigset_t {
        self.before
    }

    /// Numbers of those that have come before there is a process to pass them on to. The terminal
    /// does not send them again.
    pub(crate) fn early(&self) -> Vec<i32> {
        let all = std::iter::from_fn(|| self.next()).map(|signal| signal.number);
        all.filter(|number| *number != libc::SIGCHLD).collect()
    }

    /// The next one, if one has come.
    pub(crate) fn next(&self) -> Option<Signal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: there is room for as many bytes as are asked for.
        let got = unsafe { libc::read(self.file.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if got != size as isize {
            return None;
        }
        // SAFETY: the call has written all of it.
        let info = unsafe { info.assume_init() };
        Some(Signal {
            number: info.ssi_signo as i32,
            sent: info.ssi_code <= 0,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
