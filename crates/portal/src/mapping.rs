//! Mappings of portals: the pages and their entries in the table.
//!
//! The page is one that nothing may access, and that a child that is forked does not get: the driver
//! maps portals with `VM_DONTCOPY` (`drivers/dma/idxd/cdev.c`). Where the node is a file of a file system, the page
//! is a mapping of it, so that the kernel closes it with the last of its descriptors and pages, whatever the
//! program does.

use crate::process::{Process, begin, process};
use crate::submit::Portal;
use crate::syscall::syscall;
use crate::trap;
use crate::{checker, scan};

const PAGE: usize = 4096;

/// Maps a portal, as mmap with these arguments would; its address. `file` is the node, if its file can be
/// mapped; the page is not in use otherwise.
///
/// # Errors
/// The error number that mmap returns.
pub fn map(
    wanted: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: Option<i32>,
    portal: &'static Portal,
) -> Result<usize, i32> {
    // The driver maps one page, whatever the offset, and refuses more.
    if bytes == 0 || bytes > PAGE {
        return Err(libc::EINVAL);
    }
    trap::install().map_err(|_| libc::ENOMEM)?;
    let process = begin()?;
    checker::look();
    scan::patch_loaded_code();
    let kept = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_32BIT;
    let (backing, file) = match file {
        Some(file) => (0, file as usize),
        None => (libc::MAP_ANONYMOUS, usize::MAX),
    };
    let flags = flags & kept | libc::MAP_PRIVATE | backing;
    let none = libc::PROT_NONE as usize;
    let arguments = [wanted, PAGE, none, flags as usize, file, 0];
    // SAFETY: the program asks for a page at this place, and gets one.
    let page = unsafe { syscall(libc::SYS_mmap, arguments) }?;
    forget(page, PAGE);
    let alone = libc::MADV_DONTFORK as usize;
    // SAFETY: the page was mapped just now.
    let kept = unsafe { syscall(libc::SYS_madvise, [page, PAGE, alone, 0, 0, 0]) };
    let writable = protection & libc::PROT_WRITE != 0;
    let entered = kept.and_then(
        |_| match process.table.insert(page as u64, portal, writable) {
            true => Ok(page),
            false => Err(libc::ENOMEM),
        },
    );
    if entered.is_err() {
        // SAFETY: no other code has the page's address.
        let _ = unsafe { syscall(libc::SYS_munmap, [page, PAGE, 0, 0, 0, 0]) };
    }
    entered
}

/// Ends the mappings of portals in these bytes, whose pages are or will be unmapped.
pub fn forget(address: usize, bytes: usize) {
    if let Some(process) = process() {
        let ended = |portal: &'static Portal| portal.submit().unmapped();
        process.table.remove(address as u64, bytes as u64, ended);
    }
}

/// Moves what is mapped, as mremap(2) does: a portal goes with its page.
///
/// # Errors
/// The error number that mremap returns. The driver's mappings cannot grow (`VM_DONTEXPAND`), nor stay where
/// they are as well (`mm/mremap.c`, `check_prep_vma`).
pub fn relocate(
    from: usize,
    bytes: usize,
    new_bytes: usize,
    flags: i32,
    to: usize,
) -> Result<usize, i32> {
    let arguments = [from, bytes, new_bytes, flags as usize, to, 0];
    // SAFETY: the caller's own call.
    let call = || unsafe { syscall(libc::SYS_mremap, arguments) };
    let fixed = flags & libc::MREMAP_FIXED != 0;
    let found = process().filter(|_| is_portal(from, bytes.max(1)));
    if let Some(process) = found.filter(|_| from.is_multiple_of(PAGE)) {
        if flags & libc::MREMAP_DONTUNMAP != 0 {
            return Err(libc::EINVAL);
        }
        if new_bytes.div_ceil(PAGE) > bytes.div_ceil(PAGE) {
            return Err(libc::EFAULT);
        }
        // Before the call: afterwards the page may be another thread's.
        if let Some(mapped) = process.table.take(from as u64) {
            if fixed {
                forget(to, new_bytes);
            }
            let moved = call();
            let page = moved.unwrap_or(from) as u64;
            if !process.table.insert(page, mapped.portal, mapped.writable) {
                mapped.portal.submit().unmapped();
            }
            return moved;
        }
    }
    let moved = call();
    if fixed && moved.is_ok() {
        // What was there before is gone.
        forget(to, new_bytes);
    }
    moved
}

/// Whether there is a portal in these bytes.
pub fn is_portal(address: usize, bytes: usize) -> bool {
    let overlaps = |process: &Process| process.table.overlaps(address as u64, bytes as u64);
    process().is_some_and(overlaps)
}

/// Changes the protection of pages, as mprotect(2) does. Those of portals stay inaccessible, whatever the program
/// may do with them.
///
/// # Errors
/// The error number that mprotect returns.
pub fn protect(address: usize, bytes: usize, protection: i32) -> Result<usize, i32> {
    let call = |from: usize, bytes: usize| {
        let arguments = [from, bytes, protection as usize, 0, 0, 0];
        // SAFETY: the caller's own call.
        unsafe { syscall(libc::SYS_mprotect, arguments) }
    };
    let (mut from, writable) = (address, protection & libc::PROT_WRITE != 0);
    // The kernel counts whole pages.
    let end = address.saturating_add(bytes.div_ceil(PAGE).saturating_mul(PAGE));
    let portals = process().filter(|_| address.is_multiple_of(PAGE));
    if let Some(table) = portals.map(|process| &process.table) {
        while let Some(page) = table.first(from as u64, (end - from) as u64) {
            let page = page as usize;
            if page > from {
                call(from, page - from)?;
            }
            table.protect(page as u64, PAGE as u64, writable);
            from = page + PAGE;
            if from == end {
                return Ok(0);
            }
        }
    }
    match from == address {
        true => call(address, bytes),
        false => call(from, end - from),
    }
}
