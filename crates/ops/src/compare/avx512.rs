//! With vectors of 64 bytes.

use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_or_si512, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_test_epi64_mask, _mm512_xor_si512,
};

use super::GROUP;

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
