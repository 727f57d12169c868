//! A process that removes the files of a session when both its processes are killed at once, as by a signal
//! to their process group.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, pipe_with};

use super::SessionDirectory;
use crate::RunError;
use crate::child::{exit, fork};
use crate::error::system;

/// How often and how long after another it tries: programs of the session may still be writing.
const TRIES: u32 = 200;
const REST: Duration = Duration::from_millis(10);

/// Starts a process in a session of its own that waits until no process holds what is returned, and then
/// removes the files. It is no descendant of this process.
///
/// # Errors
/// No process or pipe.
pub(crate) fn start(directory: &SessionDirectory) -> Result<OwnedFd, RunError> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(system("pipe"))?;
    match fork()? {
        0 => {
            // Once more, so that it has another parent.
            if matches!(fork(), Ok(0)) {
                drop(ours);
                remove_later(theirs, directory);
            }
            exit(0);
        }
        between => {
            // SAFETY: without a place for the status; the process is a child.
            while unsafe { libc::waitpid(between, std::ptr::null_mut(), 0) } == -1
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {
            }
            Ok(ours)
        }
    }
}

fn remove_later(line: OwnedFd, directory: &SessionDirectory) -> ! {
    // SAFETY: it makes this process the leader of a session, where no group's signal reaches it.
    unsafe { libc::setsid() };
    close_others(&line);
    let mut byte = [0];
    while read(&line, &mut byte) == Err(Errno::INTR) {}
    for _ in 0..TRIES {
        directory.remove();
        if !directory.path().exists() {
            break;
        }
        thread::sleep(REST);
    }
    exit(0)
}

/// Closes all descriptors but one: a reader of the session's output must not wait for the end of this process.
fn close_others(kept: &OwnedFd) {
    let kept = kept.as_raw_fd().cast_unsigned();
    let close = |first: u32, last: u32| {
        // SAFETY: nothing of this process uses them any more.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    };
    if kept > 0 {
        close(0, kept - 1);
    }
    close(kept + 1, u32::MAX);
}
