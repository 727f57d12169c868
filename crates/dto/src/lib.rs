//! The submit and poll API that is proposed for Intel's DTO, `dto.h` (intel/DTO, pull request 34), on the shared work
//! queues of this machine.
//!
//! An operation that a device ends at a page fault, or refuses, is finished by the core in the poll that finds it.

mod batch;

pub use batch::{
    Batch, dto_batch_op_free, dto_batch_op_new, dto_batch_poll, dto_submit_batch_copy,
};

use std::ffi::{c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use dray_shared_queues::{self as queues, Limits, status};
use dray_spec::{CompletionRecord, Descriptor, Flags};
use zerocopy::transmute;

/// Results of submissions.
pub const SUBMITTED: c_int = 0;
/// Nothing was submitted.
pub const FALLBACK: c_int = -1;
/// Results of polls.
pub const PENDING: c_int = 0;
/// It is done.
pub const DONE: c_int = 1;
/// It is not.
pub const FAILED: c_int = -1;

/// `DTO_SUBMIT_CC`.
const CACHE: c_uint = 1;

/// `dto_async_op`, of which the first bytes are used. The API allows any alignment that the record has.
#[repr(C, align(32))]
#[derive(Debug)]
pub struct Operation {
    /// The device's.
    record: CompletionRecord,
    /// A descriptor, for the core to finish.
    descriptor: [u8; 64],
    /// [`LOST`] and what follows.
    state: AtomicU32,
    /// Of an operation that has ended.
    crc: AtomicU32,
    /// The process that submitted it.
    process: u32,
    _rest: [u8; 84],
}

const _: () = assert!(size_of::<Operation>() == 192);

/// Nothing was submitted, or the core could not finish it.
const LOST: u32 = 0;
/// No poll has seen the end.
const UNDER_WAY: u32 = 1;
/// One thread finishes what the device has not.
const FINISHING: u32 = 2;
/// It has ended with success.
const ENDED: u32 = 3;

/// Whether programs are to use the C library: DTO's variable.
fn uses_c_library() -> bool {
    static USES: OnceLock<bool> = OnceLock::new();
    *USES.get_or_init(|| std::env::var_os("DTO_USESTDC_CALLS").is_some_and(|value| value == "1"))
}

/// What can be submitted; `None`: nothing.
fn limits() -> Option<Limits> {
    match uses_c_library() {
        true => None,
        false => queues::limits(),
    }
}

/// The descriptor's flags by those of a submission.
fn flags(flags: c_uint, limits: Limits) -> Flags {
    match flags & CACHE != 0 && limits.cache_control {
        true => Flags::CACHE_CONTROL,
        false => Flags::EMPTY,
    }
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// Submits what `make` makes of so many bytes.
///
/// # Safety
/// The operation is null or 192 bytes; what the descriptor names is valid for what it does until the operation ends.
unsafe fn submit(
    op: *mut Operation,
    bytes: usize,
    flags_of: c_uint,
    make: impl FnOnce(u32) -> Descriptor,
) -> c_int {
    if op.is_null() || !op.is_aligned() {
        return FALLBACK;
    }
    let mut fresh = Operation {
        record: CompletionRecord::default(),
        descriptor: [0; 64],
        state: AtomicU32::new(LOST),
        crc: AtomicU32::new(0),
        process: std::process::id(),
        _rest: [0; 84],
    };
    let size = u32::try_from(bytes).ok().filter(|size| *size > 0);
    let within = size
        .zip(limits())
        .filter(|(size, limits)| u64::from(*size) <= limits.bytes);
    let Some((size, limits)) = within else {
        // SAFETY: the operation has its bytes, and none is under way in it.
        unsafe { op.write(fresh) };
        return FALLBACK;
    };
    // SAFETY: as above.
    let record = unsafe { &raw mut (*op).record };
    let d = make(size)
        .with_flags(flags(flags_of, limits))
        .with_completion(address(record));
    (fresh.descriptor, fresh.state) = (transmute!(d), AtomicU32::new(UNDER_WAY));
    // SAFETY: as above.
    unsafe { op.write(fresh) };
    // SAFETY: the caller vouches for what the descriptor names.
    match unsafe { queues::submit(&d, None) } {
        Ok(()) => SUBMITTED,
        Err(_) => {
            // SAFETY: the operation is valid.
            unsafe { state(op) }.store(LOST, Ordering::Release);
            FALLBACK
        }
    }
}

/// # Safety
/// The operation is valid.
unsafe fn state<'a>(op: *const Operation) -> &'a AtomicU32 {
    // SAFETY: it is valid, and its state is only accessed as an atomic.
    unsafe { &(*op).state }
}

/// `dto_submit_memcpy`.
///
/// # Safety
/// The operation is null or valid, and no other is under way in it. The buffers are valid until it ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_submit_memcpy(
    op: *mut Operation,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    flags: c_uint,
) -> c_int {
    let make = |size| Descriptor::memmove(address(from), address(to), size);
    // SAFETY: the caller's promise is the same.
    unsafe { submit(op, bytes, flags, make) }
}

/// `dto_submit_memset`.
///
/// # Safety
/// As [`dto_submit_memcpy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_submit_memset(
    op: *mut Operation,
    to: *mut c_void,
    byte: c_int,
    bytes: usize,
    flags: c_uint,
) -> c_int {
    // As memset(3): an unsigned char.
    let pattern = u64::from_le_bytes([byte as u8; 8]);
    let make = |size| Descriptor::fill(pattern, address(to), size);
    // SAFETY: the caller's promise is the same.
    unsafe { submit(op, bytes, flags, make) }
}

/// `dto_submit_memcpy_crc`. The buffers must not overlap.
///
/// # Safety
/// As [`dto_submit_memcpy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_submit_memcpy_crc(
    op: *mut Operation,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    flags: c_uint,
) -> c_int {
    let make = |size| Descriptor::copy_crc(address(from), address(to), size, 0);
    // SAFETY: the caller's promise is the same.
    unsafe { submit(op, bytes, flags, make) }
}

/// `dto_submit_crc`.
///
/// # Safety
/// As [`dto_submit_memcpy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_submit_crc(
    op: *mut Operation,
    from: *const c_void,
    bytes: usize,
    _flags: c_uint,
) -> c_int {
    let make = |size| Descriptor::crc(address(from), size, 0);
    // SAFETY: the caller's promise is the same. It writes nothing, to a cache or else.
    unsafe { submit(op, bytes, 0, make) }
}

/// `dto_async_poll`.
///
/// # Safety
/// The operation was submitted; what it names is valid until it has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_async_poll(op: *mut Operation) -> c_int {
    if op.is_null() || !op.is_aligned() {
        return FAILED;
    }
    // SAFETY: it was given to a submission.
    let state = unsafe { state(op) };
    match state.load(Ordering::Acquire) {
        ENDED => return DONE,
        FINISHING => return PENDING,
        UNDER_WAY => {}
        _ => return FAILED,
    }
    // SAFETY: as above.
    let record = unsafe { &raw const (*op).record };
    // SAFETY: as above.
    if unsafe { status(record) } == 0 {
        // A child has a copy of the record, and no device writes it.
        // SAFETY: nobody writes it after the submission.
        return match unsafe { (*op).process } == std::process::id() {
            true => PENDING,
            false => FAILED,
        };
    }
    let mine = state.compare_exchange(UNDER_WAY, FINISHING, Ordering::Acquire, Ordering::Acquire);
    if mine.is_err() {
        return PENDING;
    }
    // SAFETY: the device is through with it, and nobody else writes it.
    let mut ended = unsafe { record.read() };
    if !ended.status().is_success() {
        // SAFETY: nobody writes it after the submission.
        let d: Descriptor = transmute!(unsafe { (*op).descriptor });
        // SAFETY: the caller vouches for what the descriptor names.
        ended = unsafe { queues::finish(&d, &ended) };
    }
    // SAFETY: it is only accessed as an atomic.
    unsafe { &(*op).crc }.store(ended.crc32(), Ordering::Relaxed);
    let (next, answer) = match ended.status().is_success() {
        true => (ENDED, DONE),
        false => (LOST, FAILED),
    };
    state.store(next, Ordering::Release);
    answer
}

/// `dto_async_crc_val`.
///
/// # Safety
/// A poll said that the operation is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dto_async_crc_val(op: *const Operation) -> u32 {
    if op.is_null() {
        return 0;
    }
    // SAFETY: it was submitted; the value is only accessed as an atomic.
    unsafe { &(*op).crc }.load(Ordering::Relaxed)
}
