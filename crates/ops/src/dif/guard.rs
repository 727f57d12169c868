//! The guard: CRC-16/T10-DIF of a block.

#[cfg(target_arch = "x86_64")]
mod fold;
mod polynomial;

use super::{BlockSize, DifFlags};
use polynomial::through_zeros;

/// The guard of a block of data, which has the size that the flags say.
#[inline]
pub(super) fn guard(block: &[u8], flags: DifFlags) -> u16 {
    // A CRC is linear: the seed's share depends on the length alone.
    let seed = if flags.invert_crc_seed() {
        SEED_SHARE[flags.block_size() as usize]
    } else {
        0
    };
    let inversion = if flags.invert_crc_result() { 0xffff } else { 0 };
    crc(block) ^ seed ^ inversion
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
}
