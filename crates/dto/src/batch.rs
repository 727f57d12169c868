//! Several copies as one batch descriptor.

use std::ffi::{c_int, c_uint, c_void};

use dray_dml::execute;
use dray_dml::job::{ANY_NODE, status};
use dray_spec::{CompletionRecord, Descriptor};

use crate::{DONE, FAILED, FALLBACK, PENDING, SUBMITTED, address, flags, limits};

/// `DTO_BATCH_MAX`.
const MOST: usize = 64;

/// `dto_batch_op`.
#[derive(Debug)]
pub struct Batch {
    tasks: [Descriptor; MOST],
    records: [CompletionRecord; MOST],
    record: CompletionRecord,
    count: usize,
    under_way: bool,
}

/// `dto_batch_op_new`; null without memory.
#[unsafe(no_mangle)]
pub extern "C" fn dto_batch_op_new() -> *mut Batch {
    Box::into_raw(Box::new(Batch {
        tasks: [Descriptor::default(); MOST],
        records: [CompletionRecord::default(); MOST],
        record: CompletionRecord::default(),
        count: 0,
        under_way: false,
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
    let (Some(limits), Ok(count)) = (limits(), usize::try_from(count)) else {
        return FALLBACK;
    };
    let arrays = [to.addr(), from.addr(), sizes.addr()];
    if batch.under_way
        || arrays.contains(&0)
        || !(2..=MOST.min(limits.batch as usize)).contains(&count)
    {
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
    batch.count = count;
    let d = Descriptor::batch(address(batch.tasks.as_ptr()), count as u32)
        .with_completion(address(&raw const batch.record));
    // SAFETY: the caller vouches for the buffers; the batch stays where it is until it is done.
    match unsafe { execute::submit(&d, ANY_NODE) } {
        Ok(()) => {
            batch.under_way = true;
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
    // SAFETY: the caller's promise is the same.
    let under_way = unsafe { (*op).under_way };
    if !under_way {
        return DONE;
    }
    // SAFETY: as above.
    let record = unsafe { &raw const (*op).record };
    // SAFETY: as above.
    if unsafe { status(record) } == 0 {
        return PENDING;
    }
    // SAFETY: the device has written the last record of the batch, and nothing behind it.
    let batch = unsafe { &mut *op };
    for index in 0..batch.count {
        let ended = batch.records[index];
        if !ended.status().is_success() {
            let d = batch.tasks[index];
            // A task that was not reached has no record: all of it is left.
            // SAFETY: the caller vouches for the buffers.
            unsafe { execute::finish(&d, &ended) };
        }
    }
    batch.under_way = false;
    DONE
}
