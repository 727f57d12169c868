//! Arrays in memory that a hostile writer shares: every element is read once, into a copy.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU64};

/// Faults by truncated memory files that this process has survived.
pub fn faults() -> u64 {
    super::guard::fault_count()
}

/// `count` elements in a front end's memory. Its owner also holds the map that it was made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared<T> {
    ptr: NonNull<T>,
    count: u32,
    kind: PhantomData<T>,
}

// SAFETY: it is an address in shared memory; see `Mapping`.
unsafe impl<T> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// # Safety
    /// `count` elements from `ptr`, aligned, stay mapped as long as the value is used, and any bytes
    /// are a valid `T`.
    pub(crate) unsafe fn new(ptr: NonNull<u8>, count: u32) -> Shared<T> {
        Shared {
            ptr: ptr.cast(),
            count,
            kind: PhantomData,
        }
    }

    /// The elements from `at` on.
    ///
    /// # Safety
    /// The index is below the count.
    unsafe fn at(&self, at: u32) -> NonNull<T> {
        debug_assert!(at < self.count);
        // SAFETY: the caller's promise.
        unsafe { self.ptr.add(at as usize) }
    }

    /// Where an element lies.
    pub(crate) fn address(&self, at: u32) -> NonNull<u8> {
        assert!(at < self.count, "an index beyond the ring");
        // SAFETY: it was looked at above.
        unsafe { self.at(at) }.cast()
    }

    #[inline]
    pub(crate) fn read(&self, at: u32) -> T {
        assert!(at < self.count, "an index beyond the ring");
        // SAFETY: it was looked at above.
        let place = unsafe { self.at(at) };
        // SAFETY: mapped and aligned, as `new` had its caller promise.
        unsafe { place.read_volatile() }
    }

    #[inline]
    pub(crate) fn write(&self, at: u32, value: T) {
        assert!(at < self.count, "an index beyond the ring");
        // SAFETY: it was looked at above.
        let place = unsafe { self.at(at) };
        // SAFETY: mapped and aligned, as `new` had its caller promise.
        unsafe { place.write_volatile(value) };
    }

    #[inline]
    pub(crate) fn prefetch(&self, at: u32) {
        if at < self.count {
            // SAFETY: it was looked at above.
            prefetch(unsafe { self.at(at) }.cast());
        }
    }

    #[inline]
    pub(crate) fn prefetch_write(&self, at: u32) {
        if at < self.count {
            // SAFETY: it was looked at above.
            prefetch_write(unsafe { self.at(at) }.cast());
        }
    }
}

impl Shared<u16> {
    #[inline]
    pub(crate) fn atomic(&self, at: u32) -> &AtomicU16 {
        assert!(at < self.count, "an index beyond the ring");
        // SAFETY: it was looked at above.
        let place = unsafe { self.at(at) };
        // SAFETY: mapped and aligned; both sides access these words atomically.
        unsafe { AtomicU16::from_ptr(place.as_ptr()) }
    }
}

impl Shared<u64> {
    #[inline]
    pub(crate) fn atomic(&self, at: u32) -> &AtomicU64 {
        assert!(at < self.count, "an index beyond the ring");
        // SAFETY: it was looked at above.
        let place = unsafe { self.at(at) };
        // SAFETY: mapped and aligned; both sides access these words atomically.
        unsafe { AtomicU64::from_ptr(place.as_ptr()) }
    }
}

/// Brings a line into the first cache.
#[inline]
pub(crate) fn prefetch(at: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address has no effect but on time.
        unsafe { _mm_prefetch(at.as_ptr().cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Brings a line into the first cache for writing: the guest's core gives it up now and not when it
/// is written.
#[inline]
pub(crate) fn prefetch_write(at: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no effect but on time; processors that lack this one
    // take it for a NOP.
    unsafe {
        std::arch::asm!(
            "prefetchw [{at}]",
            at = in(reg) at.as_ptr(),
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
