//! CRC-16/T10-DIF by carry-less multiplication.
//!
//! The method of Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
//! Instruction" (Intel, 2009): data are polynomials, most significant bit first; a part that lies n
//! bits before the end is replaced by its product with x^n modulo the guard's polynomial.

use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_loadu_si128,
    _mm_set_epi8, _mm_set_epi64x, _mm_shuffle_epi8, _mm_srli_si128, _mm_xor_si128,
};

use crate::level::{self, Multiplication};

use super::polynomial::{POLYNOMIAL, power, quotient};

/// Bytes folded at once: four sums hide the latency of a multiplication.
const STRIDE: usize = 64;

/// The CRC with seed 0, or `None` if the processor lacks the instructions or the length is odd.
///
/// Blocks have a multiple of 8 bytes, and more than a stride; nothing else has to be fast.
#[inline]
pub(super) fn crc(data: &[u8]) -> Option<u16> {
    if data.len() < STRIDE || !data.len().is_multiple_of(8) {
        return None;
    }
    if !is_possible() {
        return None;
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { fold(data) })
}

/// Whether the processor has the instructions.
#[inline]
fn is_possible() -> bool {
    level::may_multiply(Multiplication::Narrow)
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("ssse3")
}

/// Factors that move the two halves of a sum `bits` bits up: x^(bits + 64), x^bits.
const fn factors(bits: u32) -> (i64, i64) {
    (power(bits + 64) as i64, power(bits) as i64)
}

const BY_512: (i64, i64) = factors(512);
const BY_384: (i64, i64) = factors(384);
const BY_256: (i64, i64) = factors(256);
const BY_128: (i64, i64) = factors(128);
const BY_64: (i64, i64) = factors(64);

#[target_feature(enable = "pclmulqdq,ssse3")]
fn fold(data: &[u8]) -> u16 {
    let (strides, rest) = data.as_chunks::<STRIDE>();
    let Some((first, strides)) = strides.split_first() else {
        return 0;
    };
    let mut sums = load_stride(first);
    for stride in strides {
        let next = load_stride(stride);
        for (sum, next) in sums.iter_mut().zip(next) {
            *sum = _mm_xor_si128(moved(*sum, BY_512), next);
        }
    }
    let [a, b, c, d] = sums;
    let left = _mm_xor_si128(moved(a, BY_384), moved(b, BY_256));
    let mut sum = _mm_xor_si128(left, _mm_xor_si128(moved(c, BY_128), d));

    let (halves, rest) = rest.as_chunks::<16>();
    for half in halves {
        sum = _mm_xor_si128(moved(sum, BY_128), reversed(load(half)));
    }
    for word in rest.as_chunks::<8>().0 {
        let word = _mm_set_epi64x(0, i64::from_be_bytes(*word));
        sum = _mm_xor_si128(moved(sum, BY_64), word);
    }
    reduce(sum)
}

#[target_feature(enable = "ssse3")]
fn load_stride(stride: &[u8; STRIDE]) -> [__m128i; 4] {
    let [a, b, c, d] = stride.as_chunks::<16>().0 else {
        unreachable!("a stride has four parts")
    };
    let (a, b) = (reversed(load(a)), reversed(load(b)));
    [a, b, reversed(load(c)), reversed(load(d))]
}

#[target_feature(enable = "sse2")]
pub(super) fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the array has 16 readable bytes, and the load asks for no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The first byte in memory becomes the most significant one.
#[target_feature(enable = "ssse3")]
pub(super) fn reversed(bytes: __m128i) -> __m128i {
    let order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_shuffle_epi8(bytes, order)
}

/// A sum moved up, modulo the polynomial: at most 80 bits.
#[target_feature(enable = "pclmulqdq")]
fn moved(sum: __m128i, (high, low): (i64, i64)) -> __m128i {
    let factors = _mm_set_epi64x(high, low);
    let high = _mm_clmulepi64_si128::<0x11>(sum, factors);
    let low = _mm_clmulepi64_si128::<0x00>(sum, factors);
    _mm_xor_si128(high, low)
}

/// The remainder of a sum times x^16.
#[target_feature(enable = "pclmulqdq")]
fn reduce(sum: __m128i) -> u16 {
    const TO_64: i64 = power(64) as i64;
    const TO_32: u64 = power(48);
    // 128 bits become 80, these become 64 and those, with x^16 taken in, 48.
    let factor = _mm_cvtsi64_si128(TO_64);
    let once = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(sum, factor), low_half(sum));
    let twice = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(once, factor), once);
    let word = _mm_cvtsi128_si64(twice) as u64;
    let rest = multiply(word >> 32, TO_32) ^ (word & 0xffff_ffff) << 16;
    // Barrett's reduction: the quotient is exact because `rest` has at most 48 bits.
    let quotient = multiply(rest >> 16, const { quotient(48) }) >> 32;
    (rest ^ multiply(quotient, POLYNOMIAL)) as u16
}

/// The lower 64 bits of a sum, alone.
#[target_feature(enable = "sse2")]
fn low_half(sum: __m128i) -> __m128i {
    _mm_srli_si128::<8>(std::arch::x86_64::_mm_slli_si128::<8>(sum))
}

/// The lower 64 bits of a product.
#[target_feature(enable = "pclmulqdq")]
pub(super) fn multiply(a: u64, b: u64) -> u64 {
    let (a, b) = (_mm_cvtsi64_si128(a as i64), _mm_cvtsi64_si128(b as i64));
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0x00>(a, b)) as u64
}
