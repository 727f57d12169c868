//! Lines of memory that are fetched before they are needed.

/// Asks for the line that holds a byte: a hint, which waits for nothing.
///
/// As if to write to it, even if not: a hint for reading the compiler moves behind loads that follow,
/// where it comes too late. Without the feature `prfchw`, both are the same instruction.
#[inline(always)]
pub(crate) fn line_of(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a hint, which every processor of the architecture takes and which cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}
