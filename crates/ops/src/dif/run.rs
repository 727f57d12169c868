//! Runs: blocks whose fields all follow from that of the first, worked on in one go.

use super::guard::{TOGETHER, share};
use super::tags::Field;
use super::{DIF_BYTES, DestinationDifFlags, DifFlags, SourceDifFlags, Tags};

/// The fields of a run: application tags are all the same.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// That of the first block, but for its guard.
    first: Field,
    /// What is added to the reference tag from block to block.
    reference_step: u32,
    /// What is added to each CRC to make a guard of it.
    share: u16,
    /// The bits that are compared.
    compared: u64,
}

impl Fields {
    /// The fields that are expected; `None` if they are no run. Of these bits, some are compared.
    #[inline]
    pub(super) fn expected(
        flags: DifFlags,
        source: SourceDifFlags,
        tags: Tags,
        compared: u64,
    ) -> Option<Self> {
        let fields = Self::from_first(flags, tags, source.reference_tag_fixed(), compared);
        (!source.app_tag_incrementing()).then_some(fields)
    }

    /// The fields that are to be written; `None` if they are no run.
    #[inline]
    pub(super) fn made(
        flags: DifFlags,
        destination: DestinationDifFlags,
        tags: Tags,
    ) -> Option<Self> {
        let fields = Self::from_first(flags, tags, destination.reference_tag_fixed(), u64::MAX);
        (!destination.app_tag_incrementing()).then_some(fields)
    }

    /// The fields that follow from the tags of the first block.
    #[inline]
    fn from_first(flags: DifFlags, tags: Tags, reference_tag_fixed: bool, compared: u64) -> Self {
        Self {
            first: tags.field(0),
            reference_step: u32::from(!reference_tag_fixed),
            share: share(flags),
            compared,
        }
    }

    /// The fields of the blocks from number `first`, from their CRCs.
    #[inline(always)]
    pub(super) fn of(&self, first: usize, crcs: [u16; TOGETHER]) -> [Field; TOGETHER] {
        let later = (first as u32).wrapping_mul(self.reference_step);
        let mut reference = self.first.reference.wrapping_add(later);
        crcs.map(|crc| {
            let field = Field {
                guard: crc ^ self.share,
                reference,
                ..self.first
            };
            reference = reference.wrapping_add(self.reference_step);
            field
        })
    }

    /// Whether the blocks from number `first` have these fields, from their CRCs. A field that may say
    /// that its block is not to be checked does not count as one of them.
    #[inline(always)]
    pub(super) fn are(
        &self,
        first: usize,
        found: [&[u8; DIF_BYTES]; TOGETHER],
        crcs: [u16; TOGETHER],
    ) -> bool {
        let mut differs = 0;
        for (found, expected) in found.into_iter().zip(self.of(first, crcs)) {
            let found = Field::read(*found);
            differs |= (found.bits() ^ expected.bits()) & self.compared;
            differs |= u64::from(found.app == u16::MAX);
        }
        differs == 0
    }
}

/// The field that starts here.
#[inline(always)]
pub(super) fn field(bytes: &[u8]) -> &[u8; DIF_BYTES] {
    match bytes.first_chunk() {
        Some(field) => field,
        None => unreachable!("a block ends with its field"),
    }
}

/// Bytes from one block of data to the next in the source, and in the destination.
pub(super) const fn steps(bytes: usize, with_fields: bool) -> (usize, usize) {
    match with_fields {
        true => (bytes + DIF_BYTES, bytes),
        false => (bytes, bytes + DIF_BYTES),
    }
}
