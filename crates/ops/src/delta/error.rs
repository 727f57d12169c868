//! What can be wrong with a delta.

use thiserror::Error;

use super::{DELTA_MAX_BYTES, WORD};

/// An entry that cannot be applied. Those before it have been.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum DeltaError {
    /// The offset is not above the one before it (status 0x07).
    #[error("offset {offset_bytes:#x} after {applied_bytes} bytes of the record does not ascend")]
    OffsetOrder {
        /// Bytes of the record that were applied.
        applied_bytes: usize,
        /// The offset, in bytes of the destination.
        offset_bytes: usize,
    },
    /// The offset is not below the transfer size (status 0x08).
    #[error("offset {offset_bytes:#x} after {applied_bytes} bytes of the record is out of range")]
    OffsetRange {
        /// Bytes of the record that were applied.
        applied_bytes: usize,
        /// The offset, in bytes of the destination.
        offset_bytes: usize,
    },
}

impl DeltaError {
    /// Bytes of the record that were applied before the bad entry.
    pub const fn applied_bytes(self) -> usize {
        match self {
            Self::OffsetOrder { applied_bytes, .. } | Self::OffsetRange { applied_bytes, .. } => {
                applied_bytes
            }
        }
    }
}

/// Sources from which no record can be made (status 0x13 or 0x1c).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum DeltaSizeError {
    /// The sources have different lengths.
    #[error("source 1 has {src1_bytes} bytes but source 2 has {src2_bytes}")]
    Mismatch {
        /// Length of source 1 in bytes.
        src1_bytes: usize,
        /// Length of source 2 in bytes.
        src2_bytes: usize,
    },
    /// A length or offset is no multiple of 8.
    #[error("{bytes} bytes are no multiple of {WORD}")]
    Unaligned {
        /// The length or offset in bytes.
        bytes: usize,
    },
    /// The end of the transfer is above what 16 bits of offset can describe.
    #[error("a transfer of {bytes} bytes is above the limit of {DELTA_MAX_BYTES}")]
    TooLarge {
        /// End of the transfer in bytes.
        bytes: usize,
    },
}

impl DeltaSizeError {
    #[inline]
    pub(crate) fn check(offset_bytes: usize, src1: &[u8], src2: &[u8]) -> Result<(), Self> {
        let (src1_bytes, src2_bytes) = (src1.len(), src2.len());
        let bytes = offset_bytes.saturating_add(src1_bytes);
        let is_whole = (offset_bytes | src1_bytes).is_multiple_of(WORD);
        if src1_bytes == src2_bytes && is_whole && bytes <= DELTA_MAX_BYTES {
            return Ok(());
        }
        Err(Self::of(offset_bytes, src1_bytes, src2_bytes))
    }

    /// What is wrong first.
    #[cold]
    fn of(offset_bytes: usize, src1_bytes: usize, src2_bytes: usize) -> Self {
        if src1_bytes != src2_bytes {
            return Self::Mismatch {
                src1_bytes,
                src2_bytes,
            };
        }
        for bytes in [offset_bytes, src1_bytes] {
            if !bytes.is_multiple_of(WORD) {
                return Self::Unaligned { bytes };
            }
        }
        let bytes = offset_bytes.saturating_add(src1_bytes);
        Self::TooLarge { bytes }
    }
}
