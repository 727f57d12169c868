//! Where the operations of a case find their bytes.

use dray::Operation;

use crate::case::Op;

/// Buffers at equal distances, used in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ring {
    /// First address.
    pub(crate) base: u64,
    /// Distance of two buffers.
    pub(crate) stride: u64,
    /// Number of buffers.
    pub(crate) count: u64,
}

impl Ring {
    /// Address of the buffer whose turn it is.
    pub(crate) fn at(&self, index: u64) -> u64 {
        // A division takes as long as the copy of a small buffer.
        let turn = match index < self.count {
            true => index,
            false => index % self.count.max(1),
        };
        self.base + turn * self.stride
    }
}

/// The operands of a thread's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffers {
    /// Sources.
    pub(crate) src: Ring,
    /// Destinations; the second source of a comparison.
    pub(crate) dst: Ring,
    /// Second destinations.
    pub(crate) dst2: Ring,
}

/// Pattern of fills and pattern comparisons, and of all buffers at first.
pub(crate) const PATTERN: u64 = 0x5aa5_c33c_9669_f00f;

/// The operation number `index` of a thread.
pub(crate) fn operation(
    op: Op,
    size: u32,
    cache_control: bool,
    buffers: &Buffers,
    index: u64,
) -> Operation {
    let (src, dst) = (buffers.src.at(index), buffers.dst.at(index));
    let operation = match op {
        Op::Move | Op::Copy => Operation::memmove(src, dst, size),
        Op::Fill => Operation::fill(PATTERN, dst, size),
        Op::Compare => Operation::compare(src, dst, size),
        Op::ComparePattern => Operation::compare_pattern(src, PATTERN, size),
        Op::Dualcast => Operation::dualcast(src, dst, buffers.dst2.at(index), size),
        Op::Crc => Operation::crc(src, size, 0),
        Op::CopyCrc => Operation::copy_crc(src, dst, size, 0),
        Op::Nop => Operation::noop(),
    };
    let writes = matches!(
        op,
        Op::Move | Op::Copy | Op::Fill | Op::Dualcast | Op::CopyCrc
    );
    match cache_control && writes {
        true => operation.with_cache_control(),
        false => operation,
    }
}
