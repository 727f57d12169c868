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

use dray_dml::execute::{self, Limits};
use dray_dml::job::{ANY_NODE, status};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};
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
    record: CompletionRecord,
    /// A descriptor, for the core to finish.
    descriptor: [u8; 64],
    /// [`UNDER_WAY`] and what follows.
    state: AtomicU32,
    _rest: [u8; 92],
}

const _: () = assert!(size_of::<Operation>() == 192);

/// No poll has seen the end.
const UNDER_WAY: u32 = 0;
/// One thread finishes what the device has not.
const FINISHING: u32 = 1;
/// It has ended with success.
const ENDED: u32 = 2;
/// The core could not finish it.
const LOST: u32 = 3;

/// Whether programs are to use the C library: DTO's variable.
fn uses_c_library() -> bool {
    static USES: OnceLock<bool> = OnceLock::new();
    *USES.get_or_init(|| std::env::var_os("DTO_USESTDC_CALLS").is_some_and(|value| value == "1"))
}

/// What can be submitted; `None`: nothing.
fn limits() -> Option<Limits> {
    match uses_c_library() {
        true => None,
        false => execute::limits(),
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
    let Some(limits) = limits() else {
        return FALLBACK;
    };
    let size = u32::try_from(bytes).ok().filter(|size| *size > 0);
    let Some(size) = size.filter(|size| u64::from(*size) <= limits.bytes) else {
        return FALLBACK;
    };
    if op.is_null() || !op.is_aligned() {
        return FALLBACK;
    }
    // SAFETY: the operation has its bytes.
    let record = unsafe { &raw mut (*op).record };
    let d = make(size)
        .with_flags(flags(flags_of, limits))
        .with_completion(address(record));
    if d.address1 == 0 && d.address2 == 0 {
        return FALLBACK;
    }
    let fresh = Operation {
        record: CompletionRecord::default(),
        descriptor: transmute!(d),
        state: AtomicU32::new(UNDER_WAY),
        _rest: [0; 92],
    };
    // SAFETY: no descriptor of this operation is in flight, and no thread polls it.
    unsafe { op.write(fresh) };
    // SAFETY: the caller vouches for what the descriptor names.
    match unsafe { execute::submit(&d, ANY_NODE) } {
        Ok(()) => SUBMITTED,
        Err(_) => FALLBACK,
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
    // SAFETY: it was submitted.
    let state = unsafe { state(op) };
    match state.load(Ordering::Acquire) {
        ENDED => return DONE,
        LOST => return FAILED,
        FINISHING => return PENDING,
        _ => {}
    }
    // SAFETY: as above.
    let record = unsafe { &raw mut (*op).record };
    // SAFETY: as above.
    let byte = unsafe { status(record) };
    if byte == 0 {
        return PENDING;
    }
    if !Status(byte).is_success() {
        let mine =
            state.compare_exchange(UNDER_WAY, FINISHING, Ordering::Acquire, Ordering::Acquire);
        if mine.is_err() {
            return PENDING;
        }
        // SAFETY: the device is through with it, and no other thread finishes.
        let faulted = unsafe { record.read() };
        // SAFETY: nobody writes it after its submission.
        let d: Descriptor = transmute!(unsafe { (*op).descriptor });
        // SAFETY: the caller vouches for what the descriptor names.
        unsafe { execute::finish(&d, &faulted) };
    }
    // SAFETY: the record was written by the device, or by this thread.
    let ended = match Status(unsafe { status(record) }).is_success() {
        true => ENDED,
        false => LOST,
    };
    state.store(ended, Ordering::Release);
    if ended == ENDED { DONE } else { FAILED }
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
    // SAFETY: it has ended, so that nobody writes its record.
    let record = unsafe { &(*op).record };
    record.crc32()
}
