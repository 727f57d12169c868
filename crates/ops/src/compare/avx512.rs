//! With vectors of 32 bytes and one instruction for two of them.
//!
//! Not with vectors of 64: a load that is not aligned touches two lines, and only one side of two can be aligned. And of
//! memory that no cache holds, two loads of a line are faster than one, which the prefetchers follow later.

use std::arch::x86_64::{
    __m256i, _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_ternarylogic_epi64, _mm256_testz_si256,
};

use crate::prefetch;

use super::{PATTERN_GROUP, in_groups};

/// As [`compare`](super::compare).
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn compare(a: &[u8], b: &[u8]) -> Option<usize> {
    in_groups(
        a,
        b,
        |a, b| differ(a, b),
        |a, b| differ(a, b),
        |a, b| differ(a, b),
    )
}

/// Index of the first group that differs from a pattern.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn differs_from_pattern(src: &[[u8; PATTERN_GROUP]], pattern: u64) -> Option<usize> {
    let pattern = _mm256_set1_epi64x(pattern as i64);
    prefetch::position(src, |src| {
        any_differs(vectors(src).map(|src| (src, pattern)))
    })
}

/// Whether two buffers of the same whole number of vectors differ.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn differ(a: &[u8], b: &[u8]) -> bool {
    any_differs(vectors(a).zip(vectors(b)))
}

/// Two sums, neither of which waits for the other.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn any_differs(pairs: impl Iterator<Item = (__m256i, __m256i)>) -> bool {
    let mut any = [_mm256_setzero_si256(); 2];
    for (n, (a, b)) in pairs.enumerate() {
        any[n % 2] = _mm256_ternarylogic_epi64::<0xf6>(any[n % 2], a, b);
    }
    let any = _mm256_or_si256(any[0], any[1]);
    _mm256_testz_si256(any, any) == 0
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn vectors(bytes: &[u8]) -> impl Iterator<Item = __m256i> {
    let parts = bytes.as_chunks::<32>().0.iter();
    // SAFETY: the part has 32 readable bytes, and the load asks for no alignment.
    parts.map(|part| unsafe { _mm256_loadu_si256(part.as_ptr().cast()) })
}
