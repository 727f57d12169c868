//! Whole lines, folded in the order of their addresses.

use std::arch::x86_64::{__m512i, _mm512_set_epi64, _mm512_storeu_si512, _mm512_xor_si512};

use crate::prefetch;

use super::super::interleaved::factors;
use super::{GROUP, all_moved_onto, load, moved_onto, parts_of, register_of};

/// Groups by which lines of the destination are asked for before they are written. Stores wait for lines
/// that no cache holds, but no prefetcher looks ahead for them as for loads.
const AHEAD: usize = 4;

/// The register after the whole lines of `data`, and how many bytes they have: none if there is no group.
/// `COPIES` them to `dst`, which is then as long as `data`.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
pub(super) fn update<const COPIES: bool>(
    register: u32,
    data: &[u8],
    dst: &mut [u8],
) -> (u32, usize) {
    let lines = data.as_chunks::<64>().0;
    let (groups, rest) = lines.as_chunks::<{ GROUP / 64 }>();
    let (to_groups, to_rest) = dst
        .as_chunks_mut::<64>()
        .0
        .as_chunks_mut::<{ GROUP / 64 }>();
    let [first, others @ ..] = groups else {
        return (register, 0);
    };
    let mut sums = parts_of(first);
    if COPIES {
        store_all(to_groups.first_mut(), sums);
    }
    let register = _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, register.into());
    sums[0] = _mm512_xor_si512(sums[0], register);
    for (n, group) in (1..).zip(others) {
        if COPIES && let Some(lines) = to_groups.get(n + AHEAD) {
            for line in lines {
                prefetch::line_of(&line[0]);
            }
        }
        let parts = parts_of(group);
        if COPIES {
            store_all(to_groups.get_mut(n), parts);
        }
        sums = all_moved_onto(sums, const { factors(2048) }, parts);
    }
    let [mut sum, others @ ..] = sums;
    for other in others {
        sum = moved_onto(sum, const { factors(512) }, other);
    }
    let mut to_rest = to_rest.iter_mut();
    for line in rest {
        let part = load(line);
        if let (true, Some(to)) = (COPIES, to_rest.next()) {
            store(to, part);
        }
        sum = moved_onto(sum, const { factors(512) }, part);
    }
    (register_of(sum), lines.len() * 64)
}

/// Stores the parts of a group.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_all(to: Option<&mut [[u8; 64]; 4]>, parts: [__m512i; 4]) {
    for (to, part) in to.into_iter().flatten().zip(parts) {
        store(to, part);
    }
}

#[target_feature(enable = "avx512f")]
fn store(to: &mut [u8; 64], part: __m512i) {
    // SAFETY: the array has 64 writable bytes, and the store asks for no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), part) };
}
