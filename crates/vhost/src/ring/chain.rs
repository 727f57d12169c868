//! From descriptors to segments.

use std::ptr::NonNull;

use virtio_bindings::virtio_ring as v;

use super::burst::{Buffer, Burst, Direction, Fault, Segment};
use crate::memory::{self, Hint, MemoryMap};
use crate::net::{HEADER_BYTES, MAX_PACKET_BYTES};

pub(super) const NEXT: u16 = v::VRING_DESC_F_NEXT as u16;
pub(super) const WRITE: u16 = v::VRING_DESC_F_WRITE as u16;
pub(super) const INDIRECT: u16 = v::VRING_DESC_F_INDIRECT as u16;

/// Descriptors and segments of a buffer, each, as of DPDK's back end (BUF_VECTOR_MAX); Windows' driver
/// makes chains of up to that many.
const MAX_PARTS: u32 = 256;
/// Longest buffer from the guest, in bytes.
const MAX_BYTES: u64 = (HEADER_BYTES + MAX_PACKET_BYTES) as u64;
/// What the entry of a table that straddles regions costs, in descriptors: each byte is looked up.
const SCATTERED: u32 = 4;

/// Bytes of a descriptor, in a ring and in an indirect table.
const DESCRIPTOR_BYTES: u32 = 16;

/// Flags of a descriptor that is a whole buffer by itself; in a packed ring, with AVAIL and USED
/// masked out.
#[inline]
pub(super) fn plain(direction: Direction) -> u16 {
    match direction {
        Direction::ToGuest => WRITE,
        Direction::FromGuest => 0,
    }
}

/// A descriptor of either form; `tail` is `next` (split) or the buffer's id (packed).
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    pub(super) addr: u64,
    pub(super) len: u32,
    pub(super) flags: u16,
    pub(super) tail: u16,
}

impl Descriptor {
    /// From the words of a split descriptor.
    #[inline]
    pub(super) fn split(addr: u64, word: u64) -> Descriptor {
        Descriptor {
            addr,
            len: word as u32,
            flags: (word >> 32) as u16,
            tail: (word >> 48) as u16,
        }
    }

    /// From the words of a packed descriptor.
    #[inline]
    pub(super) fn packed(addr: u64, word: u64) -> Descriptor {
        Descriptor {
            addr,
            len: word as u32,
            tail: (word >> 32) as u16,
            flags: (word >> 48) as u16,
        }
    }
}

/// Collects the segments of one buffer.
pub(super) struct Collector<'a> {
    memory: &'a MemoryMap,
    hint: &'a mut Hint,
    direction: Direction,
    burst: &'a mut Burst,
    first: u32,
    bytes: u64,
    /// Most descriptors that a chain has.
    size: u32,
    descriptors: u32,
}

impl<'a> Collector<'a> {
    #[inline]
    pub(super) fn new(
        memory: &'a MemoryMap,
        hint: &'a mut Hint,
        direction: Direction,
        size: u32,
        burst: &'a mut Burst,
    ) -> Collector<'a> {
        Collector {
            first: burst.segments.len() as u32,
            memory,
            hint,
            direction,
            burst,
            bytes: 0,
            size,
            descriptors: 0,
        }
    }

    /// Appends what one descriptor describes.
    #[inline]
    pub(super) fn push(&mut self, d: Descriptor) -> Result<(), Fault> {
        if self.descriptors == self.size {
            return Err(Fault::Length);
        }
        if self.descriptors == MAX_PARTS {
            return Err(Fault::TooLong);
        }
        self.descriptors += 1;
        self.burst.walked += 1;
        let written = d.flags & WRITE != 0;
        if written != (self.direction == Direction::ToGuest) {
            return Err(Fault::Direction);
        }
        let Some((ptr, left)) = self.memory.prefix(d.addr, self.hint) else {
            // An empty descriptor may name any address.
            return match d.len {
                0 => Ok(()),
                _ => Err(Fault::Unmapped),
            };
        };
        self.bytes += u64::from(d.len);
        if self.direction == Direction::FromGuest && self.bytes > MAX_BYTES {
            return Err(Fault::TooLong);
        }
        if left >= u64::from(d.len) {
            return self.push_segment(Segment { ptr, len: d.len });
        }
        self.push_in_parts(d)
    }

    /// A descriptor of a list that is dropped.
    pub(super) fn pass_over(&mut self) {
        self.burst.walked += 1;
    }

    #[inline]
    fn push_segment(&mut self, segment: Segment) -> Result<(), Fault> {
        if self.burst.segments.len() as u32 - self.first == MAX_PARTS {
            return Err(Fault::TooLong);
        }
        self.burst.segments.push(segment);
        Ok(())
    }

    /// A descriptor that spans adjacent regions.
    #[cold]
    fn push_in_parts(&mut self, d: Descriptor) -> Result<(), Fault> {
        let (mut addr, mut rest) = (d.addr, d.len);
        while rest > 0 {
            let (ptr, left) = self.memory.prefix(addr, self.hint).ok_or(Fault::Unmapped)?;
            let len = left.min(u64::from(rest)) as u32;
            self.push_segment(Segment { ptr, len })?;
            self.burst.walked += 1;
            rest -= len;
            addr = addr.wrapping_add(u64::from(len));
        }
        Ok(())
    }

    /// Appends what a table describes that `d` refers to. In the table of a split ring entries are
    /// chained by `next`; in that of a packed ring all are used, in order.
    #[inline(never)]
    pub(super) fn push_table(&mut self, d: Descriptor, packed: bool) -> Result<(), Fault> {
        let count = d.len / DESCRIPTOR_BYTES;
        let whole = d.len.is_multiple_of(DESCRIPTOR_BYTES);
        if count == 0 || !whole || count > self.size || d.flags & NEXT != 0 {
            return Err(Fault::Indirect);
        }
        let start = self.memory.translate_with(d.addr, d.len, self.hint);
        let mut at = 0;
        loop {
            let words = match start {
                Some(start) => {
                    // SAFETY: `at` is less than `count`, and so many entries are mapped.
                    let entry = unsafe { start.add((at * DESCRIPTOR_BYTES) as usize) };
                    // SAFETY: as above.
                    unsafe { read_entry(entry) }
                }
                None => self.read_scattered(d.addr, at)?,
            };
            if packed {
                let mut entry = Descriptor::packed(words[0], words[1]);
                if self.direction == Direction::FromGuest {
                    // DPDK's driver has it set in the entry of the header (22.11).
                    entry.flags &= !WRITE;
                }
                self.push_entry(entry)?;
                at += 1;
                if at == count {
                    return Ok(());
                }
                continue;
            }
            let entry = Descriptor::split(words[0], words[1]);
            self.push_entry(entry)?;
            if entry.flags & NEXT == 0 {
                return Ok(());
            }
            at = u32::from(entry.tail);
            if at >= count {
                return Err(Fault::Next);
            }
        }
    }

    fn push_entry(&mut self, entry: Descriptor) -> Result<(), Fault> {
        match entry.flags & INDIRECT {
            0 => self.push(entry),
            _ => Err(Fault::Indirect),
        }
    }

    /// An entry of a table that straddles two regions.
    #[cold]
    fn read_scattered(&mut self, table: u64, at: u32) -> Result<[u64; 2], Fault> {
        let mut bytes = [0u8; DESCRIPTOR_BYTES as usize];
        self.burst.walked += SCATTERED;
        let entry = u64::from(at * DESCRIPTOR_BYTES);
        for (i, byte) in bytes.iter_mut().enumerate() {
            let addr = table.checked_add(entry + i as u64);
            let addr = addr.ok_or(Fault::Indirect)?;
            let (ptr, _) = self.memory.prefix(addr, self.hint).ok_or(Fault::Indirect)?;
            // SAFETY: the byte is mapped.
            *byte = unsafe { ptr.read_volatile() };
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Ok([word(0), word(8)])
    }

    /// The buffer that has been collected; if it has a fault, without segments.
    #[inline]
    pub(super) fn finish(self, id: u16, slots: u16, result: Result<(), Fault>) {
        let fault = result.err();
        if fault.is_some() {
            self.burst.segments.truncate(self.first as usize);
        }
        let end = self.burst.segments.len() as u32;
        self.burst.push(Buffer {
            id,
            slots,
            first: self.first,
            end,
            bytes: match fault {
                None => u32::try_from(self.bytes).unwrap_or(u32::MAX),
                Some(_) => 0,
            },
            fault,
        });
    }
}

/// Reads a table's entry; tables need no alignment.
///
/// # Safety
/// The entry is mapped. A guest may write it meanwhile: any bytes are valid, and each is read once.
#[inline]
unsafe fn read_entry(at: NonNull<u8>) -> [u64; 2] {
    // SAFETY: the caller's promise.
    unsafe { memory::read(at) }
}
