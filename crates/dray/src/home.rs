//! Which process something was opened in.
//!
//! A process identifier would not say it: a child of vfork(2), or of clone(2) with the memory of its parent, has
//! another one and uses what its parent has opened.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A new word that the kernel sets to 0 in every child with memory of its own, however it was made; it stays
/// for ever. `None` where there are no such pages: before Linux 4.14.
#[doc(hidden)]
pub fn wiped_on_fork() -> Option<&'static AtomicU32> {
    const BYTES: usize = 4096;
    // SAFETY: new pages wherever there is room.
    let page = unsafe {
        libc::mmap(
            null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page mapped above.
    if unsafe { libc::madvise(page, BYTES, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above, and nothing names it.
        unsafe { libc::munmap(page, BYTES) };
        return None;
    }
    // SAFETY: the page stays mapped, is aligned, and zero is a value.
    Some(unsafe { AtomicU32::from_ptr(page.cast()) })
}

/// The process that a mover was opened in: a child of fork(2) must leave its device and its memory alone.
/// Before Linux 4.14 a child takes what it has inherited for its own.
///
/// ```
/// let home = dray::Home::here();
/// assert!(!home.is_inherited());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Home {
    word: &'static AtomicU32,
    /// What the word is in that process.
    number: u32,
}

impl Home {
    /// This process.
    pub fn here() -> Home {
        /// The number that was given last. A child goes on from its parent's.
        static GIVEN: AtomicU32 = AtomicU32::new(0);
        let word = word();
        let known = word.load(Ordering::Acquire);
        let number = match known {
            0 => {
                let next = GIVEN.fetch_add(1, Ordering::Relaxed) + 1;
                let set = word.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire);
                set.map_or_else(|other| other, |_| next)
            }
            known => known,
        };
        Home { word, number }
    }

    /// Whether this process is a child of that one, with memory of its own.
    #[inline]
    pub fn is_inherited(self) -> bool {
        self.word.load(Ordering::Relaxed) != self.number
    }
}

/// The word of this process. Without a lock, which a fork could leave taken in the child.
fn word() -> &'static AtomicU32 {
    static NEVER_WIPED: AtomicU32 = AtomicU32::new(0);
    static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
    let mut known = WORD.load(Ordering::Acquire);
    if known.is_null() {
        let new = std::ptr::from_ref(wiped_on_fork().unwrap_or(&NEVER_WIPED)).cast_mut();
        let set = WORD.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        // Another thread was first: the page of this one is left.
        known = set.map_or_else(|other| other, |_| new);
    }
    // SAFETY: a word that stays for ever.
    unsafe { &*known }
}
