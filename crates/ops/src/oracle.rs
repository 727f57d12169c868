//! The operations byte by byte and bit by bit, as the specification defines them.
//!
//! Slow on purpose: nothing here is clever, so that it can be compared with the text by eye.

mod crc;
mod delta;
mod dif;

pub use crc::{crc32c, crc64};
pub use delta::{apply_delta, create_delta};
pub use dif::{dif_check, dif_insert, dif_strip, dif_update, dix_generate};

use crate::{CrcOptions, LengthMismatch, Pattern};

/// Byte n of the destination becomes byte n modulo the pattern's size (spec 8.3.5).
pub fn fill(dst: &mut [u8], pattern: Pattern) {
    let bytes = pattern.bytes();
    for (n, byte) in dst.iter_mut().enumerate() {
        *byte = bytes[n % bytes.len()];
    }
}

/// Offset of the first byte that differs (spec 8.3.6); see [`compare`](crate::compare).
pub fn compare(a: &[u8], b: &[u8]) -> Option<usize> {
    (0..a.len().max(b.len())).find(|&n| a.get(n) != b.get(n))
}

/// Offset of the first byte that differs from the pattern (spec 8.3.7).
pub fn compare_pattern(src: &[u8], pattern: [u8; 8]) -> Option<usize> {
    (0..src.len()).find(|&n| src[n] != pattern[n % 8])
}

/// Copies byte by byte (spec 8.3.4).
///
/// # Errors
///
/// [`LengthMismatch`] if the lengths differ; nothing is written then.
pub fn copy(src: &[u8], dst: &mut [u8]) -> Result<(), LengthMismatch> {
    LengthMismatch::check(src, dst)?;
    for (from, to) in src.iter().zip(dst) {
        *to = *from;
    }
    Ok(())
}

/// Copies to one destination, then to the other (spec 8.3.10).
///
/// # Errors
///
/// [`LengthMismatch`] if the lengths differ; nothing is written then.
pub fn dualcast(src: &[u8], first: &mut [u8], second: &mut [u8]) -> Result<(), LengthMismatch> {
    LengthMismatch::check(src, second)?;
    copy(src, first)?;
    copy(src, second)
}

/// Copies, then computes the CRC of the copy.
///
/// # Errors
///
/// [`LengthMismatch`] if the lengths differ; nothing is written then.
pub fn copy_crc(
    seed: u32,
    src: &[u8],
    dst: &mut [u8],
    options: CrcOptions,
) -> Result<u32, LengthMismatch> {
    copy(src, dst)?;
    Ok(crc32c(seed, dst, options))
}

/// Copies, then computes the CRC of 64 bits of the copy.
///
/// # Errors
///
/// [`LengthMismatch`] if the lengths differ; nothing is written then.
pub fn copy_crc64(
    seed: u64,
    src: &[u8],
    dst: &mut [u8],
    options: CrcOptions,
) -> Result<u64, LengthMismatch> {
    copy(src, dst)?;
    Ok(crc64(seed, dst, options))
}
