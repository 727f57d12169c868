//! Lines moved between caches and memory, and looked at.

const LINE: u64 = 64;

/// Prefetchers work within pages of this size, whatever the size of the translation.
const PAGE: u64 = 4096;

/// Loads that show where a buffer is.
pub(super) const SAMPLED_LINES: u64 = 32;

/// Whether this machine lets a program place its lines.
pub const CAN_PLACE: bool = cfg!(target_arch = "x86_64");

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

/// How often a buffer has to be placed again to see [`SAMPLED_LINES`] of its lines.
pub(super) fn turns(len: u64) -> u64 {
    SAMPLED_LINES.div_ceil((len / PAGE).max(1))
}

/// Times loads in ticks: of each page one line, another one each turn, and of at most [`SAMPLED_LINES`]
/// pages, because the second load from a page finds what prefetchers brought after the first.
///
/// # Safety
/// The range must be mapped and readable.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn look(address: u64, len: u64, turn: u64, ticks: &mut Vec<u64>) {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};

    let pages = (len / PAGE).max(1);
    let lines = (len.min(PAGE) / LINE).max(1);
    for index in 0..SAMPLED_LINES.min(pages) {
        // A prime step: no page comes twice, and none beside the last one.
        let page = index * 2_654_435_761 % pages;
        let line = (turn * 37 + index * 11) % lines;
        let start = address / LINE * LINE + page * PAGE;
        // The access half a page away keeps the translation out of the time and triggers no prefetcher.
        let other = start + (line + lines / 2) % lines * LINE;
        let line = start + line * LINE;
        // SAFETY: the line is in the range that the caller vouches for.
        unsafe { (other as *const u8).read_volatile() };
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
}

/// # Safety
/// None: nothing is done.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn look(_: u64, _: u64, _: u64, _: &mut Vec<u64>) {}

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
    fn touch_demote_and_flush_change_no_byte() {
        let buffer: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let copy = buffer.clone();
        let address = buffer.as_ptr() as u64;
        // SAFETY: the range is the buffer's.
        unsafe { touch(address, 10_000) };
        // SAFETY: as above.
        unsafe { demote(address, 10_000) };
        // SAFETY: as above.
        unsafe { flush(address, 10_000) };
        let mut ticks = Vec::new();
        for turn in 0..turns(10_000) {
            // SAFETY: as above.
            unsafe { look(address, 10_000, turn, &mut ticks) };
        }
        assert_eq!(ticks.len(), 32);
        assert!(ticks.iter().all(|t| *t > 0));
        assert_eq!(buffer, copy);
    }
}
