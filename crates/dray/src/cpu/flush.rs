//! Lines out of the calling core's caches.

/// Whether the core has an instruction for it that a process may use.
pub(super) const CAN_FLUSH: bool = cfg!(target_arch = "x86_64");

/// Evicts a region, and waits until its lines are in memory.
///
/// # Safety
/// The region must be mapped.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn flush(address: u64, len: u64) {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    const LINE: u64 = 64;
    let mut line = address & !(LINE - 1);
    while line < address + len {
        // SAFETY: the line has a byte of the region, which is mapped; the instruction is in the
        // instruction set's baseline and changes no byte.
        unsafe { _mm_clflush(line as *const u8) };
        line += LINE;
    }
    // SAFETY: in the instruction set's baseline, without operands.
    unsafe { _mm_mfence() };
}

/// Nothing: [`CAN_FLUSH`] has had the operation refused.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn flush(_: u64, _: u64) {}
