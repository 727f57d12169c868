//! The memory of a region: of this process alone, or mapped by several.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::AttachError;

/// A block begins at a page.
const ALIGNMENT: usize = 4096;
/// Its size stays what it is: an access within it can never be one beyond the end of the file.
const SIZED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

#[derive(Debug, Clone, Copy)]
enum Backing {
    Heap(Layout),
    Mapping(usize),
}

/// Zeroed memory that begins at a page, at the same place as long as it is there.
#[derive(Debug)]
pub(crate) struct Block {
    base: NonNull<u8>,
    backing: Backing,
}

// SAFETY: the block belongs to its region alone, and what is in it is atomic.
unsafe impl Send for Block {}
// SAFETY: as above; nothing in it is accessed but by atomics.
unsafe impl Sync for Block {}

impl Block {
    /// Memory of this process. `bytes` is not 0.
    pub(crate) fn allocated(bytes: usize) -> Block {
        let layout = match Layout::from_size_align(bytes, ALIGNMENT) {
            Ok(layout) => layout,
            // 65536 queues of 65536 entries are far from isize::MAX.
            Err(error) => unreachable!("{error}"),
        };
        // SAFETY: its size is not 0, for there is a doorbell.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout);
        };
        Block {
            base,
            backing: Backing::Heap(layout),
        }
    }

    /// Memory that other processes can map, and the descriptor for that.
    pub(crate) fn created(bytes: usize) -> Result<(Block, OwnedFd), AttachError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Before Linux 6.3 no program could promise not to execute it.
        let fd = match memfd_create("dray-ring", flags | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create("dray-ring", flags)?,
            other => other?,
        };
        let size = bytes.next_multiple_of(ALIGNMENT);
        ftruncate(&fd, size as u64)?;
        fcntl_add_seals(&fd, SIZED | SealFlags::SEAL)?;
        let block = Block::map(fd.as_fd(), size)?;
        Ok((block, fd))
    }

    /// What another process has created, for so many bytes.
    pub(crate) fn mapped(fd: BorrowedFd<'_>, bytes: usize) -> Result<Block, AttachError> {
        let seals = fcntl_get_seals(fd).map_err(|_| AttachError::NotSealed)?;
        if !seals.contains(SIZED) {
            return Err(AttachError::NotSealed);
        }
        let expected = bytes.next_multiple_of(ALIGNMENT) as u64;
        let found = fstat(fd)?.st_size as u64;
        if found != expected {
            return Err(AttachError::Size { found, expected });
        }
        let block = Block::map(fd, expected as usize)?;
        // As the portal itself, which idxd maps with VM_DONTCOPY: a child has neither.
        // SAFETY: the mapping is this one's own.
        unsafe {
            madvise(
                block.base.as_ptr().cast(),
                expected as usize,
                Advice::LinuxDontFork,
            )
        }?;
        Ok(block)
    }

    fn map(fd: BorrowedFd<'_>, size: usize) -> Result<Block, AttachError> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses disturbs nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), size, access, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Block {
            base,
            backing: Backing::Mapping(size),
        })
    }

    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: it was allocated with this layout, and all views on it keep the region.
            Backing::Heap(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
            Backing::Mapping(size) => {
                // SAFETY: it was mapped with this size, and all views on it keep the region.
                let unmapped = unsafe { munmap(self.base.as_ptr().cast(), size) };
                debug_assert!(unmapped.is_ok(), "{unmapped:?}");
            }
        }
    }
}
