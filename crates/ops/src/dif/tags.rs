//! Tags, and the field that they form with a guard.

use super::{DestinationDifFlags, SourceDifFlags};

/// Bytes of a data integrity field.
pub const DIF_BYTES: usize = 8;

/// The tags of the block to come, as descriptors and completion records hold them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tags {
    /// Reference tag.
    pub reference: u32,
    /// Bits of the application tag that are forced to 0; 0xFFFF in a source means no check.
    pub app_mask: u16,
    /// Application tag before the mask.
    ///
    /// The specification does not say whether a completion record shows it with or without the
    /// mask. Without, the next descriptor continues where this one ended.
    pub app: u16,
}

impl Tags {
    /// The tags `blocks` blocks later; tags that overflow wrap to 0 (spec appendix B).
    fn advance(self, blocks: usize, reference_fixed: bool, app_incrementing: bool) -> Self {
        let reference = if reference_fixed { 0 } else { blocks as u32 };
        let app = if app_incrementing { blocks as u16 } else { 0 };
        Self {
            reference: self.reference.wrapping_add(reference),
            app: self.app.wrapping_add(app),
            ..self
        }
    }

    /// The field of a block with these tags.
    pub(super) fn field(self, guard: u16) -> Field {
        Field {
            guard,
            app: self.app & !self.app_mask,
            reference: self.reference,
        }
    }
}

impl SourceDifFlags {
    /// The tags expected `blocks` blocks after those of `tags`.
    pub fn advance(self, tags: Tags, blocks: usize) -> Tags {
        tags.advance(
            blocks,
            self.reference_tag_fixed(),
            self.app_tag_incrementing(),
        )
    }
}

impl DestinationDifFlags {
    /// The tags written `blocks` blocks after those of `tags`.
    pub fn advance(self, tags: Tags, blocks: usize) -> Tags {
        tags.advance(
            blocks,
            self.reference_tag_fixed(),
            self.app_tag_incrementing(),
        )
    }
}

/// A data integrity field, big-endian in memory (spec appendix B).
#[derive(Copy, Clone)]
pub(super) struct Field {
    pub(super) guard: u16,
    pub(super) app: u16,
    pub(super) reference: u32,
}

impl Field {
    pub(super) fn read(bytes: [u8; DIF_BYTES]) -> Self {
        Self::from_bits(u64::from_be_bytes(bytes))
    }

    pub(super) fn bytes(self) -> [u8; DIF_BYTES] {
        self.bits().to_be_bytes()
    }

    /// Writes it to the end of a block.
    pub(super) fn write(self, block: &mut [u8]) {
        let Some(place) = block.last_chunk_mut() else {
            unreachable!("a block is longer than its field")
        };
        *place = self.bytes();
    }

    /// The guard is in the upper bits, the reference tag in the lower ones.
    pub(super) fn from_bits(bits: u64) -> Self {
        Self {
            guard: (bits >> 48) as u16,
            app: (bits >> 32) as u16,
            reference: bits as u32,
        }
    }

    pub(super) fn bits(self) -> u64 {
        let tags = u64::from(self.app) << 32 | u64::from(self.reference);
        u64::from(self.guard) << 48 | tags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_wrap_and_keep_their_mask() {
        let last = Tags {
            reference: u32::MAX,
            app_mask: 0xf000,
            app: u16::MAX,
        };
        let both = SourceDifFlags::new().with_app_tag_incrementing(true);
        let wrapped = Tags {
            reference: 0,
            app_mask: 0xf000,
            app: 0,
        };
        assert_eq!(both.advance(last, 1), wrapped);
        assert_eq!(both.advance(last, 0), last);
        let neither = DestinationDifFlags::new().with_reference_tag_fixed(true);
        assert_eq!(neither.advance(last, 7), last);
        assert_eq!(last.field(0).app, 0x0fff);
    }

    #[test]
    fn fields_are_big_endian() {
        let field = Field::read([1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((field.guard, field.app), (0x0102, 0x0304));
        assert_eq!(field.reference, 0x0506_0708);
        assert_eq!(field.bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
