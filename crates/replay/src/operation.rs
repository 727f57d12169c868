//! Operations of a recording as the model has them.

use dray::Operation;
use dray_platform::PAGE_BYTES;
use dray_recording::Flags;
use dray_spec::Opcode;

use crate::program::Part;

/// Bytes of a pattern, of a CRC's seed: what no time depends on.
const PATTERN: u64 = 0;

/// Whether requests with an operation are replayed. Of the others the recording lacks fields that their times depend on, or
/// they only order others.
pub(crate) fn is_modelled(operation: Opcode) -> bool {
    matches!(
        operation,
        Opcode::Noop
            | Opcode::Memmove
            | Opcode::Fill
            | Opcode::Compare
            | Opcode::ComparePattern
            | Opcode::Dualcast
            | Opcode::CrcGenerate
            | Opcode::CopyCrc
            | Opcode::CacheFlush
    )
}

/// From one destination to the other: both must be alike in address bits 11:0 (spec 8.3.10).
fn apart(bytes: u32) -> u64 {
    u64::from(bytes).next_multiple_of(PAGE_BYTES) + PAGE_BYTES
}

/// Buffers that a thread's operations have in turn: they lie side by side, as those of a program that streams.
const BUFFERS: u64 = 128;
/// Bytes that all buffers of one operand may have together: larger ones have fewer.
const MOST_ROOM: u64 = 256 << 20;

/// From one buffer to the next, where operands begin at multiples of it.
fn stride(bytes: u32, alignment: u8) -> u64 {
    let align = match alignment {
        0 => PAGE_BYTES,
        _ => 64,
    };
    u64::from(bytes.max(1)).next_multiple_of(align)
}

/// Where the buffer of a turn begins.
fn offset(bytes: u32, alignment: u8, turn: u64) -> u64 {
    let stride = stride(bytes, alignment);
    let count = (MOST_ROOM / stride).clamp(1, BUFFERS);
    turn % count * stride + u64::from(alignment)
}

/// Bytes of the buffers that operations of at most `bytes` use.
pub(crate) fn room(bytes: u32) -> u64 {
    let all = (BUFFERS * stride(bytes, 0)).min(MOST_ROOM);
    all + PAGE_BYTES + 2 * apart(bytes)
}

/// Addresses of buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bases {
    /// Sources, and destinations, in memory and in the last-level cache.
    pub(crate) in_memory: [u64; 2],
    pub(crate) in_cache: [u64; 2],
}

/// A piece of `bytes` of an operation, whose buffers are those of a turn.
pub(crate) fn operation(
    part: &Part,
    bytes: u32,
    known: [bool; 2],
    (bases, turn): (&Bases, u64),
) -> Operation {
    let at = |operand: usize| {
        let base = match known[operand] {
            true => bases.in_cache[operand],
            false => bases.in_memory[operand],
        };
        base + offset(bytes, part.operands.alignment[operand], turn)
    };
    let (src, dst) = (at(0), at(1));
    let made = match part.operation {
        Opcode::Memmove => Operation::memmove(src, dst, bytes),
        Opcode::Fill => Operation::fill(PATTERN, dst, bytes),
        Opcode::Compare => Operation::compare(src, dst, bytes),
        Opcode::ComparePattern => Operation::compare_pattern(src, PATTERN, bytes),
        Opcode::Dualcast => Operation::dualcast(src, dst, dst + apart(bytes), bytes),
        Opcode::CrcGenerate => Operation::crc(src, bytes, 0),
        Opcode::CopyCrc => Operation::copy_crc(src, dst, bytes, 0),
        Opcode::CacheFlush => Operation::cache_flush(dst, bytes),
        _ => Operation::noop(),
    };
    let flags = Flags(part.flags);
    let made = match flags.has(Flags::CACHE_CONTROL) {
        true => made.with_cache_control(),
        false => made,
    };
    match flags.has(Flags::FENCE) && flags.has(Flags::MEMBER) {
        true => made.with_fence(),
        false => made,
    }
}
