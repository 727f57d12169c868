//! This library's memory: none of the program's allocator, which others may tier or stand in front of.

use dray_interpose::{Heap, Ranges};

/// Where it is, for the library of `dray tier`: the number stands for the layout.
#[expect(unreachable_pub, reason = "found by its name, as a symbol")]
#[unsafe(no_mangle)]
pub static DRAY_PORTAL_OWN_1: Ranges = Ranges::new();

#[global_allocator]
static HEAP: Heap = Heap::new(&DRAY_PORTAL_OWN_1);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// A child finds the heap's books in order, whatever other threads do.
extern "C" fn begin() {
    extern "C" fn lock() {
        HEAP.lock();
    }
    extern "C" fn unlock() {
        HEAP.unlock();
    }
    // SAFETY: three functions that may be called at any fork.
    unsafe { libc::pthread_atfork(Some(lock), Some(unlock), Some(unlock)) };
}
