//! Guards of several blocks of 512 or 520 bytes at once.
//!
//! Such a block is too short to fold: a fold's last steps wait for one another, and take as long as
//! all before them. Here every word is multiplied by the power of x that its place stands for,
//! which waits for nothing, and the last steps of several blocks go side by side.

pub(super) mod runs;

use std::arch::x86_64::{
    __m128i, _mm_alignr_epi8, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si32,
    _mm_loadu_si128, _mm_set_epi64x, _mm_setzero_si128, _mm_slli_epi64, _mm_srli_epi64,
    _mm_xor_si128,
};
use std::hint::black_box;

use super::fold::{load, reversed};
use super::polynomial::{POLYNOMIAL, power, quotient};
use crate::dif::row::{Copies, Row};
use crate::level::{self, Multiplication};
use crate::prefetch;

/// Blocks at once.
const BLOCKS: usize = super::TOGETHER;

/// Bytes that blocks of both sizes have.
pub(super) const COMMON: usize = 512;

/// Bytes of a register: two words.
const PART: usize = 16;

/// What the words of each common part are multiplied by.
type Factors = [[u64; 2]; COMMON / PART];

static FACTORS_512: Factors = factors(0);
static FACTORS_520: Factors = factors(1);

/// The factors if as many words follow the common ones.
const fn factors(rest: usize) -> Factors {
    let mut factors = [[0; 2]; COMMON / PART];
    let mut word = 0;
    while word < COMMON / 8 {
        let later = COMMON / 8 - 1 - word + rest;
        factors[word / 2][word % 2] = power(64 * later as u32);
        word += 1;
    }
    factors
}

/// The factors for blocks of 512 or 520 bytes.
///
/// Where they are known, a compiler takes many from general registers, which is one more step on the unit
/// that multiplies: half as much time again.
#[inline]
fn factors_for(bytes: usize) -> &'static Factors {
    black_box(match bytes {
        COMMON => &FACTORS_512,
        _ => &FACTORS_520,
    })
}

/// Bytes at the beginning of a block that are added to later ones instead of being multiplied.
const HEAD: usize = 128;

/// How many bytes later they are added, twice.
const LATER: [usize; 2] = [369 - 31, 369];

// What is 369 bytes further up weighs as much as what is 31 bytes up and what is not.
const _: () = assert!(power(8 * 369) == power(8 * 31) ^ 1);

/// Whether blocks have one of the lengths, and the processor the instructions.
#[inline]
pub(super) fn is_for(bytes: usize) -> bool {
    matches!(bytes, 512 | 520)
        && level::may_multiply(Multiplication::Narrow)
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("avx")
}

/// The CRCs with seed 0 of blocks of `bytes` bytes, for which [`is_for`] has said yes.
#[target_feature(enable = "pclmulqdq,avx")]
pub(super) fn crcs(blocks: Row<'_>, bytes: usize) -> [u16; BLOCKS] {
    let factors = factors_for(bytes);
    let mut sums = [_mm_setzero_si128(); BLOCKS];
    for (n, sum) in sums.iter_mut().enumerate() {
        *sum = products(common(blocks.block(n, bytes)), factors, |_| {});
    }
    reduce(sums)
}

/// As [`crcs`], and asks for lines that are needed next: as many bytes of each part ahead as the
/// blocks have. A hint keeps no multiplication from going on, nor does a load or a store.
#[target_feature(enable = "pclmulqdq,avx")]
pub(super) fn crcs_and_hints(blocks: Row<'_>, ahead: [&[u8]; 2], bytes: usize) -> [u16; BLOCKS] {
    let factors = factors_for(bytes);
    let mut sums = [_mm_setzero_si128(); BLOCKS];
    for (n, sum) in sums.iter_mut().enumerate() {
        let block = common(blocks.block(n, bytes));
        let at = n * bytes;
        let lines = [lines(ahead[0], at, block.0), lines(ahead[1], at, block.0)];
        *sum = products(block, factors, |step| {
            if let Some(line) = lines[step % 2].get(step / 2) {
                prefetch::line_of(&line[0]);
            }
        });
    }
    reduce(sums)
}

/// As [`crcs`], and copies as many blocks.
#[target_feature(enable = "pclmulqdq,avx")]
pub(super) fn crcs_and_copies(blocks: Row<'_>, copies: Copies<'_>, bytes: usize) -> [u16; BLOCKS] {
    let Copies {
        from,
        to,
        to_step,
        ahead,
    } = copies;
    let factors = factors_for(bytes);
    let mut sums = [_mm_setzero_si128(); BLOCKS];
    for (n, sum) in sums.iter_mut().enumerate() {
        let (from, from_rest) = common(from.block(n, bytes));
        let place = to[n * to_step..][..bytes].split_first_chunk_mut::<COMMON>();
        let Some((to, to_rest)) = place else {
            unreachable!("blocks of 512 or 520 bytes")
        };
        let (vectors, to_vectors) = (from.as_chunks::<32>().0, to.as_chunks_mut::<32>().0);
        let lines = lines(ahead, n * to_step, from);
        *sum = products(common(blocks.block(n, bytes)), factors, |step| {
            // A vector in each of 16 steps, then a line in each of 8.
            if let Some(to) = to_vectors.get_mut(step) {
                *to = vectors[step];
            } else if let Some(line) = lines.get(step - vectors.len()) {
                prefetch::line_of(&line[0]);
            }
        });
        // Not a slice of any length, for which the compiler would call a function.
        if let (Some(from), Some(to)) = (from_rest.first_chunk(), to_rest.first_chunk_mut::<8>()) {
            *to = *from;
        }
    }
    reduce(sums)
}

/// Lines at a place ahead or, where nothing is, those of a block: asking for them costs nothing.
#[inline]
pub(super) fn lines<'a>(ahead: &'a [u8], at: usize, block: &'a [u8; COMMON]) -> &'a [[u8; 64]] {
    let ahead = ahead.get(at..).and_then(|ahead| ahead.first_chunk());
    ahead.unwrap_or(block).as_chunks().0
}

/// The common bytes of a block, and those behind them.
#[inline]
pub(super) fn common(block: &[u8]) -> (&[u8; COMMON], &[u8]) {
    match block.split_first_chunk() {
        Some(parts) => parts,
        None => unreachable!("blocks of 512 or 520 bytes"),
    }
}

/// The sum of all words of a block, each at its place: less than 80 bits. Between the places,
/// `meanwhile` is called with the number of the step, 0 to 23.
#[target_feature(enable = "pclmulqdq,avx")]
fn products(
    (data, rest): (&[u8; COMMON], &[u8]),
    factors: &Factors,
    mut meanwhile: impl FnMut(usize),
) -> __m128i {
    let mut sum = match rest.first_chunk() {
        None => _mm_setzero_si128(),
        // The factor of the last word is 1.
        Some(last) => _mm_cvtsi64_si128(i64::from_be_bytes(*last)),
    };
    // Written out: what is added at a place is decided when this is compiled.
    macro_rules! add {
        ($($place:literal)*) => {
            $(
                sum = _mm_xor_si128(sum, product(part::<$place>(data), &factors[$place]));
                meanwhile($place - HEAD / PART);
            )*
        };
    }
    const _: () = assert!(HEAD / PART == 8 && COMMON / PART == 32);
    add!(8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    sum
}

/// The part at a place, with what of the head is added there.
#[target_feature(enable = "pclmulqdq,avx")]
fn part<const PLACE: usize>(data: &[u8; COMMON]) -> __m128i {
    const GAPS: [i32; 2] = [(LATER[0] % PART) as i32, (LATER[1] % PART) as i32];
    let part = load(&data.as_chunks::<PART>().0[PLACE]);
    let part = match head::<PLACE, { LATER[0] }, { PART as i32 - GAPS[0] }>(data) {
        Some(head) => _mm_xor_si128(part, head),
        None => part,
    };
    match head::<PLACE, { LATER[1] }, { PART as i32 - GAPS[1] }>(data) {
        Some(head) => _mm_xor_si128(part, head),
        None => part,
    }
}

/// What of the head comes to a place when it is added `LATER` bytes later, where it starts `REST`
/// bytes before the end of a part.
#[target_feature(enable = "pclmulqdq,avx")]
fn head<const PLACE: usize, const LATER: usize, const REST: i32>(
    data: &[u8; COMMON],
) -> Option<__m128i> {
    let (start, zero) = (PLACE * PART, _mm_setzero_si128());
    if start + PART <= LATER || start >= LATER + HEAD {
        return None;
    }
    let parts = data.as_chunks::<PART>().0;
    Some(match start.checked_sub(LATER) {
        None => _mm_alignr_epi8::<REST>(load(&parts[0]), zero),
        Some(from) if from + PART > HEAD => {
            _mm_alignr_epi8::<REST>(zero, load(&parts[HEAD / PART - 1]))
        }
        Some(from) => load(&data[from..].as_chunks::<PART>().0[0]),
    })
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
    let powers = _mm_set_epi64x(power(64) as i64, power(48) as i64);
    let barrett = _mm_set_epi64x(const { quotient(48) } as i64, POLYNOMIAL as i64);
    // Loops, because a closure's function would be one without these instructions.
    let (mut rests, mut quotients, mut crcs) = (sums, sums, [0; BLOCKS]);
    for rest in &mut rests {
        *rest = _mm_xor_si128(_mm_clmulepi64_si128::<0x11>(*rest, powers), *rest);
    }
    // From here on only lower halves count: 64 bits, which x^16 makes 48.
    for rest in &mut rests {
        let high = _mm_clmulepi64_si128::<0x00>(_mm_srli_epi64::<32>(*rest), powers);
        let low = _mm_srli_epi64::<16>(_mm_slli_epi64::<32>(*rest));
        *rest = _mm_xor_si128(high, low);
    }
    // Barrett's reduction, as for a single block.
    for (quotient, rest) in quotients.iter_mut().zip(rests) {
        let product = _mm_clmulepi64_si128::<0x10>(_mm_srli_epi64::<16>(rest), barrett);
        *quotient = _mm_srli_epi64::<32>(product);
    }
    for (crc, (rest, quotient)) in crcs.iter_mut().zip(rests.into_iter().zip(quotients)) {
        let product = _mm_clmulepi64_si128::<0x00>(quotient, barrett);
        *crc = _mm_cvtsi128_si32(_mm_xor_si128(rest, product)) as u16;
    }
    crcs
}
