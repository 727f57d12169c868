//! Completion records that a device writes and movers read.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use dray_device::Access;
use dray_realtime::Translation;
use dray_spec::CompletionRecord;

/// Bytes from one record to the next: those that the device writes share no line with those that a
/// core reads meanwhile.
const STRIDE: usize = 64;

/// Records that the movers of one device share.
pub(crate) const RECORDS: u32 = 1 << 14;

/// A fixed number of records, handed out to movers.
#[derive(Debug)]
pub(crate) struct Arena {
    base: NonNull<u8>,
    layout: Layout,
    free: Mutex<Vec<u32>>,
}

// SAFETY: the records belong to the arena; who holds the number of one shares it with the device by
// its status byte alone.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// `RECORDS` records.
    pub(crate) fn new() -> Arena {
        const LAYOUT: Layout = match Layout::from_size_align(RECORDS as usize * STRIDE, 4096) {
            Ok(layout) => layout,
            Err(_) => panic!("a power of two, and far from isize::MAX"),
        };
        let layout = LAYOUT;
        // SAFETY: the size is not 0.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout);
        };
        // The device finds them by address.
        base.as_ptr().expose_provenance();
        Arena {
            base,
            layout,
            free: Mutex::new((0..RECORDS).rev().collect()),
        }
    }

    /// Hands `count` records out; the number that there are left, if these are fewer.
    pub(crate) fn take(&self, count: usize) -> Result<Vec<u32>, usize> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match free.len().checked_sub(count) {
            Some(rest) => Ok(free.split_off(rest)),
            None => Err(free.len()),
        }
    }

    /// Takes records back that no descriptor names any more.
    pub(crate) fn give_back(&self, records: impl Iterator<Item = u32>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.extend(records);
    }

    /// Addresses of all records.
    pub(crate) fn addresses(&self) -> Range<u64> {
        let start = self.base.as_ptr() as u64;
        start..start + self.layout.size() as u64
    }

    /// Where the device writes record `index`.
    #[inline]
    pub(crate) fn address(&self, index: u32) -> u64 {
        self.place(index) as u64
    }

    /// Makes record `index` ready for a descriptor. For whoever it was handed out to.
    #[inline]
    pub(crate) fn clear(&self, index: u32) {
        self.status(index).store(0, Ordering::Relaxed);
        self.abandoned(index).store(0, Ordering::Relaxed);
    }

    /// The descriptor whose record would be at `address` was aborted, and has ended. Addresses that
    /// are not of this arena are somebody else's.
    pub(crate) fn abandon(&self, address: u64) {
        let all = self.addresses();
        if all.contains(&address) {
            let index = (address - all.start) / STRIDE as u64;
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
        let record = self.place(index).cast::<CompletionRecord>();
        // SAFETY: it lies in the arena, is aligned, and once its status is there nobody writes it.
        Some(unsafe { record.read() })
    }

    #[inline]
    fn place(&self, index: u32) -> *mut u8 {
        let offset = index as usize * STRIDE;
        assert!(offset < self.layout.size(), "a record of this arena");
        // SAFETY: it lies in the arena.
        unsafe { self.base.as_ptr().add(offset) }
    }

    #[inline]
    fn status(&self, index: u32) -> &AtomicU8 {
        // SAFETY: the byte lies in the arena, and is accessed as an atomic while anybody writes it.
        unsafe { AtomicU8::from_ptr(self.place(index)) }
    }
}

impl Arena {
    /// Beside the record: whether there will be none.
    #[inline]
    fn abandoned(&self, index: u32) -> &AtomicU8 {
        // SAFETY: a record is half as large as its place, which lies in the arena.
        let byte = unsafe { self.place(index).add(size_of::<CompletionRecord>()) };
        // SAFETY: the byte lies in the arena, and is accessed as an atomic alone.
        unsafe { AtomicU8::from_ptr(byte) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the device that writes to it has ended before.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// What a device can access: what its user says, and the records.
#[derive(Debug)]
pub(crate) struct WithRecords<S> {
    pub(crate) space: S,
    pub(crate) records: Range<u64>,
}

impl<S: Translation> Translation for WithRecords<S> {
    #[inline]
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let bytes = self.space.accessible(addr, len, access);
        if bytes < len && self.records.contains(&addr) {
            return bytes.max(len.min(self.records.end - addr));
        }
        bytes
    }
}
