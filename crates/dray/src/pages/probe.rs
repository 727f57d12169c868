//! Whether the pages of copies can be accessed, found out by the kernel.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use dray_placement::PAGE;

use super::PageCopy;

/// Bytes of memory whose pages one call looks at: at most 130 pages, and their lines are still in the
/// first-level cache when they are copied.
pub(super) const PROBE_BYTES: u64 = 256 << 10;

/// Entries of one writev(2) or readv(2) (`UIO_MAXIOV`). A pipe has room for as many bytes, however small it is.
const MAX_ENTRIES: usize = 1024;

/// Copies one byte of each page from source to destination by way of a pipe, so that a page that
/// cannot be accessed is an error of a system call. On pages that are present it is faster than
/// `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE`, for the kernel does not read the structure of each page. A
/// pipe has no size that `RLIMIT_FSIZE` limits: a file in memory has one.
#[derive(Debug)]
pub(super) struct Probe {
    reader: OwnedFd,
    writer: OwnedFd,
    sources: Vec<libc::iovec>,
    destinations: Vec<libc::iovec>,
}

impl Probe {
    /// `None` if the kernel refuses the pipe.
    pub(super) fn new() -> Option<Probe> {
        let mut ends = [0; 2];
        // Nobody waits for room or bytes: a call does what it can.
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: writes the two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), flags) } != 0 {
            return None;
        }
        // SAFETY: just opened, and nothing else owns them.
        let [reader, writer] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Some(Probe {
            reader,
            writer,
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
            let (reader, writer) = (self.reader.as_raw_fd(), self.writer.as_raw_fd());
            // SAFETY: the kernel reads the sources, and says so where it cannot.
            let read = unsafe { libc::writev(writer, sources.as_ptr(), count) };
            if read != sources.len() as isize {
                self.drain();
                return false;
            }
            // SAFETY: the kernel writes the destinations, of which the caller says that nothing else
            // accesses them, and says so where it cannot.
            let written = unsafe { libc::readv(reader, destinations.as_ptr(), count) };
            if written != destinations.len() as isize {
                self.drain();
                return false;
            }
        }
        true
    }

    /// Takes what a call that failed has left in the pipe: it is no byte of the next copies.
    fn drain(&self) {
        let mut left = [0_u8; MAX_ENTRIES];
        let (reader, into) = (self.reader.as_raw_fd(), left.as_mut_ptr().cast());
        // SAFETY: the buffer has so many bytes.
        while unsafe { libc::read(reader, into, left.len()) } > 0 {}
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
            let left = |address: u64| PAGE - address % PAGE;
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
