//! The memory that a device in real time works on.

use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicU8, Ordering};

use dray_device::{Memory, ProcessMemory, Translation};
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

impl<S: Translation + Clone> SharedMemory for ProcessMemory<S> {
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
