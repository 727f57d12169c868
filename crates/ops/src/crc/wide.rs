//! CRC-32C with carry-less multiplications of 64 bytes.
//!
//! As in [`interleaved`](super::interleaved), a part of each block is folded and the rest goes
//! through the CRC instruction as three lanes. The fold takes 256 bytes at a time here, so a lane
//! is shorter.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_unpackhi_epi64, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_castsi512_si256,
    _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_set_epi64, _mm512_set1_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence};

use crate::{level, prefetch};

use super::interleaved::{behind, factor, factors, take};

/// Bytes that are folded at a time, as four sums.
const GROUP: usize = 256;

/// Words of each lane that go beside a group.
const BESIDE: usize = 2;

/// Groups and words of a lane of a large block, which has 4 KiB.
const LARGE: (usize, usize) = (13, 32);

/// Groups and words of a lane of a small block; less gains nothing over narrow blocks.
const SMALL: (usize, usize) = (3, 10);

/// Bytes of a block.
const fn bytes((groups, words): (usize, usize)) -> usize {
    groups * GROUP + 3 * 8 * words
}

const _: () = assert!(bytes(LARGE) == 4096 && bytes(SMALL) == 1008);
// What `block` copies of the lanes.
const _: () = assert!((3 * 8 * LARGE.1).is_multiple_of(64));

/// Whether blocks of so many bytes gain from it, and the processor has the instructions.
#[inline]
fn is_for(length: usize) -> bool {
    length >= bytes(SMALL) && level::has_vpclmulqdq() && has_the_others()
}

/// Whether the processor has what goes with VPCLMULQDQ here, in one look.
#[inline]
fn has_the_others() -> bool {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let all = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("pclmulqdq")
                && is_x86_feature_detected!("sse4.2");
            KNOWN.store(if all { YES } else { NO }, Ordering::Relaxed);
            all
        }
        known => known == YES,
    }
}

/// The register after the whole blocks at the beginning of `data`, and how many bytes they have;
/// `None` if nothing is gained or the processor lacks the instructions.
#[inline]
pub(super) fn update(register: u32, data: &[u8]) -> Option<(u32, usize)> {
    if !is_for(data.len()) {
        return None;
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { in_blocks(register, data) })
}

/// As [`update`] for the whole large blocks, which are copied to `dst` as they are read; `None` also if
/// there are fewer than two: one is copied sooner as a whole. `dst` is as long as `data`.
#[inline]
pub(super) fn update_and_copy(register: u32, data: &[u8], dst: &mut [u8]) -> Option<(u32, usize)> {
    if data.len() < 2 * bytes(LARGE) || !is_for(data.len()) {
        return None;
    }
    // SAFETY: the processor has the instructions, as was just checked.
    Some(unsafe { in_copied_blocks(register, data, dst) })
}

#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
fn in_copied_blocks(mut register: u32, data: &[u8], dst: &mut [u8]) -> (u32, usize) {
    let (large, rest) = data.as_chunks::<{ bytes(LARGE) }>();
    let to = dst.as_chunks_mut::<{ bytes(LARGE) }>().0;
    for (n, data) in large.iter().enumerate() {
        let (to, behind) = to.split_at_mut(n + 1);
        let next = large.get(n + 1).zip(behind.first());
        register = match next {
            Some((data_next, to_next)) => {
                block::<{ LARGE.0 }, { LARGE.1 }, true>(register, data, &mut to[n], |group| {
                    fetch(data_next, group);
                    fetch(to_next, group);
                })
            }
            None => block::<{ LARGE.0 }, { LARGE.1 }, true>(register, data, &mut to[n], |_| ()),
        };
    }
    (register, data.len() - rest.len())
}

#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
fn in_blocks(mut register: u32, data: &[u8]) -> (u32, usize) {
    let (large, rest) = data.as_chunks::<{ bytes(LARGE) }>();
    for data in large {
        register = block::<{ LARGE.0 }, { LARGE.1 }, false>(register, data, &mut [], |_| ());
    }
    let (small, rest) = rest.as_chunks::<{ bytes(SMALL) }>();
    for data in small {
        register = block::<{ SMALL.0 }, { SMALL.1 }, false>(register, data, &mut [], |_| ());
    }
    (register, data.len() - rest.len())
}

/// Asks for the lines of the next large block that come with a group of this one: the processor's own
/// prefetchers end at each page.
#[inline(always)]
fn fetch(block: &[u8; bytes(LARGE)], group: usize) {
    const LINES: usize = (bytes(LARGE) / 64).div_ceil(LARGE.0);
    let lines = block.as_chunks::<64>().0;
    for line in lines.iter().skip(group * LINES).take(LINES) {
        prefetch::line_of(&line[0]);
    }
}

/// The register after a block of three lanes of `WORDS` words and `GROUPS` groups, each of which starts
/// `with` something. If it `COPIES` the block to `dst`, the lanes are whole registers.
#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
fn block<const GROUPS: usize, const WORDS: usize, const COPIES: bool>(
    register: u32,
    data: &[u8],
    dst: &mut [u8],
    with: impl Fn(usize),
) -> u32 {
    if let (true, [first, .., last]) = (COPIES, &*dst) {
        prefetch::line_of(first);
        prefetch::line_of(last);
    }
    let (lanes, folded) = data.split_at(3 * 8 * WORDS);
    let (to_lanes, to_folded) = match COPIES {
        true => dst.split_at_mut(3 * 8 * WORDS),
        false => (dst, &mut [][..]),
    };
    let lane_parts = lanes.as_chunks().0.iter().zip(to_lanes.as_chunks_mut().0);
    let (first, lanes) = lanes.split_at(WORDS * 8);
    let (second, third) = lanes.split_at(WORDS * 8);
    let (groups, first) = (folded.as_chunks::<GROUP>().0, first.as_chunks::<8>().0);
    let (second, third) = (second.as_chunks::<8>().0, third.as_chunks::<8>().0);

    let [first_group, second_group, others @ ..] = groups else {
        unreachable!("a block has at least three groups");
    };
    let lanes = [first, second, third];
    // What does not go beside a group goes first.
    let mut crcs = words_on(
        [register, 0, 0],
        lanes,
        0,
        const { WORDS - BESIDE * GROUPS },
    );
    // Two sums for each part of a group: with one, the next group would wait for its product.
    let mut to_groups = to_folded.as_chunks_mut::<GROUP>().0.iter_mut();
    with(0);
    let mut even = parts_of::<COPIES>(first_group, to_groups.next());
    crcs = beside::<GROUPS, WORDS>(crcs, lanes, 0);
    with(1);
    let mut odd = parts_of::<COPIES>(second_group, to_groups.next());
    crcs = beside::<GROUPS, WORDS>(crcs, lanes, 1);
    let (pairs, last) = others.as_chunks::<2>();
    for (n, [first, second]) in pairs.iter().enumerate() {
        with(2 * n + 2);
        let parts = parts_of::<COPIES>(first, to_groups.next());
        even = all_moved_onto(even, const { factors(4096) }, parts);
        crcs = beside::<GROUPS, WORDS>(crcs, lanes, 2 * n + 2);
        with(2 * n + 3);
        let parts = parts_of::<COPIES>(second, to_groups.next());
        odd = all_moved_onto(odd, const { factors(4096) }, parts);
        crcs = beside::<GROUPS, WORDS>(crcs, lanes, 2 * n + 3);
    }
    let mut sums = all_moved_onto(even, const { factors(2048) }, odd);
    if let [last] = last {
        with(GROUPS - 1);
        let parts = parts_of::<COPIES>(last, to_groups.next());
        sums = all_moved_onto(sums, const { factors(2048) }, parts);
        crcs = beside::<GROUPS, WORDS>(crcs, lanes, GROUPS - 1);
    }
    if COPIES {
        for (from, to) in lane_parts {
            store(to, load(from));
        }
    }
    let [a, b, c, d] = sums;
    let left = moved_onto(a, const { factors(512) }, b);
    let right = moved_onto(c, const { factors(512) }, d);
    let sum = quarters_together(moved_onto(left, const { factors(1024) }, right));
    let low = _mm_cvtsi128_si64(sum) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)) as u64;
    let folded = _mm_crc32_u64(_mm_crc32_u64(0, low), high) as u32;

    let before = behind(
        crcs[0],
        const { factor(8 * (GROUPS * GROUP + 2 * 8 * WORDS)) },
    ) ^ behind(crcs[1], const { factor(8 * (GROUPS * GROUP + 8 * WORDS)) })
        ^ behind(crcs[2], const { factor(8 * GROUPS * GROUP) });
    folded ^ _mm_crc32_u64(0, before) as u32
}

#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has 64 readable bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(to: &mut [u8; 64], part: __m512i) {
    // SAFETY: the array has 64 writable bytes, and the store asks for no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), part) };
}

/// A sum moved up by the bits that its factors are for, and added to what is there.
#[target_feature(enable = "vpclmulqdq,avx512f")]
fn moved_onto(sum: __m512i, (low, high): (i64, i64), there: __m512i) -> __m512i {
    let factors = _mm512_set_epi64(high, low, high, low, high, low, high, low);
    let low = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
    let high = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
    _mm512_ternarylogic_epi64::<0x96>(low, high, there)
}

/// The registers of the lanes after the words that go beside a group.
///
/// The compiler keeps the groups in their order: all words of the lanes first would fill the processor's
/// scheduler, and no product could begin.
#[inline]
#[target_feature(enable = "sse4.2")]
fn beside<const GROUPS: usize, const WORDS: usize>(
    crcs: [u32; 3],
    lanes: [&[[u8; 8]]; 3],
    group: usize,
) -> [u32; 3] {
    let early = const { WORDS - BESIDE * GROUPS };
    let crcs = words_on(crcs, lanes, early + group * BESIDE, BESIDE);
    compiler_fence(Ordering::SeqCst);
    crcs
}

/// The registers of the lanes after some words of each.
#[expect(
    clippy::needless_range_loop,
    reason = "iterators are functions without these instructions, and keep the registers in memory"
)]
#[inline]
#[target_feature(enable = "sse4.2")]
fn words_on(crcs: [u32; 3], lanes: [&[[u8; 8]]; 3], from: usize, words: usize) -> [u32; 3] {
    let [mut a, mut b, mut c] = crcs;
    for word in from..from + words {
        a = take(a, &lanes[0][word]);
        b = take(b, &lanes[1][word]);
        c = take(c, &lanes[2][word]);
    }
    [a, b, c]
}

/// The parts of a group, which are copied if it `COPIES`.
#[inline]
#[target_feature(enable = "avx512f")]
fn parts_of<const COPIES: bool>(group: &[u8; GROUP], to: Option<&mut [u8; GROUP]>) -> [__m512i; 4] {
    let mut loaded = [_mm512_set1_epi64(0); 4];
    for (loaded, part) in loaded.iter_mut().zip(group.as_chunks().0) {
        *loaded = load(part);
    }
    if let (true, Some(to)) = (COPIES, to) {
        for (loaded, to) in loaded.iter().zip(to.as_chunks_mut().0) {
            store(to, *loaded);
        }
    }
    loaded
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

    #[test]
    fn blocks_and_library_agree_at_every_length() {
        let data: Vec<u8> = (0..14_500_u32).map(|n| ((n * n) >> 5) as u8).collect();
        for bytes in (1000..2100)
            .chain(4080..4110)
            .chain(5100..5110)
            .chain([9200, 14_000])
        {
            let data = &data[bytes % 67..][..bytes];
            let Some((register, done)) = update(!0, data) else {
                let lacks = !is_x86_feature_detected!("vpclmulqdq");
                assert!(bytes < 1008 || lacks, "{bytes}: no other reason");
                continue;
            };
            assert!(bytes - done < 1008, "{bytes}");
            let data = &data[..done];
            assert_eq!(!register, crc_fast::crc32_iscsi(data), "{bytes}");
            let seed = 0x1234_5678;
            let seeded = update(seed, data).map(|(register, _)| !register);
            let expected = crate::oracle::crc32c(!seed, data, crate::CrcOptions::default());
            assert_eq!(seeded, Some(expected), "{bytes}");
            let mut copy = vec![0; data.len()];
            if let Some((register, done)) = update_and_copy(seed, data, &mut copy) {
                let expected =
                    crate::oracle::crc32c(!seed, &data[..done], crate::CrcOptions::default());
                assert_eq!(!register, expected, "{bytes}, copied");
                assert!(
                    copy[..done] == data[..done] && done >= 8192,
                    "{bytes}, copied"
                );
                assert!(
                    copy[done..].iter().all(|byte| *byte == 0),
                    "{bytes}, copied"
                );
            }
        }
    }
}
