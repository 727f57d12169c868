//! Stacks for this library's threads, and what the C library keeps of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dray_tier::sys::{PAGE, memory};

use crate::own::OWN;

/// Bytes of a stack: the threads call little.
pub const STACK: u64 = 512 << 10;
const MOST: usize = 128;

static STACKS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A new stack, its lowest address; a page at its end cannot be accessed.
pub fn make() -> Option<u64> {
    let start = memory::reserve(STACK, PAGE).ok()?;
    // The C library looks at the descriptors of all threads in a forked child, and they are there.
    memory::advise(start, STACK, libc::MADV_DOFORK).ok()?;
    // SAFETY: the lowest page of what was just mapped.
    unsafe { libc::syscall(libc::SYS_mprotect, start, PAGE, libc::PROT_NONE) };
    let slot = STACKS.get(COUNT.fetch_add(1, Ordering::Relaxed))?;
    slot.store(start, Ordering::Release);
    OWN.add(start, start + STACK).then_some(start)
}

/// Unmaps all of them: in a child, which has none of their threads.
pub fn forget() {
    for stack in &STACKS {
        let start = stack.swap(0, Ordering::Relaxed);
        if start != 0 {
            // SAFETY: no thread runs on it, and the C library has forgotten its threads.
            unsafe { memory::unmap(start, STACK) };
        }
    }
    COUNT.store(0, Ordering::Relaxed);
}

/// Whether the calling thread runs on one of them.
pub fn on_one() -> bool {
    let here = 0u8;
    let here = (&raw const here).addr() as u64;
    let count = COUNT.load(Ordering::Relaxed).min(MOST);
    STACKS[..count].iter().any(|stack| {
        let start = stack.load(Ordering::Acquire);
        start != 0 && (start..start + STACK).contains(&here)
    })
}

/// The pages of the calling thread's dynamic thread vector. The C library allocates it on the
/// program's heap, and each access to a thread-local variable of a shared object reads it.
pub fn vector_pages() -> (u64, u64) {
    let vector: u64;
    // SAFETY: the second word of the thread's control block is its address (tcbhead_t).
    unsafe {
        std::arch::asm!("mov {}, fs:[8]", out(reg) vector, options(nostack, readonly));
    }
    // Its first entry, one before, holds the number of entries of 16 bytes.
    let entries = std::ptr::with_exposed_provenance::<u64>((vector - 16) as usize);
    // SAFETY: as above.
    let entries = unsafe { entries.read() }.min(4096);
    let end = vector + (entries + 1) * 16;
    ((vector - 16) / PAGE * PAGE, end.next_multiple_of(PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_thread_is_on_no_stack_of_the_library() {
        assert!(!on_one());
        assert!(make().is_some());
        assert!(!on_one());
        let (start, end) = vector_pages();
        assert!(start < end && end - start <= 18 * PAGE);
    }
}
