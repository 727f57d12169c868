//! Mappings of portals: the pages and their entries in the table.
//!
//! The page is one that nothing may access, and that a child that is forked does not get: the driver
//! maps portals with `VM_DONTCOPY` (`drivers/dma/idxd/cdev.c`).

use crate::process::{Process, begin, process};
use crate::submit::Portal;
use crate::syscall::syscall;
use crate::trap;

const PAGE: usize = 4096;

/// Maps a portal, as mmap with these arguments would; its address.
///
/// # Errors
/// The error number that mmap returns.
pub fn map(
    wanted: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    portal: &'static Portal,
) -> Result<usize, i32> {
    // The driver maps one page, whatever the offset, and refuses more.
    if bytes == 0 || bytes > PAGE {
        return Err(libc::EINVAL);
    }
    trap::install().map_err(|_| libc::ENOMEM)?;
    let process = begin()?;
    let kept = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_32BIT;
    let flags = flags & kept | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let none = libc::PROT_NONE as usize;
    let arguments = [wanted, PAGE, none, flags as usize, usize::MAX, 0];
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
        // SAFETY: nobody knows the page.
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

/// Whether there is a portal in these bytes.
pub fn is_portal(address: usize, bytes: usize) -> bool {
    let overlaps = |process: &Process| process.table.overlaps(address as u64, bytes as u64);
    process().is_some_and(overlaps)
}

/// Changes the protection of the portals in these bytes. Whether there are any; their pages stay as
/// they are.
pub fn protect(address: usize, bytes: usize, protection: i32) -> bool {
    let writable = protection & libc::PROT_WRITE != 0;
    let change = |process: &Process| {
        process
            .table
            .protect(address as u64, bytes as u64, writable)
    };
    process().is_some_and(change)
}
