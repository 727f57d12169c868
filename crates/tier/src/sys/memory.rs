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

/// Advice that changes no byte of this process: how pages are made, and what a child gets.
const HARMLESS: [i32; 7] = [
    libc::MADV_HUGEPAGE,
    libc::MADV_NOHUGEPAGE,
    libc::MADV_COLLAPSE,
    libc::MADV_POPULATE_READ,
    libc::MADV_POPULATE_WRITE,
    libc::MADV_DONTFORK,
    libc::MADV_DOFORK,
];

/// madvise(2), by the system call.
///
/// # Errors
/// The error number; `EINVAL` for advice that changes what is in the memory.
pub fn advise(start: u64, len: u64, advice: i32) -> Result<(), i32> {
    if !HARMLESS.contains(&advice) {
        return Err(libc::EINVAL);
    }
    // SAFETY: no byte of the range changes.
    unsafe { call(start, len, advice) }
}

/// # Safety
/// What the advice does to the range is sound.
unsafe fn call(start: u64, len: u64, advice: i32) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    match unsafe { libc::syscall(libc::SYS_madvise, start as usize, len as usize, advice) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Drops the pages of a range, which reads as zeros then, also where the program has locked all of its memory.
///
/// # Errors
/// The error number; pages may be left.
///
/// # Safety
/// The range is the caller's, no reference into it exists, and nothing relies on its bytes.
pub unsafe fn empty(start: u64, len: u64) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    let drop_pages = || unsafe { call(start, len, libc::MADV_DONTNEED) };
    if len == 0 || drop_pages().is_ok() {
        return Ok(());
    }
    unlock(start, len);
    drop_pages()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_that_drops_bytes_is_refused() {
        let bytes = vec![7u8; 4 * 4096];
        let page = bytes.as_ptr().addr().next_multiple_of(4096) as u64;
        for advice in [
            libc::MADV_DONTNEED,
            libc::MADV_FREE,
            libc::MADV_REMOVE,
            libc::MADV_WIPEONFORK,
        ] {
            assert_eq!(advise(page, 4096, advice), Err(libc::EINVAL), "{advice}");
        }
        assert!(bytes.iter().all(|byte| *byte == 7));
        assert_eq!(advise(page, 4096, libc::MADV_NOHUGEPAGE), Ok(()));
    }
}
