//! Whether the kernel still refers to frames other than by the page table: a pipe after vmsplice(2), a socket after
//! `MSG_ZEROCOPY`, a transfer in flight.
//!
//! No call reports references, but `MADV_COLLAPSE` (Linux 6.1) checks them: a frame with other references cannot become
//! part of a huge page. It checks the pages of 2 MiB in order and ends with `EAGAIN` at the first one with other
//! references. Where a userfaultfd watches for missing pages it ends with `EBUSY` at the first page that is missing,
//! before it changes anything. So in such memory `EBUSY` says that all pages before the first missing one have passed.
//! That order is not documented: [`can_be_checked`] tests whether this kernel has it.
//!
//! Each question has the kernel first empty the lists of pages that were used of late on every core
//! (`lru_add_drain_all`): on machines with very many busy cores that is most of its time.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;

use super::pagemap::{PRESENT, PageMap, Wanted, ZERO};
use super::uffd::{FEATURE_MOVE, REGISTER_MISSING, Uffd};
use super::{HUGE, PAGE, memory};

/// Pages of 2 MiB that may be there when they are checked: the last one must be missing.
pub const CHECKABLE: u64 = HUGE / PAGE - 1;

/// Pages that [`can_be_checked`] tries with.
const TRIED: u64 = 8;
/// How often it begins anew: the kernel may be moving these very frames.
const TRIES: usize = 8;

/// Whether nothing but the page table refers to the frames of the first `pages` pages of a huge page at `start`.
/// `false` if that is not certain.
///
/// The memory is registered with a userfaultfd for missing pages, no thread uses it, no other process has it, and
/// at most the first [`CHECKABLE`] pages are there. So what holds now holds until these frames are used again.
///
/// A frame that the kernel itself is migrating in the moment of the look is passed over; if it has other references it
/// stays where it was. So there are two looks, and in between each page must be there: one that both have passed over
/// was migrated twice, in vain, in these few microseconds.
pub fn unreferenced(pagemap: &mut PageMap, start: u64, pages: u64) -> bool {
    debug_assert!(start.is_multiple_of(HUGE) && pages <= CHECKABLE);
    passes(start) && are_there(pagemap, start, pages) && passes(start)
}

fn passes(start: u64) -> bool {
    probe(start) == Err(libc::EBUSY)
}

fn probe(start: u64) -> Result<(), i32> {
    memory::advise(start, HUGE, libc::MADV_COLLAPSE)
}

/// Whether each of the first pages has a frame of its own. One without would have ended the kernel's look early.
fn are_there(pagemap: &mut PageMap, start: u64, pages: u64) -> bool {
    let wanted = Wanted {
        all: PRESENT,
        none: ZERO,
        report: PRESENT,
        ..Wanted::default()
    };
    let mut until = start;
    let scanned = pagemap.scan(start, start + pages * PAGE, wanted, |run| {
        if run.start == until {
            until = run.end;
        }
    });
    scanned.is_ok() && until == start + pages * PAGE
}

/// Whether [`unreferenced`] works on this kernel: tested with pages of which the first, one between or
/// the last is in a pipe. Some 100 us.
pub fn can_be_checked() -> bool {
    let Ok(uffd) = Uffd::open(FEATURE_MOVE) else {
        return false;
    };
    let Ok(mut pagemap) = PageMap::own_for_few_runs() else {
        return false;
    };
    (0..TRIES).any(|_| {
        let Ok(start) = memory::reserve(2 * HUGE, HUGE) else {
            return false;
        };
        let each = [0, TRIED / 2, TRIED - 1];
        let seen = each.map(|page| tried(&uffd, &mut pagemap, start, page));
        let _ = uffd.unregister(start, 2 * HUGE);
        // SAFETY: this function's, and nothing uses it any more.
        unsafe { memory::unmap(start, 2 * HUGE) };
        seen == [Some(true); 3]
    })
}

/// Moves pages as an engine does, one of which is in a pipe: whether that is seen, and its end.
fn tried(uffd: &Uffd, pagemap: &mut PageMap, home: u64, page: u64) -> Option<bool> {
    let (window, len) = (home + HUGE, TRIED * PAGE);
    let _ = uffd.unregister(home, 2 * HUGE);
    // SAFETY: memory of the caller's that this function alone uses.
    unsafe { memory::empty(home, 2 * HUGE) }.ok()?;
    memory::advise(home, HUGE, libc::MADV_NOHUGEPAGE).ok()?;
    memory::advise(home, len, libc::MADV_POPULATE_WRITE).ok()?;
    // SAFETY: a page of this function's own.
    let ends = unsafe { spliced(home + page * PAGE) }.ok()?;
    uffd.register(home, HUGE, REGISTER_MISSING).ok()?;
    uffd.register(window, HUGE, REGISTER_MISSING).ok()?;
    // SAFETY: memory of this function, without references into it.
    unsafe { uffd.move_pages(window, home, len, false) }.ok()?;
    let refused = probe(window) == Err(libc::EAGAIN) && !unreferenced(pagemap, window, TRIED);
    drop(ends);
    Some(refused && unreferenced(pagemap, window, TRIED))
}

/// A pipe with a page in it, by vmsplice(2): its end to read from, and the other. The kernel refers to the page's frame
/// until the page is read, or both ends are closed.
///
/// # Errors
/// No pipe, or the page cannot be read.
///
/// # Safety
/// A read from the pipe gives the bytes that are in the page at that time: there must be no references to the page
/// except to bytes that may change.
pub unsafe fn spliced(page: u64) -> io::Result<(PipeReader, PipeWriter)> {
    let (reads, writes) = io::pipe()?;
    let part = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(page as usize),
        iov_len: PAGE as usize,
    };
    // SAFETY: the page is only looked at, and the caller answers for it.
    let answer = unsafe { libc::vmsplice(writes.as_raw_fd(), &raw const part, 1, 0) };
    match answer == PAGE as isize {
        true => Ok((reads, writes)),
        false => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_a_frame_are_uncertain() {
        let uffd = Uffd::open(FEATURE_MOVE).expect("root on Linux 6.8");
        let mut pagemap = PageMap::own().expect("/proc");
        let start = memory::reserve(HUGE, HUGE).expect("memory");
        memory::advise(start, HUGE, libc::MADV_NOHUGEPAGE).expect("it is ours");
        memory::advise(start, 3 * PAGE, libc::MADV_POPULATE_WRITE).expect("memory");
        // The page of zeros is no frame: what is behind it is not looked at.
        memory::advise(start + 3 * PAGE, PAGE, libc::MADV_POPULATE_READ).expect("memory");
        memory::advise(start + 4 * PAGE, PAGE, libc::MADV_POPULATE_WRITE).expect("memory");
        // Not yet registered, and advised against.
        assert!(!unreferenced(&mut pagemap, start, 3));
        uffd.register(start, HUGE, REGISTER_MISSING)
            .expect("memory that can be registered");
        assert!(are_there(&mut pagemap, start, 3));
        assert!(!are_there(&mut pagemap, start, 4));
        assert!(!unreferenced(&mut pagemap, start, 5));
        uffd.unregister(start, HUGE).expect("it is registered");
        // SAFETY: this test's, and nothing uses it any more.
        unsafe { memory::unmap(start, HUGE) };
    }
}
