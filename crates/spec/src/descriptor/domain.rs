//! Descriptors of the operations between address spaces; version 2.
//!
//! Handles name entries of the inter-domain permissions table (IDPT).

use bitfield_struct::bitfield;

use super::{Descriptor, PATTERN_HIGH};
use crate::{Flags, Opcode};

// Offsets into `operation`, which starts at byte 40 of the descriptor.
const SOURCE_HANDLE: usize = 20;
const WINDOW_FLAGS: usize = 21;
const DESTINATION_HANDLE: usize = 22;

/// What an update of a window sets, byte 61.
#[bitfield(u8)]
#[derive(PartialEq, Eq, Hash)]
pub struct WindowFlags {
    /// Reads are permitted.
    pub read: bool,
    /// Writes are permitted.
    pub write: bool,
    /// Accesses must lie in the window.
    pub window_enable: bool,
    /// Addresses count from the window's base; needs `window_enable` and IDCAP bit 24.
    pub offset_mode: bool,
    #[bits(4)]
    pub(crate) reserved: u8,
}

impl WindowFlags {
    /// Whether a reserved bit is set.
    pub const fn has_reserved(self) -> bool {
        self.reserved() != 0
    }
}

/// Fields of the operations between address spaces.
impl Descriptor {
    /// Handle for the source or source 1, bytes 60-61.
    #[inline]
    pub fn source_handle(&self) -> u16 {
        self.get_u16(SOURCE_HANDLE)
    }

    /// Handle for the destination or source 2, or of the window to update, bytes 62-63.
    #[inline]
    pub fn destination_handle(&self) -> u16 {
        self.get_u16(DESTINATION_HANDLE)
    }

    /// Update window: what to set, byte 61.
    #[inline]
    pub const fn window_flags(&self) -> WindowFlags {
        WindowFlags::from_bits(self.operation[WINDOW_FLAGS])
    }

    /// Update window: bytes of the window, bytes 24-31.
    #[inline]
    pub const fn window_size(&self) -> u64 {
        self.address2
    }

    fn get_u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.operation[at], self.operation[at + 1]])
    }

    fn put_u16(&mut self, at: usize, value: u16) {
        self.operation[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
}

/// Construction. What is in another address space is said with [`with_source_handle`] and
/// [`with_destination_handle`].
///
/// [`with_source_handle`]: Descriptor::with_source_handle
/// [`with_destination_handle`]: Descriptor::with_destination_handle
impl Descriptor {
    /// Sets window and permissions of the table's entry `handle`.
    pub fn update_window(base: u64, size: u64, flags: WindowFlags, handle: u16) -> Self {
        let mut descriptor = Self::new(Opcode::UpdateWindow, base, size, 0);
        descriptor.operation[WINDOW_FLAGS] = flags.into_bits();
        descriptor.put_u16(DESTINATION_HANDLE, handle);
        descriptor
    }

    /// Copies `size` bytes.
    pub fn inter_domain_copy(src: u64, dst: u64, size: u32) -> Self {
        Self::new(Opcode::InterDomainCopy, src, dst, size)
    }

    /// Fills `size` bytes with a pattern of 8 bytes, lowest byte first.
    pub fn inter_domain_fill(pattern: u64, dst: u64, size: u32) -> Self {
        Self::new(Opcode::InterDomainFill, pattern, dst, size)
    }

    /// Fills with a pattern of 16 bytes, lowest byte first; needs GENCAP bit 10.
    pub fn inter_domain_fill_16(pattern: u128, dst: u64, size: u32) -> Self {
        let mut descriptor = Self::inter_domain_fill(pattern as u64, dst, size);
        descriptor.put_u64(PATTERN_HIGH, (pattern >> 64) as u64);
        descriptor.with_flags(Flags::FILL_PATTERN_16)
    }

    /// Compares two buffers of `size` bytes.
    pub fn inter_domain_compare(a: u64, b: u64, size: u32) -> Self {
        Self::new(Opcode::InterDomainCompare, a, b, size)
    }

    /// Compares `size` bytes with a pattern of 8 bytes, lowest byte first.
    pub fn inter_domain_compare_pattern(src: u64, pattern: u64, size: u32) -> Self {
        Self::new(Opcode::InterDomainComparePattern, src, pattern, size)
    }

    /// Takes the source, or source 1, from the address space of `handle`.
    #[must_use]
    pub fn with_source_handle(mut self, handle: u16) -> Self {
        self.put_u16(SOURCE_HANDLE, handle);
        self.with_flags(Flags::INTER_DOMAIN_ALTERNATE_SOURCE)
    }

    /// Takes the destination, or source 2, from the address space of `handle`.
    #[must_use]
    pub fn with_destination_handle(mut self, handle: u16) -> Self {
        self.put_u16(DESTINATION_HANDLE, handle);
        self.with_flags(Flags::INTER_DOMAIN_ALTERNATE_DESTINATION)
    }
}
