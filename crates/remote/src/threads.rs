//! Threads by which the memory of a process is reached.
//!
//! The first thread of a process may end before the others (pthread_exit(3) in `main`). What is named by the number of the
//! process has no memory then: `/proc/PID/maps` is empty, and process_vm_readv(2) fails with `ESRCH`. Any other thread has it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::pid_t;

/// Threads that may end while an access is made by them.
const MOST_ENDED: usize = 16;

/// The number of a thread that has the memory of a process: that of the first thread, which is the process's, while it lives
/// or where none does. Every name in `/proc` and every call that takes a thread takes it.
pub fn living_thread(pid: u32) -> u32 {
    let found = pid_t::try_from(pid).ok().and_then(living);
    found.and_then(|found| found.try_into().ok()).unwrap_or(pid)
}

fn living(pid: pid_t) -> Option<pid_t> {
    if has_memory(pid) {
        return Some(pid);
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut threads = threads.filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok());
    threads.find(|thread| has_memory(*thread))
}

/// Whether a thread has an address space: one that has ended has none. That it may not be accessed is no end.
fn has_memory(thread: pid_t) -> bool {
    let mut byte = 0_u8;
    let local = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 1,
    };
    // SAFETY: the local byte is ours; the kernel checks the remote one.
    let read = unsafe { libc::process_vm_readv(thread, &local, 1, &remote, 1, 0) };
    read >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// A process as process_vm_readv(2) and process_vm_writev(2) name it.
#[derive(Debug)]
pub(crate) struct Target {
    pid: pid_t,
    /// By which its memory is reached.
    thread: AtomicI32,
}

impl Target {
    pub(crate) fn new(pid: pid_t) -> Target {
        Target {
            pid,
            thread: AtomicI32::new(pid),
        }
    }

    /// What `call` returns, which is given a thread that has the memory.
    ///
    /// # Errors
    /// That of the call; `ESRCH` where no thread lives.
    pub(crate) fn call(&self, call: impl Fn(pid_t) -> isize) -> io::Result<usize> {
        for _ in 0..MOST_ENDED {
            let thread = self.thread.load(Ordering::Relaxed);
            if self.has(thread) {
                match usize::try_from(call(thread)) {
                    Ok(done) => return Ok(done),
                    Err(_) => {
                        let error = io::Error::last_os_error();
                        if error.raw_os_error() != Some(libc::ESRCH) {
                            return Err(error);
                        }
                    }
                }
            }
            let Some(other) = living(self.pid) else {
                break;
            };
            self.thread.store(other, Ordering::Relaxed);
        }
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }

    /// Whether a thread is of this process: the number of one that has ended may be another process's.
    fn has(&self, thread: pid_t) -> bool {
        thread == self.pid || Path::new(&format!("/proc/{}/task/{thread}", self.pid)).exists()
    }
}
