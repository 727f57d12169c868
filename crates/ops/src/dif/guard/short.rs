//! Guards of several blocks of 512 or 520 bytes at once.
//!
//! Such a block is too short to fold: a fold's last steps wait for one another, and take as long as
//! all before them. Here every word is multiplied by the power of x that its place stands for,
//! which waits for nothing, and the last steps of several blocks go side by side.

use std::arch::x86_64::{
    __m128i, _mm_alignr_epi8, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
    _mm_loadu_si128, _mm_setzero_si128, _mm_xor_si128,
};

use super::fold::{load, multiply, reversed};
use super::polynomial::{POLYNOMIAL, QUOTIENT, power};

/// Blocks at once.
pub(super) const BLOCKS: usize = 4;

/// Words in the longest block.
const WORDS: usize = 520 / 8;

/// What each word is multiplied by; a shorter block has the last ones.
static FACTORS: [u64; WORDS] = {
    let mut factors = [0; WORDS];
    let mut word = 0;
    while word < WORDS {
        factors[word] = power(64 * (WORDS - 1 - word) as u32);
        word += 1;
    }
    factors
};

/// Bytes at the beginning of a block that are added to later ones instead of being multiplied.
const HEAD: usize = 128;

/// How many bytes later they are added, twice.
const LATER: [usize; 2] = [369 - 31, 369];

// What is 369 bytes further up weighs as much as what is 31 bytes up and what is not.
const _: () = assert!(power(8 * 369) == power(8 * 31) ^ 1);

/// The first parts of 16 bytes to which something is added.
const STARTS: [usize; 2] = [LATER[0] / 16, LATER[1] / 16];

/// Parts of 16 bytes over which the head is spread when it starts within one.
const SPREAD: usize = HEAD / 16 + 1;

/// The CRCs with seed 0, or `None` if the processor lacks the instructions or a block has another
/// length than 512 or 520 bytes.
#[inline]
pub(super) fn crcs(blocks: [&[u8]; BLOCKS]) -> Option<[u16; BLOCKS]> {
    if !blocks.iter().all(|block| matches!(block.len(), 512 | 520)) {
        return None;
    }
    if !is_x86_feature_detected!("pclmulqdq") || !is_x86_feature_detected!("avx") {
        return None;
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { multiplied(blocks) })
}

#[target_feature(enable = "pclmulqdq,avx")]
fn multiplied(blocks: [&[u8]; BLOCKS]) -> [u16; BLOCKS] {
    let mut sums = [_mm_setzero_si128(); BLOCKS];
    for (sum, block) in sums.iter_mut().zip(blocks) {
        *sum = products(block);
    }
    reduce(sums)
}

/// The sum of all words, each at its place: less than 80 bits.
#[target_feature(enable = "pclmulqdq,avx")]
fn products(block: &[u8]) -> __m128i {
    let (parts, rest) = block.as_chunks::<16>();
    let (factors, last) = FACTORS[WORDS - block.len() / 8..].as_chunks::<2>();
    let (parts, factors) = (&parts[..32], &factors[..32]);
    let mut sum = _mm_setzero_si128();
    let alone = HEAD / 16..STARTS[0];
    for (part, factors) in parts[alone.clone()].iter().zip(&factors[alone]) {
        sum = _mm_xor_si128(sum, product(load(part), factors));
    }
    let head = &parts[..HEAD / 16];
    let added = [
        spread::<{ 16 - LATER[0] as i32 % 16 }>(head),
        spread::<{ 16 - LATER[1] as i32 % 16 }>(head),
    ];
    for place in STARTS[0]..32 {
        let mut part = load(&parts[place]);
        if place < STARTS[0] + SPREAD {
            part = _mm_xor_si128(part, added[0][place - STARTS[0]]);
        }
        if place >= STARTS[1] {
            part = _mm_xor_si128(part, added[1][place - STARTS[1]]);
        }
        sum = _mm_xor_si128(sum, product(part, &factors[place]));
    }
    for (word, factor) in rest.as_chunks::<8>().0.iter().zip(last) {
        let word = _mm_cvtsi64_si128(i64::from_be_bytes(*word));
        let factor = _mm_cvtsi64_si128(*factor as i64);
        sum = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(word, factor));
    }
    sum
}

/// The head as it lies `16 - REST` bytes into a part of 16 bytes, with 0 before and after it.
#[target_feature(enable = "pclmulqdq,avx")]
fn spread<const REST: i32>(head: &[[u8; 16]]) -> [__m128i; SPREAD] {
    let zero = _mm_setzero_si128();
    let mut spread = [zero; SPREAD];
    spread[0] = _mm_alignr_epi8::<REST>(load(&head[0]), zero);
    let inner = head.as_flattened()[REST as usize..].as_chunks::<16>().0;
    for (part, inner) in spread[1..].iter_mut().zip(inner) {
        *part = load(inner);
    }
    spread[SPREAD - 1] = _mm_alignr_epi8::<REST>(zero, load(&head[HEAD / 16 - 1]));
    spread
}

/// Two words as they lie in memory, each times its factor.
#[target_feature(enable = "pclmulqdq,avx")]
fn product(part: __m128i, factors: &[u64; 2]) -> __m128i {
    let part = reversed(part);
    // SAFETY: the array has 16 readable bytes, and the load asks for no alignment.
    let factors = unsafe { _mm_loadu_si128(factors.as_ptr().cast()) };
    let first = _mm_clmulepi64_si128::<0x01>(part, factors);
    let second = _mm_clmulepi64_si128::<0x10>(part, factors);
    _mm_xor_si128(first, second)
}

/// The remainders of sums of less than 80 bits times x^16, each step for all before the next.
#[target_feature(enable = "pclmulqdq,avx")]
fn reduce(sums: [__m128i; BLOCKS]) -> [u16; BLOCKS] {
    const TO_64: i64 = power(64) as i64;
    const TO_32: u64 = power(48);
    let factor = _mm_cvtsi64_si128(TO_64);
    // Loops, because a closure's function would be one without these instructions.
    let (mut rests, mut quotients, mut crcs) = ([0; BLOCKS], [0; BLOCKS], [0; BLOCKS]);
    for (rest, sum) in rests.iter_mut().zip(sums) {
        let folded = _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(sum, factor), sum);
        *rest = _mm_cvtsi128_si64(folded) as u64;
    }
    for rest in &mut rests {
        *rest = multiply(*rest >> 32, TO_32) ^ (*rest & 0xffff_ffff) << 16;
    }
    // Barrett's reduction, as for a single block.
    for (quotient, rest) in quotients.iter_mut().zip(rests) {
        *quotient = multiply(rest >> 16, QUOTIENT) >> 32;
    }
    for (crc, (rest, quotient)) in crcs.iter_mut().zip(rests.into_iter().zip(quotients)) {
        *crc = (rest ^ multiply(quotient, POLYNOMIAL)) as u16;
    }
    crcs
}
