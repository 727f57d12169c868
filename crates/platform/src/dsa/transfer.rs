//! What a descriptor reads and writes.

use crate::{LINE_BYTES, MemoryLocation};

/// One operand of a descriptor: a run of bytes that is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Where they lie.
    pub place: MemoryLocation,
}

impl Stream {
    pub(super) fn lines(&self) -> u64 {
        match self.bytes {
            0 => 0,
            n => (self.address + n - 1) / LINE_BYTES - self.address / LINE_BYTES + 1,
        }
    }
}

/// What a descriptor reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Up to two sources.
    pub reads: [Option<Stream>; 2],
    /// Up to two destinations.
    pub writes: [Option<Stream>; 2],
    /// Writes go to the cache: partial lines are merged there and delay nothing.
    pub cache_control: bool,
    /// The destination is read back before the completion record is written (spec 3.10).
    pub readback: bool,
    /// The engine computes over its data, as for a CRC, a DIF or a delta.
    pub transforms: bool,
}

impl Transfer {
    /// The transfer that costs the same at the lowest addresses: of an address, only where it lies in
    /// its line counts.
    pub fn at_the_lowest_addresses(&self) -> Transfer {
        let lowest = |stream: &Option<Stream>| {
            stream.map(|stream| Stream {
                address: stream.address % LINE_BYTES,
                ..stream
            })
        };
        Transfer {
            reads: self.reads.each_ref().map(lowest),
            writes: self.writes.each_ref().map(lowest),
            ..*self
        }
    }
}
