//! The memory that a device in real time works on.

use std::ptr::{self, with_exposed_provenance, with_exposed_provenance_mut};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use dray_device::{Access, Memory};
use dray_spec::CompletionRecord;
use zerocopy::IntoBytes;

use crate::View;

/// Memory that several threads work on at once, each through a handle of its own.
///
/// A thread [enters](SharedMemory::enter) a view, accesses what it shows and
/// [settles](SharedMemory::settle). Memory that has one address space and cannot fail need not care.
pub trait SharedMemory: Memory + Clone + Send + 'static {
    /// The accesses that follow, up to the next call, are made in this view.
    #[inline]
    fn enter(&mut self, view: View) {
        let _ = view;
    }

    /// All writes since the last call have been made when this returns. False if an access since
    /// then has failed, though [`accessible`](Memory::accessible) had said that it would not: then the
    /// descriptor is to be executed again, and `accessible` knows better. After a few times in one
    /// view that does not happen any more.
    #[inline]
    fn settle(&mut self) -> bool {
        true
    }

    /// Whether an access may take as long as a program likes, of a descriptor that blocks on faults or does not:
    /// then an engine's thread makes it, and the device goes on.
    #[inline]
    fn may_wait(&self, blocks: bool) -> bool {
        let _ = blocks;
        false
    }

    /// Writes a completion record, its status byte last and released (spec 3.7): a reader that acquires a
    /// status that is not 0 sees the rest, and all that the descriptor wrote. The caller has asked
    /// [`accessible`](Memory::accessible) first; `address` is aligned to 32 bytes. False if it could
    /// not be written all the same.
    #[must_use]
    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool;
}

/// Which addresses can be accessed: what IOMMU and page tables are to a device.
///
/// A page that is not accessible is a page fault, as on hardware.
pub trait Translation: Send + Sync + 'static {
    /// Bytes from `addr` on, at most `len`, that can be accessed before the first page fault.
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64;
}

/// Every address can be accessed: the submitter vouches for what a descriptor names.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllAccessible;

impl Translation for AllAccessible {
    #[inline]
    fn accessible(&self, _: u64, len: u64, _: Access) -> u64 {
        len
    }
}

/// Memory of this process, by its own addresses.
#[derive(Debug)]
pub struct ProcessMemory<S> {
    space: Arc<S>,
}

impl<S: Translation> ProcessMemory<S> {
    /// What `space` says can be accessed.
    ///
    /// # Safety
    /// As long as a device works on it: what `space` calls accessible is mapped, and writable if it
    /// says so; what a descriptor that was submitted reads is not written, and what it writes is not
    /// accessed, until its completion record has been seen. That includes the record itself, but for
    /// its status byte, which may be read as an atomic.
    pub unsafe fn new(space: Arc<S>) -> ProcessMemory<S> {
        ProcessMemory { space }
    }
}

impl<S> Clone for ProcessMemory<S> {
    fn clone(&self) -> Self {
        ProcessMemory {
            space: self.space.clone(),
        }
    }
}

impl<S: Translation> Memory for ProcessMemory<S> {
    #[inline]
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.space.accessible(addr, len, access)
    }

    #[inline]
    fn read(&self, addr: u64, into: &mut [u8]) {
        let from: *const u8 = with_exposed_provenance(addr as usize);
        // SAFETY: the space has these bytes, and by the contract of `new` nothing writes them.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    #[inline]
    fn write(&mut self, addr: u64, from: &[u8]) {
        let into: *mut u8 = with_exposed_provenance_mut(addr as usize);
        // SAFETY: the space has these bytes, and by the contract of `new` nothing accesses them.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) };
    }

    #[inline]
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        let from: *const u8 = with_exposed_provenance(from as usize);
        let into: *mut u8 = with_exposed_provenance_mut(to as usize);
        // SAFETY: the space has these bytes, and by the contract of `new` nothing else accesses them.
        unsafe { ptr::copy(from, into, len as usize) };
    }

    #[inline]
    fn in_place(&self, addr: u64, len: u64) -> Option<&[u8]> {
        let bytes: *const u8 = with_exposed_provenance(addr as usize);
        // SAFETY: the space has these bytes, which is no more than an address space holds, and by
        // the contract of `new` nothing writes them.
        (addr != 0).then(|| unsafe { slice::from_raw_parts(bytes, len as usize) })
    }
}

impl<S: Translation> SharedMemory for ProcessMemory<S> {
    #[inline]
    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        let bytes = record.as_bytes();
        self.write(address + 1, &bytes[1..]);
        let status: *mut u8 = with_exposed_provenance_mut(address as usize);
        // SAFETY: the space has this byte, and by the contract of `new` it is read as an atomic.
        let status = unsafe { AtomicU8::from_ptr(status) };
        status.store(bytes[0], Ordering::Release);
        true
    }
}
