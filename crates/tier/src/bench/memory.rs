//! Memory that a benchmark tiers: no thread of the engine uses it.

use crate::TierError;
use crate::error::system;
use crate::sys::{HUGE, PAGE, memory};

/// A mapping of its own, populated.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Mapped {
    pub(crate) fn new(len: u64, huge: bool) -> Result<Mapped, TierError> {
        let start = memory::reserve(len, HUGE).map_err(system("mmap"))?;
        let mapped = Mapped { start, len };
        let advice = match huge {
            true => libc::MADV_HUGEPAGE,
            false => libc::MADV_NOHUGEPAGE,
        };
        let _ = memory::advise(start, len, advice);
        memory::advise(start, len, libc::MADV_POPULATE_WRITE).map_err(system("madvise"))?;
        Ok(mapped)
    }

    /// A word of a page.
    pub(crate) fn word(&self, page: u64) -> *mut u64 {
        debug_assert!(page * PAGE < self.len);
        std::ptr::with_exposed_provenance_mut((self.start + page * PAGE) as usize)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: ours; the benchmark has ended.
        unsafe { memory::unmap(self.start, self.len) };
    }
}
