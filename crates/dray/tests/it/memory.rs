//! Memory between pages that nothing can access.

use std::ops::{Deref, DerefMut};

pub(crate) const PAGE: usize = 4096;

/// Whole pages between two that cannot be accessed: a byte too far is a signal, or a page fault of a
/// device.
pub(crate) struct Guarded {
    base: *mut u8,
    pages: usize,
}

impl Guarded {
    /// So many pages, zeroed.
    pub(crate) fn new(pages: usize) -> Guarded {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (pages + 2) * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let memory = Guarded {
            base: base.cast(),
            pages,
        };
        memory.protect(0..pages, libc::PROT_READ | libc::PROT_WRITE);
        memory
    }

    /// Filled with noise.
    pub(crate) fn noise(pages: usize, seed: u64) -> Guarded {
        let mut memory = Guarded::new(pages);
        for (n, byte) in memory.iter_mut().enumerate() {
            *byte = ((n as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        }
        memory
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.base.expose_provenance() as u64 + PAGE as u64
    }

    /// Changes what can be done with some of its pages.
    pub(crate) fn protect(&self, pages: std::ops::Range<usize>, protection: i32) {
        let start = self.address() as usize + pages.start * PAGE;
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: pages of this mapping.
        let code = unsafe { libc::mprotect(start, pages.len() * PAGE, protection) };
        assert_eq!(code, 0);
    }

    /// Some of its pages can only be read.
    pub(crate) fn read_only(&self, pages: std::ops::Range<usize>) {
        self.protect(pages, libc::PROT_READ);
    }

    /// Some of its pages cannot be accessed.
    pub(crate) fn inaccessible(&self, pages: std::ops::Range<usize>) {
        self.protect(pages, libc::PROT_NONE);
    }
}

impl Deref for Guarded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = std::ptr::with_exposed_provenance(self.address() as usize);
        // SAFETY: so many bytes are mapped, and initialised by the kernel.
        unsafe { std::slice::from_raw_parts(start, self.pages * PAGE) }
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut [u8] {
        let start = std::ptr::with_exposed_provenance_mut(self.address() as usize);
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(start, self.pages * PAGE) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping of this value.
        unsafe { libc::munmap(self.base.cast(), (self.pages + 2) * PAGE) };
    }
}
