//! The memory of this library's own: the program's allocator may be what called it.
//!
//! What is freed is not used again, so that neither a lock nor a list is needed that a signal or a
//! fork could find half changed. After the start hardly anything is allocated.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are there from the start.
const FIRST: usize = 1 << 20;
/// What is larger gets pages of its own.
const LARGE: usize = 1 << 16;

#[repr(align(4096))]
struct Bytes(UnsafeCell<[u8; FIRST]>);

// SAFETY: parts of it are handed out once.
unsafe impl Sync for Bytes {}

static BYTES: Bytes = Bytes(UnsafeCell::new([0; FIRST]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// The allocator.
pub(crate) struct Heap;

// SAFETY: blocks are as large and aligned as asked for, and no two of them overlap.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align().max(16));
        if size < LARGE && align <= 4096 {
            let mut used = USED.load(Ordering::Relaxed);
            loop {
                let start = used.next_multiple_of(align);
                if start + size > FIRST {
                    break;
                }
                let taken = USED.compare_exchange_weak(
                    used,
                    start + size,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                match taken {
                    // SAFETY: it lies in the array.
                    Ok(_) => return unsafe { BYTES.0.get().cast::<u8>().add(start) },
                    Err(now) => used = now,
                }
            }
        }
        pages(size, align)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let start = BYTES.0.get().addr();
        if !(start..start + FIRST).contains(&block.addr()) && layout.align() <= 4096 {
            // SAFETY: pages that `pages` has mapped for this block.
            unsafe { libc::syscall(libc::SYS_munmap, block, layout.size()) };
        }
    }
}

/// Pages of its own; those of a larger alignment stay for ever.
fn pages(size: usize, align: usize) -> *mut u8 {
    let more = if align > 4096 { align } else { 0 };
    // SAFETY: new pages wherever there is room.
    let start = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            0_usize,
            size + more,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1_i32,
            0_usize,
        )
    };
    if start <= 0 {
        return null_mut();
    }
    let start = (start as usize).next_multiple_of(align.max(1));
    std::ptr::with_exposed_provenance_mut(start)
}
