//! The C job API of Intel's Data Mover Library, `dml.h`, on the work queues of this machine or on the calling core.
//!
//! Source-compatible: a program that includes `dml/dml.h` is compiled and linked again. The API is that of the public
//! documentation of DML 1.x; what differs stands in `docs/commands/dml.md`. Intel has archived the library; this is one to move to
//! without a change, and `dray.h` the one to move to after that.
//!
//! Jobs go to shared work queues, of the node that `numa_id` names. `DML_PATH_AUTO` falls back to the core where there is
//! none or none has room, and finishes there what a device ended at a page fault; `DML_PATH_HW` never falls back.

pub mod batch;
mod check;
pub mod job;
pub mod status;
pub mod task;

use std::ptr;

use dray_shared_queues::{self as queues, Refusal};
use dray_spec::{CompletionRecord, Descriptor, Opcode, Status};

use job::{ANY_NODE, JOB_BYTES, Job, State};

/// `dml_path_t`.
const AUTO: u32 = 0;
const SOFTWARE: u32 = 1;
const HARDWARE: u32 = 2;

/// `dml_library_version_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Version {
    name: [u8; 30],
    minimal_cpu_isa: [u8; 16],
    date: [u8; 15],
    version: [u8; 20],
    hw_minimal_version: [u8; 30],
    commit: [u8; 12],
    major: u32,
    minor: u32,
    patch: u32,
}

/// Text in so many bytes, with zeros behind it.
const fn text<const N: usize>(text: &str) -> [u8; N] {
    let (bytes, mut all, mut n) = (text.as_bytes(), [0; N], 0);
    while n < bytes.len() && n + 1 < N {
        all[n] = bytes[n];
        n += 1;
    }
    all
}

/// The version of the API.
static VERSION: Version = Version {
    name: text("dray, as Intel(R) DML"),
    minimal_cpu_isa: text("x86-64"),
    date: text(""),
    version: text("1.1.1"),
    hw_minimal_version: text("Intel DSA 1.0"),
    commit: text(""),
    major: 1,
    minor: 1,
    patch: 1,
};

/// `dml_get_library_version`: the version of the API, and that it is ours.
#[unsafe(no_mangle)]
pub extern "C" fn dml_get_library_version() -> *const Version {
    &raw const VERSION
}

/// `dml_get_job_size`.
///
/// # Safety
/// The pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_get_job_size(path: u32, bytes: *mut u32) -> u32 {
    if bytes.is_null() {
        return status::NULL_POINTER_ERROR;
    }
    if path > HARDWARE {
        return status::PATH_ERROR;
    }
    // SAFETY: it is valid.
    unsafe { *bytes = JOB_BYTES as u32 };
    status::OK
}

/// `dml_init_job`.
///
/// # Safety
/// The job is null or has as many bytes as `dml_get_job_size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_init_job(path: u32, job: *mut Job) -> u32 {
    if job.is_null() {
        return status::NULL_POINTER_ERROR;
    }
    if path > HARDWARE {
        return status::PATH_ERROR;
    }
    // SAFETY: the job has so many bytes.
    unsafe { ptr::write_bytes(job.cast::<u8>(), 0, JOB_BYTES) };
    // SAFETY: zeros are a job.
    unsafe { (*job).numa_id = ANY_NODE };
    // SAFETY: the caller's promise is the same.
    unsafe { State::begin(job, path) };
    status::OK
}

/// `dml_finalize_job`: nothing is left to free.
#[unsafe(no_mangle)]
pub extern "C" fn dml_finalize_job(job: *mut Job) -> u32 {
    match job.is_null() {
        true => status::NULL_POINTER_ERROR,
        false => status::OK,
    }
}

/// A job and its state.
///
/// # Safety
/// The job is null, or was initialised.
unsafe fn parts<'a>(job: *mut Job) -> Result<(&'a mut Job, *mut State), u32> {
    // SAFETY: it is null or a job, which its owner uses from one thread at a time.
    let job = unsafe { job.as_mut() }.ok_or(status::NULL_POINTER_ERROR)?;
    let state = State::of(job);
    // A copy of a job has the state of another.
    match job.internal_data == state.cast() {
        true => Ok((job, state)),
        false => Err(status::JOB_CORRUPTED),
    }
}

/// `dml_submit_job`.
///
/// # Safety
/// The job is null or was initialised; its pointers are null or valid for its operation until it has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_submit_job(job: *mut Job) -> u32 {
    // SAFETY: the caller's promise is the same.
    let (job, state) = match unsafe { parts(job) } {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    // SAFETY: the caller's promise is the same.
    let refused = unsafe { submit(job, state) }.err().unwrap_or(status::OK);
    // SAFETY: the device writes the record alone.
    unsafe { (*state).refused = refused };
    refused
}

/// # Safety
/// As [`dml_submit_job`].
unsafe fn submit(job: &Job, state: *mut State) -> Result<(), u32> {
    // SAFETY: the state is the job's.
    let record = unsafe { &raw mut (*state).record };
    // SAFETY: the caller vouches for the job's pointers.
    let d = unsafe { task::descriptor(job) }?.with_completion(record.expose_provenance() as u64);
    check::check(&d)?;
    // SAFETY: no descriptor of this job is in flight; the state is as good as memory of ours.
    let state = unsafe { &mut *state };
    (state.record, state.descriptor) = (CompletionRecord::default(), d);
    state.process = std::process::id();
    let path = state.path;
    if d.opcode() == Ok(Opcode::Batch) {
        task::Tasks::of(job).clear();
    }
    let node = (job.numa_id != ANY_NODE).then_some(job.numa_id);
    let submitted = match path {
        SOFTWARE => Err(Refusal::NoQueue),
        // SAFETY: the caller vouches for what the descriptor names.
        _ => unsafe { queues::submit(&d, node) },
    };
    match (submitted, path) {
        (Ok(()), _) => {}
        (Err(refused), HARDWARE) => {
            return Err(match refused {
                Refusal::NoQueue => status::LIBACCEL_NOT_FOUND,
                Refusal::Unopened => status::LIBACCEL_ERROR,
                Refusal::Full => status::WORK_QUEUES_NOT_AVAILABLE,
            });
        }
        _ => {
            // SAFETY: as above.
            let ended = unsafe { queues::execute(&d) };
            // SAFETY: no device has it.
            unsafe { record.write(ended) };
        }
    }
    Ok(())
}

/// `dml_check_job`.
///
/// # Safety
/// As [`dml_submit_job`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_check_job(job: *mut Job) -> u32 {
    // SAFETY: the caller's promise is the same.
    let (job, state) = match unsafe { parts(job) } {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    // SAFETY: the device writes the record alone.
    let refused = unsafe { (*state).refused };
    // SAFETY: as above.
    let process = unsafe { (*state).process };
    if refused != status::OK {
        return refused;
    }
    // SAFETY: the state is the job's.
    let record = unsafe { &raw const (*state).record };
    // SAFETY: as above.
    let byte = unsafe { queues::status(record) };
    if byte == 0 {
        // A child has a copy of the record, and no device writes it.
        return match process == std::process::id() {
            true => status::BEING_PROCESSED,
            false => status::JOB_CORRUPTED,
        };
    }
    // SAFETY: the device has written the record, and nothing behind it.
    let state = unsafe { &mut *state };
    if state.path == AUTO {
        let (d, record) = (state.descriptor, state.record);
        let ended = Status(Status(byte).code());
        let finished = match ended {
            // SAFETY: the caller vouches for what the descriptor names; the device is through with it.
            Status::PAGE_FAULT => Some(unsafe { queues::finish(&d, &record) }),
            // Of its tasks some may have met page faults, or not have been begun.
            // SAFETY: as above.
            Status::BATCH_FAIL | Status::BATCH_PAGE_FAULT => Some(unsafe { queues::execute(&d) }),
            _ => None,
        };
        state.record = finished.unwrap_or(record);
    }
    // SAFETY: the operation has ended.
    unsafe { task::results(job, state) };
    status::of(state.record.status())
}

/// `dml_wait_job`. The core spins: the mode is a hint.
///
/// # Safety
/// As [`dml_submit_job`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_wait_job(job: *mut Job, _mode: u32) -> u32 {
    /// Looks at a record before other threads are let run.
    const SPINS: u32 = 1 << 12;
    let mut looks = 0;
    loop {
        // SAFETY: the caller's promise is the same.
        match unsafe { dml_check_job(job) } {
            status::BEING_PROCESSED if looks < SPINS => {
                looks += 1;
                std::hint::spin_loop();
            }
            status::BEING_PROCESSED => std::thread::yield_now(),
            ended => return ended,
        }
    }
}

/// `dml_execute_job`.
///
/// # Safety
/// As [`dml_submit_job`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_execute_job(job: *mut Job, mode: u32) -> u32 {
    // SAFETY: the caller's promise is the same.
    match unsafe { dml_submit_job(job) } {
        // SAFETY: as above.
        status::OK => unsafe { dml_wait_job(job, mode) },
        refused => refused,
    }
}

/// The bytes of a descriptor with its record.
const _: () = assert!(task::TASK_BYTES == size_of::<Descriptor>() + size_of::<CompletionRecord>());
