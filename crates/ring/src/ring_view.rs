//! Where the parts of one ring lie.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::origin::OriginSlot;
use crate::ring::{Counters, Entry};
use crate::shared_region::SharedRegion;
use crate::sync::AtomicU64;

/// Views into a block, which they keep.
#[derive(Debug, Clone)]
pub(crate) struct RingView {
    pub(crate) counters: NonNull<Counters>,
    pub(crate) tags: NonNull<[AtomicU64]>,
    pub(crate) entries: NonNull<[Entry]>,
    pub(crate) origins: NonNull<[OriginSlot]>,
    /// Keeps the block.
    #[allow(dead_code, reason = "held, not read")]
    pub(crate) region: Arc<SharedRegion>,
}

// SAFETY: all that it points to is atomic and belongs to the region, which any thread may hold.
unsafe impl Send for RingView {}
// SAFETY: as above.
unsafe impl Sync for RingView {}

impl RingView {
    /// Entries that there are: a power of two.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        // SAFETY: the region laid counters there, and lives as long as `self`.
        unsafe { self.counters.as_ref() }
    }

    /// The tag of entry `index`.
    #[inline]
    pub(crate) fn tag(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the region laid that many tags there, and lives as long as `self`.
        let tags = unsafe { self.tags.as_ref() };
        &tags[index]
    }

    #[inline]
    pub(crate) fn entry(&self, index: usize) -> &Entry {
        // SAFETY: the region laid that many entries there, and lives as long as `self`.
        let entries = unsafe { self.entries.as_ref() };
        &entries[index]
    }

    /// The origin beside entry `index`.
    pub(crate) fn origin(&self, index: usize) -> &OriginSlot {
        // SAFETY: the region laid that many origins there, and lives as long as `self`.
        let origins = unsafe { self.origins.as_ref() };
        &origins[index]
    }
}
