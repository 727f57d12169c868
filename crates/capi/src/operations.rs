//! Operations. Each is enqueued, and ends later; its buffers belong to the mover until then.

use std::ffi::{c_int, c_void};
use std::ptr;

use dray::Operation;

use crate::enqueue::{check, enqueue};
use crate::error::{Refusal, call};
use crate::handle::Mover;

/// Enqueues an operation on buffers that are not NULL, and lengths of which the first is not 0.
///
/// # Safety
/// As [`dray_copy`].
pub(crate) unsafe fn enqueue_on<const BUFFERS: usize, const LENGTHS: usize>(
    mover: *mut Mover,
    buffers: [*const c_void; BUFFERS],
    lengths: [usize; LENGTHS],
    user_data: u64,
    make: impl FnOnce([u64; BUFFERS], [u32; LENGTHS]) -> Operation,
) -> c_int {
    let mut operation = None;
    let refused = call(|| {
        let (addresses, lengths) = fitting(buffers, lengths)?;
        operation = Some(make(addresses, lengths).with_user_data(user_data));
        Ok(0)
    });
    match operation {
        // SAFETY: the caller's promise is the same.
        Some(operation) => unsafe { enqueue(mover, operation, check) },
        None => refused,
    }
}

/// Addresses of buffers that are not NULL, and lengths of which the first is not 0.
#[inline(always)]
pub(crate) fn fitting<const BUFFERS: usize, const LENGTHS: usize>(
    buffers: [*const c_void; BUFFERS],
    lengths: [usize; LENGTHS],
) -> Result<([u64; BUFFERS], [u32; LENGTHS]), Refusal> {
    if buffers.contains(&ptr::null()) {
        return Err(Refusal::new(libc::EINVAL, "a buffer is NULL"));
    }
    if lengths[0] == 0 {
        return Err(Refusal::new(libc::EINVAL, "0 bytes"));
    }
    let mut fitting = [0; LENGTHS];
    for (fitting, length) in fitting.iter_mut().zip(lengths) {
        *fitting = u32::try_from(length).map_err(|_| {
            let most = u32::MAX;
            Refusal::new(
                libc::ENOTSUP,
                format_args!("{length} bytes are not supported: {most} are possible at most"),
            )
        })?;
    }
    // A device finds buffers by their addresses.
    let addresses = buffers.map(|buffer| buffer.expose_provenance() as u64);
    Ok((addresses, fitting))
}

/// Does nothing.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_noop(mover: *mut Mover, user_data: u64) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, Operation::noop().with_user_data(user_data), check) }
}

/// Copies `len` bytes: 0 if it is enqueued. It begins with [`dray_submit`](crate::dray_submit) or a wait, and how it ends is
/// in its completion. Memory that the process may access is enough, present or not: see
/// [`dray_open`](crate::dray_open). Buffers may overlap, as those of memmove: a device that cannot move these is not
/// given them.
///
/// # Errors
/// Of this and all other operations: -EINVAL: a null pointer, no bytes, or sizes, alignment or an overlap with which a dualcast,
/// a delta or an operation on integrity fields is never possible. -EAGAIN: no slot is free. -ENOTSUP: more
/// bytes than the mover takes in one operation, or an operation that it does not have.
/// -E2BIG: the batch that has begun is full.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); the buffers valid, and not accessed otherwise, until it has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: usize,
    user_data: u64,
) -> c_int {
    let make = |[from, to]: [u64; 2], [len]: [u32; 1]| Operation::memmove(from, to, len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [source, destination], [len], user_data, make) }
}

/// Copies `len` bytes to two destinations whose address bits 11:0 are equal.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_dualcast(
    mover: *mut Mover,
    first: *mut c_void,
    second: *mut c_void,
    source: *const c_void,
    len: usize,
    user_data: u64,
) -> c_int {
    let make = |[from, first, second]: [u64; 3], [len]: [u32; 1]| {
        Operation::dualcast(from, first, second, len)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [source, first, second], [len], user_data, make) }
}

/// Fills `len` bytes with an 8-byte pattern.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_fill(
    mover: *mut Mover,
    destination: *mut c_void,
    pattern: u64,
    len: usize,
    user_data: u64,
) -> c_int {
    let make = |[to]: [u64; 1], [len]: [u32; 1]| Operation::fill(pattern, to, len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [destination], [len], user_data, make) }
}

/// Compares two buffers of `len` bytes.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_compare(
    mover: *mut Mover,
    first: *const c_void,
    second: *const c_void,
    len: usize,
    user_data: u64,
) -> c_int {
    let make = |[a, b]: [u64; 2], [len]: [u32; 1]| Operation::compare(a, b, len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [first, second], [len], user_data, make) }
}

/// Compares `len` bytes with an 8-byte pattern.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_compare_pattern(
    mover: *mut Mover,
    source: *const c_void,
    pattern: u64,
    len: usize,
    user_data: u64,
) -> c_int {
    let make = |[from]: [u64; 1], [len]: [u32; 1]| Operation::compare_pattern(from, pattern, len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [source], [len], user_data, make) }
}

/// CRC32C of `len` bytes: the usual one (iSCSI, ext4; 0xe3069283 of "123456789") with `seed` 0, in which register and
/// result are inverted. To go on behind other data, `seed` is their CRC.
///
/// The register alone, as the instruction CRC32 (`_mm_crc32_u64`) has it, is the inverted result of the inverted
/// register: `~crc` of `seed` `~register`, thus of 0xffffffff to begin with 0 (0x58e3fa20 of "123456789").
/// DRAY_FLAG_CRC_BYPASS_INVERSION gives something else, for it switches the reflection off, too.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_crc32c(
    mover: *mut Mover,
    source: *const c_void,
    len: usize,
    seed: u32,
    user_data: u64,
) -> c_int {
    let make = |[from]: [u64; 1], [len]: [u32; 1]| Operation::crc(from, len, seed);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [source], [len], user_data, make) }
}

/// Copies `len` bytes and takes their CRC32C; see [`dray_crc32c`]. Buffers that overlap end it with status 0x16.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy_crc32c(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: usize,
    seed: u32,
    user_data: u64,
) -> c_int {
    let make = |[from, to]: [u64; 2], [len]: [u32; 1]| Operation::copy_crc(from, to, len, seed);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [source, destination], [len], user_data, make) }
}

/// CRC-64 of NVM Express of `len` bytes; a device of version 2, or a core, has it.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_crc64(
    mover: *mut Mover,
    source: *const c_void,
    len: usize,
    seed: u64,
    user_data: u64,
) -> c_int {
    let make = |[from]: [u64; 1], [len]: [u32; 1]| Operation::crc64(from, len, seed);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [source], [len], user_data, make) }
}

/// Copies `len` bytes and takes their CRC-64; a device of version 2, or a core, has it.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy_crc64(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: usize,
    seed: u64,
    user_data: u64,
) -> c_int {
    let make = |[from, to]: [u64; 2], [len]: [u32; 1]| Operation::copy_crc64(from, to, len, seed);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [source, destination], [len], user_data, make) }
}

/// Records where two buffers of `len` bytes differ, in at most `max_bytes` bytes (80 or more) at `record`:
/// buffers and lengths are multiples of 8.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_create_delta(
    mover: *mut Mover,
    first: *const c_void,
    second: *const c_void,
    len: usize,
    record: *mut c_void,
    max_bytes: usize,
    user_data: u64,
) -> c_int {
    let make =
        |[a, b, to]: [u64; 3], [len, most]: [u32; 2]| Operation::create_delta(a, b, len, to, most);
    // SAFETY: the caller's promise is the same.
    unsafe {
        enqueue_on(
            mover,
            [first, second, record],
            [len, max_bytes],
            user_data,
            make,
        )
    }
}

/// Applies a delta record of `record_bytes` bytes to `len` bytes.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_apply_delta(
    mover: *mut Mover,
    destination: *mut c_void,
    len: usize,
    record: *const c_void,
    record_bytes: usize,
    user_data: u64,
) -> c_int {
    let make =
        |[from, to]: [u64; 2], [len, bytes]: [u32; 2]| Operation::apply_delta(from, to, len, bytes);
    // SAFETY: the caller's promise is the same.
    unsafe {
        enqueue_on(
            mover,
            [record, destination],
            [len, record_bytes],
            user_data,
            make,
        )
    }
}

/// Evicts `len` bytes from the processor's caches.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_cache_flush(
    mover: *mut Mover,
    buffer: *mut c_void,
    len: usize,
    user_data: u64,
) -> c_int {
    let make = |[at]: [u64; 1], [len]: [u32; 1]| Operation::cache_flush(at, len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, [buffer], [len], user_data, make) }
}
