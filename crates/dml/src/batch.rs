//! Tasks of batches: `dml_batch_set_*_by_index`, and what became of each.

use dray_shared_queues::status as status_byte;
use dray_spec::{Descriptor, Opcode};

use crate::check::{LEAST_BATCH, check};
use crate::job::{DifConfig, Job};
use crate::status;
use crate::task::{self, TASK_BYTES, Tasks};

/// Bytes by which a batch's tasks may have to be moved up to be aligned.
const ALIGNMENT: u32 = 64;

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// `dml_get_batch_size`.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_get_batch_size(job: *const Job, tasks: u32, bytes: *mut u32) -> u32 {
    if job.is_null() || bytes.is_null() {
        return status::NULL_POINTER_ERROR;
    }
    let whole = (TASK_BYTES as u32)
        .checked_mul(tasks)
        .and_then(|all| all.checked_add(ALIGNMENT));
    match whole {
        Some(whole) if tasks >= LEAST_BATCH => {
            // SAFETY: it is valid.
            unsafe { *bytes = whole };
            status::OK
        }
        _ => status::BATCH_SIZE_ERROR,
    }
}

/// The tasks of a batch that has this one.
///
/// # Safety
/// The job is null or was initialised.
unsafe fn tasks(job: *const Job, index: u32) -> Result<Tasks, u32> {
    // SAFETY: the caller's promise is the same.
    let job = unsafe { job.as_ref() }.ok_or(status::NULL_POINTER_ERROR)?;
    if job.destination_length == 0 || job.destination_first.is_null() {
        return Err(status::NULL_POINTER_ERROR);
    }
    let tasks = Tasks::of(job);
    match index < tasks.count {
        true => Ok(tasks),
        false => Err(status::BATCH_TASK_INDEX_OVERFLOW),
    }
}

/// Sets a task.
///
/// # Safety
/// The job is null or was initialised, and its destination has as many bytes as it says.
unsafe fn set(job: *mut Job, index: u32, make: impl FnOnce() -> Result<Descriptor, u32>) -> u32 {
    let set = || {
        // SAFETY: the caller's promise is the same.
        let tasks = unsafe { tasks(job, index) }?;
        let d = make()?;
        check(&d)?;
        let d = d.with_completion(address(tasks.record(index)));
        // SAFETY: the batch has this task; the caller's memory may have any alignment in front of it.
        unsafe { tasks.descriptors.wrapping_add(index as usize).write(d) };
        Ok(())
    };
    set().err().unwrap_or(status::OK)
}

/// Declares functions that set a task of one kind.
macro_rules! setters {
    ($($name:ident($($argument:ident: $type:ty),*) { $($null:ident)* } $make:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The job is null or was initialised, and its destination has as many bytes as it says. Seeds, patterns and
        /// configurations are null or valid.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "those of the API")]
        pub unsafe extern "C" fn $name(job: *mut Job, index: u32, $($argument: $type),*) -> u32 {
            $(if $null.is_null() { return status::NULL_POINTER_ERROR; })*
            let make = || $make;
            // SAFETY: the caller's promise is the same.
            unsafe { set(job, index, make) }
        }
    )*};
}

/// Eight bytes of the caller's.
///
/// # Safety
/// The pointer is valid.
unsafe fn pattern(at: *const u8) -> u64 {
    // SAFETY: the caller's promise is the same; a byte pointer has no alignment.
    unsafe { at.cast::<u64>().read_unaligned() }
}

/// A CRC's seed.
///
/// # Safety
/// The pointer is valid.
unsafe fn seed(at: *const u32) -> u32 {
    // SAFETY: the caller's promise is the same.
    unsafe { at.read_unaligned() }
}

setters! {
    dml_batch_set_nop_by_index(flags: u64) { } Ok(task::noop(flags, true));
    dml_batch_set_mem_move_by_index(source: *mut u8, destination: *mut u8, bytes: u32, flags: u64) { }
        task::memmove(address(source), address(destination), bytes, flags, true);
    dml_batch_set_dualcast_by_index(
        source: *mut u8, first: *mut u8, second: *mut u8, bytes: u32, flags: u64
    ) { } Ok(task::dualcast(address(source), [address(first), address(second)], bytes, flags, true));
    dml_batch_set_compare_by_index(
        first: *mut u8, second: *mut u8, bytes: u32, expected: u32, flags: u64
    ) { } Ok(task::compare([address(first), address(second)], bytes, expected, flags, true));
    dml_batch_set_compare_pattern_by_index(
        source: *mut u8, pattern_at: *mut u8, bytes: u32, expected: u32, flags: u64
    ) { pattern_at }
        // SAFETY: it is valid.
        Ok(task::compare_pattern(address(source), unsafe { pattern(pattern_at) }, bytes, expected, flags, true));
    dml_batch_set_crc_by_index(source: *mut u8, bytes: u32, seed_at: *mut u32, flags: u64) { seed_at }
        // SAFETY: it is valid.
        Ok(task::crc(address(source), None, bytes, unsafe { seed(seed_at) }, flags, true));
    dml_batch_set_copy_crc_by_index(
        source: *mut u8, bytes: u32, seed_at: *mut u32, destination: *mut u8, flags: u64
    ) { seed_at }
        // SAFETY: it is valid.
        Ok(task::crc(address(source), Some(address(destination)), bytes, unsafe { seed(seed_at) }, flags, true));
    dml_batch_set_fill_by_index(
        pattern_at: *const u8, destination: *mut u8, bytes: u32, flags: u64
    ) { pattern_at }
        // SAFETY: it is valid.
        Ok(task::fill(unsafe { pattern(pattern_at) }, address(destination), bytes, flags, true));
    dml_batch_set_cache_flush_by_index(destination: *mut u8, bytes: u32, flags: u64) { }
        Ok(task::cache_flush(address(destination), bytes, flags, true));
    dml_batch_set_delta_create_by_index(
        source: *mut u8, reference: *mut u8, bytes: u32, record: *mut u8, record_bytes: u32, expected: u32, flags: u64
    ) { } Ok(task::create_delta(
        [address(source), address(reference)], bytes, (address(record), record_bytes), expected, flags, true,
    ));
    dml_batch_set_delta_apply_by_index(
        record: *mut u8, record_bytes: u32, destination: *mut u8, bytes: u32, flags: u64
    ) { } Ok(task::apply_delta((address(record), record_bytes), address(destination), bytes, flags, true));
    dml_batch_set_dif_check_by_index(
        source: *mut u8, bytes: u32, config: *const DifConfig, flags: u64
    ) { source config }
        // SAFETY: it is valid.
        Ok(task::dif(Opcode::DifCheck, address(source), 0, bytes, unsafe { &*config }, flags, true));
    dml_batch_set_dif_update_by_index(
        source: *mut u8, bytes: u32, config: *const DifConfig, destination: *mut u8, _room: u32, flags: u64
    ) { source config destination }
        // SAFETY: it is valid.
        Ok(task::dif(Opcode::DifUpdate, address(source), address(destination), bytes, unsafe { &*config }, flags, true));
    dml_batch_set_dif_insert_by_index(
        source: *mut u8, bytes: u32, config: *const DifConfig, destination: *mut u8, _room: u32, flags: u64
    ) { source config destination }
        // SAFETY: it is valid.
        Ok(task::dif(Opcode::DifInsert, address(source), address(destination), bytes, unsafe { &*config }, flags, true));
    dml_batch_set_dif_strip_by_index(
        source: *mut u8, bytes: u32, config: *const DifConfig, destination: *mut u8, _room: u32, flags: u64
    ) { source config destination }
        // SAFETY: it is valid.
        Ok(task::dif(Opcode::DifStrip, address(source), address(destination), bytes, unsafe { &*config }, flags, true));
}

/// `dml_batch_get_result`: of a comparison, a delta or a check.
///
/// # Safety
/// As [`dml_batch_get_status`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_batch_get_result(
    job: *const Job,
    index: u32,
    result: *mut u32,
) -> u32 {
    if result.is_null() {
        return status::NULL_POINTER_ERROR;
    }
    // SAFETY: the caller's promise is the same.
    match unsafe { tasks(job, index) } {
        Ok(tasks) => {
            // SAFETY: the batch has ended, so that the device writes its records no more.
            let record = unsafe { tasks.record(index).read() };
            // SAFETY: it is valid.
            unsafe { *result = record.result.into() };
            status::OK
        }
        Err(error) => error,
    }
}

/// `dml_batch_get_status`.
///
/// # Safety
/// The job is null or was initialised, and its destination has as many bytes as it says. The place is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_batch_get_status(job: *const Job, index: u32, place: *mut u32) -> u32 {
    if place.is_null() {
        return status::NULL_POINTER_ERROR;
    }
    // SAFETY: the caller's promise is the same.
    match unsafe { tasks(job, index) } {
        Ok(tasks) => {
            // SAFETY: the batch has a record for it.
            let byte = unsafe { status_byte(tasks.record(index)) };
            // SAFETY: it is valid.
            unsafe { *place = status::of(dray_spec::Status(byte)) };
            status::OK
        }
        Err(error) => error,
    }
}
