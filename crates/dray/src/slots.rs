//! The memory that a mover shares with its device: completion records and descriptor lists.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
#[cfg(feature = "virtual")]
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use dray_spec::{CompletionRecord, Descriptor};

/// Bytes from one record to the next: those that the device writes share no line with those that a
/// core reads meanwhile.
const STRIDE: usize = 64;

/// Records of `slots` operations and of as many batches, and the operations' descriptors.
///
/// Descriptors of neighbouring slots lie side by side, so that a batch can name them as its list.
#[derive(Debug)]
pub(crate) struct SlotMemory {
    base: NonNull<u8>,
    layout: Layout,
    slots: u32,
}

// SAFETY: the block belongs to this value. Its mover alone writes descriptors, and shares records
// with the device by their status bytes.
unsafe impl Send for SlotMemory {}
// SAFETY: as above.
unsafe impl Sync for SlotMemory {}

impl SlotMemory {
    /// Room for `slots` operations; at least 1.
    pub(crate) fn new(slots: u32) -> SlotMemory {
        let slots = slots.max(1);
        let bytes = slots as usize * (2 * STRIDE + size_of::<Descriptor>());
        let Ok(layout) = Layout::from_size_align(bytes, 4096) else {
            // 2^32 slots of 192 bytes are below isize::MAX.
            unreachable!("a power of two, and far from isize::MAX")
        };
        // SAFETY: the size is not 0.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout);
        };
        // The device finds all of it by address.
        base.as_ptr().expose_provenance();
        SlotMemory {
            base,
            layout,
            slots,
        }
    }

    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Addresses of all of it.
    #[cfg(feature = "virtual")]
    pub(crate) fn addresses(&self) -> Range<u64> {
        let start = self.base.as_ptr() as u64;
        start..start + self.layout.size() as u64
    }

    /// Number of the record of a batch whose first operation has this slot.
    #[inline]
    pub(crate) fn batch_record(&self, first: u32) -> u32 {
        self.slots + first
    }

    /// Where the device writes record `index`.
    #[inline]
    pub(crate) fn record_address(&self, index: u32) -> u64 {
        self.record(index) as u64
    }

    /// Where the descriptor of `slot` lies.
    #[inline]
    pub(crate) fn descriptor_address(&self, slot: u32) -> u64 {
        self.descriptor(slot) as u64
    }

    /// Writes the descriptor of a slot that no descriptor in flight names.
    #[inline]
    pub(crate) fn set_descriptor(&self, slot: u32, descriptor: &Descriptor) {
        let place = self.descriptor(slot);
        // SAFETY: it lies in the block and is aligned to 64 bytes; the slot's owner is the caller.
        unsafe { place.write(*descriptor) };
    }

    /// The descriptor of a slot.
    #[inline]
    pub(crate) fn get_descriptor(&self, slot: u32) -> Descriptor {
        let place = self.descriptor(slot);
        // SAFETY: it lies in the block, is aligned, and any bytes are a descriptor.
        unsafe { place.read() }
    }

    /// Makes record `index` ready for a descriptor.
    #[inline]
    pub(crate) fn clear(&self, index: u32) {
        self.status(index).store(0, Ordering::Relaxed);
        self.abandoned(index).store(0, Ordering::Relaxed);
    }

    /// The descriptor whose record would be at `address` was aborted, and has ended. Addresses of
    /// other blocks are left alone.
    #[cfg(feature = "virtual")]
    pub(crate) fn abandon(&self, address: u64) {
        let start = self.addresses().start;
        let index = address.wrapping_sub(start) / STRIDE as u64;
        if address >= start && index < 2 * u64::from(self.slots) {
            self.abandoned(index as u32).store(1, Ordering::Release);
        }
    }

    /// Record `index`, once the device has written it; for a descriptor that was aborted an empty
    /// one.
    #[inline]
    pub(crate) fn read(&self, index: u32) -> Option<CompletionRecord> {
        if self.status(index).load(Ordering::Acquire) == 0 {
            let abandoned = self.abandoned(index).load(Ordering::Acquire) != 0;
            return abandoned.then(CompletionRecord::default);
        }
        Some(self.peek(index))
    }

    /// Record `index` as it is: of a member, once its batch has ended.
    #[inline]
    pub(crate) fn peek(&self, index: u32) -> CompletionRecord {
        let record = self.record(index).cast::<CompletionRecord>();
        // SAFETY: it lies in the block, is aligned, and the device has done with it.
        unsafe { record.read() }
    }

    #[inline]
    fn record(&self, index: u32) -> *mut u8 {
        assert!(index < 2 * self.slots, "a record of this block");
        // SAFETY: it lies in the block.
        unsafe { self.base.as_ptr().add(index as usize * STRIDE) }
    }

    #[inline]
    fn descriptor(&self, slot: u32) -> *mut Descriptor {
        assert!(slot < self.slots, "a slot of this block");
        let records = 2 * self.slots as usize * STRIDE;
        let offset = records + slot as usize * size_of::<Descriptor>();
        // SAFETY: it lies in the block.
        unsafe { self.base.as_ptr().add(offset) }.cast()
    }

    #[inline]
    fn status(&self, index: u32) -> &AtomicU8 {
        // SAFETY: the byte lies in the block, and is an atomic as long as the device may write it.
        unsafe { AtomicU8::from_ptr(self.record(index)) }
    }

    /// Beside the record: whether there will be none.
    #[inline]
    fn abandoned(&self, index: u32) -> &AtomicU8 {
        // SAFETY: a record is half as large as the distance to the next.
        let byte = unsafe { self.record(index).add(size_of::<CompletionRecord>()) };
        // SAFETY: the byte lies in the block, and is accessed as an atomic alone.
        unsafe { AtomicU8::from_ptr(byte) }
    }
}

impl Drop for SlotMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the last owner saw all descriptors end.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// Hands slots out in runs of neighbours, and takes them back in any order.
#[derive(Debug)]
pub(crate) struct SlotRing {
    /// By slot: it was handed out and came back, though one before it has not.
    returned: Vec<bool>,
    oldest: u32,
    /// Slots between the oldest that is out and the next to hand out.
    used: u32,
    /// Slots that were handed out and did not come back.
    out: u32,
}

impl SlotRing {
    pub(crate) fn new(slots: u32) -> SlotRing {
        SlotRing {
            returned: vec![false; slots as usize],
            oldest: 0,
            used: 0,
            out: 0,
        }
    }

    /// Slots that were handed out and did not come back.
    pub(crate) fn out(&self) -> u32 {
        self.out
    }

    fn capacity(&self) -> u32 {
        self.returned.len() as u32
    }

    /// The first of `count` neighbours; `None` if there are no so many.
    #[inline]
    pub(crate) fn take(&mut self, count: u32) -> Option<u32> {
        let capacity = self.capacity();
        if self.used == 0 {
            self.oldest = 0;
        }
        let mut next = self.oldest + self.used;
        if next >= capacity {
            next -= capacity;
        }
        // Neighbours do not go over the end: what is left there stays out, and is back at once.
        let skipped = match count > capacity - next {
            true => capacity - next,
            false => 0,
        };
        if u64::from(self.used) + u64::from(skipped) + u64::from(count) > u64::from(capacity) {
            return None;
        }
        for slot in next..next + skipped {
            self.returned[slot as usize] = true;
        }
        self.used += skipped + count;
        self.out += count;
        Some(if skipped > 0 { 0 } else { next })
    }

    /// Takes a slot back.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u32) {
        self.returned[slot as usize] = true;
        self.out -= 1;
        while self.used > 0 && self.returned[self.oldest as usize] {
            self.returned[self.oldest as usize] = false;
            self.used -= 1;
            self.oldest += 1;
            if self.oldest == self.capacity() {
                self.oldest = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_never_go_over_the_end() {
        let mut ring = SlotRing::new(8);
        assert_eq!(ring.take(5), Some(0));
        assert_eq!(ring.take(4), None);
        for slot in 0..5 {
            ring.give_back(slot);
        }
        assert_eq!(ring.take(3), Some(0));
        assert_eq!(ring.take(3), Some(3));
        for slot in 0..3 {
            ring.give_back(slot);
        }
        // Two are left at the end, and three at the start.
        assert_eq!(ring.take(3), Some(0));
        assert_eq!(ring.take(1), None);
        // Back in another order.
        ring.give_back(5);
        ring.give_back(4);
        assert_eq!(ring.take(1), None);
        ring.give_back(3);
        assert_eq!(ring.take(5), Some(3));
        assert_eq!(ring.take(9), None);
    }
}
