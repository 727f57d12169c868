//! The operations that workloads are made of.

use dray_spec::Opcode;

/// An operation of the device, and its counterpart in software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Copy; source and destination may overlap.
    Move,
    /// Copy.
    Copy,
    /// Fill with a pattern.
    Fill,
    /// Fill with a pattern, written past the caches; in software by non-temporal stores.
    NtFill,
    /// Comparison of two buffers.
    Compare,
    /// Comparison with a pattern.
    ComparePattern,
    /// A record of where two buffers differ.
    CreateDelta,
    /// What such a record says, written.
    ApplyDelta,
    /// Copy to two destinations.
    Dualcast,
    /// CRC32C.
    Crc,
    /// Copy with CRC32C.
    CopyCrc,
    /// Integrity fields checked.
    DifCheck,
    /// Copy that adds integrity fields.
    DifInsert,
    /// Copy that checks integrity fields and leaves them out.
    DifStrip,
    /// Copy that checks integrity fields and writes others.
    DifUpdate,
    /// Integrity fields alone; a device of version 2 makes them.
    DixGenerate,
    /// Caches flushed.
    CacheFlush,
    /// Does nothing.
    Nop,
}

impl Op {
    /// Buffers that one operation needs, at least one.
    pub fn operands(self) -> u64 {
        match self {
            Op::Dualcast | Op::CreateDelta => 3,
            Op::Fill
            | Op::NtFill
            | Op::ComparePattern
            | Op::Crc
            | Op::DifCheck
            | Op::CacheFlush
            | Op::Nop => 1,
            Op::Move
            | Op::Copy
            | Op::Compare
            | Op::ApplyDelta
            | Op::CopyCrc
            | Op::DifInsert
            | Op::DifStrip
            | Op::DifUpdate
            | Op::DixGenerate => 2,
        }
    }

    /// Whether integrity fields are checked or made.
    pub fn has_fields(self) -> bool {
        matches!(
            self,
            Op::DifCheck | Op::DifInsert | Op::DifStrip | Op::DifUpdate | Op::DixGenerate
        )
    }

    /// Whether it writes what caching can be controlled of (spec Table 5-4). A fill past the caches
    /// is one because its writes are not to allocate.
    pub fn takes_cache_control(self) -> bool {
        !matches!(
            self,
            Op::NtFill
                | Op::Compare
                | Op::ComparePattern
                | Op::Crc
                | Op::DifCheck
                | Op::CacheFlush
                | Op::Nop
        )
    }

    /// Whether its only operand is a destination.
    pub fn is_destination_only(self) -> bool {
        matches!(self, Op::Fill | Op::NtFill | Op::CacheFlush)
    }

    /// Its opcode (spec 8.1.1).
    pub fn opcode(self) -> Opcode {
        match self {
            Op::Move | Op::Copy => Opcode::Memmove,
            Op::Fill | Op::NtFill => Opcode::Fill,
            Op::Compare => Opcode::Compare,
            Op::ComparePattern => Opcode::ComparePattern,
            Op::CreateDelta => Opcode::CreateDelta,
            Op::ApplyDelta => Opcode::ApplyDelta,
            Op::Dualcast => Opcode::Dualcast,
            Op::Crc => Opcode::CrcGenerate,
            Op::CopyCrc => Opcode::CopyCrc,
            Op::DifCheck => Opcode::DifCheck,
            Op::DifInsert => Opcode::DifInsert,
            Op::DifStrip => Opcode::DifStrip,
            Op::DifUpdate => Opcode::DifUpdate,
            Op::DixGenerate => Opcode::DixGenerate,
            Op::CacheFlush => Opcode::CacheFlush,
            Op::Nop => Opcode::Noop,
        }
    }
}
