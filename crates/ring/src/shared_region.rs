//! One block of memory with all that submitters and dispatcher share: doorbell and rings.
//!
//! Where each part lies follows from the number and the sizes of the queues alone, so two processes
//! that know these find the same parts at the same offsets, wherever the block is mapped. All zero
//! is its initial state.

use std::mem::{align_of, offset_of, size_of};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::attachment::{AttachError, RegionLayout, SharedRegionFile};
use crate::block::Block;
use crate::doorbell::Doorbell;
use crate::memory_calls::{MemoryCalls, NotedCall};
use crate::origin::OriginSlot;
use crate::ring::{Counters, Entry, Line, Reading, Refused, Ring, Writers};
use crate::ring_view::RingView;
use crate::sync::AtomicU64;

// Processes built at different times share it.
const _: () = {
    assert!(size_of::<Doorbell>() == 128);
    assert!(size_of::<Counters>() == 384 && align_of::<Counters>() == 128);
    assert!(offset_of!(Counters, writers) == 0);
    assert!(offset_of!(Counters, taken) == 128);
    assert!(offset_of!(Counters, refused) == 256);
    assert!(offset_of!(Line<Writers>, 0) == 0);
    assert!(offset_of!(Writers, accepted) == 0);
    assert!(offset_of!(Writers, taken_before) == 8);
    assert!(offset_of!(Writers, gate) == 16);
    assert!(offset_of!(Reading, taken) == 0);
    assert!(offset_of!(Reading, looked) == 8);
    assert!(offset_of!(Refused, lost) == 0);
    assert!(offset_of!(Refused, retried) == 8);
    assert!(offset_of!(Refused, posted) == 16);
    assert!(offset_of!(Refused, deferrable) == 24);
    assert!(size_of::<OriginSlot>() == 64 && align_of::<OriginSlot>() == 8);
    assert!(size_of::<MemoryCalls>() == 128 + 64 * (64 + 1024));
    assert!(size_of::<Entry>() == 64 && align_of::<Entry>() == 64);
};

/// Where one ring lies in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingOffsets {
    counters: usize,
    tags: usize,
    entries: usize,
    origins: usize,
    capacity: usize,
}

/// Offsets of all parts, and the size of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    rings: Vec<RingOffsets>,
    memory_calls: usize,
    bytes: usize,
}

impl Plan {
    /// The doorbell, then for each ring counters, tags, entries and origins, then the calls.
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
                tags: place(capacity * size_of::<AtomicU64>()),
                entries: place(capacity * size_of::<Entry>()),
                origins: place(capacity * size_of::<OriginSlot>()),
                capacity,
            }
        });
        let rings = rings.collect();
        let memory_calls = place(size_of::<MemoryCalls>());
        Plan {
            rings,
            memory_calls,
            bytes,
        }
    }
}

/// The block, and where what is in it.
#[derive(Debug)]
pub struct SharedRegion {
    block: Block,
    rings: Vec<RingOffsets>,
    memory_calls: usize,
}

impl SharedRegion {
    fn of(plan: Plan, block: Block) -> SharedRegion {
        SharedRegion {
            block,
            rings: plan.rings,
            memory_calls: plan.memory_calls,
        }
    }

    /// A block for the rings of this layout.
    pub fn new(layout: RegionLayout) -> Arc<SharedRegion> {
        let plan = Plan::new(&layout.sizes());
        let block = Block::allocated(plan.bytes);
        Arc::new(SharedRegion::of(plan, block))
    }

    /// The same in memory that other processes can map, by the file.
    ///
    /// # Errors
    /// The system gives no such memory.
    pub fn shared(
        layout: RegionLayout,
    ) -> Result<(Arc<SharedRegion>, SharedRegionFile), AttachError> {
        let plan = Plan::new(&layout.sizes());
        let (block, fd) = Block::created(plan.bytes)?;
        let file = SharedRegionFile { fd, layout };
        Ok((Arc::new(SharedRegion::of(plan, block)), file))
    }

    /// What another process has [shared](SharedRegion::shared), with the same layout.
    ///
    /// # Errors
    /// It is not that, or cannot be mapped.
    pub fn attached(
        fd: BorrowedFd<'_>,
        layout: RegionLayout,
    ) -> Result<Arc<SharedRegion>, AttachError> {
        let plan = Plan::new(&layout.sizes());
        let block = Block::mapped(fd, plan.bytes)?;
        Ok(Arc::new(SharedRegion::of(plan, block)))
    }

    /// The dispatcher's doorbell.
    #[inline]
    pub fn doorbell(&self) -> &Doorbell {
        // SAFETY: the block begins with a doorbell, and zeros are one.
        unsafe { self.block.base().cast::<Doorbell>().as_ref() }
    }

    pub(crate) fn memory_calls(&self) -> &MemoryCalls {
        // SAFETY: the plan laid them within the block.
        let calls = unsafe { self.block.base().add(self.memory_calls) };
        // SAFETY: they are aligned, atomics alone, and zeros are some.
        unsafe { calls.cast::<MemoryCalls>().as_ref() }
    }

    /// How many calls have taken memory away from programs, as these say.
    pub fn noted_calls(&self) -> u64 {
        self.memory_calls().count()
    }

    /// The last call of an address space, behind the first `since`, that took a byte of a range of memory away, with the
    /// [first bytes](crate::CALL_STACK) of its stack; `None` if its program has said nothing of it, or many have come since.
    pub fn last_call(
        &self,
        pasid: u32,
        range: (u64, u64),
        since: u64,
    ) -> Option<(NotedCall, Vec<u8>)> {
        self.memory_calls().last(pasid, range, since)
    }

    /// The ring number `index`; `None` if there are fewer.
    pub fn ring(self: &Arc<SharedRegion>, index: usize) -> Option<Ring> {
        let at = self.rings.get(index)?;
        let base = self.block.base();
        // SAFETY: the plan laid the counters within the block.
        let counters = unsafe { base.add(at.counters) };
        // SAFETY: the plan laid the tags within the block.
        let tags = unsafe { base.add(at.tags) };
        // SAFETY: the plan laid the entries within the block.
        let entries = unsafe { base.add(at.entries) };
        // SAFETY: the plan laid the origins within the block.
        let origins = unsafe { base.add(at.origins) };
        let view = RingView {
            counters: counters.cast(),
            tags: NonNull::slice_from_raw_parts(tags.cast(), at.capacity),
            entries: NonNull::slice_from_raw_parts(entries.cast(), at.capacity),
            origins: NonNull::slice_from_raw_parts(origins.cast(), at.capacity),
            region: self.clone(),
        };
        Some(Ring::new(view))
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
            .map(|r| [r.counters, r.tags, r.entries, r.origins, r.capacity])
            .collect();
        assert_eq!(
            offsets,
            [
                [128, 512, 640, 768, 1],
                [896, 1280, 1408, 1664, 4],
                [1920, 2304, 3328, 11520, 128]
            ]
        );
        assert_eq!(plan.memory_calls, 11520 + 128 * size_of::<OriginSlot>());
        assert_eq!(plan.bytes, plan.memory_calls + size_of::<MemoryCalls>());
    }
}
