//! Prefetches of buffers and headers.

use std::ptr::NonNull;

use super::Direction;
use crate::memory::{Hint, MemoryMap, prefetch, prefetch_write};
use crate::net::HEADER_BYTES;

const LINE: usize = 64;

/// Bytes of both headers: the device's, and Ethernet's and IP's.
const HEADERS_BYTES: u32 = HEADER_BYTES as u32 + 34;

/// Bytes of a buffer that are brought in at most: what follows is left to the hardware's prefetcher,
/// which these lines have started.
const MAX_BYTES: u32 = 576;

/// Buffers up to this, in bytes, count as small.
const SMALL_BYTES: u32 = 256;
/// Small buffers whose lines are on their way at a time.
const SMALL_BUFFERS: usize = 8;
/// Other buffers whose lines are on their way at a time. Measured with dpdk-testpmd as guest at 512
/// to 1518 bytes: 3 are faster than 2 and 4, and 10 lines of each than 2, 4, 6 and 14.
const LARGE_BUFFERS: usize = 3;

/// How much of how many buffers is brought in before its turn comes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    direction: Direction,
    /// Buffers on their way at a time.
    pub(crate) buffers: usize,
    /// Bytes of each.
    bytes: u32,
}

impl Ahead {
    /// For buffers of which the core copies about so many bytes.
    #[inline]
    pub(crate) fn copied(direction: Direction, bytes: usize) -> Ahead {
        let bytes = bytes.min(MAX_BYTES as usize) as u32;
        Ahead {
            direction,
            buffers: match bytes <= SMALL_BYTES {
                true => SMALL_BUFFERS,
                false => LARGE_BUFFERS,
            },
            bytes,
        }
    }

    /// For buffers of which the core touches the headers alone.
    #[inline]
    pub(crate) fn headers(direction: Direction) -> Ahead {
        Ahead {
            direction,
            buffers: SMALL_BUFFERS,
            bytes: HEADERS_BYTES,
        }
    }

    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    /// Brings in the beginning of a buffer of `len` bytes.
    #[inline]
    pub(crate) fn prefetch(&self, first: NonNull<u8>, len: u32) {
        let last = len.min(self.bytes).max(1) - 1;
        match self.direction {
            Direction::FromGuest => each_line(first, last, prefetch),
            Direction::ToGuest => each_line(first, last, prefetch_write),
        }
    }

    /// The same for a descriptor that has not been fetched: whatever it says, nothing but a prefetch
    /// depends on it.
    #[inline]
    pub(super) fn prefetch_described(
        &self,
        memory: &MemoryMap,
        hint: &mut Hint,
        (addr, len): (u64, u32),
    ) {
        if let Some(first) = memory.translate_with(addr, len, hint) {
            self.prefetch(first, len);
        }
    }
}

/// Calls `touch` with an address in each line from `first` to the byte `last` after it.
#[inline]
fn each_line(first: NonNull<u8>, last: u32, touch: impl Fn(NonNull<u8>)) {
    touch(first);
    let before = first.as_ptr() as usize % LINE;
    let mut by = LINE - before;
    while by <= last as usize {
        // SAFETY: the byte lies in the buffer, which is mapped.
        touch(unsafe { first.add(by) });
        by += LINE;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn exactly_the_lines_of_a_range_are_prefetched() {
        for offset in 0..LINE as u64 {
            for len in 1..400u32 {
                let touched = RefCell::new(BTreeSet::new());
                let base = 0x1000 + offset;
                let first = NonNull::new(base as *mut u8).expect("not null");
                each_line(first, len - 1, |at| {
                    touched
                        .borrow_mut()
                        .insert(at.as_ptr() as u64 / LINE as u64);
                });
                let end = base + u64::from(len) - 1;
                let expected = base / LINE as u64..=end / LINE as u64;
                assert_eq!(touched.into_inner(), expected.collect(), "{offset} {len}");
            }
        }
    }
}
