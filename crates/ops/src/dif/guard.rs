//! The guard: CRC-16/T10-DIF of a block.

use crc_fast::CrcAlgorithm;

use super::{BlockSize, DifFlags};

/// 0x18BB7 without the highest bit (spec appendix B).
const POLYNOMIAL: u16 = 0x8bb7;

/// The guard of a block of data, which has the size that the flags say.
pub(super) fn guard(block: &[u8], flags: DifFlags) -> u16 {
    let crc = crc_fast::checksum(CrcAlgorithm::Crc16T10Dif, block) as u16;
    // A CRC is linear: the seed's share depends on the length alone.
    let seed = if flags.invert_crc_seed() {
        SEED_SHARE[flags.block_size() as usize]
    } else {
        0
    };
    let inversion = if flags.invert_crc_result() { 0xffff } else { 0 };
    crc ^ seed ^ inversion
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

/// The register after as many bytes of 0.
const fn through_zeros(mut register: u16, bytes: usize) -> u16 {
    let mut bit = 0;
    while bit < 8 * bytes {
        let carry = register >> 15;
        register = (register << 1) ^ (carry * POLYNOMIAL);
        bit += 1;
    }
    register
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
}
