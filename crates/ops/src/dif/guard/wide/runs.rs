//! Runs of blocks, 64 bytes at a time: checked, copied or both while their guards are computed.

use std::arch::x86_64::{_mm512_clmulepi64_epi128, _mm512_set1_epi64, _mm512_ternarylogic_epi64};

use super::{
    BLOCKS, COMMON, FACTORS_512, FACTORS_520, common, factor, lines, load, load_factors, load_word,
    reduce, reflected, store,
};
use crate::dif::guard::Work;
use crate::dif::run::{Fields, field, steps};
use crate::prefetch;

/// Works on blocks of `bytes` bytes, for which [`is_for`](super::is_for) has said yes; see
/// [`guard::run`](crate::dif::guard::run).
#[target_feature(enable = "vpclmulqdq,gfni,avx512f")]
pub(in super::super) fn run(src: &[u8], work: Work<'_>, bytes: usize, fields: &Fields) -> usize {
    run_as!(work_on, src, work, bytes, fields)
}

/// Works on the blocks of `BYTES` bytes at the beginning of a row, and returns how many that were:
/// all whole groups or, if it `CHECKS`, those before the first group that has another field than
/// expected. If it does not check, it makes fields. If it `COPIES`, it writes data, and fields that it made.
///
/// Data, field, guard and copy of a group wait for nothing of the group before.
#[target_feature(enable = "vpclmulqdq,gfni,avx512f")]
fn work_on<const BYTES: usize, const CHECKS: bool, const COPIES: bool>(
    mut src: &[u8],
    mut dst: &mut [u8],
    fields: &Fields,
) -> usize {
    let (step, to_step) = const { steps(BYTES, CHECKS) };
    let factors = match BYTES {
        COMMON => &FACTORS_512,
        _ => &FACTORS_520,
    };
    let factors = factors.0.each_ref().map(|part| load_factors(part));
    if CHECKS && COPIES {
        // Data are written late, so that they are not if a field is wrong.
        for line in dst.as_chunks::<64>().0.iter().take(BLOCKS * to_step / 64) {
            prefetch::line_of(&line[0]);
        }
    }
    let mut blocks = 0;
    while let Some((group, rest)) = src.split_at_checked(BLOCKS * step) {
        let to_bytes = if COPIES { BLOCKS * to_step } else { 0 };
        let Some((to, to_rest)) = std::mem::take(&mut dst).split_at_mut_checked(to_bytes) else {
            break;
        };
        let mut sums = [_mm512_set1_epi64(0); BLOCKS];
        for (n, sum) in sums.iter_mut().enumerate() {
            let (data, last) = common(&group[n * step..][..BYTES]);
            if let Some(last) = last.first_chunk() {
                let factor = _mm512_set1_epi64(const { factor(16) } as i64);
                *sum = _mm512_clmulepi64_epi128::<0x00>(reflected(load_word(last)), factor);
                if COPIES && !CHECKS {
                    to[n * to_step + COMMON..][..8].copy_from_slice(last);
                }
            }
            // The group after the next one, and where the next one goes.
            let hints = [
                lines(rest, (BLOCKS + n) * step, data),
                lines(to_rest, n * to_step, data),
            ];
            for (i, (part, factors)) in data.as_chunks().0.iter().zip(factors).enumerate() {
                let part = load(part);
                if COPIES && !CHECKS {
                    store(&mut to[n * to_step..][..COMMON].as_chunks_mut().0[i], part);
                }
                prefetch::line_of(&hints[0][i][0]);
                if COPIES {
                    prefetch::line_of(&hints[1][i][0]);
                }
                let words = reflected(part);
                let first = _mm512_clmulepi64_epi128::<0x00>(words, factors);
                let second = _mm512_clmulepi64_epi128::<0x11>(words, factors);
                *sum = _mm512_ternarylogic_epi64::<0x96>(*sum, first, second);
            }
        }
        let crcs = reduce(sums);
        if CHECKS {
            let found = std::array::from_fn(|n| field(&group[n * step + BYTES..]));
            if !fields.are(blocks, found, crcs) {
                break;
            }
            if COPIES {
                for n in 0..BLOCKS {
                    let (from, from_rest) = common(&group[n * step..][..BYTES]);
                    let (to, to_rest) = to[n * to_step..][..BYTES].split_at_mut(COMMON);
                    for (from, to) in from.as_chunks().0.iter().zip(to.as_chunks_mut().0) {
                        store(to, load(from));
                    }
                    to_rest.copy_from_slice(from_rest);
                }
            }
        } else {
            for (n, field) in fields.of(blocks, crcs).into_iter().enumerate() {
                field.write(&mut to[n * to_step..][..to_step]);
            }
        }
        blocks += BLOCKS;
        (src, dst) = (rest, to_rest);
    }
    blocks
}
