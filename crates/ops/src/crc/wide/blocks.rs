//! Blocks by two units of the processor at once.
//!
//! As in [`interleaved`](super::super::interleaved), a part of each block is folded and the rest goes
//! through the CRC instruction as three lanes. The fold takes 256 bytes at a time here, so a lane
//! is shorter.

use std::arch::x86_64::_mm_crc32_u64;

use crate::prefetch;

use super::super::interleaved::{behind, factor, factors, words_in_turn, words_on};
use super::{GROUP, all_moved_onto, moved_onto, parts_of, register_of};

/// Words of each lane that go beside a group.
const BESIDE: usize = 2;

/// Groups of a block.
const GROUPS: usize = 13;

/// Words of a lane.
const WORDS: usize = 32;

/// Bytes of the lanes, with which a block begins.
const LANES: usize = 3 * 8 * WORDS;

/// Bytes of a block.
const BLOCK: usize = LANES + GROUPS * GROUP;

const _: () = assert!(BLOCK == prefetch::PAGE && LANES.is_multiple_of(64));
// Groups are folded in pairs, and the last one alone.
const _: () = assert!(GROUPS % 2 == 1);

/// The register after the whole blocks of `data`, and how many bytes they have. One block alone is left:
/// to put its lanes together takes longer than they save.
#[inline]
#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
pub(super) fn update(mut register: u32, data: &[u8]) -> (u32, usize) {
    let (blocks, rest) = data.as_chunks::<BLOCK>();
    if blocks.len() < 2 {
        return (register, 0);
    }
    fetch_lanes(&blocks[0]);
    for (n, block) in blocks.iter().enumerate() {
        if let Some(ahead) = blocks.get(n + prefetch::PAGES_AHEAD) {
            prefetch::line_of(&ahead[0]);
        }
        register = after_block(register, block, blocks.get(n + 1));
    }
    (register, data.len() - rest.len())
}

/// Asks for the lines of a block's lanes in their order, because the lanes are read side by side. The processor's
/// prefetchers then see one stream: the groups of a block, the lanes of the next, its groups.
#[inline(always)]
fn fetch_lanes(block: &[u8; BLOCK]) {
    for line in block[..LANES].as_chunks::<64>().0 {
        prefetch::line_of(&line[0]);
    }
}

/// The register after a block; `next` comes behind it.
#[target_feature(enable = "vpclmulqdq,avx512f,avx512vl,pclmulqdq,sse4.2")]
fn after_block(register: u32, data: &[u8; BLOCK], next: Option<&[u8; BLOCK]>) -> u32 {
    let (lanes, folded) = data.split_at(LANES);
    let (first, lanes) = lanes.split_at(WORDS * 8);
    let (second, third) = lanes.split_at(WORDS * 8);
    let (groups, first) = (
        folded.as_chunks::<64>().0.as_chunks().0,
        first.as_chunks::<8>().0,
    );
    let (second, third) = (second.as_chunks::<8>().0, third.as_chunks::<8>().0);

    let [first_group, second_group, others @ .., last_group] = groups else {
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
    let mut even = parts_of(first_group);
    crcs = beside(crcs, lanes, 0);
    let mut odd = parts_of(second_group);
    crcs = beside(crcs, lanes, 1);
    for (n, [first, second]) in others.as_chunks::<2>().0.iter().enumerate() {
        even = all_moved_onto(even, const { factors(4096) }, parts_of(first));
        crcs = beside(crcs, lanes, 2 * n + 2);
        odd = all_moved_onto(odd, const { factors(4096) }, parts_of(second));
        crcs = beside(crcs, lanes, 2 * n + 3);
    }
    if let Some(next) = next {
        fetch_lanes(next);
    }
    let sums = all_moved_onto(even, const { factors(2048) }, odd);
    let [a, b, c, d] = all_moved_onto(sums, const { factors(2048) }, parts_of(last_group));
    crcs = beside(crcs, lanes, GROUPS - 1);
    let left = moved_onto(a, const { factors(512) }, b);
    let right = moved_onto(c, const { factors(512) }, d);
    let folded = register_of(moved_onto(left, const { factors(1024) }, right));

    let before = behind(
        crcs[0],
        const { factor(8 * (GROUPS * GROUP + 2 * 8 * WORDS)) },
    ) ^ behind(crcs[1], const { factor(8 * (GROUPS * GROUP + 8 * WORDS)) })
        ^ behind(crcs[2], const { factor(8 * GROUPS * GROUP) });
    folded ^ _mm_crc32_u64(0, before) as u32
}

/// The registers of the lanes after the words that go beside a group.
#[inline]
#[target_feature(enable = "sse4.2")]
fn beside(crcs: [u32; 3], lanes: [&[[u8; 8]]; 3], group: usize) -> [u32; 3] {
    let early = const { WORDS - BESIDE * GROUPS };
    words_in_turn(crcs, lanes, early + group * BESIDE, BESIDE)
}
