//! Delta records on the calling core (spec 8.3.8, 8.3.9).

use std::slice;

use dray_ops::{DELTA_ENTRY_BYTES, DeltaCreated, DeltaError};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

/// Creates a record.
///
/// # Safety
/// Sources must be readable, the record writable; sizes and overlaps have been checked.
pub(super) unsafe fn create(d: &Descriptor, record: &mut CompletionRecord) {
    let len = d.size as usize;
    // What is behind the last whole entry is not used.
    let room = d.max_delta_size() as usize / DELTA_ENTRY_BYTES * DELTA_ENTRY_BYTES;
    // SAFETY: the first source is readable and not written.
    let a = unsafe { slice::from_raw_parts(d.address1 as *const u8, len) };
    // SAFETY: the second source is readable and not written.
    let b = unsafe { slice::from_raw_parts(d.address2 as *const u8, len) };
    // SAFETY: the record is writable and overlaps neither source.
    let into = unsafe { slice::from_raw_parts_mut(d.delta_record() as *mut u8, room) };
    let Ok(created) = dray_ops::create_delta(a, b, into) else {
        // A size that passed no check.
        *record = CompletionRecord::with_status(Status::ADDRESS_ALIGNMENT);
        return;
    };
    record.result = created.result();
    record.set_delta_record_size(created.record_bytes() as u32);
    if let DeltaCreated::Overflow { compared_bytes, .. } = created {
        record.bytes_completed = compared_bytes as u32;
    }
    let as_expected = d.expected_result_mask() >> record.result & 1 == 1;
    if d.flags().contains(Flags::CHECK_RESULT) && !as_expected {
        record.status = Status::SUCCESS_PREDICATE.0;
    }
}

/// Applies a record, up to the first entry that breaks a rule.
///
/// # Safety
/// The record must be readable, the destination writable; sizes and overlaps have been checked.
pub(super) unsafe fn apply(d: &Descriptor, record: &mut CompletionRecord) {
    let bytes = d.delta_record_size() as usize;
    // SAFETY: the record is readable and not written.
    let delta = unsafe { slice::from_raw_parts(d.address1 as *const u8, bytes) };
    // SAFETY: the destination is writable and does not overlap the record.
    let dst = unsafe { slice::from_raw_parts_mut(d.address2 as *mut u8, d.size as usize) };
    if let Err(error) = dray_ops::apply_delta(delta, dst) {
        record.status = match error {
            DeltaError::OffsetOrder { .. } => Status::DELTA_OFFSET_ORDER.0,
            DeltaError::OffsetRange { .. } => Status::DELTA_OFFSET_RANGE.0,
        };
        record.bytes_completed = error.applied_bytes() as u32;
    }
}
