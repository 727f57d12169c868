//! Operations. Each is enqueued, and ends later; its buffers belong to the mover until then.

use std::ffi::{c_int, c_void};

use dray::Operation;

use crate::mover::{Mover, enqueue};

/// The address of a buffer that a device finds by it.
fn address(buffer: *const c_void) -> u64 {
    buffer.expose_provenance() as u64
}

/// Does nothing.
///
/// # Safety
/// `mover` must be NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_noop(mover: *mut Mover, user_data: u64) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, Operation::noop().with_user_data(user_data)) }
}

/// Copies `len` bytes.
///
/// # Safety
/// `mover` must be NULL or open; the buffers valid, and not accessed otherwise, until it has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: u32,
    user_data: u64,
) -> c_int {
    let copy = Operation::memmove(address(source), address(destination), len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, copy.with_user_data(user_data)) }
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
    len: u32,
    user_data: u64,
) -> c_int {
    let copy = Operation::dualcast(address(source), address(first), address(second), len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, copy.with_user_data(user_data)) }
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
    len: u32,
    user_data: u64,
) -> c_int {
    let fill = Operation::fill(pattern, address(destination), len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, fill.with_user_data(user_data)) }
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
    len: u32,
    user_data: u64,
) -> c_int {
    let compare = Operation::compare(address(first), address(second), len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, compare.with_user_data(user_data)) }
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
    len: u32,
    user_data: u64,
) -> c_int {
    let compare = Operation::compare_pattern(address(source), pattern, len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, compare.with_user_data(user_data)) }
}

/// CRC32C of `len` bytes.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_crc32c(
    mover: *mut Mover,
    source: *const c_void,
    len: u32,
    seed: u32,
    user_data: u64,
) -> c_int {
    let crc = Operation::crc(address(source), len, seed);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, crc.with_user_data(user_data)) }
}

/// Copies `len` bytes and takes their CRC32C.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_copy_crc32c(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: u32,
    seed: u32,
    user_data: u64,
) -> c_int {
    let copy = Operation::copy_crc(address(source), address(destination), len, seed);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, copy.with_user_data(user_data)) }
}
