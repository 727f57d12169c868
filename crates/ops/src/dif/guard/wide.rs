//! Guards of several blocks of 512 or 520 bytes at once, 64 bytes at a time.
//!
//! As in [`short`](super::short), every word is multiplied by the power of x that its place stands
//! for. Here the data are reflected first: the bits of each byte turn round, which is one
//! instruction on a unit that does not multiply, and the bytes can stay where they are. So bit i of
//! a register stands for the power of x that is i below the highest one.

pub(super) mod runs;

use std::arch::x86_64::{
    __m512i, _mm512_clmulepi64_epi128, _mm512_gf2p8affine_epi64_epi8, _mm512_load_si512,
    _mm512_loadu_si512, _mm512_maskz_loadu_epi64, _mm512_set1_epi64, _mm512_shuffle_i64x2,
    _mm512_slli_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::polynomial::{POLYNOMIAL, power, quotient};
use super::short::{COMMON, common, lines};
use crate::dif::row::{Copies, Row};
use crate::level::{self, Multiplication};
use crate::prefetch;

/// Blocks at once: as many as a register has quarters.
const BLOCKS: usize = super::TOGETHER;

/// Bytes of a register: eight words.
const PART: usize = 64;

/// What the words of each common part are multiplied by.
#[repr(align(64))]
struct Factors([[u64; 8]; COMMON / PART]);

static FACTORS_512: Factors = factors(0);
static FACTORS_520: Factors = factors(1);

/// The factors if as many words follow the common ones.
const fn factors(rest: usize) -> Factors {
    let mut factors = [[0; 8]; COMMON / PART];
    let mut word = 0;
    while word < COMMON / 8 {
        let later = COMMON / 8 - 1 - word + rest;
        factors[word / 8][word % 8] = factor(64 * later as u32 + 16);
        word += 1;
    }
    Factors(factors)
}

/// What a word is multiplied by to move up by so many bits: a product of reflected words lies one
/// bit below their reflected product.
const fn factor(bits: u32) -> u64 {
    power(bits - 1).reverse_bits()
}

/// Whether blocks have one of the lengths, and the processor the instructions.
#[inline]
pub(super) fn is_for(bytes: usize) -> bool {
    matches!(bytes, 512 | 520)
        && level::may_multiply(Multiplication::Wide)
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("avx512f")
}

/// The CRCs with seed 0 of blocks of `bytes` bytes, for which [`is_for`] has said yes.
#[target_feature(enable = "vpclmulqdq,gfni,avx512f")]
pub(super) fn crcs(blocks: Row<'_>, bytes: usize) -> [u16; BLOCKS] {
    reduce(products(blocks, bytes))
}

/// As [`crcs`], and asks for lines that are needed next: as many bytes of each part ahead as the
/// blocks have.
#[target_feature(enable = "vpclmulqdq,gfni,avx512f")]
pub(super) fn crcs_and_hints(blocks: Row<'_>, ahead: [&[u8]; 2], bytes: usize) -> [u16; BLOCKS] {
    let sums = products(blocks, bytes);
    for n in 0..BLOCKS {
        let (block, at) = (common(blocks.block(n, bytes)).0, n * bytes);
        for line in lines(ahead[0], at, block) {
            prefetch::line_of(&line[0]);
        }
        for line in lines(ahead[1], at, block) {
            prefetch::line_of(&line[0]);
        }
    }
    reduce(sums)
}

/// As [`crcs`], and copies as many blocks. The copies do not wait for the multiplications.
#[target_feature(enable = "vpclmulqdq,gfni,avx512f")]
pub(super) fn crcs_and_copies(blocks: Row<'_>, copies: Copies<'_>, bytes: usize) -> [u16; BLOCKS] {
    let Copies {
        from,
        to,
        to_step,
        ahead,
    } = copies;
    let sums = products(blocks, bytes);
    for n in 0..BLOCKS {
        let (from, from_rest) = common(from.block(n, bytes));
        let place = to[n * to_step..][..bytes].split_first_chunk_mut::<COMMON>();
        let Some((to, to_rest)) = place else {
            unreachable!("blocks of 512 or 520 bytes")
        };
        let lines = lines(ahead, n * to_step, from);
        let parts = from.as_chunks().0.iter().zip(to.as_chunks_mut().0);
        for ((from, to), line) in parts.zip(lines) {
            store(to, load(from));
            prefetch::line_of(&line[0]);
        }
        // Not a slice of any length, for which the compiler would call a function.
        if let (Some(from), Some(to)) = (from_rest.first_chunk(), to_rest.first_chunk_mut::<8>()) {
            *to = *from;
        }
    }
    reduce(sums)
}

/// The sums of all words of each block, each word at its place times x^16: less than 80 bits in each
/// quarter.
#[target_feature(enable = "vpclmulqdq,gfni,avx512f")]
#[inline]
fn products(blocks: Row<'_>, bytes: usize) -> [__m512i; BLOCKS] {
    let mut sums = [_mm512_set1_epi64(0); BLOCKS];
    let blocks: [_; BLOCKS] = std::array::from_fn(|n| common(blocks.block(n, bytes)));
    let factors = if bytes == COMMON {
        &FACTORS_512
    } else {
        let factor = _mm512_set1_epi64(const { factor(16) } as i64);
        for (sum, (_, rest)) in sums.iter_mut().zip(&blocks) {
            if let Some(last) = rest.first_chunk() {
                *sum = _mm512_clmulepi64_epi128::<0x00>(reflected(load_word(last)), factor);
            }
        }
        &FACTORS_520
    };
    // One block after the other: from memory they come as a processor fetches ahead by itself. The
    // factors stay in registers.
    let factors = factors.0.each_ref().map(|part| load_factors(part));
    for (sum, (data, _)) in sums.iter_mut().zip(&blocks) {
        for (part, factors) in data.as_chunks().0.iter().zip(factors) {
            let words = reflected(load(part));
            let first = _mm512_clmulepi64_epi128::<0x00>(words, factors);
            let second = _mm512_clmulepi64_epi128::<0x11>(words, factors);
            *sum = _mm512_ternarylogic_epi64::<0x96>(*sum, first, second);
        }
    }
    sums
}

#[target_feature(enable = "avx512f")]
fn load(part: &[u8; PART]) -> __m512i {
    // SAFETY: the array has 64 readable bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(part.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(to: &mut [u8; PART], part: __m512i) {
    // SAFETY: the array has 64 writable bytes, and the store asks for no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), part) };
}

/// A word in the first place, 0 in the others.
#[target_feature(enable = "avx512f")]
fn load_word(word: &[u8; 8]) -> __m512i {
    // SAFETY: only the first 8 bytes are read, which the array has.
    unsafe { _mm512_maskz_loadu_epi64(1, word.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn load_factors(factors: &[u64; 8]) -> __m512i {
    // SAFETY: the array has 64 readable bytes; it is a row of `Factors`, which is aligned to 64.
    unsafe { _mm512_load_si512(factors.as_ptr().cast()) }
}

/// The bits of each byte turned round.
#[target_feature(enable = "gfni,avx512f")]
fn reflected(bytes: __m512i) -> __m512i {
    let matrix = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    _mm512_gf2p8affine_epi64_epi8::<0>(bytes, matrix)
}

/// The remainders of the sums of all blocks.
#[target_feature(enable = "vpclmulqdq,gfni,avx512f")]
fn reduce([a, b, c, d]: [__m512i; BLOCKS]) -> [u16; BLOCKS] {
    // A quarter for each block: first the sums of every other quarter, then all.
    let ab = _mm512_xor_si512(
        _mm512_shuffle_i64x2::<0x44>(a, b),
        _mm512_shuffle_i64x2::<0xee>(a, b),
    );
    let cd = _mm512_xor_si512(
        _mm512_shuffle_i64x2::<0x44>(c, d),
        _mm512_shuffle_i64x2::<0xee>(c, d),
    );
    let sum = _mm512_xor_si512(
        _mm512_shuffle_i64x2::<0x88>(ab, cd),
        _mm512_shuffle_i64x2::<0xdd>(ab, cd),
    );
    // 80 bits become the 64 of the upper word.
    let top = _mm512_set1_epi64(const { factor(64) } as i64);
    let rest = _mm512_xor_si512(sum, _mm512_clmulepi64_epi128::<0x00>(sum, top));
    // Barrett's reduction. The quotient's 48 bits are the first ones of the lower word.
    let reciprocal = _mm512_set1_epi64(const { quotient(63).reverse_bits() >> 16 } as i64);
    let quotient = _mm512_clmulepi64_epi128::<0x01>(rest, reciprocal);
    let quotient = _mm512_slli_epi64::<16>(quotient);
    let polynomial = _mm512_set1_epi64(const { POLYNOMIAL.reverse_bits() } as i64);
    let multiple = _mm512_clmulepi64_epi128::<0x00>(quotient, polynomial);
    let remainder = _mm512_xor_si512(rest, _mm512_slli_epi64::<1>(multiple));
    // The last two bytes of each quarter, most significant first.
    let mut bytes = [0; PART];
    store(&mut bytes, reflected(remainder));
    std::array::from_fn(|n| u16::from_be_bytes([bytes[16 * n + 14], bytes[16 * n + 15]]))
}
