//! Whether the pages of copies can be accessed, found out by the kernel.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use super::PageCopy;
use super::plan::BASE_PAGE;

/// Bytes of memory whose pages one call looks at: at most 130 pages, and their lines are still in the
/// first-level cache when they are copied.
pub(super) const PROBE_BYTES: u64 = 256 << 10;

/// Entries of one pwritev(2) or preadv(2) (`UIO_MAXIOV`).
const MAX_ENTRIES: usize = 1024;

/// Copies one byte of each page from source to destination by way of a file in memory, so that a page that
/// cannot be accessed is an error of a system call. On pages that are present it is faster than
/// `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE`, for the kernel does not read the structure of each page.
#[derive(Debug)]
pub(super) struct Probe {
    file: File,
    sources: Vec<libc::iovec>,
    destinations: Vec<libc::iovec>,
}

impl Probe {
    /// `None` if the kernel refuses the file.
    pub(super) fn new() -> Option<Probe> {
        // SAFETY: the name is a string that ends with a zero.
        let file = unsafe { libc::memfd_create(c"dray-probe".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return None;
        }
        Some(Probe {
            // SAFETY: just opened, and nothing else owns it.
            file: unsafe { File::from_raw_fd(file) },
            sources: Vec::new(),
            destinations: Vec::new(),
        })
    }

    /// Whether every page of some copies could be read, or written. Their destinations have a few bytes of
    /// their sources then; otherwise some may have.
    ///
    /// # Safety
    /// Whatever is writable at the destinations must not be accessed otherwise meanwhile.
    pub(super) unsafe fn accessible(&mut self, copies: &[PageCopy]) -> bool {
        self.sources.clear();
        self.destinations.clear();
        for copy in copies {
            self.entries(copy);
        }
        let entries = self.sources.chunks(MAX_ENTRIES);
        for (sources, destinations) in entries.zip(self.destinations.chunks(MAX_ENTRIES)) {
            let count = sources.len() as libc::c_int;
            let file = self.file.as_raw_fd();
            // SAFETY: the kernel reads the sources, and says so where it cannot.
            let read = unsafe { libc::pwritev(file, sources.as_ptr(), count, 0) };
            if read != sources.len() as isize {
                return false;
            }
            // SAFETY: the kernel writes the destinations, of which the caller says that nothing else
            // accesses them, and says so where it cannot.
            let written = unsafe { libc::preadv(file, destinations.as_ptr(), count, 0) };
            if written != destinations.len() as isize {
                return false;
            }
        }
        true
    }

    /// One byte of each page of the source, and of each of the destination.
    fn entries(&mut self, copy: &PageCopy) {
        let mut offset = 0;
        while offset < copy.bytes {
            let byte = |address: u64| libc::iovec {
                iov_base: std::ptr::with_exposed_provenance_mut(address as usize),
                iov_len: 1,
            };
            let (source, destination) = (copy.source + offset, copy.destination + offset);
            prefetch(source);
            prefetch(destination);
            self.sources.push(byte(source));
            self.destinations.push(byte(destination));
            let left = |address: u64| BASE_PAGE - address % BASE_PAGE;
            offset += left(source).min(left(destination));
        }
    }
}

/// Asks for the line of an address, which the kernel is going to access. A hint, of which none faults.
fn prefetch(address: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::with_exposed_provenance::<i8>(address as usize);
        // SAFETY: a prefetch of any address does nothing but bring its line nearer.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
