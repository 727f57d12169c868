//! One block of memory with all that submitters and dispatcher share: doorbell and rings.
//!
//! Where each part lies follows from the number and the sizes of the queues alone, so two processes
//! that know these find the same parts at the same offsets, wherever the block is mapped. All zero
//! is its initial state.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem::{align_of, offset_of, size_of};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::doorbell::Doorbell;
use crate::places::Places;
use crate::ring::{Counters, Entry, Line, Ring, Writers};
use crate::sync::AtomicU32;

/// The block begins at a page.
const ALIGNMENT: usize = 4096;

// Processes built at different times share it.
const _: () = {
    assert!(size_of::<Doorbell>() == 128);
    assert!(size_of::<Counters>() == 384 && align_of::<Counters>() == 128);
    assert!(offset_of!(Counters, writers) == 0);
    assert!(offset_of!(Counters, taken) == 128);
    assert!(offset_of!(Counters, lost) == 256);
    assert!(offset_of!(Line<Writers>, 0) == 0);
    assert!(offset_of!(Writers, accepted) == 0);
    assert!(offset_of!(Writers, taken_before) == 8);
    assert!(offset_of!(Writers, gate) == 16);
    assert!(size_of::<Entry>() == 64 && align_of::<Entry>() == 64);
};

/// Where one ring lies in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingOffsets {
    counters: usize,
    written: usize,
    entries: usize,
    capacity: usize,
}

/// Offsets of all parts, and the size of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    rings: Vec<RingOffsets>,
    bytes: usize,
}

impl Plan {
    /// The doorbell, then for each ring counters, marks and entries.
    fn new(sizes: &[u16]) -> Plan {
        let mut bytes = size_of::<Doorbell>();
        let mut place = |size: usize| {
            let offset = bytes.next_multiple_of(align_of::<Counters>());
            bytes = offset + size;
            offset
        };
        let rings = sizes.iter().map(|size| {
            let capacity = usize::from(*size).next_power_of_two();
            RingOffsets {
                counters: place(size_of::<Counters>()),
                written: place(capacity * size_of::<AtomicU32>()),
                entries: place(capacity * size_of::<Entry>()),
                capacity,
            }
        });
        let rings = rings.collect();
        Plan { rings, bytes }
    }
}

/// The block.
#[derive(Debug)]
pub(crate) struct Board {
    base: NonNull<u8>,
    layout: Layout,
    rings: Vec<RingOffsets>,
}

// SAFETY: the block belongs to the board alone, and what is in it is atomic.
unsafe impl Send for Board {}
// SAFETY: as above; nothing in it is accessed but by atomics.
unsafe impl Sync for Board {}

impl Board {
    /// A block for rings with these numbers of entries.
    pub(crate) fn new(sizes: &[u16]) -> Arc<Board> {
        let plan = Plan::new(sizes);
        let layout = match Layout::from_size_align(plan.bytes, ALIGNMENT) {
            Ok(layout) => layout,
            // 65536 queues of 65536 entries are far from isize::MAX.
            Err(error) => unreachable!("{error}"),
        };
        // SAFETY: its size is not 0, for there is a doorbell.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout);
        };
        Arc::new(Board {
            base,
            layout,
            rings: plan.rings,
        })
    }

    /// The dispatcher's doorbell.
    #[inline]
    pub(crate) fn doorbell(&self) -> &Doorbell {
        // SAFETY: the block begins with a doorbell, and zeros are one.
        unsafe { self.base.cast::<Doorbell>().as_ref() }
    }

    /// The ring number `index`; `None` if there are fewer.
    pub(crate) fn ring(self: &Arc<Board>, index: usize) -> Option<Ring> {
        let at = self.rings.get(index)?;
        // SAFETY: the plan laid the counters within the block.
        let counters = unsafe { self.base.add(at.counters) };
        // SAFETY: the plan laid the marks within the block.
        let written = unsafe { self.base.add(at.written) };
        // SAFETY: the plan laid the entries within the block.
        let entries = unsafe { self.base.add(at.entries) };
        let places = Places {
            counters: counters.cast(),
            written: NonNull::slice_from_raw_parts(written.cast(), at.capacity),
            entries: NonNull::slice_from_raw_parts(entries.cast(), at.capacity),
            board: self.clone(),
        };
        Some(Ring::new(places))
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: the block was allocated with this layout, and all views on it keep the board.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_depend_on_sizes_alone() {
        let plan = Plan::new(&[1, 3, 128]);
        assert_eq!(plan, Plan::new(&[1, 3, 128]));
        let offsets: Vec<_> = plan
            .rings
            .iter()
            .map(|r| [r.counters, r.written, r.entries, r.capacity])
            .collect();
        assert_eq!(
            offsets,
            [
                [128, 512, 640, 1],
                [768, 1152, 1280, 4],
                [1536, 1920, 2432, 128]
            ]
        );
        assert_eq!(plan.bytes, 2432 + 128 * 64);
    }
}
