//! With vectors of 32 bytes.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_set1_epi64x,
};

use crate::prefetch;

use super::{PATTERN_GROUP, in_groups};

/// As [`compare`](super::compare).
#[target_feature(enable = "avx2")]
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
#[target_feature(enable = "avx2")]
pub(super) fn differs_from_pattern(src: &[[u8; PATTERN_GROUP]], pattern: u64) -> Option<usize> {
    let pattern = _mm256_set1_epi64x(pattern as i64);
    prefetch::position(src, |src| {
        any_differs(vectors(src).map(|src| (src, pattern)))
    })
}

/// Whether two buffers of the same whole number of vectors differ.
#[inline]
#[target_feature(enable = "avx2")]
fn differ(a: &[u8], b: &[u8]) -> bool {
    any_differs(vectors(a).zip(vectors(b)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn any_differs(pairs: impl Iterator<Item = (__m256i, __m256i)>) -> bool {
    let mut all = _mm256_set1_epi64x(-1);
    for (a, b) in pairs {
        all = _mm256_and_si256(all, _mm256_cmpeq_epi8(a, b));
    }
    _mm256_movemask_epi8(all) != -1
}

#[inline]
#[target_feature(enable = "avx2")]
fn vectors(bytes: &[u8]) -> impl Iterator<Item = __m256i> {
    let parts = bytes.as_chunks::<32>().0.iter();
    // SAFETY: the part has 32 readable bytes, and the load asks for no alignment.
    parts.map(|part| unsafe { _mm256_loadu_si256(part.as_ptr().cast()) })
}
