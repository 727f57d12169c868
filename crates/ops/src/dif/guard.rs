//! The guard: CRC-16/T10-DIF of a block.

/// Calls `work_on::<BYTES, CHECKS, COPIES>(src, dst, fields)` for the size and the [`Work`].
///
/// A macro, because a function that took `work_on` as a value would lose what it is compiled for.
#[cfg(target_arch = "x86_64")]
macro_rules! run_as {
    ($work_on:ident, $src:expr, $work:expr, $bytes:expr, $fields:expr) => {
        match ($bytes, $work) {
            (512, Work::Check) => $work_on::<512, true, false>($src, &mut [], $fields),
            (512, Work::Insert(dst)) => $work_on::<512, false, true>($src, dst, $fields),
            (512, Work::Strip(dst)) => $work_on::<512, true, true>($src, dst, $fields),
            (_, Work::Check) => $work_on::<520, true, false>($src, &mut [], $fields),
            (_, Work::Insert(dst)) => $work_on::<520, false, true>($src, dst, $fields),
            (_, Work::Strip(dst)) => $work_on::<520, true, true>($src, dst, $fields),
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod fold;
mod polynomial;
#[cfg(target_arch = "x86_64")]
mod short;
#[cfg(target_arch = "x86_64")]
mod wide;

use super::row::{Copies, Row};
use super::run::Fields;
use super::{BlockSize, DifFlags};
use polynomial::through_zeros;

/// Blocks whose guards are computed together.
pub(super) const TOGETHER: usize = 4;

/// The guards of at most [`TOGETHER`] blocks.
#[inline]
pub(super) fn guards(blocks: Row<'_>, flags: DifFlags) -> [u16; TOGETHER] {
    let bytes = flags.block_size().bytes();
    #[cfg(target_arch = "x86_64")]
    if blocks.is_full() && wide::is_for(bytes) {
        // SAFETY: the processor has the instructions, as was just checked.
        let crcs = unsafe { wide::crcs(blocks, bytes) };
        return crcs.map(|crc| finished(crc, flags));
    }
    #[cfg(target_arch = "x86_64")]
    if blocks.is_full() && short::is_for(bytes) {
        // SAFETY: the processor has the instructions, as was just checked.
        let crcs = unsafe { short::crcs(blocks, bytes) };
        return crcs.map(|crc| finished(crc, flags));
    }
    let mut guards = [0; TOGETHER];
    for (guard, block) in guards.iter_mut().zip(blocks.blocks()) {
        *guard = finished(crc(&block[..bytes]), flags);
    }
    guards
}

/// As [`guards`], and asks for what is needed next, so that it is fetched meanwhile; what is ahead
/// starts with what comes first.
#[inline]
pub(super) fn guards_and_hints(
    blocks: Row<'_>,
    ahead: [&[u8]; 2],
    flags: DifFlags,
) -> [u16; TOGETHER] {
    #[cfg(target_arch = "x86_64")]
    if blocks.is_full() && wide::is_for(flags.block_size().bytes()) {
        // SAFETY: the processor has the instructions, as was just checked.
        let crcs = unsafe { wide::crcs_and_hints(blocks, ahead, flags.block_size().bytes()) };
        return crcs.map(|crc| finished(crc, flags));
    }
    #[cfg(target_arch = "x86_64")]
    if blocks.is_full() && short::is_for(flags.block_size().bytes()) {
        // SAFETY: the processor has the instructions, as was just checked.
        let crcs = unsafe { short::crcs_and_hints(blocks, ahead, flags.block_size().bytes()) };
        return crcs.map(|crc| finished(crc, flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = ahead;
    guards(blocks, flags)
}

/// As [`guards`], and copies at most as many blocks, which may be others.
#[inline]
pub(super) fn guards_and_copies(
    blocks: Row<'_>,
    copies: Copies<'_>,
    flags: DifFlags,
) -> [u16; TOGETHER] {
    let bytes = flags.block_size().bytes();
    #[cfg(target_arch = "x86_64")]
    if blocks.is_full() && copies.from.is_full() && wide::is_for(bytes) {
        // SAFETY: the processor has the instructions, as was just checked.
        let crcs = unsafe { wide::crcs_and_copies(blocks, copies, bytes) };
        return crcs.map(|crc| finished(crc, flags));
    }
    #[cfg(target_arch = "x86_64")]
    if blocks.is_full() && copies.from.is_full() && short::is_for(bytes) {
        // SAFETY: the processor has the instructions, as was just checked.
        let crcs = unsafe { short::crcs_and_copies(blocks, copies, bytes) };
        return crcs.map(|crc| finished(crc, flags));
    }
    copies.run(bytes);
    guards(blocks, flags)
}

/// What is done with the blocks of a run.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "nothing is worked on as a run there")
)]
pub(super) enum Work<'a> {
    /// Their fields are checked.
    Check,
    /// Their data are copied, and fields are made.
    Insert(&'a mut [u8]),
    /// Their fields are checked, and the data copied.
    Strip(&'a mut [u8]),
}

/// Works on the first blocks of a row, whose fields are a run, and returns how many that were: groups of
/// [`TOGETHER`], until a field is not as expected; none on some processors. What is left can be worked on
/// one by one.
#[inline]
pub(super) fn run(src: &[u8], work: Work<'_>, bytes: usize, fields: &Fields) -> usize {
    #[cfg(target_arch = "x86_64")]
    if wide::is_for(bytes) {
        // SAFETY: the processor has the instructions, as was just checked.
        return unsafe { wide::runs::run(src, work, bytes, fields) };
    }
    #[cfg(target_arch = "x86_64")]
    if short::is_for(bytes) {
        // SAFETY: the processor has the instructions, as was just checked.
        return unsafe { short::runs::run(src, work, bytes, fields) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (src, work, bytes, fields);
    0
}

/// The guard of a block of data, which has the size that the flags say.
pub(super) fn guard(block: &[u8], flags: DifFlags) -> u16 {
    finished(crc(block), flags)
}

/// A guard from the CRC with seed 0.
fn finished(crc: u16, flags: DifFlags) -> u16 {
    crc ^ share(flags)
}

/// What seed and inversion add to the CRC with seed 0.
#[inline]
pub(super) fn share(flags: DifFlags) -> u16 {
    // A CRC is linear: the seed's share depends on the length alone.
    let seed = if flags.invert_crc_seed() {
        SEED_SHARE[flags.block_size() as usize]
    } else {
        0
    };
    let inversion = if flags.invert_crc_result() { 0xffff } else { 0 };
    seed ^ inversion
}

/// What a seed of 0xFFFF adds to the CRC of a block, for each [`BlockSize`].
static SEED_SHARE: [u16; 4] = {
    let mut shares = [0; 4];
    let mut code = 0;
    while code < shares.len() {
        shares[code] = through_zeros(0xffff, BlockSize::ALL[code].bytes());
        code += 1;
    }
    shares
};

/// CRC-16/T10-DIF with seed 0.
#[inline]
fn crc(data: &[u8]) -> u16 {
    #[cfg(target_arch = "x86_64")]
    if let Some(crc) = fold::crc(data) {
        return crc;
    }
    by_library(data)
}

/// For other processors. On this one the library loses half its speed between blocks of 520 bytes,
/// because it aligns itself anew in each.
fn by_library(data: &[u8]) -> u16 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc16T10Dif, data) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_of_known_blocks() {
        let flags = DifFlags::new();
        assert_eq!(guard(b"123456789", flags), 0xd0db);
        assert_eq!(guard(&[0; 512], flags), 0);
        assert_eq!(guard(&[0xff; 512], flags), 0xe6a1);
        assert_eq!(guard(&[0; 512], flags.with_invert_crc_seed(true)), 0x72bb);
        assert_eq!(guard(&[0; 512], flags.with_invert_crc_result(true)), 0xffff);
        // The check value with a seed of 0xFFFF, from the seed's share after nine bytes.
        assert_eq!(0xd0db ^ through_zeros(0xffff, 9), 0x8e3c);
    }

    #[test]
    fn folding_and_library_agree_at_every_length() {
        let data: Vec<u8> = (0..4200_u32).map(|n| ((n * n) >> 5) as u8).collect();
        for bytes in (0..700).chain(4080..4200) {
            assert_eq!(crc(&data[..bytes]), by_library(&data[..bytes]), "{bytes}");
            let odd = &data[data.len() - bytes..];
            assert_eq!(crc(odd), by_library(odd), "{bytes} at the end");
        }
    }

    #[test]
    fn blocks_together_and_alone_agree() {
        let data: Vec<u8> = (0..4 * 528_u32).map(|n| ((n * n) >> 5) as u8).collect();
        for flags in (0..16).map(DifFlags::from_bits) {
            let bytes = flags.block_size().bytes();
            if bytes > 520 {
                continue;
            }
            for (blocks, field) in [(4, 0), (4, 8), (3, 0), (1, 8)] {
                let step = bytes + field;
                let row = &data[..blocks * step];
                let together = guards(Row { bytes: row, step }, flags);
                let alone = data.chunks(step).map(|block| guard(&block[..bytes], flags));
                assert!(alone.take(blocks).eq(together.into_iter().take(blocks)));
            }
        }
    }

    /// Every bit of a block in turn: each place has the right weight.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_bit_counts_as_it_does_alone() {
        for bytes in [512, 520] {
            for bit in 0..8 * bytes {
                let mut block = vec![0; bytes];
                block[bit / 8] = 1 << (bit % 8);
                let zero = vec![0; bytes];
                if !short::is_for(bytes) {
                    return dray_skip::skip("the processor lacks PCLMULQDQ or AVX");
                }
                let four = [&zero[..], &block, &zero, &block].concat();
                let four = Row {
                    bytes: &four,
                    step: bytes,
                };
                // SAFETY: as was just checked.
                let crcs = unsafe { short::crcs(four, bytes) };
                if wide::is_for(bytes) {
                    // SAFETY: as was just checked.
                    let wide = unsafe { wide::crcs(four, bytes) };
                    assert_eq!(wide, crcs, "bit {bit} of {bytes} bytes");
                }
                let crc = by_library(&block);
                assert_eq!(crcs, [0, crc, 0, crc], "bit {bit} of {bytes} bytes");
            }
        }
    }
}
