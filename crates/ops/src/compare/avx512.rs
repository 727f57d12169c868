//! With vectors of 64 bytes.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_loadu_si256, _mm256_or_si256, _mm256_setzero_si256,
    _mm256_ternarylogic_epi64, _mm256_testz_si256, _mm512_loadu_si512, _mm512_or_si512,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_test_epi64_mask, _mm512_xor_si512,
};

use super::{GROUP, in_groups};

type Group = [__m512i; GROUP / 64];

/// Index of the first group that differs from a pattern.
#[target_feature(enable = "avx512f")]
pub(super) fn differs_from_pattern(src: &[[u8; GROUP]], pattern: u64) -> Option<usize> {
    let pattern = [_mm512_set1_epi64(pattern as i64); GROUP / 64];
    src.iter()
        .position(|src| any_difference(load(src), pattern))
}

#[target_feature(enable = "avx512f")]
fn any_difference(a: Group, b: Group) -> bool {
    let mut any = _mm512_setzero_si512();
    for (a, b) in a.into_iter().zip(b) {
        any = _mm512_or_si512(any, _mm512_xor_si512(a, b));
    }
    _mm512_test_epi64_mask(any, any) != 0
}

#[target_feature(enable = "avx512f")]
fn load(group: &[u8; GROUP]) -> Group {
    let parts = group.as_chunks::<64>().0;
    std::array::from_fn(|n| {
        // SAFETY: the part has 64 readable bytes, and the load asks for no alignment.
        unsafe { _mm512_loadu_si512(parts[n].as_ptr().cast()) }
    })
}

/// As [`compare`](super::compare), with vectors of 32 bytes: a load of 64 that is not aligned touches two lines, and
/// only one side can be aligned.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn compare(a: &[u8], b: &[u8]) -> Option<usize> {
    in_groups(a, b, |a, b| differ(a, b), |a, b| differ(a, b))
}

/// Whether two buffers of the same whole number of vectors differ: one instruction for two loads.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn differ(a: &[u8], b: &[u8]) -> bool {
    let mut any = [_mm256_setzero_si256(); 2];
    let pairs = a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0);
    for (n, (a, b)) in pairs.enumerate() {
        any[n % 2] = _mm256_ternarylogic_epi64::<0xf6>(any[n % 2], load_half(a), load_half(b));
    }
    let any = _mm256_or_si256(any[0], any[1]);
    _mm256_testz_si256(any, any) == 0
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn load_half(part: &[u8; 32]) -> __m256i {
    // SAFETY: the part has 32 readable bytes, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(part.as_ptr().cast()) }
}
