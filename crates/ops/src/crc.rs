//! CRC-32C.

use crc_fast::{CrcAlgorithm, Digest};

/// How a CRC departs from the usual CRC-32C (spec 8.3.12, appendix A).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CrcOptions {
    /// Seed and result are neither inverted nor reflected: most significant bit first. Flag bit 17.
    pub bypass_inversion_reflection: bool,
    /// Bit 7 of each byte enters first, not bit 0. Flag bit 18.
    pub bypass_data_reflection: bool,
}

/// The CRC-32C of `data`; `seed` is 0 to begin with and the result of the previous part to go on.
///
/// The specification speaks of padding to a multiple of the register; hardware, as far as its
/// published tests show, takes exactly the bytes, and so does this.
pub fn crc32c(seed: u32, data: &[u8], options: CrcOptions) -> u32 {
    if seed == 0 && options == CrcOptions::default() {
        // The usual case, without the cost of setting up a digest.
        return crc_fast::crc32_iscsi(data);
    }
    let mut crc = Crc32c::new(seed, options);
    crc.update(data);
    crc.finish()
}

/// A CRC in progress.
pub(crate) struct Crc32c {
    digest: Digest,
    options: CrcOptions,
}

/// Bytes reflected at once.
const REFLECTED: usize = 512;

impl Crc32c {
    pub(crate) fn new(seed: u32, options: CrcOptions) -> Self {
        // The register of the reflected algorithm, as the library keeps it.
        let register = if options.bypass_inversion_reflection {
            seed.reverse_bits()
        } else {
            !seed
        };
        let digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(register));
        Self { digest, options }
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        if !self.options.bypass_data_reflection {
            self.digest.update(data);
            return;
        }
        let mut reflected = [0; REFLECTED];
        for chunk in data.chunks(REFLECTED) {
            for (to, from) in reflected.iter_mut().zip(chunk) {
                *to = from.reverse_bits();
            }
            self.digest.update(&reflected[..chunk.len()]);
        }
    }

    pub(crate) fn finish(self) -> u32 {
        let register = self.digest.get_state() as u32;
        if self.options.bypass_inversion_reflection {
            register.reverse_bits()
        } else {
            !register
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;

    type Crc = fn(u32, &[u8], CrcOptions) -> u32;
    const BOTH: [Crc; 2] = [crc32c, oracle::crc32c];

    fn options(bypass_inversion_reflection: bool, bypass_data_reflection: bool) -> CrcOptions {
        CrcOptions {
            bypass_inversion_reflection,
            bypass_data_reflection,
        }
    }

    #[test]
    fn check_values() {
        for crc in BOTH {
            let check = |options| crc(0, b"123456789", options);
            // The check value of CRC-32/ISCSI in the catalogue of parametrised CRC algorithms.
            assert_eq!(check(options(false, false)), 0xe306_9283);
            assert_eq!(check(options(true, false)), 0x045f_c71a);
            assert_eq!(check(options(false, true)), 0xa8f0_22a0);
            assert_eq!(check(options(true, true)), 0xc052_a8c8);
            // RFC 3720, B.4.
            assert_eq!(crc(0, &[0; 32], CrcOptions::default()), 0x8a91_36aa);
            assert_eq!(crc(0, &[0xff; 32], CrcOptions::default()), 0x62a8_ab43);
            let ascending: Vec<u8> = (0..32).collect();
            assert_eq!(crc(0, &ascending, CrcOptions::default()), 0x46dd_794e);
        }
    }

    #[test]
    fn parts_chain_through_the_seed() {
        for crc in BOTH {
            for options in [(false, false), (true, false), (false, true), (true, true)]
                .map(|(inversion, data)| options(inversion, data))
            {
                let whole = crc(0, b"123456789", options);
                for split in 0..=9 {
                    let (first, second) = b"123456789".split_at(split);
                    assert_eq!(crc(crc(0, first, options), second, options), whole);
                }
            }
        }
    }
}
