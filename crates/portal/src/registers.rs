//! The general registers of the interrupted program.

/// The sixteen general registers by their number in the encoding (rax, rcx, rdx, rbx, rsp, rbp,
/// rsi, rdi, r8 to r15), and the flags.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registers {
    /// By number.
    pub general: [u64; 16],
    /// RFLAGS.
    pub flags: u64,
}

/// Carry.
pub(crate) const CF: u64 = 1 << 0;
/// The zero flag.
pub const ZF: u64 = 1 << 6;
/// Direction of string instructions.
pub(crate) const DF: u64 = 1 << 10;
/// CF, PF, AF, ZF, SF and OF.
pub(crate) const ARITHMETIC: u64 = CF | 1 << 2 | 1 << 4 | ZF | 1 << 7 | 1 << 11;

impl Registers {
    /// One register, by number.
    #[inline]
    pub fn get(&self, number: u8) -> u64 {
        self.general[usize::from(number & 15)]
    }

    /// Sets the arithmetic flags to `flags`, which has no others.
    #[inline]
    pub fn set_arithmetic(&mut self, flags: u64) {
        self.flags = self.flags & !ARITHMETIC | flags;
    }
}
