//! CRC-32C with carry-less multiplications of 64 bytes.
//!
//! Data are read in the order of their addresses, which the processor's prefetchers follow across pages:
//! from memory that no cache holds, several streams in one page take twice as long.

mod blocks;
mod lines;

use std::arch::x86_64::{
    __m128i, __m512i, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_unpackhi_epi64, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_castsi512_si256,
    _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_set_epi64, _mm512_setzero_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::level::{self, Multiplication};
use crate::prefetch;

use super::interleaved::{factors, in_words};

/// Bytes that are folded at a time, as four sums.
const GROUP: usize = 256;

/// Whether so many bytes gain from it, and the processor has the instructions.
#[inline]
fn is_for(length: usize) -> bool {
    length >= GROUP && level::may_multiply(Multiplication::Wide) && has_instructions()
}

/// Whether the processor has all instructions of this module, in one look.
#[inline]
fn has_instructions() -> bool {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let all = is_x86_feature_detected!("vpclmulqdq")
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("pclmulqdq")
                && is_x86_feature_detected!("sse4.2");
            KNOWN.store(if all { YES } else { NO }, Ordering::Relaxed);
            all
        }
        known => known == YES,
    }
}

/// The register after `data`, or `None` if nothing is gained or the processor lacks the instructions.
#[inline]
pub(super) fn update(register: u32, data: &[u8]) -> Option<u32> {
    if !is_for(data.len()) {
        return None;
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { in_blocks_and_lines(register, data) })
}

/// As [`update`], and copies the data to `dst`, which is as long, as they are read.
#[inline]
pub(super) fn update_and_copy(register: u32, data: &[u8], dst: &mut [u8]) -> Option<u32> {
    if !is_for(data.len()) {
        return None;
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { in_copied_lines(register, data, dst) })
}

#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
fn in_blocks_and_lines(register: u32, data: &[u8]) -> u32 {
    prefetch::ends_of(data);
    let (register, done) = blocks::update(register, data);
    let (register, more) = lines::update::<false>(register, &data[done..], &mut []);
    in_words(register, &data[done + more..])
}

#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
fn in_copied_lines(register: u32, data: &[u8], dst: &mut [u8]) -> u32 {
    prefetch::ends_of(data);
    prefetch::ends_of(dst);
    let (register, done) = lines::update::<true>(register, data, dst);
    dst[done..].copy_from_slice(&data[done..]);
    in_words(register, &data[done..])
}

#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has 64 readable bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// The parts of a group.
#[inline]
#[target_feature(enable = "avx512f")]
fn parts_of(group: &[[u8; 64]; 4]) -> [__m512i; 4] {
    let mut parts = [_mm512_setzero_si512(); 4];
    for (part, line) in parts.iter_mut().zip(group) {
        *part = load(line);
    }
    parts
}

/// A sum moved up by the bits that its factors are for, and added to what is there.
#[target_feature(enable = "vpclmulqdq,avx512f")]
fn moved_onto(sum: __m512i, (low, high): (i64, i64), there: __m512i) -> __m512i {
    let factors = _mm512_set_epi64(high, low, high, low, high, low, high, low);
    let low = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
    let high = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
    _mm512_ternarylogic_epi64::<0x96>(low, high, there)
}

/// As [`moved_onto`], for the sums of a group.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx512f")]
fn all_moved_onto(sums: [__m512i; 4], by: (i64, i64), there: [__m512i; 4]) -> [__m512i; 4] {
    let mut moved = there;
    for (moved, sum) in moved.iter_mut().zip(sums) {
        *moved = moved_onto(sum, by, *moved);
    }
    moved
}

/// The register that four sums in a row stand for.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,sse4.2")]
fn register_of(sum: __m512i) -> u32 {
    let sum = quarters_together(sum);
    let low = _mm_cvtsi128_si64(sum) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)) as u64;
    _mm_crc32_u64(_mm_crc32_u64(0, low), high) as u32
}

/// The four quarters of a sum as one.
#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl")]
fn quarters_together(sum: __m512i) -> __m128i {
    let (first, second, third) = const { (factors(384), factors(256), factors(128)) };
    let factors = _mm512_set_epi64(0, 0, third.1, third.0, second.1, second.0, first.1, first.0);
    let low = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
    let high = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
    let moved = _mm512_xor_si512(low, high);
    let halves = _mm256_xor_si256(
        _mm512_castsi512_si256(moved),
        _mm512_extracti64x4_epi64::<1>(moved),
    );
    let three = _mm_xor_si128(
        _mm256_castsi256_si128(halves),
        _mm256_extracti128_si256::<1>(halves),
    );
    _mm_xor_si128(three, _mm512_extracti32x4_epi32::<3>(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Vec<u8> {
        (0..14_500_u32).map(|n| ((n * n) >> 5) as u8).collect()
    }

    /// Around every whole number of lines and groups up to two groups, around one to three blocks.
    fn lengths() -> impl Iterator<Item = usize> {
        let around_blocks = [4096, 8192, 12_288].map(|bytes| bytes - 70..bytes + 330);
        (GROUP..1100).chain(around_blocks.into_iter().flatten())
    }

    #[test]
    fn every_length_agrees_with_the_library() {
        let all = data();
        for bytes in lengths() {
            let data = &all[bytes % 67..][..bytes];
            let Some(register) = update(!0, data) else {
                assert!(!has_instructions(), "{bytes}: no other reason");
                return dray_skip::skip("the processor lacks VPCLMULQDQ or AVX-512");
            };
            assert_eq!(!register, crc_fast::crc32_iscsi(data), "{bytes}");
            let seed = 0x1234_5678;
            let seeded = update(seed, data).map(|register| !register);
            let expected = crate::oracle::crc32c(!seed, data, crate::CrcOptions::default());
            assert_eq!(seeded, Some(expected), "{bytes}");
        }
    }

    #[test]
    fn every_length_is_copied_and_nothing_else() {
        let all = data();
        let seed = 0x1234_5678;
        for bytes in lengths() {
            let data = &all[bytes % 67..][..bytes];
            // Around the copy, bytes that stay as they are.
            let mut copy = vec![0xa5; bytes % 61 + bytes + 64];
            let (before, copy) = copy.split_at_mut(bytes % 61);
            let (dst, behind) = copy.split_at_mut(bytes);
            let Some(register) = update_and_copy(seed, data, dst) else {
                assert!(!has_instructions(), "{bytes}: no other reason");
                return dray_skip::skip("the processor lacks VPCLMULQDQ or AVX-512");
            };
            let expected = crate::oracle::crc32c(!seed, data, crate::CrcOptions::default());
            assert_eq!(!register, expected, "{bytes}");
            assert!(dst == data, "{bytes}");
            let mut others = before.iter().chain(&*behind);
            assert!(others.all(|byte| *byte == 0xa5), "{bytes}");
        }
    }

    #[test]
    fn less_than_a_group_is_left_to_others() {
        let mut copy = [0; GROUP - 1];
        assert_eq!(update(!0, &[1; GROUP - 1]), None);
        assert_eq!(update_and_copy(!0, &[1; GROUP - 1], &mut copy), None);
        assert_eq!(copy, [0; GROUP - 1]);
    }
}
