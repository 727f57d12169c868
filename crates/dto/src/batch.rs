//! Several copies as one batch descriptor.

use std::ffi::{c_int, c_uint, c_void};

use dray_shared_queues::{self as queues, status};
use dray_spec::{CompletionRecord, Descriptor, Status};

use crate::{DONE, FAILED, FALLBACK, PENDING, SUBMITTED, address, flags, limits};

/// `DTO_BATCH_MAX`.
const MOST: usize = 64;

/// `dto_batch_op`.
#[derive(Debug)]
pub struct Batch {
    tasks: [Descriptor; MOST],
    records: [CompletionRecord; MOST],
    record: CompletionRecord,
    /// What was submitted last.
    descriptor: Descriptor,
    state: State,
    /// The process that submitted it.
    process: u32,
}

/// What became of the last submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was submitted.
    Nothing,
    UnderWay,
    Done,
    /// The core could not finish a copy.
    Lost,
}

/// `dto_batch_op_new`.
#[unsafe(no_mangle)]
pub extern "C" fn dto_batch_op_new() -> *mut Batch {
    Box::into_raw(Box::new(Batch {
        tasks: [Descriptor::default(); MOST],
        records: [CompletionRecord::default(); MOST],
        record: CompletionRecord::default(),
        descriptor: Descriptor::default(),
        state: State::Nothing,
        process: 0,
    }))
}

/// `dto_batch_op_free`.
///
/// # Safety
/// The batch is null or from [`dto_batch_op_new`], and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_batch_op_free(op: *mut Batch) {
    if op.is_null() {
        return;
    }
    // A device may still write its records.
    // SAFETY: the caller's promise is the same.
    while unsafe { dto_batch_poll(op) } == PENDING {
        std::thread::yield_now();
    }
    // SAFETY: it is from `Box::into_raw`, and nobody uses it.
    drop(unsafe { Box::from_raw(op) });
}

/// `dto_submit_batch_copy`.
///
/// # Safety
/// The batch is null or from [`dto_batch_op_new`]; the arrays have `count` entries; the buffers are valid until the batch
/// is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_submit_batch_copy(
    op: *mut Batch,
    to: *const *mut c_void,
    from: *const *mut c_void,
    sizes: *const usize,
    count: c_int,
    flags_of: c_uint,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    let Some(batch) = (unsafe { op.as_mut() }) else {
        return FALLBACK;
    };
    if batch.state == State::UnderWay {
        return FALLBACK;
    }
    batch.state = State::Nothing;
    let (Some(limits), Ok(count)) = (limits(), usize::try_from(count)) else {
        return FALLBACK;
    };
    let arrays = [to.addr(), from.addr(), sizes.addr()];
    if arrays.contains(&0) || !(2..=MOST.min(limits.batch as usize)).contains(&count) {
        return FALLBACK;
    }
    for index in 0..count {
        let at = |array: *const *mut c_void| {
            // SAFETY: the array has so many entries.
            address(unsafe { *array.wrapping_add(index) })
        };
        // SAFETY: as above.
        let bytes = unsafe { *sizes.wrapping_add(index) };
        let size = u32::try_from(bytes).ok().filter(|size| *size > 0);
        let Some(size) = size.filter(|size| u64::from(*size) <= limits.bytes) else {
            return FALLBACK;
        };
        batch.records[index] = CompletionRecord::default();
        batch.tasks[index] = Descriptor::memmove(at(from), at(to), size)
            .with_flags(flags(flags_of, limits))
            .with_completion(address(&raw const batch.records[index]));
    }
    batch.record = CompletionRecord::default();
    batch.descriptor = Descriptor::batch(address(batch.tasks.as_ptr()), count as u32)
        .with_completion(address(&raw const batch.record));
    batch.process = std::process::id();
    // SAFETY: the caller vouches for the buffers; the batch stays where it is until it is done.
    match unsafe { queues::submit(&batch.descriptor, None) } {
        Ok(()) => {
            batch.state = State::UnderWay;
            SUBMITTED
        }
        Err(_) => FALLBACK,
    }
}

/// `dto_batch_poll`.
///
/// # Safety
/// The batch is null or from [`dto_batch_op_new`]; its buffers are valid until it is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_batch_poll(op: *mut Batch) -> c_int {
    if op.is_null() {
        return FAILED;
    }
    // SAFETY: the caller's promise is the same; a device writes records alone.
    let state = unsafe { (*op).state };
    // SAFETY: as above.
    let process = unsafe { (*op).process };
    match state {
        State::Done => return DONE,
        State::UnderWay => {}
        State::Nothing | State::Lost => return FAILED,
    }
    // SAFETY: as above.
    let record = unsafe { &raw const (*op).record };
    // SAFETY: as above.
    if unsafe { status(record) } == 0 {
        // A child has a copy of the record, and no device writes it.
        return match process == std::process::id() {
            true => PENDING,
            false => FAILED,
        };
    }
    // SAFETY: the device has written the last record of the batch, and nothing behind it.
    let batch = unsafe { &mut *op };
    for record in &mut batch.records {
        // What the device has refused, as flags that it lacks, the core begins anew.
        if !record.status().is_success() && record.status().code() != Status::PAGE_FAULT.code() {
            *record = CompletionRecord::default();
        }
    }
    // SAFETY: the caller vouches for the buffers.
    let ended = unsafe { queues::execute(&batch.descriptor) };
    let (state, answer) = match ended.status().is_success() {
        true => (State::Done, DONE),
        false => (State::Lost, FAILED),
    };
    batch.state = state;
    answer
}
