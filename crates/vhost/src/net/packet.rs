//! A packet in this process's memory.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use super::Header;

/// Longest packet: drivers chain segments of up to 65535 bytes, and DPDK sends five of them as one.
pub const MAX_PACKET_BYTES: usize = 256 << 10;

/// Bytes of a cache line: metadata take one, and a packet's bytes begin at the next.
const LINE: usize = 64;

/// What is known of a packet, on the line before its bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Metadata {
    capacity: u32,
    len: u32,
    /// What is to be done with it.
    pub header: Header,
}

const _: () = assert!(size_of::<Metadata>() == LINE);

/// Of packets without room.
static NONE: Metadata = Metadata {
    capacity: 0,
    len: 0,
    header: Header::NONE,
};

/// A packet in one contiguous buffer, with its virtio-net header beside it. As long as an address, so
/// that it goes from list to list in a register.
pub struct Packet {
    /// [`NONE`], or the beginning of an allocation that has the bytes, too.
    metadata: NonNull<Metadata>,
}

// SAFETY: a packet owns its buffer.
unsafe impl Send for Packet {}
// SAFETY: shared access only reads.
unsafe impl Sync for Packet {}

impl Packet {
    /// An empty packet with room for `capacity` bytes, at most [`MAX_PACKET_BYTES`].
    pub fn with_capacity(capacity: usize) -> Packet {
        let capacity = capacity.clamp(1, MAX_PACKET_BYTES);
        let layout = Packet::layout(capacity);
        // SAFETY: the layout is not empty.
        let metadata = unsafe { alloc_zeroed(layout) };
        let Some(metadata) = NonNull::new(metadata.cast::<Metadata>()) else {
            handle_alloc_error(layout)
        };
        let first = Metadata {
            capacity: capacity as u32,
            len: 0,
            header: Header::NONE,
        };
        // SAFETY: the allocation begins with room for it, aligned.
        unsafe { metadata.write(first) };
        Packet { metadata }
    }

    /// A packet of these bytes, at most [`MAX_PACKET_BYTES`].
    pub fn from_bytes(bytes: &[u8]) -> Packet {
        let mut packet = Packet::with_capacity(bytes.len());
        packet.set_len(bytes.len().min(MAX_PACKET_BYTES));
        let len = packet.len();
        packet.bytes_mut().copy_from_slice(&bytes[..len]);
        packet
    }

    fn layout(capacity: usize) -> Layout {
        // Sizes are at most MAX_PACKET_BYTES: they cannot overflow.
        Layout::from_size_align(LINE + capacity, LINE).unwrap_or(Layout::new::<Metadata>())
    }

    /// Bytes of the packet.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that it can have.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Changes the length; bytes beyond the old one are what was there before.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "a packet longer than its buffer");
        self.len = len as u32;
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer has been zeroed and is longer than `len`.
        unsafe { slice::from_raw_parts(self.data().as_ptr(), self.len()) }
    }

    /// Its bytes, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the buffer has been zeroed and is longer than `len`; this packet owns it.
        unsafe { slice::from_raw_parts_mut(self.data().as_ptr(), self.len()) }
    }

    /// The beginning of its buffer.
    #[inline]
    pub(crate) fn data(&self) -> NonNull<u8> {
        // SAFETY: the end of the metadata is inside the allocation, or the end of `NONE`.
        unsafe { self.metadata.add(1) }.cast()
    }
}

impl Deref for Packet {
    type Target = Metadata;

    #[inline]
    fn deref(&self) -> &Metadata {
        // SAFETY: the metadata live as long as the packet; changing them needs the packet alone.
        unsafe { self.metadata.as_ref() }
    }
}

impl DerefMut for Packet {
    /// # Panics
    /// If the packet has no room.
    #[inline]
    fn deref_mut(&mut self) -> &mut Metadata {
        assert!(self.capacity > 0, "a packet without room");
        // SAFETY: they are not `NONE`, and this packet owns them.
        unsafe { self.metadata.as_mut() }
    }
}

impl Default for Packet {
    /// A packet without room, which owns nothing.
    #[inline]
    fn default() -> Packet {
        Packet {
            metadata: NonNull::from(&NONE),
        }
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        if self.capacity == 0 {
            return;
        }
        let layout = Packet::layout(self.capacity());
        // SAFETY: allocated with this layout, and only this packet points to it.
        unsafe { dealloc(self.metadata.as_ptr().cast(), layout) };
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("len", &self.len)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}
