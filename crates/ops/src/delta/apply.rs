//! Delta records, applied.

use super::{DELTA_ENTRY_BYTES, DeltaError, WORD};

/// One entry of a record, decoded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DeltaEntry {
    /// Where the word lies, in bytes from the start of the destination.
    pub offset_bytes: usize,
    /// The word.
    pub data: [u8; WORD],
}

/// Takes a record's entries one after the other and refuses those that break a rule (spec 8.3.9).
///
/// For a destination that is not a slice; [`apply_delta`] is for one that is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DeltaCursor {
    transfer_bytes: usize,
    applied_bytes: usize,
    /// The smallest offset that ascends.
    lowest_bytes: usize,
}

impl DeltaCursor {
    /// Starts a record for a destination of `transfer_bytes` bytes.
    pub const fn new(transfer_bytes: usize) -> Self {
        Self {
            transfer_bytes,
            applied_bytes: 0,
            lowest_bytes: 0,
        }
    }

    /// Decodes the next entry, which is then taken as applied.
    ///
    /// # Errors
    ///
    /// [`DeltaError`] if its offset is below the one before it, or if its word does not lie in the transfer.
    pub fn next(&mut self, entry: [u8; DELTA_ENTRY_BYTES]) -> Result<DeltaEntry, DeltaError> {
        let [low, high, data @ ..] = entry;
        let offset_bytes = usize::from(u16::from_le_bytes([low, high])) * WORD;
        let applied_bytes = self.applied_bytes;
        if offset_bytes < self.lowest_bytes {
            return Err(DeltaError::OffsetOrder {
                applied_bytes,
                offset_bytes,
            });
        }
        if offset_bytes + WORD > self.transfer_bytes {
            return Err(DeltaError::OffsetRange {
                applied_bytes,
                offset_bytes,
            });
        }
        // An offset that is there twice does not descend: the later word stays.
        self.lowest_bytes = offset_bytes;
        self.applied_bytes += DELTA_ENTRY_BYTES;
        Ok(DeltaEntry { offset_bytes, data })
    }

    /// Bytes of the record that were applied.
    pub const fn applied_bytes(&self) -> usize {
        self.applied_bytes
    }
}

/// Applies a record to `dst` (spec 8.3.9). A part of an entry at the end of the record is ignored.
///
/// # Errors
///
/// [`DeltaError`] at the first entry that breaks a rule; those before it have been applied.
pub fn apply_delta(record: &[u8], dst: &mut [u8]) -> Result<(), DeltaError> {
    let mut cursor = DeltaCursor::new(dst.len());
    for entry in record.as_chunks::<DELTA_ENTRY_BYTES>().0 {
        let DeltaEntry { offset_bytes, data } = cursor.next(*entry)?;
        dst[offset_bytes..offset_bytes + WORD].copy_from_slice(&data);
    }
    Ok(())
}
