//! The 64-byte work descriptor.

use core::fmt;
use core::mem::{align_of, offset_of, size_of};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Flags, Opcode, UnknownOpcode};

mod build;
mod dif;
mod domain;

pub use domain::WindowFlags;

/// A work descriptor, as the device reads it (spec 8.1).
///
/// The constructors set what the operation needs and no flag but those named; the methods that
/// start with `with_` add options. Nothing is validated: a wrong descriptor is the device's to refuse.
#[repr(C, align(64))]
#[derive(Copy, Clone, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Descriptor {
    /// PASID in bits 19:0, privileged in bit 31; the rest is reserved (8.1.1).
    pub pasid_priv: u32,
    /// Flags in bits 23:0, operation in bits 31:24 (8.1.3).
    pub flags_opcode: u32,
    /// Where the completion record goes; aligned to 32 bytes.
    pub completion_addr: u64,
    /// Source, source 1, fill pattern, descriptor list or readback address 1.
    pub address1: u64,
    /// Destination, source 2, pattern to compare with or readback address 2.
    pub address2: u64,
    /// Transfer size in bytes, or the descriptor count of a batch.
    pub size: u32,
    /// Completion interrupt handle.
    pub interrupt_handle: u16,
    /// Reserved, bytes 38 and 39.
    pub reserved: u16,
    /// Bytes 40 to 63, whose meaning depends on the operation.
    pub operation: [u8; 24],
}

const _: () = {
    assert!(size_of::<Descriptor>() == 64);
    assert!(align_of::<Descriptor>() == 64);
    assert!(offset_of!(Descriptor, pasid_priv) == 0);
    assert!(offset_of!(Descriptor, flags_opcode) == 4);
    assert!(offset_of!(Descriptor, completion_addr) == 8);
    assert!(offset_of!(Descriptor, address1) == 16);
    assert!(offset_of!(Descriptor, address2) == 24);
    assert!(offset_of!(Descriptor, size) == 32);
    assert!(offset_of!(Descriptor, interrupt_handle) == 36);
    assert!(offset_of!(Descriptor, reserved) == 38);
    assert!(offset_of!(Descriptor, operation) == 40);
};

const PASID_MASK: u32 = 0x000f_ffff;
const PRIVILEGED: u32 = 1 << 31;

// Offsets into `operation`, which starts at byte 40 of the descriptor.
const EXPECTED_RESULT: usize = 0;
const DESTINATION2: usize = 0;
const PATTERN_HIGH: usize = 0;
const DELTA_RECORD: usize = 0;
const DELTA_RECORD_SIZE: usize = 0;
const CRC_SEED: usize = 0;
const CRC_SEED_ADDRESS: usize = 8;
const MAX_DELTA_SIZE: usize = 8;
const REGION_STRIDE: usize = 8;
const EXPECTED_RESULT_MASK: usize = 16;

/// Fields.
impl Descriptor {
    /// The operation as written, known or not.
    #[inline]
    pub const fn opcode_byte(&self) -> u8 {
        (self.flags_opcode >> 24) as u8
    }

    /// The operation.
    ///
    /// # Errors
    ///
    /// [`UnknownOpcode`] with the byte, if the architecture has no such operation.
    #[inline]
    pub fn opcode(&self) -> Result<Opcode, UnknownOpcode> {
        Opcode::try_from(self.opcode_byte())
    }

    /// The flags.
    #[inline]
    pub const fn flags(&self) -> Flags {
        Flags::from_bits(self.flags_opcode)
    }

    /// The PASID, 20 bits.
    pub const fn pasid(&self) -> u32 {
        self.pasid_priv & PASID_MASK
    }

    /// Whether the descriptor claims supervisor privilege.
    pub const fn privileged(&self) -> bool {
        self.pasid_priv & PRIVILEGED != 0
    }

    /// Dualcast: second destination, bytes 40-47.
    #[inline]
    pub fn destination2(&self) -> u64 {
        self.get_u64(DESTINATION2)
    }

    /// CRC: seed, bytes 40-43.
    #[inline]
    pub fn crc_seed(&self) -> u32 {
        self.get_u32(CRC_SEED)
    }

    /// CRC of 64 bits: seed, bytes 40-47.
    #[inline]
    pub fn crc64_seed(&self) -> u64 {
        self.get_u64(CRC_SEED)
    }

    /// CRC: where the seed is read from if the flag says so, bytes 48-55.
    #[inline]
    pub fn crc_seed_address(&self) -> u64 {
        self.get_u64(CRC_SEED_ADDRESS)
    }

    /// Compare: expected result, byte 40. Only bit 0 counts.
    #[inline]
    pub const fn expected_result(&self) -> u8 {
        self.operation[EXPECTED_RESULT]
    }

    /// Fill: upper half of a pattern of 16 bytes, bytes 40-47.
    #[inline]
    pub fn pattern_high(&self) -> u64 {
        self.get_u64(PATTERN_HIGH)
    }

    /// Create delta: where the record goes, bytes 40-47.
    #[inline]
    pub fn delta_record(&self) -> u64 {
        self.get_u64(DELTA_RECORD)
    }

    /// Create delta: how many bytes the record may have, bytes 48-51.
    #[inline]
    pub fn max_delta_size(&self) -> u32 {
        self.get_u32(MAX_DELTA_SIZE)
    }

    /// Create delta: results that count as expected, byte 56. Only bits 2:0 count.
    #[inline]
    pub const fn expected_result_mask(&self) -> u8 {
        self.operation[EXPECTED_RESULT_MASK]
    }

    /// Apply delta: how many bytes the record has, bytes 40-43.
    #[inline]
    pub fn delta_record_size(&self) -> u32 {
        self.get_u32(DELTA_RECORD_SIZE)
    }

    /// Translation fetch: bytes of the region, bytes 32-35.
    #[inline]
    pub const fn region_size(&self) -> u32 {
        self.size
    }

    /// Translation fetch: distance between pages in bytes, bytes 48-51.
    pub fn region_stride(&self) -> u32 {
        self.get_u32(REGION_STRIDE)
    }

    #[inline]
    fn get_u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.operation[at..at + 4]);
        u32::from_le_bytes(bytes)
    }

    #[inline]
    fn get_u64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.operation[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.operation[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, at: usize, value: u64) {
        self.operation[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Descriptor");
        match self.opcode() {
            Ok(opcode) => out.field("opcode", &format_args!("{opcode}")),
            Err(UnknownOpcode(byte)) => out.field("opcode", &format_args!("{byte:#04x}")),
        };
        out.field("flags", &self.flags())
            .field("pasid_priv", &format_args!("{:#x}", self.pasid_priv))
            .field(
                "completion_addr",
                &format_args!("{:#x}", self.completion_addr),
            )
            .field("address1", &format_args!("{:#x}", self.address1))
            .field("address2", &format_args!("{:#x}", self.address2))
            .field("size", &self.size)
            .field("interrupt_handle", &self.interrupt_handle)
            .field("reserved", &self.reserved)
            .field("operation", &format_args!("{:02x?}", self.operation))
            .finish()
    }
}

#[cfg(test)]
mod tests;
