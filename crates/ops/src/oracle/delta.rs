//! Delta records, word by word.

use crate::{DeltaCreated, DeltaError, DeltaSizeError};

/// Compares word by word (spec 8.3.8); see [`create_delta`](crate::create_delta).
///
/// # Errors
///
/// [`DeltaSizeError`] if no record can be made; nothing is written then.
pub fn create_delta(
    src1: &[u8],
    src2: &[u8],
    record: &mut [u8],
) -> Result<DeltaCreated, DeltaSizeError> {
    DeltaSizeError::check(0, src1, src2)?;
    let mut record_bytes = 0;
    for offset in (0..src1.len()).step_by(8) {
        let data = &src2[offset..offset + 8];
        if src1[offset..offset + 8] == *data {
            continue;
        }
        if record_bytes + 10 > record.len() {
            return Ok(DeltaCreated::Overflow {
                record_bytes,
                compared_bytes: offset,
            });
        }
        record[record_bytes] = (offset / 8 % 256) as u8;
        record[record_bytes + 1] = (offset / 8 / 256) as u8;
        record[record_bytes + 2..record_bytes + 10].copy_from_slice(data);
        record_bytes += 10;
    }
    if record_bytes == 0 {
        Ok(DeltaCreated::Equal)
    } else {
        Ok(DeltaCreated::Complete { record_bytes })
    }
}

/// Applies entry by entry (spec 8.3.9).
///
/// Offsets that are "not in ascending order" are an error. Two that are equal are taken: the
/// specification does not say "strictly", and the functional tests of the Data Mover Library, whose
/// authors run them on the device, expect a record of zeros to be applied.
///
/// # Errors
///
/// [`DeltaError`] at the first entry that breaks a rule; those before it have been applied.
pub fn apply_delta(record: &[u8], dst: &mut [u8]) -> Result<(), DeltaError> {
    let mut previous = None;
    let mut applied_bytes = 0;
    while record.len() - applied_bytes >= 10 {
        let entry = &record[applied_bytes..applied_bytes + 10];
        let offset_bytes = (usize::from(entry[0]) + usize::from(entry[1]) * 256) * 8;
        if previous.is_some_and(|previous| offset_bytes < previous) {
            return Err(DeltaError::OffsetOrder {
                applied_bytes,
                offset_bytes,
            });
        }
        if offset_bytes + 8 > dst.len() {
            return Err(DeltaError::OffsetRange {
                applied_bytes,
                offset_bytes,
            });
        }
        dst[offset_bytes..offset_bytes + 8].copy_from_slice(&entry[2..10]);
        previous = Some(offset_bytes);
        applied_bytes += 10;
    }
    Ok(())
}
