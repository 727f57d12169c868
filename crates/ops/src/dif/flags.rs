//! Block sizes and the three flag bytes of the data integrity operations.

use bitfield_struct::bitfield;

/// Bytes of data that one data integrity field protects.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockSize {
    /// 512 bytes.
    #[default]
    Bytes512 = 0,
    /// 520 bytes.
    Bytes520 = 1,
    /// 4096 bytes.
    Bytes4096 = 2,
    /// 4104 bytes.
    Bytes4104 = 3,
}

impl BlockSize {
    /// Every size, in the order of the codes.
    pub const ALL: [Self; 4] = [
        Self::Bytes512,
        Self::Bytes520,
        Self::Bytes4096,
        Self::Bytes4104,
    ];

    /// Bytes of data in a block.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bytes512 => 512,
            Self::Bytes520 => 520,
            Self::Bytes4096 => 4096,
            Self::Bytes4104 => 4104,
        }
    }

    /// Bytes of a block with its field.
    pub const fn protected_bytes(self) -> usize {
        self.bytes() + super::DIF_BYTES
    }

    /// The size with this code; only bits 1:0 count.
    pub const fn from_bits(bits: u8) -> Self {
        Self::ALL[(bits & 3) as usize]
    }

    /// The code of the size.
    pub const fn into_bits(self) -> u8 {
        self as u8
    }
}

/// How blocks are divided and guards computed, for source and destination (spec 8.3.17.1).
#[bitfield(u8)]
#[derive(PartialEq, Eq, Hash)]
pub struct DifFlags {
    /// Bytes of data in a block.
    #[bits(2)]
    pub block_size: BlockSize,
    /// The guard starts with 0xFFFF, not with 0.
    pub invert_crc_seed: bool,
    /// Each bit of the final guard is inverted.
    pub invert_crc_result: bool,
    #[bits(4)]
    __: u8,
}

/// How fields in the source are checked (spec 8.3.17.2).
#[bitfield(u8)]
#[derive(PartialEq, Eq, Hash)]
pub struct SourceDifFlags {
    /// A field of nothing but 1 bits is an error; ignored without `all_f_detect`.
    pub all_f_detect_error: bool,
    /// No check of a block whose field is nothing but 1 bits.
    pub all_f_detect: bool,
    /// No check of a block whose application tag is nothing but 1 bits.
    pub app_tag_f_detect: bool,
    /// No check of a block whose application and reference tags are nothing but 1 bits.
    pub app_and_reference_tag_f_detect: bool,
    /// The application tag grows by 1 from block to block.
    pub app_tag_incrementing: bool,
    /// The guard is not checked.
    pub guard_check_disable: bool,
    /// The reference tag is not checked.
    pub reference_tag_check_disable: bool,
    /// The reference tag does not grow by 1 from block to block.
    pub reference_tag_fixed: bool,
}

/// How fields in the destination are made (spec 8.3.17.3).
///
/// The pass-through flags count only for update.
#[bitfield(u8)]
#[derive(PartialEq, Eq, Hash)]
pub struct DestinationDifFlags {
    #[bits(3)]
    __: u8,
    /// The application tag is that of the source.
    pub app_tag_pass_through: bool,
    /// The application tag grows by 1 from block to block.
    pub app_tag_incrementing: bool,
    /// The guard is that of the source.
    pub guard_pass_through: bool,
    /// The reference tag is that of the source.
    pub reference_tag_pass_through: bool,
    /// The reference tag does not grow by 1 from block to block.
    pub reference_tag_fixed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_codes_of_the_specification() {
        let sizes = [512, 520, 4096, 4104];
        for (code, bytes) in (0..).zip(sizes) {
            let size = BlockSize::from_bits(code);
            assert_eq!(size.bytes(), bytes);
            assert_eq!(size.protected_bytes(), bytes + 8);
            assert_eq!(size.into_bits(), code);
            assert_eq!(BlockSize::from_bits(code | 0xfc), size);
        }
    }

    #[test]
    fn bits_are_those_of_the_specification() {
        let flags = DifFlags::from_bits(0b0000_0111);
        assert_eq!(flags.block_size(), BlockSize::Bytes4104);
        assert!(flags.invert_crc_seed() && !flags.invert_crc_result());

        let source = [
            SourceDifFlags::new().with_all_f_detect_error(true),
            SourceDifFlags::new().with_all_f_detect(true),
            SourceDifFlags::new().with_app_tag_f_detect(true),
            SourceDifFlags::new().with_app_and_reference_tag_f_detect(true),
            SourceDifFlags::new().with_app_tag_incrementing(true),
            SourceDifFlags::new().with_guard_check_disable(true),
            SourceDifFlags::new().with_reference_tag_check_disable(true),
            SourceDifFlags::new().with_reference_tag_fixed(true),
        ];
        for (bit, flags) in source.into_iter().enumerate() {
            assert_eq!(flags.into_bits(), 1 << bit);
        }
        let destination = [
            DestinationDifFlags::new().with_app_tag_pass_through(true),
            DestinationDifFlags::new().with_app_tag_incrementing(true),
            DestinationDifFlags::new().with_guard_pass_through(true),
            DestinationDifFlags::new().with_reference_tag_pass_through(true),
            DestinationDifFlags::new().with_reference_tag_fixed(true),
        ];
        for (bit, flags) in (3..).zip(destination) {
            assert_eq!(flags.into_bits(), 1 << bit);
        }
    }
}
