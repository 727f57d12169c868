//! The log of pages that were written, for live migration (vhost-user, "Migration").

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use super::{Mapping, MemoryMap};
use crate::VhostError;

/// Bytes of a page of the log, whatever the machine's pages are.
const PAGE_BYTES: u64 = 4096;

/// A bit for each page of the guest, in memory that the front end shares. It reads and clears bits
/// at any time.
#[derive(Debug)]
pub struct DirtyLog {
    mapping: Mapping,
    offset: u64,
    bytes: u64,
    /// Signalled after writes, if the front end has sent one.
    event: Mutex<Option<OwnedFd>>,
}

impl DirtyLog {
    /// Maps `bytes` bytes of a file from `offset`. It takes no more address space than the front end's memory may, and
    /// waits to be unmapped with it.
    ///
    /// # Errors
    /// The log is empty or too long, the file is shorter, or the kernel refuses.
    pub fn new(
        file: OwnedFd,
        bytes: u64,
        offset: u64,
        memory: &MemoryMap,
    ) -> Result<DirtyLog, VhostError> {
        let error = |reason| VhostError::Log {
            bytes,
            offset,
            reason,
        };
        if bytes == 0 {
            return Err(error("it is empty"));
        }
        if offset.saturating_add(bytes) > memory.limit() {
            return Err(error("it takes more address space than the port may"));
        }
        let mapping = Mapping::new(file, (0, bytes, offset), memory.waiting())
            .map_err(|_| error("its file is shorter, or cannot be mapped"))?;
        Ok(DirtyLog {
            mapping,
            offset,
            bytes,
            event: Mutex::default(),
        })
    }

    /// Sets the eventfd that is signalled after writes.
    pub fn set_event(&self, event: Option<OwnedFd>) {
        *self.event.lock().unwrap_or_else(PoisonError::into_inner) = event;
    }

    /// Marks the pages of `len` bytes from a guest address. They must have been written before. Returns
    /// how many of them the log is too small for.
    pub fn mark(&self, guest: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let (first, last) = (
            guest / PAGE_BYTES,
            guest.saturating_add(len - 1) / PAGE_BYTES,
        );
        // The bytes are visible before the bit is looked at: a front end that has just cleared it and
        // reads the page would miss them.
        fence(Ordering::SeqCst);
        let pages = self.bytes.saturating_mul(8);
        for page in first..pages.min(last + 1) {
            // SAFETY: the byte lies in the mapped log; both sides change it atomically.
            let byte = unsafe { AtomicU8::from_ptr(self.byte(page / 8).as_ptr()) };
            let bit = 1 << (page % 8);
            // Looked at first: most pages are marked already, and a write would take the line away
            // from other queues.
            if byte.load(Ordering::SeqCst) & bit == 0 {
                byte.fetch_or(bit, Ordering::SeqCst);
            }
        }
        (last + 1).saturating_sub(first.max(pages))
    }

    /// A byte of the log, which has so many.
    fn byte(&self, at: u64) -> NonNull<u8> {
        debug_assert!(at < self.bytes);
        self.mapping.at(self.offset + at)
    }

    /// Notifies the front end that there is something in the log.
    pub(crate) fn notify(&self) {
        let event = self.event.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = event.as_ref() {
            let _ = crate::notify::signal(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn file(len: u64) -> OwnedFd {
        let file = memfd_create(c"log", MemfdFlags::CLOEXEC).expect("a memfd");
        ftruncate(&file, len).expect("a length");
        file
    }

    fn bytes(file: &OwnedFd) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        rustix::io::pread(file, &mut bytes, 0).expect("the file");
        bytes
    }

    fn memory() -> MemoryMap {
        MemoryMap::new(64)
    }

    #[test]
    fn pages_are_marked_within_the_log_only() {
        let file = file(64);
        let log = DirtyLog::new(file.try_clone().expect("it"), 4, 8, &memory()).expect("a log");
        assert_eq!(log.mark(0, 0), 0);
        assert_eq!(log.mark(4095, 2), 0, "two pages");
        assert_eq!(log.mark(9 * 4096, 4096), 0, "one page");
        assert_eq!(log.mark(31 * 4096, 4096), 0, "the last one");
        assert_eq!(log.mark(31 * 4096, 4097), 1, "one beyond it");
        assert_eq!(log.mark(40 * 4096, 8192), 2);
        assert_eq!(log.mark(u64::MAX, u64::MAX), 1);
        let mut expected = vec![0u8; 64];
        expected[8..12].copy_from_slice(&[0b11, 0b10, 0, 0x80]);
        assert_eq!(bytes(&file), expected);
    }

    #[test]
    fn logs_with_bad_sizes_or_offsets_are_refused() {
        assert!(DirtyLog::new(file(64), 0, 0, &memory()).is_err());
        assert!(DirtyLog::new(file(64), 65, 0, &memory()).is_err());
        assert!(DirtyLog::new(file(64), 64, 1, &memory()).is_err());
        assert!(DirtyLog::new(file(64), u64::MAX, 1, &memory()).is_err());
        assert!(DirtyLog::new(file(64), 1, u64::MAX, &memory()).is_err());
        assert!(
            DirtyLog::new(file(96), 33, 32, &memory()).is_err(),
            "address space"
        );
    }
}
