//! What movers share with their device, beside the memory that their operations name.

use std::sync::{Arc, PoisonError, RwLock};

use dray_device::Access;
use dray_realtime::Translation;

use crate::slots::SlotMemory;

/// The blocks of all movers of a device.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    blocks: RwLock<Vec<Arc<SlotMemory>>>,
}

impl Memories {
    /// A new block for a mover with `slots` slots.
    pub(crate) fn add(&self, slots: u32) -> Arc<SlotMemory> {
        let block = Arc::new(SlotMemory::new(slots));
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        blocks.push(block.clone());
        block
    }

    /// No descriptor names this block any more.
    pub(crate) fn remove(&self, block: &Arc<SlotMemory>) {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        blocks.retain(|other| !Arc::ptr_eq(other, block));
    }

    /// The descriptor whose record would be at `address` was aborted.
    pub(crate) fn abandon(&self, address: u64) {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        for block in blocks.iter() {
            block.abandon(address);
        }
    }

    /// Bytes from `addr` on, at most `len`, that lie in one of the blocks.
    fn accessible(&self, addr: u64, len: u64) -> u64 {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let mut addresses = blocks.iter().map(|block| block.addresses());
        let found = addresses.find(|addresses| addresses.contains(&addr));
        found.map_or(0, |addresses| len.min(addresses.end - addr))
    }
}

/// What a device can access: what its user says, and its movers' blocks.
#[derive(Debug)]
pub(crate) struct WithMemories<S> {
    pub(crate) space: S,
    pub(crate) memories: Arc<Memories>,
}

impl<S: Translation> Translation for WithMemories<S> {
    #[inline]
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let bytes = self.space.accessible(addr, len, access);
        match bytes < len {
            true => bytes.max(self.memories.accessible(addr, len)),
            false => bytes,
        }
    }
}
