//! CRC-32C by two units of the processor at once.
//!
//! The processor has a unit that takes 8 bytes into a CRC and one that multiplies without carries;
//! neither hinders the other. As in Peter Cawley's "Faster CRC32-C on x86" (2022), a part of a block
//! goes through the one as three CRCs, the rest through the other as four sums. Blocks have fixed
//! lengths, so the powers of x that join the parts are constants.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi32_si128,
    _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_set_epi64x, _mm_unpackhi_epi64,
    _mm_xor_si128,
};

use crate::level::{self, Multiplication};
use crate::prefetch;

use super::{half, wide};

/// Bytes of a step that are folded, as four sums.
const FOLDED: usize = 64;

/// Bytes of a step that enter each of three CRCs: 24 words in as many cycles, and 8 multiplications take
/// 20 on AMD's Zen 4.
const LANE: usize = 64;

/// Bytes of a step.
const STEP: usize = FOLDED + 3 * LANE;

/// Steps of a large block: 4 KiB.
const LARGE: usize = 16;

/// Steps of a small block: 1 KiB; less gains nothing over one CRC.
const SMALL: usize = 4;

/// Whether the processor has the instructions.
#[inline]
fn is_possible() -> bool {
    level::may_multiply(Multiplication::Narrow)
        && is_x86_feature_detected!("sse4.2")
        && is_x86_feature_detected!("pclmulqdq")
}

/// The register after `data`, or `None` if the processor lacks the instructions.
#[inline]
pub(super) fn update(register: u32, data: &[u8]) -> Option<u32> {
    if let Some(register) = wide::update(register, data) {
        return Some(register);
    }
    if !is_possible() {
        return None;
    }
    if data.len() >= half::BLOCK && half::is_possible() {
        // SAFETY: the processor has the instructions, as was just checked.
        return Some(unsafe { in_half_blocks(register, data) });
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { in_blocks(register, data) })
}

#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse4.2")]
fn in_half_blocks(register: u32, data: &[u8]) -> u32 {
    prefetch::ends_of(data);
    let (register, done) = half::update(register, data);
    in_blocks(register, &data[done..])
}

/// As [`update`], and copies the data to `dst`, which is as long, as they are read.
#[inline]
pub(super) fn update_and_copy(register: u32, data: &[u8], dst: &mut [u8]) -> Option<u32> {
    if let Some(register) = wide::update_and_copy(register, data, dst) {
        return Some(register);
    }
    prefetch::ends_of(data);
    prefetch::ends_of(dst);
    if data.len() < 2 * LARGE * STEP {
        dst.copy_from_slice(data);
        return update(register, data);
    }
    if !is_possible() {
        return None;
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { in_copied_blocks(register, data, dst) })
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
fn in_copied_blocks(mut register: u32, data: &[u8], dst: &mut [u8]) -> u32 {
    let (large, rest) = data.as_chunks::<{ LARGE * STEP }>();
    let (to_large, to_rest) = dst.as_chunks_mut::<{ LARGE * STEP }>();
    for (n, (data, dst)) in large.iter().zip(to_large).enumerate() {
        register = block::<LARGE>(register, data, |step| {
            fetch(dst, step);
            if let Some(next) = large.get(n + 1) {
                fetch(next, step);
            }
        });
        *dst = *data;
    }
    to_rest.copy_from_slice(rest);
    in_blocks(register, rest)
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
fn in_blocks(mut register: u32, data: &[u8]) -> u32 {
    prefetch::ends_of(data);
    let (large, rest) = data.as_chunks::<{ LARGE * STEP }>();
    for pair in large.windows(2) {
        register = block::<LARGE>(register, &pair[0], |step| fetch(&pair[1], step));
    }
    if let Some(data) = large.last() {
        register = block::<LARGE>(register, data, |_| ());
    }
    let (small, rest) = rest.as_chunks::<{ SMALL * STEP }>();
    for data in small {
        register = block::<SMALL>(register, data, |_| ());
    }
    in_words(register, rest)
}

/// The register after `data`, which are few.
#[inline]
#[target_feature(enable = "sse4.2")]
pub(super) fn in_words(mut register: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        register = take(register, word);
    }
    rest.iter()
        .fold(register, |register, byte| _mm_crc32_u8(register, *byte))
}

/// Asks for the lines of a large block that come with a step of another one: the processor's own
/// prefetchers do not follow four places at once.
#[inline(always)]
fn fetch(block: &[u8; LARGE * STEP], step: usize) {
    for line in block.as_chunks::<STEP>().0[step].as_chunks::<64>().0 {
        prefetch::line_of(&line[0]);
    }
}

/// The register after a block of as many steps, each of which starts `with` something.
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn block<const STEPS: usize>(register: u32, data: &[u8], with: impl Fn(usize)) -> u32 {
    let (folded, lanes) = data.split_at(STEPS * FOLDED);
    let (first, lanes) = lanes.split_at(STEPS * LANE);
    let (second, third) = lanes.split_at(STEPS * LANE);
    let folded = folded.as_chunks::<FOLDED>().0;
    let lanes = first.as_chunks::<LANE>().0.iter();
    let lanes = lanes.zip(second.as_chunks::<LANE>().0);
    let lanes = lanes.zip(third.as_chunks::<LANE>().0);

    let mut sums = [_mm_cvtsi64_si128(0); 4];
    let mut crcs = [0; 3];
    for (step, (folded, ((first, second), third))) in folded.iter().zip(lanes).enumerate() {
        with(step);
        for (sum, part) in sums.iter_mut().zip(folded.as_chunks::<16>().0) {
            *sum = _mm_xor_si128(moved(*sum, const { factors(512) }), load(part));
        }
        if step == 0 {
            sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128(register as i32));
        }
        let words = first.as_chunks::<8>().0.iter();
        let words = words.zip(second.as_chunks::<8>().0);
        for ((first, second), third) in words.zip(third.as_chunks::<8>().0) {
            crcs[0] = take(crcs[0], first);
            crcs[1] = take(crcs[1], second);
            crcs[2] = take(crcs[2], third);
        }
    }
    let [a, b, c, d] = sums;
    let left = _mm_xor_si128(moved(a, const { factors(128) }), b);
    let right = _mm_xor_si128(moved(c, const { factors(128) }), d);
    let sum = _mm_xor_si128(moved(left, const { factors(256) }), right);
    let low = _mm_cvtsi128_si64(sum) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)) as u64;
    let folded = _mm_crc32_u64(_mm_crc32_u64(0, low), high) as u32;

    let before = behind(folded, const { factor(8 * 3 * LANE * STEPS) })
        ^ behind(crcs[0], const { factor(8 * 2 * LANE * STEPS) })
        ^ behind(crcs[1], const { factor(8 * LANE * STEPS) });
    crcs[2] ^ _mm_crc32_u64(0, before) as u32
}

/// The register after 8 bytes.
#[target_feature(enable = "sse4.2")]
pub(super) fn take(register: u32, word: &[u8; 8]) -> u32 {
    _mm_crc32_u64(register.into(), u64::from_le_bytes(*word)) as u32
}

/// The registers of the lanes after some words of each, which the compiler takes before it goes on.
#[inline]
#[target_feature(enable = "sse4.2")]
pub(super) fn words_in_turn(
    crcs: [u32; 3],
    lanes: [&[[u8; 8]]; 3],
    from: usize,
    words: usize,
) -> [u32; 3] {
    let [mut a, mut b, mut c] = words_on(crcs, lanes, from, words);
    // SAFETY: no instruction. The compiler takes these words before it goes on: all words of a lane in a row,
    // as it would put them, fill the processor's scheduler, and no product could begin.
    unsafe {
        asm!(
            "/* {:e} {:e} {:e} */",
            inout(reg) a,
            inout(reg) b,
            inout(reg) c,
            options(nostack, preserves_flags),
        );
    }
    [a, b, c]
}

/// The registers of the lanes after some words of each.
#[expect(
    clippy::needless_range_loop,
    reason = "iterators are functions without these instructions, and keep the registers in memory"
)]
#[inline]
#[target_feature(enable = "sse4.2")]
pub(super) fn words_on(
    crcs: [u32; 3],
    lanes: [&[[u8; 8]]; 3],
    from: usize,
    words: usize,
) -> [u32; 3] {
    let [mut a, mut b, mut c] = crcs;
    for word in from..from + words {
        a = take(a, &lanes[0][word]);
        b = take(b, &lanes[1][word]);
        c = take(c, &lanes[2][word]);
    }
    [a, b, c]
}

#[target_feature(enable = "sse4.2")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the array has 16 readable bytes, and the load asks for no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// A sum moved up by the bits that its factors are for.
#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(super) fn moved(sum: __m128i, (low, high): (i64, i64)) -> __m128i {
    let factors = _mm_set_epi64x(high, low);
    let low = _mm_clmulepi64_si128::<0x00>(sum, factors);
    let high = _mm_clmulepi64_si128::<0x11>(sum, factors);
    _mm_xor_si128(low, high)
}

/// What 8 bytes of 0 must become so that a register moves up by the bits that the factor is for.
#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(super) fn behind(register: u32, factor: i64) -> u64 {
    let register = _mm_cvtsi32_si128(register as i32);
    let product = _mm_clmulepi64_si128::<0x00>(register, _mm_cvtsi64_si128(factor));
    _mm_cvtsi128_si64(product) as u64
}

/// Factors that move the two halves of a sum up; the lower one holds the higher powers.
pub(super) const fn factors(bits: usize) -> (i64, i64) {
    (factor(bits + 64), factor(bits))
}

/// x^(bits - 33) modulo the polynomial, reflected: bit 31 stands for x^0.
///
/// A product without carries of two reflected numbers lies one bit lower than their reflected
/// product, and a factor of 32 bits lies 32 bits lower than one of 64.
pub(super) const fn factor(bits: usize) -> i64 {
    /// 0x1EDC6F41 reflected.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut residue = 1_u32 << 31;
    let mut done = 33;
    while done < bits {
        residue = (residue >> 1) ^ ((residue & 1) * POLYNOMIAL);
        done += 1;
    }
    residue as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As [`update`] without `wide`.
    fn narrow(register: u32, data: &[u8]) -> Option<u32> {
        // SAFETY: the processor has the instructions.
        is_possible().then(|| unsafe { in_blocks(register, data) })
    }

    /// As [`update_and_copy`] without `wide`.
    fn narrow_and_copy(register: u32, data: &[u8], dst: &mut [u8]) -> Option<u32> {
        // SAFETY: the processor has the instructions.
        is_possible().then(|| unsafe { in_copied_blocks(register, data, dst) })
    }

    #[test]
    fn blocks_and_library_agree_at_every_length() {
        let data: Vec<u8> = (0..18_000_u32).map(|n| ((n * n) >> 5) as u8).collect();
        let around = |blocks: usize| blocks * LARGE * STEP - 9..blocks * LARGE * STEP + 1000;
        for bytes in (0..2100).chain(around(1)).chain(around(2)) {
            let data = &data[bytes % 17..][..bytes];
            for update in [update, narrow] {
                let Some(register) = update(!0, data) else {
                    assert!(!is_possible(), "no other reason");
                    return dray_skip::skip("the processor lacks SSE4.2 or PCLMULQDQ");
                };
                assert_eq!(!register, crc_fast::crc32_iscsi(data), "{bytes}");
                let seeded = update(0x1234_5678, data).map(|register| !register);
                let seed = !0x1234_5678;
                let expected = crate::oracle::crc32c(seed, data, crate::CrcOptions::default());
                assert_eq!(seeded, Some(expected), "{bytes}");
            }
            for update_and_copy in [update_and_copy, narrow_and_copy] {
                let mut copy = vec![0xa5; bytes + 1];
                let register = update_and_copy(!0, data, &mut copy[..bytes]);
                let expected = crc_fast::crc32_iscsi(data);
                assert_eq!(
                    register.map(|register| !register),
                    Some(expected),
                    "{bytes}"
                );
                assert!(copy[..bytes] == *data && copy[bytes] == 0xa5, "{bytes}");
            }
        }
    }
}
