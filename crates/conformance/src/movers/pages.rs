//! Pages of this process between two inaccessible ones.

use std::ops::Range;
use std::ptr::NonNull;

use super::door::PAGE;

/// Pages of this process, present in memory, with a guard page before and behind them: an operation that writes
/// outside ends the process.
#[derive(Debug)]
pub struct ProcessPages {
    mapping: NonNull<u8>,
    /// Bytes between the guards.
    size: usize,
    len: usize,
}

// SAFETY: the mapping belongs to this value.
unsafe impl Send for ProcessPages {}

impl ProcessPages {
    /// `len` bytes, all 0.
    ///
    /// # Panics
    /// There is no memory.
    pub fn new(len: usize) -> ProcessPages {
        let page = PAGE as usize;
        let size = len.next_multiple_of(page).max(page);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size + 2 * page,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
        assert_ne!(mapping, libc::MAP_FAILED, "no memory");
        let mapping = NonNull::new(mapping.cast::<u8>()).expect("not at 0");
        let mut pages = ProcessPages { mapping, size, len };
        pages.allow();
        // Written, so that no page is still to be mapped: devices take page faults for those.
        // SAFETY: as above.
        unsafe { pages.start().write_bytes(1, size) };
        // SAFETY: as above.
        unsafe { pages.start().write_bytes(0, size) };
        // Movers reach the memory by its address, as a device would.
        pages.start().expose_provenance();
        pages
    }

    fn start(&self) -> *mut u8 {
        // SAFETY: the first page of the mapping is a guard.
        unsafe { self.mapping.as_ptr().add(PAGE as usize) }
    }

    /// The first address.
    pub fn base(&self) -> u64 {
        self.start() as u64
    }

    /// Addresses of the page behind, which is inaccessible.
    pub fn guard(&self) -> Range<u64> {
        let start = self.base() + self.size as u64;
        start..start + PAGE
    }

    /// Takes the access to a page between the guards away. Its bytes stay.
    pub(crate) fn forbid(&mut self, page: u64) {
        let inside = self.base()..self.base() + self.size as u64;
        assert!(inside.contains(&page), "a page of this memory");
        // SAFETY: a page of this mapping, to which no reference exists.
        let forbidden =
            unsafe { libc::mprotect(page as *mut libc::c_void, PAGE as usize, libc::PROT_NONE) };
        assert_eq!(forbidden, 0, "the page is mapped");
    }

    /// Gives the access to all pages between the guards.
    pub(crate) fn allow(&mut self) {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: pages of this mapping.
        let allowed = unsafe { libc::mprotect(self.start().cast(), self.size, access) };
        assert_eq!(allowed, 0, "the pages are mapped");
    }

    /// Writes the first bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len);
        // SAFETY: so many bytes are between the guards, and no other reference to them exists now.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start(), bytes.len()) };
    }

    /// All bytes.
    pub fn get(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(self.start(), bytes.as_mut_ptr(), self.len) };
        bytes
    }
}

impl Drop for ProcessPages {
    fn drop(&mut self) {
        let len = self.size + 2 * PAGE as usize;
        // SAFETY: the mapping of this value, which no mover uses any more.
        let unmapped = unsafe { libc::munmap(self.mapping.as_ptr().cast(), len) };
        debug_assert_eq!(unmapped, 0, "a mapping of its own");
    }
}
