//! The 32-byte completion record.

use core::fmt;
use core::mem::{align_of, offset_of, size_of};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{DifTags, FaultInfo, Flags, Status};

/// What the device writes when a descriptor is done (spec 8.2).
///
/// Byte 0 is written last: a thread that polls it may read the rest once it is not 0.
#[repr(C, align(32))]
#[derive(Copy, Clone, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CompletionRecord {
    /// Status byte; see [`Status`].
    pub status: u8,
    /// Result of a comparison, of a delta, of a DIF check; copy direction of a memmove that faulted.
    pub result: u8,
    /// Which operand faulted; see [`FaultInfo`].
    pub fault_info: u8,
    /// Unused.
    pub reserved: u8,
    /// Bytes done before a fault or a difference, descriptors of a batch; 0 on full success of others.
    pub bytes_completed: u32,
    /// Address of a page fault; bits 11:0 may read 0.
    pub fault_address: u64,
    /// Bytes 16 to 31, whose meaning depends on operation and status.
    pub operation: [u8; 16],
}

const _: () = {
    assert!(size_of::<CompletionRecord>() == 32);
    assert!(align_of::<CompletionRecord>() == 32);
    assert!(offset_of!(CompletionRecord, status) == 0);
    assert!(offset_of!(CompletionRecord, result) == 1);
    assert!(offset_of!(CompletionRecord, fault_info) == 2);
    assert!(offset_of!(CompletionRecord, reserved) == 3);
    assert!(offset_of!(CompletionRecord, bytes_completed) == 4);
    assert!(offset_of!(CompletionRecord, fault_address) == 8);
    assert!(offset_of!(CompletionRecord, operation) == 16);
};

impl CompletionRecord {
    /// A record that says `status` and nothing else.
    #[inline]
    pub fn with_status(status: Status) -> Self {
        Self {
            status: status.0,
            ..Self::default()
        }
    }

    /// The status byte with its names.
    #[inline]
    pub const fn status(&self) -> Status {
        Status(self.status)
    }

    /// Batch: descriptors completed, bytes 4-7.
    pub const fn descriptors_completed(&self) -> u32 {
        self.bytes_completed
    }

    /// CRC of 32 bits, bytes 16-19.
    pub fn crc32(&self) -> u32 {
        self.get_u32()
    }

    /// Stores a CRC of 32 bits.
    #[inline]
    pub fn set_crc32(&mut self, crc: u32) {
        self.put_u32(crc);
    }

    /// CRC of 64 bits, bytes 16-23.
    pub fn crc64(&self) -> u64 {
        self.get_u64(0)
    }

    /// Stores a CRC of 64 bits.
    #[inline]
    pub fn set_crc64(&mut self, crc: u64) {
        self.put_u64(0, crc);
    }

    /// Which operand faulted.
    pub const fn fault(&self) -> FaultInfo {
        FaultInfo::from_bits(self.fault_info)
    }

    /// DIF status, byte 1: which checks failed, if the status is 0x09.
    pub const fn dif_status(&self) -> u8 {
        self.result
    }

    /// Check, strip and update: tags of the next block of the source, bytes 16-23.
    pub fn source_tags(&self) -> DifTags {
        DifTags::from_bits(self.get_u64(0))
    }

    /// Stores the tags of the source.
    #[inline]
    pub fn set_source_tags(&mut self, tags: DifTags) {
        self.put_u64(0, tags.to_bits());
    }

    /// Insert, update and DIX generate: tags of the next block to write, bytes 24-31.
    pub fn destination_tags(&self) -> DifTags {
        DifTags::from_bits(self.get_u64(8))
    }

    /// Stores the tags of the destination.
    #[inline]
    pub fn set_destination_tags(&mut self, tags: DifTags) {
        self.put_u64(8, tags.to_bits());
    }

    /// Inter-domain operations that failed: the handle in question, bytes 16-17.
    pub fn idpt_handle(&self) -> u16 {
        u16::from_le_bytes([self.operation[0], self.operation[1]])
    }

    /// Stores the handle in question.
    pub fn set_idpt_handle(&mut self, handle: u16) {
        self.operation[..2].copy_from_slice(&handle.to_le_bytes());
    }

    /// Create delta: bytes of the record that were written, bytes 16-19.
    pub fn delta_record_size(&self) -> u32 {
        self.get_u32()
    }

    /// Stores the size of a delta record.
    #[inline]
    pub fn set_delta_record_size(&mut self, size_bytes: u32) {
        self.put_u32(size_bytes);
    }

    /// Status 0x11: at least one of the flags that were wrong, bytes 16-18.
    pub fn invalid_flags(&self) -> Flags {
        Flags::from_bits(self.get_u32())
    }

    /// Stores which flags were wrong.
    pub fn set_invalid_flags(&mut self, flags: Flags) {
        self.put_u32(flags.bits());
    }

    fn get_u32(&self) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.operation[..4]);
        u32::from_le_bytes(bytes)
    }

    fn get_u64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.operation[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn put_u64(&mut self, at: usize, value: u64) {
        self.operation[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.operation[..4].copy_from_slice(&value.to_le_bytes());
    }
}

impl fmt::Debug for CompletionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionRecord")
            .field("status", &self.status())
            .field("result", &self.result)
            .field("fault_info", &self.fault_info)
            .field("bytes_completed", &self.bytes_completed)
            .field("fault_address", &format_args!("{:#x}", self.fault_address))
            .field("operation", &format_args!("{:02x?}", self.operation))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaultOperand;
    use std::format;
    use std::vec::Vec;

    // linux/idxd.h, struct dsa_completion_record (Linux 6.1 uapi): status 0, result 1, rsvd 2,
    // bytes_completed 4, fault_addr 8, invalid_flags:24 / delta_rec_size / crc_val 16.
    #[test]
    fn fields_lie_where_the_kernel_header_has_them() {
        let bytes: Vec<u8> = (1..=32).collect();
        let record = CompletionRecord::read_from_bytes(&bytes).unwrap();
        assert_eq!(record.status, 1);
        assert_eq!(record.status(), Status::SUCCESS);
        assert_eq!(record.result, 2);
        assert_eq!(record.bytes_completed, 0x0807_0605);
        assert_eq!(record.descriptors_completed(), 0x0807_0605);
        assert_eq!(record.fault_address, 0x100f_0e0d_0c0b_0a09);
        assert_eq!(record.crc32(), 0x1413_1211);
        assert_eq!(record.crc64(), 0x1817_1615_1413_1211);
        assert_eq!(record.delta_record_size(), 0x1413_1211);
        assert_eq!(record.invalid_flags().bits(), 0x13_1211);
        // The rest as the tables of spec 8.3.14 to 8.3.18 have it; the header of that kernel
        // names the same places for the tags.
        assert_eq!(record.dif_status(), 2);
        assert_eq!(record.fault().operand(), FaultOperand::Source);
        assert_eq!(record.idpt_handle(), 0x1211);
        let source = DifTags {
            reference: 0x1413_1211,
            app_mask: 0x1615,
            app: 0x1817,
        };
        let destination = DifTags {
            reference: 0x1c1b_1a19,
            app_mask: 0x1e1d,
            app: 0x201f,
        };
        assert_eq!(record.source_tags(), source);
        assert_eq!(record.destination_tags(), destination);
        assert_eq!(record.as_bytes(), bytes);
    }

    #[test]
    fn results_are_read_back() {
        let mut record = CompletionRecord::with_status(Status::INVALID_FLAGS);
        record.set_invalid_flags(Flags::FENCE | Flags::CRC_64);
        assert_eq!(record.invalid_flags(), Flags::FENCE | Flags::CRC_64);
        record.set_crc32(0xe306_9283);
        assert_eq!(record.operation[..4], [0x83, 0x92, 0x06, 0xe3]);
        record.set_crc64(0xae8b_1486_0a79_9888);
        assert_eq!(record.crc64(), 0xae8b_1486_0a79_9888);
        record.set_delta_record_size(80);
        assert_eq!(record.delta_record_size(), 80);
        let tags = DifTags {
            reference: 1,
            app_mask: 2,
            app: 3,
        };
        record.set_source_tags(tags);
        record.set_destination_tags(tags);
        assert_eq!(
            record.operation,
            [1, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0, 2, 0, 3, 0]
        );
        record.set_idpt_handle(0x0504);
        assert_eq!(record.operation[..4], [4, 5, 0, 0]);
        assert!(format!("{record:?}").contains("invalid_flags(0x11)"));
    }
}
