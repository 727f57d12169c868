//! The memory that a device accesses, as seen through its translation.

mod process;

use crate::AddressSpace;
pub use process::{AllAccessible, CAN_FLUSH, ProcessMemory, Translation};

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The device reads.
    Read,
    /// The device writes.
    Write,
}

/// Bytes that are moved at a time, where memory has no better way.
const COPY_BYTES: u64 = 4096;

/// Memory by virtual address. The device asks before it touches.
pub trait Memory {
    /// Bytes from `addr` on, at most `len`, that can be accessed before the first page fault.
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64;

    /// Copies bytes out. The caller has asked [`accessible`](Memory::accessible) first.
    fn read(&self, addr: u64, into: &mut [u8]);

    /// Copies bytes in. The caller has asked [`accessible`](Memory::accessible) first.
    fn write(&mut self, addr: u64, from: &[u8]);

    /// Moves `len` bytes, as if all were read before the first is written. The caller has asked
    /// [`accessible`](Memory::accessible) for both places first.
    fn copy(&mut self, from: u64, to: u64, len: u64) {
        copy_in_parts(self, from, to, len);
    }

    /// The bytes where they are, if this memory has them so: nothing writes them as long as they are
    /// borrowed. The caller has asked [`accessible`](Memory::accessible) first.
    fn in_place(&self, addr: u64, len: u64) -> Option<&[u8]> {
        let _ = (addr, len);
        None
    }

    /// Sources and a destination where they are, each by address and length, if this memory has them so and the
    /// destination overlaps no source. The caller has asked [`accessible`](Memory::accessible) first.
    fn in_place_into<const N: usize>(
        &mut self,
        sources: [(u64, u64); N],
        destination: (u64, u64),
    ) -> Option<([&[u8]; N], &mut [u8])>
    where
        Self: Sized,
    {
        let _ = (sources, destination);
        None
    }

    /// Evicts the lines of `len` bytes from the caches of cores, if there are any. The caller has asked
    /// [`accessible`](Memory::accessible) first.
    fn flush(&mut self, addr: u64, len: u64) {
        let _ = (addr, len);
    }

    /// Another address space, for inter-domain operations. `None` where there is none: every access
    /// to it faults.
    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        let _ = space;
        None
    }
}

/// [`Memory::copy`] by reads and writes.
pub fn copy_in_parts<M: Memory + ?Sized>(memory: &mut M, from: u64, to: u64, len: u64) {
    let mut buffer = [0; COPY_BYTES as usize];
    // A destination that starts inside the source is filled from its end.
    let backward = to > from && to - from < len;
    let mut done = 0;
    while done < len {
        let n = (len - done).min(COPY_BYTES);
        let offset = if backward { len - done - n } else { done };
        let buffer = &mut buffer[..n as usize];
        memory.read(from + offset, buffer);
        memory.write(to + offset, buffer);
        done += n;
    }
}

/// One run of bytes at an address of its own; everything around it faults.
#[derive(Debug, Clone)]
pub struct SliceMemory {
    base: u64,
    bytes: Vec<u8>,
}

impl SliceMemory {
    /// `bytes` at address `base`.
    pub fn new(base: u64, bytes: Vec<u8>) -> SliceMemory {
        SliceMemory { base, bytes }
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Memory for SliceMemory {
    fn accessible(&self, addr: u64, len: u64, _: Access) -> u64 {
        match addr.checked_sub(self.base) {
            Some(offset) => len.min((self.bytes.len() as u64).saturating_sub(offset)),
            None => 0,
        }
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        let start = (addr - self.base) as usize;
        into.copy_from_slice(&self.bytes[start..start + into.len()]);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        let start = (addr - self.base) as usize;
        self.bytes[start..start + from.len()].copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn around_the_run_everything_faults() {
        let mut memory = SliceMemory::new(0x1000, vec![0; 8]);
        for (addr, len, accessible) in [
            (0xfff, 4, 0),
            (0x1000, 8, 8),
            (0x1000, 9, 8),
            (0x1007, 4, 1),
            (0x1008, 1, 0),
            (u64::MAX, u64::MAX, 0),
        ] {
            for access in [Access::Read, Access::Write] {
                assert_eq!(memory.accessible(addr, len, access), accessible);
            }
        }
        memory.write(0x1006, &[1, 2]);
        let mut last = [0; 3];
        memory.read(0x1005, &mut last);
        assert_eq!(last, [0, 1, 2]);
        assert_eq!(memory.bytes(), [0, 0, 0, 0, 0, 0, 1, 2]);
    }
}
