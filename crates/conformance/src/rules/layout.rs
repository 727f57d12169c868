//! Where things are in the memory of a case. Whatever is not named is a hole.

use super::{PAGE, Page, Pages};

const BASE: u64 = 0x10_0000;
/// Where the record of the descriptor goes.
pub const RECORD: u64 = BASE;
/// A page of readable and writable memory with a hole behind it.
pub(super) const LIST: u64 = BASE + PAGE;
/// Four pages each; what follows the last is a hole.
pub(super) const SRC: u64 = BASE + 3 * PAGE;
/// See [`SRC`].
pub(super) const DST: u64 = BASE + 7 * PAGE;
/// See [`SRC`].
pub(super) const DST2: u64 = BASE + 11 * PAGE;
/// First byte behind the second destination.
pub(super) const HOLE: u64 = BASE + 15 * PAGE;
/// A page that can be read only, behind the hole, and then a hole again.
pub(super) const READ_ONLY: u64 = BASE + 16 * PAGE;
/// A page that holds a delta record of one entry, which changes the second word, and a hole behind.
pub(super) const DELTA: u64 = BASE + 18 * PAGE;

/// PASID of the queue.
pub(super) const OWN_PASID: u32 = 1;
/// PASID of an address space with the same pages and other bytes.
pub(super) const OTHER_PASID: u32 = 2;
/// PASID of an address space with nothing but submitter bitmaps: [`BITMAP`] and a hole.
pub(super) const BITMAP_PASID: u32 = 3;
/// A bitmap that admits [`OWN_PASID`]; that of the page behind it admits no submitter.
pub(super) const BITMAP: u64 = BASE;

/// What the one entry at [`DELTA`] writes.
pub(super) const DELTA_WORD: [u8; 8] = *b"deltas!!";

fn pages() -> Pages {
    let mut pages = vec![Page::ReadWrite, Page::ReadWrite, Page::Hole];
    pages.extend([Page::ReadWrite; 12]);
    pages.extend([Page::Hole, Page::ReadOnly, Page::Hole]);
    pages.extend([Page::ReadWrite, Page::Hole]);
    Pages::new(BASE, pages)
}

/// The memory of all cases.
pub(super) fn memory() -> Pages {
    let mut own = pages();
    let mut entry = vec![1, 0];
    entry.extend(DELTA_WORD);
    own.poke(DELTA, &entry);
    let mut other = pages();
    let size = (20 * PAGE) as usize;
    let inverted: Vec<u8> = other.peek(BASE, size).iter().map(|byte| !byte).collect();
    other.poke(BASE, &inverted);
    let mut bitmaps = Pages::new(BASE, vec![Page::ReadOnly; 2]);
    bitmaps.poke(BITMAP, &[0; 2 * PAGE as usize]);
    bitmaps.poke(BITMAP, &[1 << OWN_PASID]);
    own.with_other(OTHER_PASID, other)
        .with_other(BITMAP_PASID, bitmaps)
}
