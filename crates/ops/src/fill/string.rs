//! The string instruction that stores a word over and over.

use std::arch::asm;

/// Bytes from which on the instruction beats a loop; below, its start costs more than it saves.
pub(super) const LEAST: usize = 16 * 1024;

/// Whether the processor has "enhanced REP MOVSB/STOSB": without it the loop of stores is faster.
pub(super) fn is_fast() -> bool {
    is_x86_feature_detected!("ermsb")
}

/// Stores `word` in each place.
pub(super) fn store(dst: &mut [[u8; 8]], word: u64) {
    // SAFETY: so many words are writable at the destination, which has no alignment to keep; the
    // direction flag is clear, as it always is outside such a block.
    unsafe {
        asm!(
            "rep stosq",
            inout("rcx") dst.len() => _,
            inout("rdi") dst.as_mut_ptr() => _,
            in("rax") word,
            options(nostack, preserves_flags),
        );
    }
}
