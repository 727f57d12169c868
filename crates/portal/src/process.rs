//! What belongs to this process alone: a child that is forked finds it empty.
//!
//! The driver maps portals so that a child does not get them (`VM_DONTCOPY`). The pages here are
//! wiped by the kernel in a child, however it was forked; a child that shares memory (vfork) keeps
//! them, as it keeps the portals.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::syscall::{pid, syscall};
use crate::table::Table;

/// The pages.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Process {
    /// Number of the process, once it has begun; 0 in a child.
    pub(crate) pid: AtomicU32,
    /// Somebody patches.
    pub(crate) patching: AtomicU32,
    /// The handlers' stacks in use, a bit each.
    pub(crate) stacks: AtomicU32,
    /// The portals.
    pub(crate) table: Table,
}

pub(crate) static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// The pages of this process, if [`begin`] was called in it or in an ancestor.
#[inline]
pub(crate) fn process() -> Option<&'static Process> {
    let process = PROCESS.load(Ordering::Acquire);
    // SAFETY: what was stored lives for ever, is all atomic, and all zero is its initial state.
    unsafe { process.as_ref() }
}

/// The pages, made at the first call.
///
/// # Errors
/// The error number of what the kernel refuses.
pub(crate) fn begin() -> Result<&'static Process, i32> {
    let process = match process() {
        Some(process) => process,
        None => make()?,
    };
    if process.pid.load(Ordering::Relaxed) == 0 {
        process.pid.store(pid(), Ordering::Relaxed);
    }
    Ok(process)
}

/// Whether this is a child that shares memory with the process that has begun (vfork). Its signal
/// actions and descriptors are its own.
pub(crate) fn is_guest() -> bool {
    let owner = process().map_or(0, |process| process.pid.load(Ordering::Relaxed));
    owner != 0 && owner != pid()
}

fn make() -> Result<&'static Process, i32> {
    let bytes = size_of::<Process>().next_multiple_of(4096);
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: new pages, wherever there is room.
    let pages = unsafe { syscall(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) }?;
    let wipe = libc::MADV_WIPEONFORK as usize;
    // SAFETY: the pages are ours.
    let wiped = unsafe { syscall(libc::SYS_madvise, [pages, bytes, wipe, 0, 0, 0]) };
    let made = wiped.and_then(|_| {
        let new = pages as *mut Process;
        let order = Ordering::AcqRel;
        match PROCESS.compare_exchange(std::ptr::null_mut(), new, order, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(_) => Err(0),
        }
    });
    if let Err(error) = made {
        // SAFETY: no other code has these pages yet.
        let _ = unsafe { syscall(libc::SYS_munmap, [pages, bytes, 0, 0, 0, 0]) };
        if error != 0 {
            return Err(error);
        }
    }
    process().ok_or(libc::ENOMEM)
}
