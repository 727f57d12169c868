//! Pages made present by the core, without a signal where that is not possible.

use std::sync::OnceLock;

/// Bytes of the pages that are asked for.
const PAGE: u64 = 4096;

/// Makes the pages of `len` bytes at `addr` present, as a read or a write of the core would.
///
/// # Errors
/// The first address at which the core itself could not read, or write.
pub(crate) fn populate(addr: u64, len: u64, write: bool) -> Result<(), u64> {
    if len == 0 || !is_supported() {
        return Ok(());
    }
    let start = addr & !(PAGE - 1);
    let end = addr.checked_add(len).ok_or(addr)?;
    let mut end = end.checked_next_multiple_of(PAGE).ok_or(addr)?;
    if advise(start, end - start, write) {
        return Ok(());
    }
    // Which page it was: of the halves, the first that cannot be populated.
    let mut first = start;
    while end - first > PAGE {
        let middle = first + (end - first) / PAGE / 2 * PAGE;
        match advise(first, middle - first, write) {
            true => first = middle,
            false => end = middle,
        }
    }
    match advise(first, PAGE, write) {
        // It came meanwhile.
        true => Ok(()),
        false => Err(first.max(addr)),
    }
}

/// Whether the kernel populates pages on request (Linux 5.14; the idxd driver's queues for programs
/// are younger).
fn is_supported() -> bool {
    static SUPPORTED: OnceLock<bool> = OnceLock::new();
    *SUPPORTED.get_or_init(|| {
        let here = 0_u8;
        let page = (&raw const here) as u64 & !(PAGE - 1);
        advise(page, PAGE, true)
    })
}

#[cfg(target_os = "linux")]
fn advise(start: u64, len: u64, write: bool) -> bool {
    let advice = match write {
        true => libc::MADV_POPULATE_WRITE,
        false => libc::MADV_POPULATE_READ,
    };
    // SAFETY: changes no byte, whatever the range is.
    unsafe { libc::madvise(start as *mut libc::c_void, len as usize, advice) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: u64, _: u64, _: bool) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_that_is_not_there_is_named() {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8 * PAGE as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let base = base as u64;
        let at = |page: u64| (base + page * PAGE) as *mut libc::c_void;
        assert_eq!(populate(base, 8 * PAGE, true), Ok(()));
        // SAFETY: a page of this test.
        let closed = unsafe { libc::mprotect(at(3), PAGE as usize, libc::PROT_READ) };
        // SAFETY: as above.
        let gone = unsafe { libc::munmap(at(6), PAGE as usize) };
        assert_eq!((closed, gone), (0, 0));
        if is_supported() {
            assert_eq!(populate(base + 5, 8 * PAGE - 5, true), Err(base + 3 * PAGE));
            assert_eq!(
                populate(base + 5, 8 * PAGE - 5, false),
                Err(base + 6 * PAGE)
            );
            assert_eq!(
                populate(base + 6 * PAGE + 9, 1, false),
                Err(base + 6 * PAGE + 9)
            );
            assert_eq!(populate(8, 8, true), Err(8));
            assert_eq!(populate(u64::MAX - 3, 8, true), Err(u64::MAX - 3));
        }
        // SAFETY: the mapping of this test.
        unsafe { libc::munmap(at(0), 8 * PAGE as usize) };
    }
}
