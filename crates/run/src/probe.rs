//! Whether a session may have files and processes of its own here: tried by a process that ends at once.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::{Facility, system};
use crate::{RunError, child, init, mounts, namespace};

/// Facilities as they are sent, by their place.
const FACILITIES: [Facility; 3] = [Facility::Namespaces, Facility::Fuse, Facility::Proc];

/// Whether a session can be made without [`Session::redirect`](crate::Session::redirect). For a process with one thread.
///
/// # Errors
/// [`RunError::Forbidden`] with the facility that is missing; no pipe or process can be made.
pub fn can_be_private() -> Result<(), RunError> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(system("a pipe"))?;
    let (mut read, write) = (File::from(read), File::from(write));
    let pid = child::fork()?;
    if pid == 0 {
        drop(read);
        report(&write, attempt(&write));
        child::exit(0);
    }
    drop(write);
    let mut said = Vec::new();
    let read = read.read_to_end(&mut said);
    let mut status = 0;
    // SAFETY: a child of this process that nothing else waits for.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    read.map_err(system("a pipe"))?;
    match said.as_slice() {
        [facility, errno @ ..] => {
            let errno = errno
                .first_chunk()
                .copied()
                .map_or(libc::EIO, i32::from_ne_bytes);
            let what = FACILITIES[usize::from(*facility) % FACILITIES.len()];
            let source = io::Error::from_raw_os_error(errno);
            Err(RunError::Forbidden { what, source })
        }
        [] => Ok(()),
    }
}

/// Makes what a session makes; all of it goes with this process.
fn attempt(write: &File) -> Result<(), RunError> {
    namespace::enter()?;
    let (_stage, _fuse) = mounts::stage("dray-probe")?;
    let first = namespace::fork()?;
    if first == 0 {
        report(write, init::processes());
        child::exit(0);
    }
    let mut status = 0;
    // SAFETY: a child of this process that nothing else waits for.
    unsafe { libc::waitpid(first, &raw mut status, 0) };
    Ok(())
}

/// Sends what is missing, if something is.
fn report(mut write: &File, result: Result<(), RunError>) {
    let Err(RunError::Forbidden { what, source }) = result else {
        // Whatever else fails, fails in the session as well, and is reported there.
        return;
    };
    let place = FACILITIES.iter().position(|facility| *facility == what);
    let mut message = vec![place.unwrap_or(0) as u8];
    message.extend(source.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes());
    // Without a reader nobody asks.
    let _ = write.write_all(&message);
}
