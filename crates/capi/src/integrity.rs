//! Operations on blocks with data integrity fields.

use std::ffi::{c_int, c_void};

use dray::Operation;
use dray_ops::{DestinationDifFlags, DifFlags, SourceDifFlags};
use dray_spec::DifTags;

use crate::error::{Refusal, call};
use crate::handle::Mover;
use crate::operations::enqueue_on;
use crate::structure::{reserved, sized};
use crate::types::{Dif, Tags};

/// Checks the integrity fields of `len` bytes of blocks, each with its field.
///
/// # Safety
/// As [`dray_copy`](crate::dray_copy); `dif` must point to `dif->size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_dif_check(
    mover: *mut Mover,
    source: *const c_void,
    len: usize,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let make = |dif: &Parsed, [from]: [u64; 1], len| {
        Operation::dif_check(from, len, dif.flags, dif.source)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { on_blocks(mover, [source], len, dif, user_data, make) }
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
    len: usize,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let make = |dif: &Parsed, [from, to]: [u64; 2], len| {
        Operation::dif_insert(from, to, len, dif.flags, dif.destination)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { on_blocks(mover, [source, destination], len, dif, user_data, make) }
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
    len: usize,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let make = |dif: &Parsed, [from, to]: [u64; 2], len| {
        Operation::dif_strip(from, to, len, dif.flags, dif.source)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { on_blocks(mover, [source, destination], len, dif, user_data, make) }
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
    len: usize,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let make = |dif: &Parsed, [from, to]: [u64; 2], len| {
        Operation::dif_update(from, to, len, dif.flags, dif.source, dif.destination)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { on_blocks(mover, [source, destination], len, dif, user_data, make) }
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
    len: usize,
    dif: *const Dif,
    user_data: u64,
) -> c_int {
    let make = |dif: &Parsed, [from, to]: [u64; 2], len| {
        Operation::dix_generate(from, to, len, dif.flags, dif.destination)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { on_blocks(mover, [source, destination], len, dif, user_data, make) }
}

/// A `dray_dif` that was read.
pub(crate) struct Parsed {
    pub(crate) flags: DifFlags,
    pub(crate) source: (SourceDifFlags, DifTags),
    pub(crate) destination: (DestinationDifFlags, DifTags),
}

/// # Safety
/// As [`dray_dif_check`].
unsafe fn on_blocks<const BUFFERS: usize>(
    mover: *mut Mover,
    buffers: [*const c_void; BUFFERS],
    len: usize,
    dif: *const Dif,
    user_data: u64,
    make: impl FnOnce(&Parsed, [u64; BUFFERS], u32) -> Operation,
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
    let make = |buffers, [len]: [u32; 1]| make(&parsed, buffers, len);
    // SAFETY: the caller's promise is the same.
    unsafe { enqueue_on(mover, buffers, [len], user_data, make) }
}

/// # Safety
/// `dif` must be NULL or point to `dif->size` readable bytes.
pub(crate) unsafe fn parse(dif: *const Dif) -> Result<Parsed, Refusal> {
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
