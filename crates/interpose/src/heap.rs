//! An allocator whose memory no program uses.
//!
//! It reserves addresses once and takes them in order; what is freed is used again for the same size
//! class. Preload libraries allocate little.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Ranges;

/// Addresses to reserve; less where a limit forbids it.
const RESERVE: [usize; 3] = [1 << 34, 1 << 30, 1 << 27];
/// Memory is made accessible in such steps.
const STEP: usize = 1 << 20;
/// Size classes: powers of two from 16 bytes on.
const CLASSES: usize = 40;

/// The allocator.
#[derive(Debug)]
pub struct Heap {
    /// Where its addresses are entered.
    ranges: &'static Ranges,
    locked: AtomicBool,
    books: UnsafeCell<Books>,
}

#[derive(Debug)]
struct Books {
    next: usize,
    open: usize,
    end: usize,
    free: [usize; CLASSES],
}

// SAFETY: the books are used under the lock alone.
unsafe impl Sync for Heap {}

impl Heap {
    /// Without memory yet; what it reserves it enters in `ranges`.
    pub const fn new(ranges: &'static Ranges) -> Heap {
        Heap {
            ranges,
            locked: AtomicBool::new(false),
            books: UnsafeCell::new(Books::EMPTY),
        }
    }

    /// Begins anew: in a child, whose parent may have had a thread in the middle of it. What was allocated stays
    /// where it is, and is never used again once it is freed.
    ///
    /// # Safety
    /// No other thread uses it.
    pub unsafe fn begin_anew(&self) {
        // SAFETY: the caller's promise.
        unsafe { (*self.books.get()).give_back_the_rest(self.ranges, 0) };
        // SAFETY: as above.
        unsafe { *self.books.get() = Books::EMPTY };
        self.locked.store(false, Ordering::Release);
    }

    /// Gives back the addresses that are not in use, but for a few: where all memory is locked they would count.
    pub fn trim(&self) {
        self.with(|books| books.give_back_the_rest(self.ranges, STEP));
    }

    /// No thread allocates until [`Heap::unlock`]: around a fork, whose child finds the books in order.
    pub fn lock(&self) {
        while self.locked.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    /// Ends [`Heap::lock`].
    pub fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }

    fn with<T>(&self, work: impl FnOnce(&mut Books) -> T) -> T {
        self.lock();
        // SAFETY: this thread has the lock.
        let result = work(unsafe { &mut *self.books.get() });
        self.unlock();
        result
    }
}

fn class(layout: Layout) -> usize {
    let size = layout.size().max(layout.align()).max(16);
    (size.next_power_of_two().trailing_zeros() - 4) as usize
}

impl Books {
    const EMPTY: Books = Books {
        next: 0,
        open: 0,
        end: 0,
        free: [0; CLASSES],
    };

    /// Unmaps what is not open, but for so many bytes.
    fn give_back_the_rest(&mut self, ranges: &Ranges, but: usize) {
        let start = self.open.saturating_add(but);
        if start < self.end {
            // SAFETY: addresses that were reserved here, and of which none was given out.
            unsafe { libc::syscall(libc::SYS_munmap, start, self.end - start) };
            ranges.end_at(self.end as u64, start as u64);
            self.end = start;
        }
    }

    fn take(&mut self, class: usize, ranges: &Ranges) -> *mut u8 {
        if class >= CLASSES {
            return null_mut();
        }
        let size = 16usize << class;
        let head = self.free[class];
        if head != 0 {
            // SAFETY: a block that was freed holds the next one's address.
            self.free[class] = unsafe { std::ptr::with_exposed_provenance::<usize>(head).read() };
            return std::ptr::with_exposed_provenance_mut(head);
        }
        if self.end == 0 && !self.reserve(ranges) {
            return null_mut();
        }
        // Blocks are aligned to their size, up to a huge page.
        let start = self.next.next_multiple_of(size.min(2 << 20));
        let Some(next) = start.checked_add(size).filter(|next| *next <= self.end) else {
            return null_mut();
        };
        if next > self.open {
            let open = next.next_multiple_of(STEP).min(self.end);
            // SAFETY: addresses that were reserved here.
            let answer = unsafe {
                libc::syscall(
                    libc::SYS_mprotect,
                    self.open,
                    open - self.open,
                    libc::PROT_READ | libc::PROT_WRITE,
                )
            };
            if answer != 0 {
                return null_mut();
            }
            self.open = open;
        }
        self.next = next;
        std::ptr::with_exposed_provenance_mut(start)
    }

    fn reserve(&mut self, ranges: &Ranges) -> bool {
        for size in RESERVE {
            // SAFETY: new addresses wherever there is room.
            let start = unsafe {
                libc::syscall(
                    libc::SYS_mmap,
                    0usize,
                    size,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1i32,
                    0usize,
                )
            };
            if start > 0 {
                let start = start as usize;
                (self.next, self.open, self.end) = (start, start, start + size);
                return ranges.add(start as u64, (start + size) as u64);
            }
        }
        false
    }
}

// SAFETY: blocks are as large and aligned as their class, and no two of them overlap.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|books| books.take(class(layout), self.ranges))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = class(layout);
        self.with(|books| {
            // SAFETY: the block is no longer in use, and it has room for an address.
            unsafe { block.cast::<usize>().write(books.free[class]) };
            books.free[class] = block.expose_provenance();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_disjoint_and_reused() {
        static RANGES: Ranges = Ranges::new();
        let heap = Heap::new(&RANGES);
        let layouts = [(1, 1), (24, 8), (4096, 4096), (100_000, 16), (3 << 20, 8)];
        let mut blocks = Vec::new();
        for (size, align) in layouts {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            // SAFETY: the size is not 0.
            let block = unsafe { heap.alloc(layout) };
            assert!(!block.is_null());
            assert_eq!(block.addr() % align, 0);
            // SAFETY: as large as asked for.
            unsafe { block.write_bytes(size as u8, size) };
            blocks.push((block, layout));
        }
        for (index, (block, layout)) in blocks.iter().enumerate() {
            for (other, _) in &blocks[index + 1..] {
                let end = block.addr() + layout.size();
                assert!(end <= other.addr() || other.addr() < block.addr());
            }
        }
        for (block, layout) in blocks {
            // SAFETY: allocated above.
            unsafe { heap.dealloc(block, layout) };
            // SAFETY: the size is not 0.
            let again = unsafe { heap.alloc(layout) };
            assert_eq!(again, block);
        }
        let inside = RANGES
            .all()
            .iter()
            .any(|(start, end)| end - start >= 1 << 27);
        assert!(inside);
    }

    #[test]
    fn a_heap_that_begins_anew_gives_back_what_was_not_open() {
        static RANGES: Ranges = Ranges::new();
        let heap = Heap::new(&RANGES);
        let layout = Layout::from_size_align(64, 8).expect("a layout");
        let take = || {
            // SAFETY: the size is not 0.
            let block = unsafe { heap.alloc(layout) };
            assert!(!block.is_null());
            // SAFETY: as large as asked for.
            unsafe { block.write_bytes(7, 64) };
            block
        };
        let first = take();
        heap.trim();
        assert!(RANGES.all()[0].1 - RANGES.all()[0].0 <= 2 * STEP as u64);
        take();
        // As if a thread that is not there had it.
        heap.lock();
        // SAFETY: no other thread has this heap.
        unsafe { heap.begin_anew() };
        let second = take();
        assert_ne!(first, second);
        // SAFETY: it was written above, and stays.
        assert_eq!(unsafe { first.read() }, 7);
        let all = RANGES.all();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].1 - all[0].0, STEP as u64);
    }
}
