//! Where the operations of a case find their bytes.

/// Buffers at equal distances, used in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// First address.
    pub base: u64,
    /// Distance of two buffers.
    pub stride: u64,
    /// Number of buffers.
    pub count: u64,
}

impl Ring {
    /// Address of the buffer whose turn it is.
    pub fn at(&self, index: u64) -> u64 {
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
pub struct Buffers {
    /// Sources.
    pub src: Ring,
    /// Destinations; the second source of a comparison.
    pub dst: Ring,
    /// Second destinations.
    pub dst2: Ring,
}

/// Pattern of fills and pattern comparisons, and of all buffers at first.
pub const PATTERN: u64 = 0x5aa5_c33c_9669_f00f;
