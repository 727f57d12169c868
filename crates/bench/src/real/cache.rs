//! Where buffers are before they are used: put there, and looked at.

use crate::case::Location;

const LINE: u64 = 64;

/// Lines that are looked at to see where a buffer is.
const LOOKS: u64 = 32;

/// Whether this machine lets a program place its lines.
pub(super) const CAN_PLACE: bool = cfg!(target_arch = "x86_64");

/// Puts a buffer where it should be. To the second-level cache and beyond lines get by being
/// read; out of a cache by CLFLUSH. CLDEMOTE is a hint, and nothing on processors without it, so
/// that the last-level cache is reached by pushing lines out of the second level as well.
///
/// # Safety
/// The range must be mapped and readable.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn place(address: u64, len: u64, location: Location) {
    use std::arch::asm;
    use std::arch::x86_64::_mm_clflush;

    for line in lines(address, len) {
        match location {
            Location::None => {}
            // SAFETY: the line is in the range that the caller vouches for.
            Location::Ram => unsafe { _mm_clflush(line as *const u8) },
            Location::L1 | Location::L2 => {
                // SAFETY: as above.
                unsafe { (line as *const u8).read_volatile() };
            }
            Location::Llc => {
                // SAFETY: as above.
                unsafe { (line as *const u8).read_volatile() };
                // SAFETY: CLDEMOTE of a mapped line changes no bytes and executes everywhere.
                unsafe { asm!("cldemote [{0}]", in(reg) line, options(nostack, preserves_flags)) };
            }
        }
    }
    fence();
}

/// # Safety
/// None: nothing is done.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn place(_: u64, _: u64, _: Location) {}

/// Reads memory of twice the second-level cache's size, which pushes everything else out of it.
pub(super) fn push_out(space: &[u8]) {
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

#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: no condition but the instruction set's baseline.
    unsafe { std::arch::x86_64::_mm_mfence() };
}

#[cfg(target_arch = "x86_64")]
fn lines(address: u64, len: u64) -> impl Iterator<Item = u64> {
    let first = address / LINE * LINE;
    (first..address + len).step_by(LINE as usize)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn placing_changes_no_byte() {
        let buffer: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let copy = buffer.clone();
        for location in [Location::Ram, Location::Llc, Location::L2, Location::L1] {
            // SAFETY: the range is the buffer's.
            unsafe { place(buffer.as_ptr() as u64, 10_000, location) };
            // SAFETY: as above.
            let ticks = unsafe { look(buffer.as_ptr() as u64, 10_000) };
            assert!(ticks > 0, "{location}");
        }
        assert_eq!(buffer, copy);
    }
}
