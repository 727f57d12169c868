//! Whether the kernel still refers to frames other than by the page table: a pipe after vmsplice(2), a socket after
//! `MSG_ZEROCOPY`, a transfer in flight.
//!
//! No call says so, but `MADV_COLLAPSE` (Linux 6.1) must know: a frame that something else refers to cannot become part
//! of a huge page. It looks at the pages of 2 MiB in their order and ends with `EAGAIN` at the first one with other
//! references. Where a userfaultfd watches for missing pages it ends with `EBUSY` at the first page that is missing,
//! before it changes anything. So in such memory `EBUSY` says that all pages before the first missing one have passed.
//! That order is the kernel's own affair: [`can_be_checked`] sees whether this kernel has it.
//!
//! Each question has the kernel first empty the lists of pages that were used of late on every core
//! (`lru_add_drain_all`): on machines with very many busy cores that is most of its time.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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

/// Whether this kernel says of frames what [`unreferenced`] asks: tried with pages of which the first, one between or
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
    memory::empty(home, 2 * HUGE).ok()?;
    memory::advise(home, HUGE, libc::MADV_NOHUGEPAGE).ok()?;
    memory::advise(home, len, libc::MADV_POPULATE_WRITE).ok()?;
    let [reads, writes] = pipe()?;
    let spliced = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut((home + page * PAGE) as usize),
        iov_len: PAGE as usize,
    };
    // SAFETY: a page of this function's own, that is only looked at.
    let answer = unsafe { libc::vmsplice(writes.as_raw_fd(), &raw const spliced, 1, 0) };
    if answer != PAGE as isize {
        return None;
    }
    uffd.register(home, HUGE, REGISTER_MISSING).ok()?;
    uffd.register(window, HUGE, REGISTER_MISSING).ok()?;
    // SAFETY: memory of this function, without references into it.
    unsafe { uffd.move_pages(window, home, len, false) }.ok()?;
    let refused = probe(window) == Err(libc::EAGAIN) && !unreferenced(pagemap, window, TRIED);
    drop((reads, writes));
    Some(refused && unreferenced(pagemap, window, TRIED))
}

fn pipe() -> Option<[File; 2]> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return None;
    }
    // SAFETY: the kernel has just given them to us.
    Some(ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_a_frame_are_not_certain() {
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
