//! Buffers on their way from a ring and back.

use std::ptr::NonNull;

use crate::memory::{Hint, MemoryMap};

/// Which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The device writes the buffers (receive queues).
    ToGuest,
    /// The device reads the buffers (transmit queues).
    FromGuest,
}

/// What is wrong with one buffer: it is consumed, and the packet dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The head's index is not in the table.
    Head,
    /// The next descriptor's index is not in the table.
    Next,
    /// More descriptors than the ring has, or a loop.
    Length,
    /// An indirect table whose length is 0, no multiple of 16 or longer than the ring; one inside
    /// another; one that is continued; one outside the regions.
    Indirect,
    /// A part lies outside the regions.
    Unmapped,
    /// A writable part where the device reads, or the reverse.
    Direction,
    /// Shorter than a packet's header.
    TooShort,
    /// More bytes than any packet has, or more descriptors or segments than a buffer may have.
    TooLong,
}

/// What is wrong with a ring as a whole: it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingFault {
    /// More buffers than the ring has places.
    #[error("the driver made {found} buffers available on a ring of {size}")]
    Overrun {
        /// Buffers available or in flight.
        found: u32,
        /// Descriptors of the ring.
        size: u32,
    },
    /// A list of descriptors whose end is not looked for any further (packed).
    #[error("the driver made a list of more than {limit} descriptors")]
    List {
        /// Descriptors that are looked at.
        limit: u32,
    },
    /// The memory file was truncated.
    #[error("the front end's memory file was truncated")]
    Truncated,
}

/// A run of bytes of a buffer, mapped.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Where it lies.
    pub ptr: NonNull<u8>,
    /// Bytes.
    pub len: u32,
}

/// A buffer that was fetched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) id: u16,
    /// Descriptors of the ring that it takes (packed).
    pub(crate) slots: u16,
    /// Its segments in the burst.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Of all segments.
    pub(crate) bytes: u32,
    pub(crate) fault: Option<Fault>,
}

impl Buffer {
    #[inline]
    pub(crate) fn used(&self, len: u32) -> Used {
        Used {
            id: self.id,
            slots: self.slots,
            len,
        }
    }
}

/// A buffer to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Used {
    pub(crate) id: u16,
    pub(crate) slots: u16,
    /// Bytes written.
    pub(crate) len: u32,
}

/// Buffers that were fetched together. Reused from burst to burst, so that nothing is allocated.
///
/// A driver decides how much work a buffer makes; a burst takes no further one once it has made enough,
/// and the other queues have their turn.
#[derive(Debug)]
pub struct Burst {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) segments: Vec<Segment>,
    /// Descriptors of chains that were looked at, used or not.
    pub(super) walked: u32,
    /// Bytes of the buffers.
    bytes: u64,
    /// Bytes after which it takes no further buffer.
    max_bytes: u64,
    /// Whether it had enough before there were no further buffers.
    pub(crate) spent: bool,
}

// SAFETY: its segments are addresses in shared memory; see `Mapping`.
unsafe impl Send for Burst {}

impl Burst {
    /// Segments and descriptors of chains after which a burst takes no further buffer: what a core
    /// does in about 10 us. 20 buffers of 19 descriptors, as Linux fills a ring that is not mergeable.
    const MAX_WORK: usize = 768;
    /// Bytes from the guest after which it takes no further buffer.
    const MAX_BYTES: u64 = 64 << 10;

    pub(crate) fn new(direction: Direction) -> Burst {
        Burst {
            buffers: Vec::new(),
            segments: Vec::new(),
            walked: 0,
            bytes: 0,
            // Buffers to the guest may be any length: packets say how much is written.
            max_bytes: match direction {
                Direction::FromGuest => Burst::MAX_BYTES,
                Direction::ToGuest => u64::MAX,
            },
            spent: false,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.buffers.clear();
        self.segments.clear();
        (self.walked, self.bytes, self.spent) = (0, 0, false);
    }

    /// Segments, and whole pages of so many bytes.
    #[inline]
    pub(crate) fn parts(&self, page: usize) -> usize {
        self.segments.len() + self.bytes as usize / page
    }

    #[inline]
    pub(super) fn push(&mut self, buffer: Buffer) {
        self.bytes += u64::from(buffer.bytes);
        self.buffers.push(buffer);
    }

    #[inline]
    pub(crate) fn segments_of(&self, buffer: &Buffer) -> &[Segment] {
        &self.segments[buffer.first as usize..buffer.end as usize]
    }

    /// Segments of the buffers `[from, to)`.
    #[inline]
    pub(crate) fn segments_between(&self, from: usize, to: usize) -> usize {
        (self.buffers[to - 1].end - self.buffers[from].first) as usize
    }

    /// Appends a buffer of one descriptor, if its bytes lie in one region.
    #[inline]
    pub(super) fn push_plain(
        &mut self,
        memory: &MemoryMap,
        hint: &mut Hint,
        (addr, len): (u64, u32),
        id: u16,
    ) -> bool {
        let Some(ptr) = memory.translate_with(addr, len, hint) else {
            return false;
        };
        let first = self.segments.len() as u32;
        self.segments.push(Segment { ptr, len });
        self.push(Buffer {
            id,
            slots: 1,
            first,
            end: first + 1,
            bytes: len,
            fault: None,
        });
        true
    }

    pub(crate) fn pop(&mut self) -> Option<Buffer> {
        let buffer = self.buffers.pop()?;
        self.segments.truncate(buffer.first as usize);
        self.bytes -= u64::from(buffer.bytes);
        Some(buffer)
    }

    /// Whether a fetch ends here.
    #[inline]
    pub(super) fn is_full(&mut self) -> bool {
        let work = self.segments.len() + self.walked as usize;
        self.spent |= work >= Burst::MAX_WORK || self.bytes >= self.max_bytes;
        self.spent
    }
}
