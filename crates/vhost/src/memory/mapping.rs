//! One file of the front end, mapped.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::guard::Guard;
use super::unmap::{self, Waiting};
use crate::VhostError;

/// A mapped memory file, from its beginning to the end of one region. When it is dropped, another thread unmaps it.
#[derive(Debug)]
pub struct Mapping {
    /// Taken when it is dropped.
    mapped: Option<Mapped>,
    waiting: Waiting,
}

#[derive(Debug)]
struct Mapped {
    /// Dropped first: once the range is unmapped, another thread may map and guard the same addresses.
    guard: Guard,
    range: Range,
}

/// A mapped range of addresses. Unmapped when dropped.
#[derive(Debug)]
struct Range {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is memory that another process writes at any time; all access is through raw
// pointers, and threads may share it as processes do.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Mapping {
    /// Maps `size` bytes of a file from `offset`; the mapping begins at the file's beginning and is
    /// rounded up to the file's block size, as huge pages want it. It counts as waiting from its drop until
    /// it is unmapped.
    ///
    /// # Errors
    /// The file is shorter than the region, or the kernel refuses.
    pub(super) fn new(
        file: OwnedFd,
        (guest, size, offset): (u64, u64, u64),
        waiting: &Waiting,
    ) -> Result<Mapping, VhostError> {
        let region = |reason| VhostError::Region {
            guest,
            size,
            reason,
        };
        let map = |source| VhostError::Map {
            guest,
            size,
            source,
        };
        let end = offset
            .checked_add(size)
            .filter(|end| *end <= isize::MAX as u64)
            .ok_or_else(|| region("its offset and size overflow"))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| map(e.into()))?;
        if (stat.st_size as u64) < end {
            return Err(region("the file is shorter than the region"));
        }
        let page = rustix::param::page_size();
        let block = usize::try_from(stat.st_blksize).unwrap_or(page).max(page);
        let block = if block.is_power_of_two() { block } else { page };
        let len = (end as usize)
            .checked_next_multiple_of(block)
            .ok_or_else(|| region("its offset and size overflow"))?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let base = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                &file,
                0,
            )
        }
        .map_err(|e| map(e.into()))?;
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| map(io::Error::other("the mapping is at address 0")))?;
        let range = Range { base, len };
        let start = base.as_ptr() as usize;
        // Huge pages can only be replaced whole; on other files the block size is no page size.
        let huge = is_huge(&file);
        let guard = Guard::new(start, start + len, if huge { block } else { page })?;
        // SAFETY: advice about a mapping of ours; a core dump need not hold a guest.
        let _ = unsafe { rustix::mm::madvise(base.as_ptr().cast(), len, Advice::LinuxDontDump) };
        drop(File::from(file));
        Ok(Mapping {
            mapped: Some(Mapped { guard, range }),
            waiting: waiting.clone(),
        })
    }

    /// The byte at `offset` of the file.
    pub(crate) fn at(&self, offset: u64) -> NonNull<u8> {
        let range = &self.mapped().range;
        assert!(offset <= range.len as u64, "an offset beyond the file");
        // SAFETY: it lies inside.
        unsafe { range.base.add(offset as usize) }
    }

    /// Whether the file was truncated under it, and an access found out.
    pub fn is_broken(&self) -> bool {
        self.mapped().guard.is_hit()
    }

    fn mapped(&self) -> &Mapped {
        self.mapped.as_ref().expect("only a drop takes it")
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(mapped) = self.mapped.take() {
            unmap::later(Box::new(mapped), &self.waiting);
        }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the range was mapped with this length, and all that points into it holds its mapping.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

fn is_huge(file: &OwnedFd) -> bool {
    /// HUGETLBFS_MAGIC of linux/magic.h.
    const HUGETLBFS: u64 = 0x958458f6;
    rustix::fs::fstatfs(file).is_ok_and(|fs| fs.f_type as u64 == HUGETLBFS)
}
