//! Lines stored with vectors.

use std::arch::x86_64::{
    _mm_set_epi64x, _mm256_broadcastsi128_si256, _mm256_storeu_si256, _mm512_broadcast_i32x4,
    _mm512_storeu_si512,
};

use super::LINE;

/// Stores a pattern four times in each line.
#[target_feature(enable = "avx2")]
pub(super) fn avx2(lines: &mut [[u8; LINE]], sixteen: u128) {
    let half = _mm256_broadcastsi128_si256(_mm_set_epi64x((sixteen >> 64) as i64, sixteen as i64));
    for line in lines {
        for part in line.as_chunks_mut::<32>().0 {
            // SAFETY: the part has 32 writable bytes, and the store asks for no alignment.
            unsafe { _mm256_storeu_si256(part.as_mut_ptr().cast(), half) };
        }
    }
}

/// As [`avx2`], a line at once.
#[target_feature(enable = "avx512f")]
pub(super) fn avx512(lines: &mut [[u8; LINE]], sixteen: u128) {
    let whole = _mm512_broadcast_i32x4(_mm_set_epi64x((sixteen >> 64) as i64, sixteen as i64));
    for line in lines {
        // SAFETY: the line has 64 writable bytes, and the store asks for no alignment.
        unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), whole) };
    }
}
