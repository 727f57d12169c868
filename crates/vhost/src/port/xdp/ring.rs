//! A ring that kernel and process share: one writes entries, the other reads them.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// Entries of each ring.
pub(super) const ENTRIES: u32 = 1024;

/// A ring of `T`, mapped.
#[derive(Debug)]
pub(super) struct Ring<T> {
    base: NonNull<u8>,
    len: usize,
    producer: usize,
    consumer: usize,
    entries: NonNull<T>,
    /// The local index, which the other side sees when it is published.
    next: u32,
}

// SAFETY: the mapping is the ring's own, and its entries are plain data.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of a socket.
    pub(super) fn map(
        socket: &OwnedFd,
        at: u64,
        offsets: &libc::xdp_ring_offset,
    ) -> io::Result<Ring<T>> {
        let len = offsets.desc as usize + ENTRIES as usize * size_of::<T>();
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let base = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                socket,
                at,
            )
        }?;
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| io::Error::other("the mapping is at address 0"))?;
        // SAFETY: the entries lie within the mapping.
        let entries = unsafe { base.add(offsets.desc as usize) }.cast();
        Ok(Ring {
            base,
            len,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            entries,
            next: 0,
        })
    }

    fn index(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel said that an index lies there.
        let at = unsafe { self.base.add(offset) };
        // SAFETY: it is aligned, mapped as long as the ring is, and both sides use it atomically.
        unsafe { AtomicU32::from_ptr(at.as_ptr().cast()) }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the masked index is below the number of entries.
        unsafe { self.entries.add((index & (ENTRIES - 1)) as usize) }
    }

    /// The next entry that the kernel has written.
    pub(super) fn take(&mut self) -> Option<T> {
        if self.index(self.producer).load(Ordering::Acquire) == self.next {
            return None;
        }
        // SAFETY: the kernel has written it and leaves it alone until it is given back.
        let entry = unsafe { self.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives entries back that were taken.
    pub(super) fn give_back(&self) {
        self.index(self.consumer)
            .store(self.next, Ordering::Release);
    }

    /// Writes an entry, if there is room.
    pub(super) fn put(&mut self, entry: T) -> bool {
        let read = self.index(self.consumer).load(Ordering::Acquire);
        if self.next.wrapping_sub(read) >= ENTRIES {
            return false;
        }
        // SAFETY: the entry is free: the kernel has read it.
        unsafe { self.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Notifies the kernel of entries that were written.
    pub(super) fn publish(&self) {
        self.index(self.producer)
            .store(self.next, Ordering::Release);
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; nothing points into it any more.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
