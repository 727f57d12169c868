//! Descriptors of the data integrity operations (spec 8.3.14 to 8.3.18).

use super::Descriptor;
use crate::{DifTags, Opcode};

// Offsets into `operation`, which starts at byte 40 of the descriptor.
const SOURCE_DIF_FLAGS: usize = 0;
const DESTINATION_DIF_FLAGS: usize = 1;
const DIF_FLAGS: usize = 2;
const SOURCE_TAGS: usize = 8;
const DESTINATION_TAGS: usize = 16;

/// Fields of data integrity operations.
impl Descriptor {
    /// How the source's fields are checked, byte 40 (8.3.17.2).
    #[inline]
    pub const fn source_dif_flags(&self) -> u8 {
        self.operation[SOURCE_DIF_FLAGS]
    }

    /// How the destination's fields are made, byte 41 (8.3.17.3).
    #[inline]
    pub const fn destination_dif_flags(&self) -> u8 {
        self.operation[DESTINATION_DIF_FLAGS]
    }

    /// Block size and guard, byte 42 (8.3.17.1).
    #[inline]
    pub const fn dif_flags(&self) -> u8 {
        self.operation[DIF_FLAGS]
    }

    /// Check, strip and update: tags of the first block of the source, bytes 48-55.
    #[inline]
    pub fn source_tags(&self) -> DifTags {
        DifTags::from_bits(self.get_u64(SOURCE_TAGS))
    }

    /// Insert, update and DIX generate: tags of the first block to write, bytes 56-63.
    #[inline]
    pub fn destination_tags(&self) -> DifTags {
        DifTags::from_bits(self.get_u64(DESTINATION_TAGS))
    }
}

/// Construction. `size` is that of the source, with fields where the source has them.
impl Descriptor {
    /// Checks the fields of a source.
    pub fn dif_check(
        src: u64,
        size: u32,
        dif_flags: u8,
        source_dif_flags: u8,
        tags: DifTags,
    ) -> Self {
        Self::new(Opcode::DifCheck, src, 0, size)
            .with_dif_flags(dif_flags)
            .with_source(source_dif_flags, tags)
    }

    /// Copies and adds a field to every block.
    pub fn dif_insert(
        src: u64,
        dst: u64,
        size: u32,
        dif_flags: u8,
        destination_dif_flags: u8,
        tags: DifTags,
    ) -> Self {
        Self::new(Opcode::DifInsert, src, dst, size)
            .with_dif_flags(dif_flags)
            .with_destination(destination_dif_flags, tags)
    }

    /// Checks the fields of a source and copies the blocks without them.
    pub fn dif_strip(
        src: u64,
        dst: u64,
        size: u32,
        dif_flags: u8,
        source_dif_flags: u8,
        tags: DifTags,
    ) -> Self {
        Self::new(Opcode::DifStrip, src, dst, size)
            .with_dif_flags(dif_flags)
            .with_source(source_dif_flags, tags)
    }

    /// Checks the fields of a source and copies the blocks with new ones.
    ///
    /// `source` and `destination` are the flags and tags of each side.
    pub fn dif_update(
        src: u64,
        dst: u64,
        size: u32,
        dif_flags: u8,
        source: (u8, DifTags),
        destination: (u8, DifTags),
    ) -> Self {
        Self::new(Opcode::DifUpdate, src, dst, size)
            .with_dif_flags(dif_flags)
            .with_source(source.0, source.1)
            .with_destination(destination.0, destination.1)
    }

    /// Writes fields only, to a destination aligned to 8 bytes; version 2.
    pub fn dix_generate(
        src: u64,
        dst: u64,
        size: u32,
        dif_flags: u8,
        destination_dif_flags: u8,
        tags: DifTags,
    ) -> Self {
        Self::new(Opcode::DixGenerate, src, dst, size)
            .with_dif_flags(dif_flags)
            .with_destination(destination_dif_flags, tags)
    }

    fn with_dif_flags(mut self, flags: u8) -> Self {
        self.operation[DIF_FLAGS] = flags;
        self
    }

    fn with_source(mut self, flags: u8, tags: DifTags) -> Self {
        self.operation[SOURCE_DIF_FLAGS] = flags;
        self.put_u64(SOURCE_TAGS, tags.to_bits());
        self
    }

    fn with_destination(mut self, flags: u8, tags: DifTags) -> Self {
        self.operation[DESTINATION_DIF_FLAGS] = flags;
        self.put_u64(DESTINATION_TAGS, tags.to_bits());
        self
    }
}
