//! Copies: to one destination, to two, with a CRC.
//!
//! Source and destination are slices, so they cannot overlap; a move within one buffer is
//! `copy_within` of the standard library.

mod non_temporal;

use std::fmt;

use crate::crc::{CrcOptions, Running, Width, copy_crc32c, copy_running, crc64};

pub use non_temporal::copy_non_temporal;

/// How much is read before it is used again: half of a first-level cache of 32 KiB.
pub(crate) const BLOCK: usize = 16 * 1024;

/// Bytes that [`dualcast`] copies to one of two destinations before the other: half of a second-level cache of the DSA's
/// generation. Two streams that take shorter turns are slower where the destinations are in no cache.
pub const DUALCAST_BLOCK: usize = 1 << 20;

/// Copies `src` to `dst` (spec 8.3.4).
///
/// # Errors
///
/// [`LengthMismatch`] if the lengths differ; nothing is written then.
#[inline]
pub fn copy(src: &[u8], dst: &mut [u8]) -> Result<(), LengthMismatch> {
    LengthMismatch::check(src, dst)?;
    dst.copy_from_slice(src);
    Ok(())
}

/// Copies `src` to `first` and to `second` (spec 8.3.10).
///
/// # Errors
///
/// [`LengthMismatch`] if the lengths differ; nothing is written then.
pub fn dualcast(src: &[u8], first: &mut [u8], second: &mut [u8]) -> Result<(), LengthMismatch> {
    LengthMismatch::check(src, first)?;
    LengthMismatch::check(src, second)?;
    let destinations = first
        .chunks_mut(DUALCAST_BLOCK)
        .zip(second.chunks_mut(DUALCAST_BLOCK));
    for (src, (first, second)) in src.chunks(DUALCAST_BLOCK).zip(destinations) {
        first.copy_from_slice(src);
        second.copy_from_slice(src);
    }
    Ok(())
}

/// Copies `src` to `dst` and returns the CRC of the data; see [`crc32c`](crate::crc32c).
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
    LengthMismatch::check(src, dst)?;
    Ok(copy_crc32c(seed, src, dst, options))
}

/// Copies `src` to `dst` and returns the CRC of the data; see [`crc64`](crate::crc64).
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
    LengthMismatch::check(src, dst)?;
    if src.len() <= BLOCK {
        dst.copy_from_slice(src);
        return Ok(crc64(seed, src, options));
    }
    let crc = Running::new(Width::Bits64, seed, options);
    Ok(copy_running(crc, src, dst))
}

/// Source and destination have different lengths.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LengthMismatch {
    /// Length of the source in bytes.
    pub src_bytes: usize,
    /// Length of the destination in bytes.
    pub dst_bytes: usize,
}

impl LengthMismatch {
    #[inline]
    pub(crate) fn check(src: &[u8], dst: &[u8]) -> Result<(), Self> {
        let (src_bytes, dst_bytes) = (src.len(), dst.len());
        if src_bytes == dst_bytes {
            Ok(())
        } else {
            Err(Self {
                src_bytes,
                dst_bytes,
            })
        }
    }
}

impl fmt::Display for LengthMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            src_bytes,
            dst_bytes,
        } = self;
        write!(
            f,
            "source has {src_bytes} bytes but destination has {dst_bytes}"
        )
    }
}

impl std::error::Error for LengthMismatch {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_writes_nothing() {
        let (mut four, mut five) = ([0; 4], [0; 5]);
        let error = LengthMismatch {
            src_bytes: 4,
            dst_bytes: 5,
        };
        assert_eq!(copy(b"abcd", &mut five), Err(error));
        assert_eq!(dualcast(b"abcd", &mut four, &mut five), Err(error));
        assert_eq!(dualcast(b"abcd", &mut five, &mut four), Err(error));
        assert_eq!(
            copy_crc(0, b"abcd", &mut five, CrcOptions::default()),
            Err(error)
        );
        assert_eq!((four, five), ([0; 4], [0; 5]));
        assert_eq!(
            error.to_string(),
            "source has 4 bytes but destination has 5"
        );
    }
}
