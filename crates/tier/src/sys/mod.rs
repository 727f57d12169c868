//! The kernel interfaces that page migration stands on, each in a file of its own.

pub mod cgroup;
pub mod damon;
pub mod maps;
pub mod memory;
pub mod pagemap;
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
