//! Pages made present by the core, without a signal where that is not possible.

use std::io;
use std::iter::once;
use std::ptr::{null, null_mut, with_exposed_provenance, with_exposed_provenance_mut};

use dray_placement::PAGE;

/// Up to so many pages are touched one by one: `madvise` takes longer for them.
const FEW_PAGES: u64 = 2;

/// Makes the pages of `len` bytes at `addr` present, as a read or a write of the core would. Changes no
/// byte, and needs no promise about what else accesses them.
///
/// # Errors
/// The first address at which the core itself could not read, or write.
pub(crate) fn populate(addr: u64, len: u64, write: bool) -> Result<(), u64> {
    populate_by(advise, addr, len, write)
}

/// The same, with what populates many pages: false where it cannot populate all of them.
fn populate_by(
    advise: fn(u64, u64, bool) -> bool,
    addr: u64,
    len: u64,
    write: bool,
) -> Result<(), u64> {
    if len == 0 {
        return Ok(());
    }
    let last = addr.checked_add(len - 1).ok_or(addr)?;
    let mut first = addr / PAGE;
    let mut end = last / PAGE + 1;
    if end - first > FEW_PAGES {
        let all = |from: u64, to: u64| advise(from * PAGE, (to - from) * PAGE, write);
        if all(first, end) {
            return Ok(());
        }
        // Of the halves, the first that cannot be populated, down to a page.
        let last = end;
        while end - first > 1 {
            let middle = first + (end - first) / 2;
            match all(first, middle) {
                true => first = middle,
                false => end = middle,
            }
        }
        // There are pages that the core can access and `madvise` does not populate: those of devices,
        // and all of them before Linux 5.14.
        end = last;
    }
    let following = (first + 1..end).map(|page| page * PAGE);
    let mut addresses = once(addr.max(first * PAGE)).chain(following);
    match addresses.find(|&address| !touch(address, write)) {
        None => Ok(()),
        Some(fault) => Err(fault),
    }
}

/// `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE` (Linux 5.14).
fn advise(start: u64, len: u64, write: bool) -> bool {
    let advice = match write {
        true => libc::MADV_POPULATE_WRITE,
        false => libc::MADV_POPULATE_READ,
    };
    // SAFETY: changes no byte, whatever the range is.
    unsafe { libc::madvise(start as *mut libc::c_void, len as usize, advice) == 0 }
}

/// Has the kernel read, or write, the word of `address` by a call that has no other effect. False if that
/// is not possible.
fn touch(address: u64, write: bool) -> bool {
    match write {
        true => touch_to_write(address),
        false => touch_to_read(address),
    }
}

/// The kernel reads the set of signals before it refuses what is to be done with it.
fn touch_to_read(address: u64) -> bool {
    /// Neither SIG_BLOCK, SIG_UNBLOCK nor SIG_SETMASK.
    const NO_REQUEST: libc::c_int = -1;
    /// Bytes of the kernel's set of signals.
    const SET_BYTES: u64 = 8;
    // The null pointer would be no set at all.
    let word = (address & !(SET_BYTES - 1)).max(SET_BYTES);
    let set = with_exposed_provenance::<u64>(word as usize);
    // SAFETY: the kernel reads the set if it can, and changes nothing.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            NO_REQUEST,
            set,
            null_mut::<u64>(),
            SET_BYTES as usize,
        );
    }
    io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// The kernel stores to the word what is in it, as one atomic access. A thread that waits at the word may wake
/// up, as it may at any time.
fn touch_to_write(address: u64) -> bool {
    const WAKE_OP: libc::c_int = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
    /// `word |= 0`, and whether it was 0.
    const OR_NOTHING: libc::c_int = libc::FUTEX_OP_OR << 28 | libc::FUTEX_OP_CMP_EQ << 24;
    let nothing_waits_here = 0_u32;
    let word = with_exposed_provenance_mut::<u32>((address & !3) as usize);
    // SAFETY: the kernel stores the value that the word has, atomically, if it can.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            &raw const nothing_waits_here,
            WAKE_OP,
            0,
            null::<libc::timespec>(),
            word,
            OR_NOTHING,
        )
    };
    woken >= 0
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
        // SAFETY: a page of this test, which can be written.
        unsafe { at(7).cast::<u64>().write(u64::MAX) };
        // SAFETY: a page of this test.
        let closed = unsafe { libc::mprotect(at(3), PAGE as usize, libc::PROT_READ) };
        // SAFETY: as above.
        let gone = unsafe { libc::munmap(at(6), PAGE as usize) };
        assert_eq!((closed, gone), (0, 0));
        // Where the kernel populates many pages by one call, and where it does not.
        for advise in [advise, |_, _, _| false] {
            let find = |addr, len, write| populate_by(advise, addr, len, write);
            let bytes = 8 * PAGE - 5;
            assert_eq!(find(base + 5, bytes, true), Err(base + 3 * PAGE));
            assert_eq!(find(base + 5, bytes, false), Err(base + 6 * PAGE));
            assert_eq!(find(base + 5, 3 * PAGE - 5, true), Ok(()));
            assert_eq!(find(base + 5, 6 * PAGE - 5, false), Ok(()));
            let inside = base + 3 * PAGE + 9;
            assert_eq!(find(inside, 1, true), Err(inside));
            assert_eq!(find(inside, 8 * PAGE, true), Err(inside));
            assert_eq!(find(inside, 1, false), Ok(()));
            let gone = base + 6 * PAGE + 9;
            assert_eq!(find(gone, 1, false), Err(gone));
            assert_eq!(find(base + 6 * PAGE - 1, 2, false), Err(gone - 9));
            assert_eq!(find(base + 7 * PAGE, PAGE, true), Ok(()));
            for (addr, len) in [
                (0, 1),
                (8, 8),
                (8, 8 * PAGE),
                (u64::MAX - 3, 4),
                (u64::MAX, 1),
            ] {
                assert_eq!(find(addr, len, true), Err(addr));
                assert_eq!(find(addr, len, false), Err(addr));
            }
            assert_eq!(find(u64::MAX - 3, 8, true), Err(u64::MAX - 3));
            assert_eq!(find(0, 0, true), Ok(()));
        }
        // SAFETY: the same page.
        assert_eq!(unsafe { at(7).cast::<u64>().read() }, u64::MAX);
        // SAFETY: the mapping of this test.
        unsafe { libc::munmap(at(0), 8 * PAGE as usize) };
    }
}
