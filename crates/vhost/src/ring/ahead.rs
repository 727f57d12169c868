//! What is brought into the cache before it is read.

use std::ptr::NonNull;

use super::Direction;
use crate::memory::{Hint, MemoryMap, prefetch, prefetch_write};
use crate::net::HEADER_BYTES;

/// Buffers whose beginnings are on their way at a time: two lines each, as many as a core waits for.
pub(crate) const AHEAD: usize = 8;

/// Bytes of both headers, but for the last: the device's, and Ethernet's and IP's.
const HEADERS_BYTES: u32 = HEADER_BYTES as u32 + 34;

/// Brings into the cache what guest and device both touch of a buffer: the lines of the two headers,
/// the packet's own and the one before it.
#[inline]
pub(crate) fn prefetch_beginning(first: NonNull<u8>, len: u32, direction: Direction) {
    let last = (len.max(1) - 1).min(HEADERS_BYTES) as usize;
    // SAFETY: the buffer is longer than `last`.
    let last = unsafe { first.add(last) };
    match direction {
        Direction::FromGuest => {
            prefetch(first);
            prefetch(last);
        }
        Direction::ToGuest => {
            prefetch_write(first);
            prefetch_write(last);
        }
    }
}

/// The same for a descriptor that has not been fetched: whatever it says, nothing but a prefetch
/// depends on it.
#[inline]
pub(super) fn prefetch_described(
    memory: &MemoryMap,
    hint: &mut Hint,
    (addr, len): (u64, u32),
    direction: Direction,
) {
    if let Some(first) = memory.translate_with(addr, len, hint) {
        prefetch_beginning(first, len, direction);
    }
}
