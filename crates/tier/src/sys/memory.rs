//! Memory of dray's own: mapped by system calls, so that no interposed function sees it.

use super::errno;

const MPOL_BIND: usize = 2;

/// Reserves private anonymous memory, aligned to `align`, that a forked child does not get.
///
/// # Errors
/// The error number.
pub fn reserve(len: u64, align: u64) -> Result<u64, i32> {
    let whole = len + align;
    // SAFETY: new pages wherever there is room.
    let start = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            0usize,
            whole as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1i32,
            0usize,
        )
    };
    if start < 0 {
        return Err(errno());
    }
    let start = start as u64;
    let aligned = start.next_multiple_of(align);
    if aligned > start {
        // SAFETY: the front of what was just mapped.
        unsafe { unmap(start, aligned - start) };
    }
    let end = start + whole;
    if end > aligned + len {
        // SAFETY: the back of it.
        unsafe { unmap(aligned + len, end - aligned - len) };
    }
    advise(aligned, len, libc::MADV_DONTFORK)?;
    Ok(aligned)
}

/// Maps new empty pages over a range of ours.
///
/// # Errors
/// The error number.
///
/// # Safety
/// The range is the caller's, and no reference into it exists.
pub unsafe fn renew(start: u64, len: u64) -> Result<(), i32> {
    // SAFETY: the caller's own range is replaced.
    let got = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            start as usize,
            len as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1i32,
            0usize,
        )
    };
    if got < 0 {
        return Err(errno());
    }
    advise(start, len, libc::MADV_DONTFORK)
}

/// Unmaps.
///
/// # Safety
/// The range is the caller's, and no reference into it exists.
pub unsafe fn unmap(start: u64, len: u64) {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, start as usize, len as usize) };
}

/// madvise(2), by the system call.
///
/// # Errors
/// The error number.
pub fn advise(start: u64, len: u64, advice: i32) -> Result<(), i32> {
    // SAFETY: advice given here drops at most pages of dray's own windows.
    match unsafe { libc::syscall(libc::SYS_madvise, start as usize, len as usize, advice) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Drops the pages of a range of dray's own, also where the program has locked all of its memory.
///
/// # Errors
/// The error number; pages may be left.
pub fn empty(start: u64, len: u64) -> Result<(), i32> {
    if len == 0 || advise(start, len, libc::MADV_DONTNEED).is_ok() {
        return Ok(());
    }
    unlock(start, len);
    advise(start, len, libc::MADV_DONTNEED)
}

/// munlock(2), by the system call.
pub fn unlock(start: u64, len: u64) {
    // SAFETY: it takes a range and changes nothing that is in it.
    unsafe { libc::syscall(libc::SYS_munlock, start as usize, len as usize) };
}

/// Has the frames of a range come from one NUMA node.
///
/// # Errors
/// The error number: `EINVAL` if there is no such node.
pub fn bind(start: u64, len: u64, node: u32) -> Result<(), i32> {
    let mut mask = [0u64; 16];
    let word = mask.get_mut(node as usize / 64).ok_or(libc::EINVAL)?;
    *word = 1 << (node % 64);
    // SAFETY: the mask has so many bits; the kernel reads it. One bit more, as mbind(2) wants.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start as usize,
            len as usize,
            MPOL_BIND,
            mask.as_ptr(),
            mask.len() * 64 + 1,
            0usize,
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Copies from memory that may be gone, to memory that is ours: bytes until the first page that
/// cannot be read. It never faults (process_vm_readv(2) on this process).
///
/// # Errors
/// The error number, if not one byte could be read.
///
/// # Safety
/// `dst` is writable for `len` bytes and nothing else accesses it.
pub unsafe fn read_own(pid: i32, src: u64, dst: u64, len: u64) -> Result<u64, i32> {
    let vector = |base: u64| libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(base as usize),
        iov_len: len as usize,
    };
    let (local, remote) = (vector(dst), vector(src));
    // SAFETY: the destination is the caller's; the source is read by the kernel, with checks.
    let got = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    u64::try_from(got).map_err(|_| errno())
}
