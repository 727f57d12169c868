//! CRC-32C with carry-less multiplications of 32 bytes, for processors with VPCLMULQDQ and without AVX-512.
//!
//! As in [`interleaved`](super::interleaved), a part of each block is folded and the rest goes through the CRC instruction as
//! three lanes. A multiplication takes twice the bytes here, so that more of a block is folded.

use std::arch::x86_64::{
    __m256i, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_unpackhi_epi64,
    _mm_xor_si128, _mm256_castsi256_si128, _mm256_clmulepi64_epi128, _mm256_extracti128_si256,
    _mm256_loadu_si256, _mm256_set_epi64x, _mm256_setzero_si256, _mm256_xor_si256,
    _mm256_zextsi128_si256,
};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::level::{self, Multiplication};
use crate::prefetch;

use super::interleaved::{behind, factor, factors, moved, words_in_turn};

/// Bytes that are folded at a time, as four sums.
const GROUP: usize = 128;

/// Groups of a block.
const GROUPS: usize = 14;

/// Words of each lane that go beside a group.
const BESIDE: usize = 6;

/// Words of a lane.
const WORDS: usize = 96;

/// Bytes of a block.
pub(super) const BLOCK: usize = GROUPS * GROUP + 3 * 8 * WORDS;

const _: () = assert!(BLOCK == 4096 && BESIDE * GROUPS <= WORDS);

/// Whether the processor has all instructions of this module, in one look.
#[inline]
pub(super) fn is_possible() -> bool {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    if !level::may_multiply(Multiplication::Half) {
        return false;
    }
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let all = is_x86_feature_detected!("vpclmulqdq")
                && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("pclmulqdq")
                && is_x86_feature_detected!("sse4.2");
            KNOWN.store(if all { YES } else { NO }, Ordering::Relaxed);
            all
        }
        known => known == YES,
    }
}

/// The register after the whole blocks of `data`, and how many bytes they have.
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse4.2")]
pub(super) fn update(mut register: u32, data: &[u8]) -> (u32, usize) {
    let (blocks, rest) = data.as_chunks::<BLOCK>();
    for (n, block) in blocks.iter().enumerate() {
        register = match blocks.get(n + prefetch::PAGES_AHEAD) {
            Some(ahead) => after_block(register, block, |group| fetch_with(ahead, group)),
            None => after_block(register, block, |_| ()),
        };
    }
    (register, data.len() - rest.len())
}

/// Asks for the lines of the next block that come with a group of this one, in their order: the processor's own prefetchers
/// do not follow four places at once.
#[inline(always)]
fn fetch_with(next: &[u8; BLOCK], group: usize) {
    const EACH: usize = BLOCK / 64 / GROUPS;
    const FIRST: usize = BLOCK / 64 - EACH * GROUPS;
    let (first, others) = next.as_chunks::<64>().0.split_at(FIRST);
    if group == 0 {
        for line in first {
            prefetch::line_of(&line[0]);
        }
    }
    for line in &others.as_chunks::<EACH>().0[group] {
        prefetch::line_of(&line[0]);
    }
}

/// The register after a block; each of its groups starts `with` something.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse4.2")]
pub(super) fn after_block(register: u32, data: &[u8; BLOCK], with: impl Fn(usize)) -> u32 {
    let (folded, lanes) = data.split_at(GROUPS * GROUP);
    let groups = folded.as_chunks::<32>().0.as_chunks::<4>().0;
    let words = lanes.as_chunks::<8>().0;
    let (first, others) = words.split_at(WORDS);
    let (second, third) = others.split_at(WORDS);

    let mut crcs = words_in_turn([0; 3], [first, second, third], 0, WORDS - BESIDE * GROUPS);
    let mut sums = [_mm256_setzero_si256(); 4];
    for (n, group) in groups.iter().enumerate() {
        with(n);
        for (sum, part) in sums.iter_mut().zip(group) {
            *sum = moved_onto(*sum, const { factors(8 * GROUP) }, load(part));
        }
        if n == 0 {
            let register = _mm256_zextsi128_si256(_mm_cvtsi32_si128(register as i32));
            sums[0] = _mm256_xor_si256(sums[0], register);
        }
        let from = WORDS - BESIDE * (GROUPS - n);
        crcs = words_in_turn(crcs, [first, second, third], from, BESIDE);
    }
    let [a, b, c, d] = sums;
    let left = moved_onto(a, const { factors(256) }, b);
    let right = moved_onto(c, const { factors(256) }, d);
    let folded = register_of(moved_onto(left, const { factors(512) }, right));

    let before = behind(folded, const { factor(8 * 3 * 8 * WORDS) })
        ^ behind(crcs[0], const { factor(8 * 2 * 8 * WORDS) })
        ^ behind(crcs[1], const { factor(8 * 8 * WORDS) });
    crcs[2] ^ _mm_crc32_u64(0, before) as u32
}

#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the array has 32 readable bytes, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// A sum moved up by the bits that its factors are for, and added to what is there.
#[target_feature(enable = "vpclmulqdq,avx2")]
fn moved_onto(sum: __m256i, (low, high): (i64, i64), there: __m256i) -> __m256i {
    let factors = _mm256_set_epi64x(high, low, high, low);
    let low = _mm256_clmulepi64_epi128::<0x00>(sum, factors);
    let high = _mm256_clmulepi64_epi128::<0x11>(sum, factors);
    _mm256_xor_si256(_mm256_xor_si256(low, high), there)
}

/// The register that two sums in a row stand for.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq,sse4.2")]
fn register_of(sum: __m256i) -> u32 {
    let first = moved(_mm256_castsi256_si128(sum), const { factors(128) });
    let sum = _mm_xor_si128(first, _mm256_extracti128_si256::<1>(sum));
    let low = _mm_cvtsi128_si64(sum) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)) as u64;
    _mm_crc32_u64(_mm_crc32_u64(0, low), high) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_blocks_agrees_with_the_library() {
        if !is_possible() {
            return dray_skip::skip("the processor lacks VPCLMULQDQ or AVX2");
        }
        let all: Vec<u8> = (0..18_000_u32).map(|n| ((n * n) >> 5) as u8).collect();
        for bytes in [
            0,
            BLOCK - 1,
            BLOCK,
            BLOCK + 1,
            2 * BLOCK,
            3 * BLOCK + 99,
            4 * BLOCK,
        ] {
            for (seed, from) in [(!0, 0), (0, 1), (0x1234_5678, 67)] {
                let data = &all[from..][..bytes];
                // SAFETY: the processor has the instructions.
                let (register, done) = unsafe { update(seed, data) };
                assert_eq!(done, bytes / BLOCK * BLOCK);
                let options = crate::CrcOptions::default();
                let expected = crate::oracle::crc32c(!seed, &data[..done], options);
                assert_eq!(!register, expected, "{bytes} {seed}");
            }
        }
    }
}
