//! With vectors of 32 bytes.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_set1_epi64x,
};

use super::{GROUP, in_groups};

type Group = [__m256i; GROUP / 32];

/// Bytes at the beginning that are equal.
#[target_feature(enable = "avx2")]
pub(super) fn equal_bytes(a: &[u8], b: &[u8]) -> usize {
    in_groups(a, b, |a, b| any_difference(load(a), load(b)))
}

/// Index of the first group that differs from a pattern.
#[target_feature(enable = "avx2")]
pub(super) fn differs_from_pattern(src: &[[u8; GROUP]], pattern: u64) -> Option<usize> {
    let pattern = [_mm256_set1_epi64x(pattern as i64); GROUP / 32];
    src.iter()
        .position(|src| any_difference(load(src), pattern))
}

#[target_feature(enable = "avx2")]
fn any_difference(a: Group, b: Group) -> bool {
    let mut equal = _mm256_set1_epi64x(-1);
    for (a, b) in a.into_iter().zip(b) {
        equal = _mm256_and_si256(equal, _mm256_cmpeq_epi8(a, b));
    }
    _mm256_movemask_epi8(equal) != -1
}

#[target_feature(enable = "avx2")]
fn load(group: &[u8; GROUP]) -> Group {
    let parts = group.as_chunks::<32>().0;
    std::array::from_fn(|n| {
        // SAFETY: the part has 32 readable bytes, and the load asks for no alignment.
        unsafe { _mm256_loadu_si256(parts[n].as_ptr().cast()) }
    })
}
