//! Tags of data integrity operations, in descriptors and in completion records, and the sizes of blocks.

use crate::Opcode;

/// Bytes of data in a block, by bits 1:0 of the DIF flags (spec 8.3.14).
const BLOCKS: [usize; 4] = [512, 520, 4096, 4104];
/// Bytes of a field behind a block.
const FIELD: usize = 8;

/// Bytes of one block in the source and in the destination of any of the five DIF operations, with these DIF flags (spec
/// 8.3.14 to 8.3.18).
#[inline]
pub const fn block_bytes(opcode: Opcode, dif_flags: u8) -> (usize, usize) {
    let data = BLOCKS[(dif_flags & 3) as usize];
    let protected = data + FIELD;
    match opcode {
        Opcode::DifCheck => (protected, 0),
        Opcode::DifInsert => (data, protected),
        Opcode::DifStrip => (protected, data),
        Opcode::DifUpdate => (protected, protected),
        _ => (data, FIELD),
    }
}

/// Reference tag, application tag mask and application tag: 8 bytes in this order (spec 8.3.14).
///
/// In a descriptor the tags of the first block, in a record those of the block after the last.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DifTags {
    /// Reference tag.
    pub reference: u32,
    /// Bits of the application tag that are forced to 0.
    pub app_mask: u16,
    /// Application tag.
    pub app: u16,
}

impl DifTags {
    /// The tags as descriptors and records hold them: little-endian, unlike those beside the data.
    pub const fn to_bits(self) -> u64 {
        (self.app as u64) << 48 | (self.app_mask as u64) << 32 | self.reference as u64
    }

    /// The tags in those 8 bytes.
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            reference: bits as u32,
            app_mask: (bits >> 32) as u16,
            app: (bits >> 48) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_mask_and_tag_follow_each_other() {
        let tags = DifTags::from_bits(u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(tags.reference, 0x0403_0201);
        assert_eq!(tags.app_mask, 0x0605);
        assert_eq!(tags.app, 0x0807);
        assert_eq!(tags.to_bits().to_le_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
