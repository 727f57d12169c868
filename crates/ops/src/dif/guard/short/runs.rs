//! Runs of blocks, two words at a time: checked, copied or both while their guards are computed.

use std::arch::x86_64::{__m256i, _mm_setzero_si128, _mm256_loadu_si256, _mm256_storeu_si256};

use super::{BLOCKS, COMMON, common, factors_for, lines, products, reduce};
use crate::dif::guard::Work;
use crate::dif::run::{Fields, field, steps};
use crate::prefetch;

/// Works on blocks of `bytes` bytes, for which [`is_for`](super::is_for) has said yes; see
/// [`guard::run`](crate::dif::guard::run).
#[target_feature(enable = "pclmulqdq,avx")]
pub(in super::super) fn run(src: &[u8], work: Work<'_>, bytes: usize, fields: &Fields) -> usize {
    run_as!(work_on, src, work, bytes, fields)
}

/// Works on the blocks of `BYTES` bytes at the beginning of a row, and returns how many that were:
/// all whole groups or, if it `CHECKS`, those before the first group that has another field than
/// expected. If it does not check, it makes fields. If it `COPIES`, it writes data, and fields that it made.
///
/// Copies go beside multiplications, which keep another unit busy: those of a group that is checked
/// beside the multiplications of the next one, when it is known to be good.
#[target_feature(enable = "pclmulqdq,avx")]
fn work_on<const BYTES: usize, const CHECKS: bool, const COPIES: bool>(
    mut src: &[u8],
    mut dst: &mut [u8],
    fields: &Fields,
) -> usize {
    let (step, to_step) = const { steps(BYTES, CHECKS) };
    let factors = factors_for(BYTES);
    if COPIES && !CHECKS {
        // The stores of the first group would ask for their lines when its data are there.
        for line in dst.as_chunks::<64>().0.iter().take(BLOCKS * to_step / 64) {
            prefetch::line_of(&line[0]);
        }
    }
    let mut blocks = 0;
    // A group that was found good, and its place.
    let mut good: Option<(&[u8], &mut [u8])> = None;
    while let Some((group, rest)) = src.split_at_checked(BLOCKS * step) {
        let to_bytes = if COPIES { BLOCKS * to_step } else { 0 };
        let Some((to, to_rest)) = std::mem::take(&mut dst).split_at_mut_checked(to_bytes) else {
            break;
        };
        let mut sums = [_mm_setzero_si128(); BLOCKS];
        for (n, sum) in sums.iter_mut().enumerate() {
            let block = common(&group[n * step..][..BYTES]);
            let ahead = lines(rest, n * step, block.0);
            if !COPIES {
                *sum = products(block, factors, |place| ask(ahead, place));
                continue;
            }
            // Where they are copied, and what is copied there.
            let copy = match CHECKS {
                false => Some((block, &mut *to)),
                true => good
                    .as_mut()
                    .map(|(good, to)| (common(&good[n * step..][..BYTES]), &mut **to)),
            };
            let Some(((from, from_last), copy_to)) = copy else {
                let to_first = lines(to, n * to_step, block.0);
                let to_ahead = lines(to_rest, n * to_step, block.0);
                *sum = products(block, factors, |place| {
                    ask(to_first, place);
                    ask(ahead, place.wrapping_sub(8));
                    ask(to_ahead, place.wrapping_sub(16));
                });
                continue;
            };
            let (copy_to, to_last) = copy_to[n * to_step..][..BYTES].split_at_mut(COMMON);
            let (from, copy_to) = (from.as_chunks::<32>().0, copy_to.as_chunks_mut::<32>().0);
            let to_ahead = lines(to_rest, n * to_step, block.0);
            *sum = products(block, factors, |place| {
                if let Some(to) = copy_to.get_mut(place) {
                    *to = from[place];
                }
                ask(ahead, place);
                ask(to_ahead, place.wrapping_sub(16));
            });
            to_last.copy_from_slice(from_last);
        }
        let crcs = reduce(sums);
        if CHECKS {
            let found = std::array::from_fn(|n| field(&group[n * step + BYTES..]));
            if !fields.are(blocks, found, crcs) {
                break;
            }
            if COPIES {
                good = Some((group, to));
            }
        } else {
            for (n, field) in fields.of(blocks, crcs).into_iter().enumerate() {
                field.write(&mut to[n * to_step..][..to_step]);
            }
        }
        blocks += BLOCKS;
        (src, dst) = (rest, to_rest);
    }
    if let Some((group, to)) = good {
        for n in 0..BLOCKS {
            copy::<BYTES>(&group[n * step..], &mut to[n * to_step..]);
        }
    }
    blocks
}

/// Copies a block, without a call for each.
#[target_feature(enable = "pclmulqdq,avx")]
fn copy<const BYTES: usize>(from: &[u8], to: &mut [u8]) {
    let (from, last) = common(&from[..BYTES]);
    let (to, to_last) = to[..BYTES].split_at_mut(COMMON);
    let pairs = from
        .as_chunks::<64>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<64>().0);
    for (from, to) in pairs {
        // Two registers at a time, which the compiler does not take for a copy of the whole.
        let (from, to) = (from.as_chunks().0, to.as_chunks_mut().0);
        let parts = [load(&from[0]), load(&from[1])];
        store(&mut to[0], parts[0]);
        store(&mut to[1], parts[1]);
    }
    to_last.copy_from_slice(last);
}

#[target_feature(enable = "avx")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the array has 32 readable bytes, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx")]
fn store(bytes: &mut [u8; 32], part: __m256i) {
    // SAFETY: the array has 32 writable bytes, and the store asks for no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), part) };
}

/// Asks for one of some lines, if there is one with this number.
#[inline(always)]
fn ask(lines: &[[u8; 64]], number: usize) {
    if let Some(line) = lines.get(number) {
        prefetch::line_of(&line[0]);
    }
}
