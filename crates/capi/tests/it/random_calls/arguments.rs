//! Arguments of random calls: numbers and buffers that fit, and such that do not.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::{AREA, PAGE};

/// A generator of numbers (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// One time of so many.
    pub(super) fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// A number that is a word, or not one.
    pub(super) fn word(&mut self, words: u32) -> u32 {
        match self.rarely(6) {
            true => self.of(&[words, words + 1, 1 << 31, u32::MAX]),
            false => self.below(words as usize) as u32,
        }
    }

    /// A length that fits, is uneven, or is far too large.
    pub(super) fn length(&mut self) -> usize {
        let fitting = 1 + self.below(AREA * PAGE);
        let uneven = self.below(3 * AREA * PAGE);
        let blocks = 1 + self.below(16);
        self.of(&[
            fitting,
            fitting & !7,
            blocks * 520,
            blocks * 512,
            uneven,
            0,
            u32::MAX as usize,
            1 << 32,
            usize::MAX,
        ])
    }
}

/// Memory of operations: areas between pages that cannot be accessed, and one that can only be read. They
/// stay mapped, for a device may hold them for a while after a mover was closed.
pub(super) struct Areas(pub(super) Vec<*mut u8>);

impl Areas {
    pub(super) fn new(count: usize) -> Areas {
        let (stride, inside) = ((AREA + 4) * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let all = unsafe { libc::mmap(null_mut(), count * stride, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(all, libc::MAP_FAILED);
        let mut starts = Vec::new();
        for n in 0..count {
            let start = all.wrapping_byte_add(n * stride + PAGE);
            let access = if n == 0 { libc::PROT_READ } else { inside };
            // SAFETY: pages of the mapping above.
            assert_eq!(unsafe { libc::mprotect(start, AREA * PAGE, access) }, 0);
            starts.push(start.cast());
        }
        Areas(starts)
    }

    /// A buffer: in an area, at its end, beyond it, nowhere.
    pub(super) fn buffer(&self, random: &mut Random) -> *mut c_void {
        let nowhere = [0, 1, 4095, usize::MAX - 7, 1 << 63];
        match random.rarely(6) {
            true => std::ptr::without_provenance_mut(random.of(&nowhere)),
            false => self.buffer_in(random.below(self.0.len()), random),
        }
    }

    /// A buffer in an area, at its end, or in the page before or behind it.
    pub(super) fn buffer_in(&self, area: usize, random: &mut Random) -> *mut c_void {
        let start = self.0[area].cast::<c_void>();
        let offset = random.below(AREA * PAGE);
        match random.below(10) {
            0 => start.wrapping_byte_sub(8),
            1 => start.wrapping_byte_add(AREA * PAGE),
            2 => start.wrapping_byte_add(offset),
            3 => start.wrapping_byte_add(AREA * PAGE - 64),
            _ => start.wrapping_byte_add(offset & !(PAGE - 1)),
        }
    }
}
