//! The kernel interfaces that page migration uses, each in a file of its own.

pub mod cgroup;
pub mod damon;
pub mod maps;
pub mod memory;
pub mod pagemap;
pub mod processes;
pub mod references;
pub mod uffd;

use std::io;

/// Bytes of a base page.
pub const PAGE: u64 = 4096;
/// Bytes of a huge page.
pub const HUGE: u64 = 2 << 20;

/// The error number of the last call of this thread.
pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Processor time of this thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is written to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
