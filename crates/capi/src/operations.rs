//! Operations. Each is enqueued, and ends later; its buffers belong to the mover until then.

use std::ffi::{c_int, c_void};

use dray::Operation;
use dray_ops::{DestinationDifFlags, DifFlags, SourceDifFlags};
use dray_spec::DifTags;

use crate::enqueue::enqueue;
use crate::error::{Refusal, call};
use crate::handle::Mover;
use crate::structure::{reserved, sized};
use crate::types::{Dif, Tags};

/// The address of a buffer that a device finds by it.
fn address(buffer: *const c_void) -> u64 {
    buffer.expose_provenance() as u64
}

/// Enqueues an operation on buffers that are not NULL, and `len` bytes that are not 0.
///
/// # Safety
/// As [`dray_copy`].
unsafe fn enqueue_on(mover: *mut Mover, buffers: &[u64], len: u32, operation: Operation) -> c_int {
    let refused = call(|| {
        if buffers.contains(&0) {
            return Err(Refusal::new(libc::EINVAL, "a buffer is NULL"));
        }
        match len {
            0 => Err(Refusal::new(libc::EINVAL, "0 bytes")),
            _ => Ok(0),
        }
    });
    if refused != 0 {
        return refused;
    }
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, operation) }
}

/// Does nothing.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_noop(mover: *mut Mover, user_data: u64) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue(mover, Operation::noop().with_user_data(user_data)) }
}

/// Copies `len` bytes.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); the buffers valid, and not accessed otherwise, until it has ended.
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
    unsafe {
        enqueue_on(
            mover,
            &[address(source), address(destination)],
            len,
            copy.with_user_data(user_data),
        )
    }
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
    unsafe {
        enqueue_on(
            mover,
            &[address(source), address(first), address(second)],
            len,
            copy.with_user_data(user_data),
        )
    }
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
    unsafe {
        enqueue_on(
            mover,
            &[address(destination)],
            len,
            fill.with_user_data(user_data),
        )
    }
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
    unsafe {
        enqueue_on(
            mover,
            &[address(first), address(second)],
            len,
            compare.with_user_data(user_data),
        )
    }
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
    unsafe {
        enqueue_on(
            mover,
            &[address(source)],
            len,
            compare.with_user_data(user_data),
        )
    }
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
    unsafe {
        enqueue_on(
            mover,
            &[address(source)],
            len,
            crc.with_user_data(user_data),
        )
    }
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
    unsafe {
        enqueue_on(
            mover,
            &[address(source), address(destination)],
            len,
            copy.with_user_data(user_data),
        )
    }
}

/// CRC-64 of NVM Express of `len` bytes; a device of version 2, or a core, has it.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_crc64(
    mover: *mut Mover,
    source: *const c_void,
    len: u32,
    seed: u64,
    user_data: u64,
) -> c_int {
    let crc = Operation::crc64(address(source), len, seed).with_user_data(user_data);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, &[address(source)], len, crc) }
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
    len: u32,
    seed: u64,
    user_data: u64,
) -> c_int {
    let (from, to) = (address(source), address(destination));
    let copy = Operation::copy_crc64(from, to, len, seed).with_user_data(user_data);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, &[from, to], len, copy) }
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
    len: u32,
    record: *mut c_void,
    max_bytes: u32,
    user_data: u64,
) -> c_int {
    let (a, b, to) = (address(first), address(second), address(record));
    let delta = Operation::create_delta(a, b, len, to, max_bytes).with_user_data(user_data);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, &[a, b, to], len, delta) }
}

/// Applies a delta record of `record_bytes` bytes to `len` bytes.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_apply_delta(
    mover: *mut Mover,
    destination: *mut c_void,
    len: u32,
    record: *const c_void,
    record_bytes: u32,
    user_data: u64,
) -> c_int {
    let (from, to) = (address(record), address(destination));
    let apply = Operation::apply_delta(from, to, len, record_bytes).with_user_data(user_data);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, &[from, to], len, apply) }
}

/// Evicts `len` bytes from the processor's caches.
///
/// # Safety
/// As [`dray_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_cache_flush(
    mover: *mut Mover,
    buffer: *mut c_void,
    len: u32,
    user_data: u64,
) -> c_int {
    let flush = Operation::cache_flush(address(buffer), len).with_user_data(user_data);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, &[address(buffer)], len, flush) }
}

/// Checks the integrity fields of `len` bytes of blocks, each with its field.
///
/// # Safety
/// As [`dray_copy`]; `dif` must point to `dif->size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_dif_check(
    mover: *mut Mover,
    source: *const c_void,
    len: u32,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let from = address(source);
    let make = |dif: &Parsed| Operation::dif_check(from, len, dif.flags, dif.source);
    // SAFETY: the caller's promise is the same.
    unsafe { dif_operation(mover, &[from], len, dif, user_data, make) }
}

/// Copies `len` bytes of blocks without fields, and adds a field to each: the destination is larger.
///
/// # Safety
/// As [`dray_dif_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_dif_insert(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: u32,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let (from, to) = (address(source), address(destination));
    let make = |dif: &Parsed| Operation::dif_insert(from, to, len, dif.flags, dif.destination);
    // SAFETY: the caller's promise is the same.
    unsafe { dif_operation(mover, &[from, to], len, dif, user_data, make) }
}

/// Checks the fields of `len` bytes of blocks, and copies the blocks without: the destination is smaller.
///
/// # Safety
/// As [`dray_dif_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_dif_strip(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: u32,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let (from, to) = (address(source), address(destination));
    let make = |dif: &Parsed| Operation::dif_strip(from, to, len, dif.flags, dif.source);
    // SAFETY: the caller's promise is the same.
    unsafe { dif_operation(mover, &[from, to], len, dif, user_data, make) }
}

/// Checks the fields of `len` bytes of blocks, and copies the blocks with new ones.
///
/// # Safety
/// As [`dray_dif_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_dif_update(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: u32,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let (from, to) = (address(source), address(destination));
    let make =
        |dif: &Parsed| Operation::dif_update(from, to, len, dif.flags, dif.source, dif.destination);
    // SAFETY: the caller's promise is the same.
    unsafe { dif_operation(mover, &[from, to], len, dif, user_data, make) }
}

/// Writes the fields of `len` bytes of blocks without fields side by side to `destination`, 8 bytes each,
/// which is aligned to 8 bytes; a device of version 2 has it.
///
/// # Safety
/// As [`dray_dif_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_dix_generate(
    mover: *mut Mover,
    destination: *mut c_void,
    source: *const c_void,
    len: u32,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let (from, to) = (address(source), address(destination));
    let make = |dif: &Parsed| Operation::dix_generate(from, to, len, dif.flags, dif.destination);
    // SAFETY: the caller's promise is the same.
    unsafe { dif_operation(mover, &[from, to], len, dif, user_data, make) }
}

/// A `dray_dif` that was read.
struct Parsed {
    flags: DifFlags,
    source: (SourceDifFlags, DifTags),
    destination: (DestinationDifFlags, DifTags),
}

/// # Safety
/// As [`dray_dif_check`].
unsafe fn dif_operation(
    mover: *mut Mover,
    buffers: &[u64],
    len: u32,
    dif: *const Dif,
    user_data: u64,
    make: impl FnOnce(&Parsed) -> Operation,
) -> c_int {
    let mut parsed = None;
    let refused = call(|| {
        // SAFETY: the caller's promise is the same.
        parsed = Some(unsafe { parse(dif) }?);
        Ok(0)
    });
    let Some(parsed) = parsed else {
        return refused;
    };
    let operation = make(&parsed).with_user_data(user_data);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, buffers, len, operation) }
}

/// # Safety
/// `dif` must be NULL or point to `dif->size` readable bytes.
unsafe fn parse(dif: *const Dif) -> Result<Parsed, Refusal> {
    // SAFETY: so many bytes are readable, by the caller's promise; any bytes are a dif.
    let dif = unsafe { sized("dray_dif", dif, &[]) }?;
    reserved("dray_dif.reserved", dif.reserved)?;
    let block = match dif.block_bytes {
        512 => 0,
        520 => 1,
        4096 => 2,
        4104 => 3,
        other => {
            return Err(Refusal::new(
                libc::EINVAL,
                format_args!(
                    "dray_dif.block_bytes is {other}: 512, 520, 4096 or 4104 are possible"
                ),
            ));
        }
    };
    let tags = |tags: Tags| DifTags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    };
    Ok(Parsed {
        flags: DifFlags::from_bits(dif.flags & !3 | block),
        source: (
            SourceDifFlags::from_bits(dif.source_flags),
            tags(dif.source),
        ),
        destination: (
            DestinationDifFlags::from_bits(dif.destination_flags),
            tags(dif.destination),
        ),
    })
}
