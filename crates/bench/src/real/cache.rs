//! Lines moved between caches and memory, and looked at.

const LINE: u64 = 64;

/// Lines that are looked at to see where a buffer is.
const LOOKS: u64 = 32;

/// Whether this machine lets a program place its lines.
pub(super) const CAN_PLACE: bool = cfg!(target_arch = "x86_64");

/// Brings a range near by reading it.
///
/// # Safety
/// The range must be mapped and readable.
pub(super) unsafe fn touch(address: u64, len: u64) {
    for line in lines(address, len) {
        // SAFETY: the line is in the range that the caller vouches for.
        unsafe { (line as *const u8).read_volatile() };
    }
    fence();
}

/// Flushes a range to memory.
///
/// # Safety
/// The range must be mapped and readable.
pub(super) unsafe fn flush(address: u64, len: u64) {
    #[cfg(target_arch = "x86_64")]
    for line in lines(address, len) {
        // SAFETY: the line is in the range that the caller vouches for.
        unsafe { std::arch::x86_64::_mm_clflush(line as *const u8) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, len);
    fence();
}

/// Demotes a range to the last-level cache, as far as the processor follows: CLDEMOTE is a hint,
/// and on processors that do not have it an instruction without effect.
///
/// # Safety
/// The range must be mapped and readable.
pub(super) unsafe fn demote(address: u64, len: u64) {
    #[cfg(target_arch = "x86_64")]
    for line in lines(address, len) {
        // SAFETY: CLDEMOTE changes no byte; the line is mapped, as the caller vouches.
        unsafe {
            std::arch::asm!("cldemote [{0}]", in(reg) line, options(nostack, preserves_flags));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, len);
    fence();
}

/// Reads other memory, which pushes lines out of a cache of half its size.
pub(super) fn sweep(space: &[u8]) {
    let sum = space
        .iter()
        .step_by(LINE as usize)
        .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}

/// Median time of a load from lines spread over a buffer, in ticks; it brings them in.
///
/// # Safety
/// The range must be mapped and readable.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn look(address: u64, len: u64) -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};

    let count = (len / LINE).max(1);
    let mut ticks = Vec::with_capacity(LOOKS as usize);
    for index in 0..LOOKS.min(count) {
        // A large odd step: no prefetcher foresees it.
        let line = address / LINE * LINE + index * 2_654_435_761 % count * LINE;
        // SAFETY: no condition but the instruction set's baseline.
        unsafe { _mm_lfence() };
        // SAFETY: as above.
        let before = unsafe { _rdtsc() };
        // SAFETY: as above.
        unsafe { _mm_lfence() };
        // SAFETY: the line is in the range that the caller vouches for.
        unsafe { (line as *const u8).read_volatile() };
        // SAFETY: no condition but the instruction set's baseline.
        unsafe { _mm_lfence() };
        // SAFETY: as above.
        ticks.push(unsafe { _rdtsc() }.saturating_sub(before));
    }
    ticks.sort_unstable();
    ticks.get(ticks.len() / 2).copied().unwrap_or(0)
}

/// # Safety
/// None: nothing is done.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn look(_: u64, _: u64) -> u64 {
    0
}

fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

fn lines(address: u64, len: u64) -> impl Iterator<Item = u64> {
    let first = address / LINE * LINE;
    (first..address + len).step_by(LINE as usize)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn moving_lines_changes_no_byte() {
        let buffer: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let copy = buffer.clone();
        let address = buffer.as_ptr() as u64;
        // SAFETY: the range is the buffer's.
        unsafe { touch(address, 10_000) };
        // SAFETY: as above.
        unsafe { demote(address, 10_000) };
        // SAFETY: as above.
        unsafe { flush(address, 10_000) };
        // SAFETY: as above.
        let ticks = unsafe { look(address, 10_000) };
        assert!(ticks > 0);
        assert_eq!(buffer, copy);
    }
}
