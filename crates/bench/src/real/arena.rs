//! Memory to measure on.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::buffers::PATTERN;

const HUGE_PAGE: usize = 2 << 20;

/// Private memory, touched by the thread that made it, so that it lies on that thread's node; in
/// huge pages where the kernel has them.
#[derive(Debug)]
pub(super) struct Arena {
    base: NonNull<u8>,
    mapped: usize,
    start: u64,
}

impl Arena {
    /// At least `bytes` bytes, all set to [`PATTERN`].
    pub(super) fn new(bytes: usize) -> io::Result<Arena> {
        let mapped = bytes
            .checked_add(2 * HUGE_PAGE)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address that the kernel chooses.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, protection, flags) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut arena = Arena {
            base,
            mapped,
            start: (base.as_ptr() as u64).next_multiple_of(HUGE_PAGE as u64),
        };
        // SAFETY: the range is the mapping just made. Advice that is not taken is no error.
        let _ = unsafe { madvise(base.as_ptr().cast(), mapped, Advice::LinuxHugepage) };
        let whole = bytes.next_multiple_of(8);
        for chunk in arena.bytes(whole).chunks_exact_mut(8) {
            chunk.copy_from_slice(&PATTERN.to_le_bytes());
        }
        Ok(arena)
    }

    /// First address, at a huge page's boundary.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    fn bytes(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: `start + len` is within the mapping, which is as long plus what alignment takes.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, len) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this arena's, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}
