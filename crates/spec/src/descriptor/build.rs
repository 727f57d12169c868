//! Descriptors, written: constructors and options.

use super::{
    CRC_SEED, CRC_SEED_ADDRESS, DELTA_RECORD, DELTA_RECORD_SIZE, DESTINATION2, Descriptor,
    EXPECTED_RESULT, EXPECTED_RESULT_MASK, MAX_DELTA_SIZE, PASID_MASK, PATTERN_HIGH, PRIVILEGED,
    REGION_STRIDE,
};
use crate::{Flags, Opcode};

/// Construction, one function per operation.
impl Descriptor {
    pub(super) fn new(opcode: Opcode, address1: u64, address2: u64, size: u32) -> Self {
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

    /// Computes the CRC-64 of `size` bytes; needs GENCAP bit 11.
    pub fn crc64(src: u64, size: u32, seed: u64) -> Self {
        let mut descriptor = Self::new(Opcode::CrcGenerate, src, 0, size);
        descriptor.put_u64(CRC_SEED, seed);
        descriptor.with_flags(Flags::CRC_64)
    }

    /// Copies `size` bytes and computes their CRC-32C.
    pub fn copy_crc(src: u64, dst: u64, size: u32, seed: u32) -> Self {
        let mut descriptor = Self::new(Opcode::CopyCrc, src, dst, size);
        descriptor.put_u32(CRC_SEED, seed);
        descriptor
    }

    /// Copies `size` bytes and computes their CRC-64; needs GENCAP bit 11.
    pub fn copy_crc64(src: u64, dst: u64, size: u32, seed: u64) -> Self {
        let mut descriptor = Self::new(Opcode::CopyCrc, src, dst, size);
        descriptor.put_u64(CRC_SEED, seed);
        descriptor.with_flags(Flags::CRC_64)
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

    /// Has the translations of the `size` bytes at `addr` fetched; version 2.
    pub fn translation_fetch(addr: u64, size: u32) -> Self {
        Self::new(Opcode::TranslationFetch, addr, 0, size)
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
    #[inline]
    pub fn with_completion(mut self, addr: u64) -> Self {
        self.completion_addr = addr;
        self.with_flags(Flags::COMPLETION_ADDRESS_VALID | Flags::REQUEST_COMPLETION_RECORD)
    }

    /// Adds flags to those that are set.
    #[must_use]
    #[inline]
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

    /// Has the seed of a CRC read from `addr`, and takes back a seed given before.
    #[must_use]
    pub fn with_crc_seed_address(mut self, addr: u64) -> Self {
        self.put_u64(CRC_SEED, 0);
        self.put_u64(CRC_SEED_ADDRESS, addr);
        self.with_flags(Flags::CRC_READ_SEED)
    }

    /// Has a translation fetch skip `stride` bytes, a power of 2 of 4096 and more; needs GENCAP bit 7.
    #[must_use]
    pub fn with_region_stride(mut self, stride: u32) -> Self {
        self.put_u32(REGION_STRIDE, stride);
        self.with_flags(Flags::TRANSLATION_FETCH_USE_STRIDE)
    }

    /// Has a drain read back `addr` before it completes; needs GENCAP bit 9.
    #[must_use]
    pub fn with_readback1(mut self, addr: u64) -> Self {
        self.address1 = addr;
        self.with_flags(Flags::DRAIN_READBACK1_VALID)
    }

    /// Has a drain read back a second address.
    #[must_use]
    pub fn with_readback2(mut self, addr: u64) -> Self {
        self.address2 = addr;
        self.with_flags(Flags::DRAIN_READBACK2_VALID)
    }

    /// Asks for an interrupt through `handle`.
    #[must_use]
    pub fn with_interrupt(mut self, handle: u16) -> Self {
        self.interrupt_handle = handle;
        self.with_flags(Flags::REQUEST_COMPLETION_INTERRUPT)
    }
}
