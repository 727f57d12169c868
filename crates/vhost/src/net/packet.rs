//! A packet in this process's memory.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;
use std::slice;

use super::Header;

/// Longest packet: two segments of 65535 bytes and some room, as drivers can chain them.
pub const MAX_PACKET_BYTES: usize = 256 << 10;

/// Buffers begin at a cache line.
const ALIGN: usize = 64;

/// A packet in one contiguous buffer, with its virtio-net header beside it.
pub struct Packet {
    data: NonNull<u8>,
    capacity: u32,
    len: u32,
    /// What is to be done with it.
    pub header: Header,
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
        let data = unsafe { alloc_zeroed(layout) };
        let Some(data) = NonNull::new(data) else {
            handle_alloc_error(layout)
        };
        Packet {
            data,
            capacity: capacity as u32,
            len: 0,
            header: Header::default(),
        }
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
        Layout::from_size_align(capacity, ALIGN).unwrap_or(Layout::new::<u64>())
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
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.len()) }
    }

    /// Its bytes, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the buffer has been zeroed and is longer than `len`; this packet owns it.
        unsafe { slice::from_raw_parts_mut(self.data.as_ptr(), self.len()) }
    }

    /// The beginning of its buffer.
    #[inline]
    pub(crate) fn data(&self) -> NonNull<u8> {
        self.data
    }
}

impl Default for Packet {
    /// A packet without room, which owns nothing.
    #[inline]
    fn default() -> Packet {
        Packet {
            data: NonNull::dangling(),
            capacity: 0,
            len: 0,
            header: Header::default(),
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
        // SAFETY: allocated with this layout, and nobody else has it.
        unsafe { dealloc(self.data.as_ptr(), layout) };
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
