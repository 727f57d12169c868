//! The 64-byte work descriptor.

use core::fmt;
use core::mem::{align_of, offset_of, size_of};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Flags, Opcode, UnknownOpcode};

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

/// Construction, one function per operation.
impl Descriptor {
    fn new(opcode: Opcode, address1: u64, address2: u64, size: u32) -> Self {
        Self {
            flags_opcode: u32::from(opcode as u8) << 24,
            address1,
            address2,
            size,
            ..Self::default()
        }
    }

    /// Does nothing but complete.
    pub fn noop() -> Self {
        Self::new(Opcode::Noop, 0, 0, 0)
    }

    /// Executes the `count` descriptors at `list`, which is aligned to 64 bytes.
    pub fn batch(list: u64, count: u32) -> Self {
        Self::new(Opcode::Batch, list, 0, count)
    }

    /// Completes when all earlier descriptors of the work queue have completed.
    pub fn drain() -> Self {
        Self::new(Opcode::Drain, 0, 0, 0)
    }

    /// Copies `size` bytes.
    pub fn memmove(src: u64, dst: u64, size: u32) -> Self {
        Self::new(Opcode::Memmove, src, dst, size)
    }

    /// Fills `size` bytes with a pattern of 8 bytes, lowest byte first.
    pub fn fill(pattern: u64, dst: u64, size: u32) -> Self {
        Self::new(Opcode::Fill, pattern, dst, size)
    }

    /// Fills with a pattern of 16 bytes, lowest byte first; needs GENCAP bit 10.
    pub fn fill_16(pattern: u128, dst: u64, size: u32) -> Self {
        let mut descriptor = Self::fill(pattern as u64, dst, size);
        descriptor.put_u64(PATTERN_HIGH, (pattern >> 64) as u64);
        descriptor.with_flags(Flags::FILL_PATTERN_16)
    }

    /// Compares two buffers of `size` bytes.
    pub fn compare(a: u64, b: u64, size: u32) -> Self {
        Self::new(Opcode::Compare, a, b, size)
    }

    /// Compares `size` bytes with a pattern of 8 bytes, lowest byte first.
    pub fn compare_pattern(src: u64, pattern: u64, size: u32) -> Self {
        Self::new(Opcode::ComparePattern, src, pattern, size)
    }

    /// Copies `size` bytes to two destinations, whose addresses agree in bits 11:0.
    pub fn dualcast(src: u64, dst1: u64, dst2: u64, size: u32) -> Self {
        let mut descriptor = Self::new(Opcode::Dualcast, src, dst1, size);
        descriptor.put_u64(DESTINATION2, dst2);
        descriptor
    }

    /// Computes the CRC-32C of `size` bytes; `seed` is 0 or the result of the previous part.
    pub fn crc(src: u64, size: u32, seed: u32) -> Self {
        let mut descriptor = Self::new(Opcode::CrcGenerate, src, 0, size);
        descriptor.put_u32(CRC_SEED, seed);
        descriptor
    }

    /// Copies `size` bytes and computes their CRC-32C.
    pub fn copy_crc(src: u64, dst: u64, size: u32, seed: u32) -> Self {
        let mut descriptor = Self::new(Opcode::CopyCrc, src, dst, size);
        descriptor.put_u32(CRC_SEED, seed);
        descriptor
    }

    /// Records at `delta`, in at most `max_delta_size` bytes, where two buffers differ.
    pub fn create_delta(a: u64, b: u64, size: u32, delta: u64, max_delta_size: u32) -> Self {
        let mut descriptor = Self::new(Opcode::CreateDelta, a, b, size);
        descriptor.put_u64(DELTA_RECORD, delta);
        descriptor.put_u32(MAX_DELTA_SIZE, max_delta_size);
        descriptor
    }

    /// Applies the delta record of `delta_size` bytes at `delta` to the `size` bytes at `dst`.
    pub fn apply_delta(delta: u64, dst: u64, size: u32, delta_size: u32) -> Self {
        let mut descriptor = Self::new(Opcode::ApplyDelta, delta, dst, size);
        descriptor.put_u32(DELTA_RECORD_SIZE, delta_size);
        descriptor
    }

    /// Evicts `size` bytes from the caches of the processor.
    pub fn cache_flush(dst: u64, size: u32) -> Self {
        Self::new(Opcode::CacheFlush, 0, dst, size)
    }
}

/// Options, chained.
impl Descriptor {
    /// Asks for a completion record at `addr`, on success too.
    #[must_use]
    pub fn with_completion(mut self, addr: u64) -> Self {
        self.completion_addr = addr;
        self.with_flags(Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD)
    }

    /// Adds flags to those that are set.
    #[must_use]
    pub fn with_flags(mut self, flags: Flags) -> Self {
        self.flags_opcode |= flags.bits();
        self
    }

    /// Sets the PASID; bits above 19 are dropped.
    #[must_use]
    pub fn with_pasid(mut self, pasid: u32) -> Self {
        self.pasid_priv = (self.pasid_priv & !PASID_MASK) | (pasid & PASID_MASK);
        self
    }

    /// Marks the descriptor as privileged.
    #[must_use]
    pub fn with_privileged(mut self) -> Self {
        self.pasid_priv |= PRIVILEGED;
        self
    }

    /// Has the result of a compare checked against `expected`: 0 equal, 1 different.
    #[must_use]
    pub fn with_expected_result(mut self, expected: u8) -> Self {
        self.operation[EXPECTED_RESULT] = expected;
        self.with_flags(Flags::CHECK_RESULT)
    }

    /// Has the result of a create delta checked against `mask`: bit n allows result n.
    #[must_use]
    pub fn with_expected_result_mask(mut self, mask: u8) -> Self {
        self.operation[EXPECTED_RESULT_MASK] = mask;
        self.with_flags(Flags::CHECK_RESULT)
    }

    /// Asks for an interrupt through `handle`.
    #[must_use]
    pub fn with_interrupt(mut self, handle: u16) -> Self {
        self.interrupt_handle = handle;
        self.with_flags(Flags::REQUEST_COMPLETION_INTERRUPT)
    }
}

/// Fields.
impl Descriptor {
    /// The operation as written, known or not.
    pub const fn opcode_byte(&self) -> u8 {
        (self.flags_opcode >> 24) as u8
    }

    /// The operation.
    ///
    /// # Errors
    ///
    /// [`UnknownOpcode`] with the byte, if the architecture has no such operation.
    pub fn opcode(&self) -> Result<Opcode, UnknownOpcode> {
        Opcode::try_from(self.opcode_byte())
    }

    /// The flags.
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
    pub fn destination2(&self) -> u64 {
        self.get_u64(DESTINATION2)
    }

    /// CRC: seed, bytes 40-43.
    pub fn crc_seed(&self) -> u32 {
        self.get_u32(CRC_SEED)
    }

    /// CRC of 64 bits: seed, bytes 40-47.
    pub fn crc64_seed(&self) -> u64 {
        self.get_u64(CRC_SEED)
    }

    /// CRC: where the seed is read from if the flag says so, bytes 48-55.
    pub fn crc_seed_address(&self) -> u64 {
        self.get_u64(CRC_SEED_ADDRESS)
    }

    /// Compare: expected result, byte 40. Only bit 0 counts.
    pub const fn expected_result(&self) -> u8 {
        self.operation[EXPECTED_RESULT]
    }

    /// Fill: upper half of a pattern of 16 bytes, bytes 40-47.
    pub fn pattern_high(&self) -> u64 {
        self.get_u64(PATTERN_HIGH)
    }

    /// Create delta: where the record goes, bytes 40-47.
    pub fn delta_record(&self) -> u64 {
        self.get_u64(DELTA_RECORD)
    }

    /// Create delta: how many bytes the record may have, bytes 48-51.
    pub fn max_delta_size(&self) -> u32 {
        self.get_u32(MAX_DELTA_SIZE)
    }

    /// Create delta: results that count as expected, byte 56. Only bits 2:0 count.
    pub const fn expected_result_mask(&self) -> u8 {
        self.operation[EXPECTED_RESULT_MASK]
    }

    /// Apply delta: how many bytes the record has, bytes 40-43.
    pub fn delta_record_size(&self) -> u32 {
        self.get_u32(DELTA_RECORD_SIZE)
    }

    /// Translation fetch: distance between pages in bytes, bytes 48-51.
    pub fn region_stride(&self) -> u32 {
        self.get_u32(REGION_STRIDE)
    }

    fn get_u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.operation[at..at + 4]);
        u32::from_le_bytes(bytes)
    }

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
