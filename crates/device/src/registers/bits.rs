//! Part of a qword that software writes.

/// The bits of an aligned qword that a write covers, and their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) value: u64,
    pub(crate) mask: u64,
}

impl Bits {
    /// The write covers all of these bits.
    pub(crate) fn covers(self, mask: u64) -> bool {
        self.mask & mask == mask
    }

    /// Changes those bits of a register that can be written.
    pub(crate) fn store(self, register: &mut u64, writable: u64) {
        let mask = self.mask & writable;
        *register = *register & !mask | self.value & mask;
    }

    /// Clears those bits of a register that are written with 1 and can be cleared so.
    pub(crate) fn clear(self, register: &mut u64, clearable: u64) {
        *register &= !(self.value & self.mask & clearable);
    }

    /// The same for the 32 bits at an offset of 0 or 4 in the qword.
    pub(crate) fn store32(self, register: &mut u32, half: u64, writable: u32) {
        let mask = (self.mask >> (half * 8)) as u32 & writable;
        *register = *register & !mask | (self.value >> (half * 8)) as u32 & mask;
    }
}
