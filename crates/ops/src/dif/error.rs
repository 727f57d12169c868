//! What a data integrity operation can find wrong.

use thiserror::Error;

use super::Tags;

/// Why a data integrity operation stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum DifError {
    /// A field did not match its block (status 0x09).
    #[error(transparent)]
    Block(#[from] BadBlock),
    /// The buffers do not have the sizes that the flags ask for; nothing was done.
    #[error(transparent)]
    Size(#[from] DifSizeError),
}

/// The first block whose field was wrong. Blocks before it have been written, it has not.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("data integrity status {status:#04x} after {bytes_completed} bytes")]
pub struct BadBlock {
    /// DIF status; one or more of [`DifStatus`]'s bits (spec 8.3.17.4).
    pub status: u8,
    /// Source bytes of the blocks before this one, with their fields.
    pub bytes_completed: usize,
    /// The tags that were expected in the source.
    pub tags: Tags,
}

/// The bits of the DIF status (spec 8.3.17.4).
pub struct DifStatus;

impl DifStatus {
    /// The guard differs.
    pub const GUARD: u8 = 0x01;
    /// The application tag differs.
    pub const APP_TAG: u8 = 0x02;
    /// The reference tag differs.
    pub const REFERENCE_TAG: u8 = 0x04;
    /// The field is nothing but 1 bits, and that was to be an error. Never with other bits.
    pub const ALL_F: u8 = 0x08;
}

/// Buffers that do not fit the block size or each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum DifSizeError {
    /// The source is not a whole number of blocks.
    #[error("source of {bytes} bytes is not a multiple of {block_bytes}")]
    Source {
        /// Length of the source in bytes.
        bytes: usize,
        /// Bytes of a block, with its field where the source has fields.
        block_bytes: usize,
    },
    /// The destination has another size than the result.
    #[error("destination has {bytes} bytes but the result has {needed_bytes}")]
    Destination {
        /// Length of the destination in bytes.
        bytes: usize,
        /// Bytes that the operation writes.
        needed_bytes: usize,
    },
}

impl DifSizeError {
    /// How many blocks a source has.
    pub(crate) fn blocks(src: &[u8], block_bytes: usize) -> Result<usize, Self> {
        let bytes = src.len();
        if bytes.is_multiple_of(block_bytes) {
            Ok(bytes / block_bytes)
        } else {
            Err(Self::Source { bytes, block_bytes })
        }
    }

    /// Whether a destination holds exactly the result.
    pub(crate) fn destination(dst: &[u8], needed_bytes: usize) -> Result<(), Self> {
        let bytes = dst.len();
        if bytes == needed_bytes {
            Ok(())
        } else {
            Err(Self::Destination {
                bytes,
                needed_bytes,
            })
        }
    }
}
