//! CRCs of 32 and 64 bits.

#[cfg(target_arch = "x86_64")]
mod half;
#[cfg(target_arch = "x86_64")]
mod interleaved;
#[cfg(target_arch = "x86_64")]
mod wide;

use std::sync::LazyLock;

use crc_fast::{CrcAlgorithm, CrcParams, Digest};

use crate::copy::BLOCK;

/// How a CRC departs from the usual one (spec 8.3.12, appendix A).
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
    #[cfg(target_arch = "x86_64")]
    if !options.bypass_data_reflection {
        let register = convert(Width::Bits32, seed.into(), options) as u32;
        if let Some(register) = interleaved::update(register, data) {
            return convert(Width::Bits32, register.into(), options) as u32;
        }
    }
    if seed == 0 && options == CrcOptions::default() {
        // The usual case, without the cost of setting up a digest.
        return crc_fast::crc32_iscsi(data);
    }
    let mut crc = Running::new(Width::Bits32, seed.into(), options);
    crc.update(data);
    crc.finish() as u32
}

/// Copies `data` to `dst`, which is as long, and gives its CRC-32C.
pub(crate) fn copy_crc32c(seed: u32, data: &[u8], dst: &mut [u8], options: CrcOptions) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if !options.bypass_data_reflection {
        let register = convert(Width::Bits32, seed.into(), options) as u32;
        if let Some(register) = interleaved::update_and_copy(register, data, dst) {
            return convert(Width::Bits32, register.into(), options) as u32;
        }
    }
    copy_running(Running::new(Width::Bits32, seed.into(), options), data, dst) as u32
}

/// Copies `data` to `dst`, which is as long, and goes on with its CRC.
pub(crate) fn copy_running(mut crc: Running, data: &[u8], dst: &mut [u8]) -> u64 {
    for (data, dst) in data.chunks(BLOCK).zip(dst.chunks_mut(BLOCK)) {
        dst.copy_from_slice(data);
        crc.update(data);
    }
    crc.finish()
}

/// The CRC-32C of two runs of bytes, one behind the other, from that of the first (with the seed of
/// both) and that of the second (with seed 0), whose length is `second_bytes`.
///
/// ```
/// use dray_ops::{CrcOptions, crc32c, crc32c_combine};
/// let (first, second) = (crc32c(7, b"1234", CrcOptions::default()), crc32c(0, b"56789", CrcOptions::default()));
/// let both = crc32c(7, b"123456789", CrcOptions::default());
/// assert_eq!(crc32c_combine(first, second, 5), both);
/// ```
pub fn crc32c_combine(first: u32, second: u32, second_bytes: u64) -> u32 {
    let algorithm = CrcAlgorithm::Crc32Iscsi;
    crc_fast::checksum_combine(algorithm, first.into(), second.into(), second_bytes) as u32
}

/// The CRC-64 of NVM Express of `data`, version 2; seed and padding are as in [`crc32c`].
pub fn crc64(seed: u64, data: &[u8], options: CrcOptions) -> u64 {
    if seed == 0 && options == CrcOptions::default() {
        return crc_fast::crc64_nvme(data);
    }
    let mut crc = Running::new(Width::Bits64, seed, options);
    crc.update(data);
    crc.finish()
}

/// The sizes of a CRC.
#[derive(Copy, Clone)]
pub(crate) enum Width {
    Bits32,
    Bits64,
}

impl Width {
    const fn unused_bits(self) -> u32 {
        match self {
            Self::Bits32 => 32,
            Self::Bits64 => 0,
        }
    }

    fn reversed(self, value: u64) -> u64 {
        value.reverse_bits() >> self.unused_bits()
    }

    fn inverted(self, value: u64) -> u64 {
        value ^ (u64::MAX >> self.unused_bits())
    }

    /// The algorithm whose data enter with bit 0 first, and whose register is reflected.
    fn reflected(self) -> CrcAlgorithm {
        match self {
            Self::Bits32 => CrcAlgorithm::Crc32Iscsi,
            Self::Bits64 => CrcAlgorithm::Crc64Nvme,
        }
    }

    /// The algorithm whose data enter with bit 7 first.
    ///
    /// Feeding reversed bytes to the other one would give the same at half the speed.
    fn forward(self) -> CrcParams {
        match self {
            Self::Bits32 => *FORWARD_32,
            Self::Bits64 => *FORWARD_64,
        }
    }
}

static FORWARD_32: LazyLock<CrcParams> =
    LazyLock::new(|| CrcParams::new("DSA 32", 32, 0x1edc_6f41, 0, false, 0, 0));
static FORWARD_64: LazyLock<CrcParams> =
    LazyLock::new(|| CrcParams::new("DSA 64", 64, 0xad93_d235_94c9_3659, 0, false, 0, 0));

/// A CRC in progress.
pub(crate) struct Running {
    digest: Digest,
    width: Width,
    options: CrcOptions,
}

impl Running {
    pub(crate) fn new(width: Width, seed: u64, options: CrcOptions) -> Self {
        let register = convert(width, seed, options);
        let digest = if options.bypass_data_reflection {
            let mut params = width.forward();
            params.init_algorithm = register;
            Digest::new_with_params(params)
        } else {
            Digest::new_with_init_state(width.reflected(), register)
        };
        Self {
            digest,
            width,
            options,
        }
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        self.digest.update(data);
    }

    pub(crate) fn finish(self) -> u64 {
        convert(self.width, self.digest.get_state(), self.options)
    }
}

/// From seed to register, and from register to result, which is the same.
fn convert(width: Width, value: u64, options: CrcOptions) -> u64 {
    let CrcOptions {
        bypass_inversion_reflection,
        bypass_data_reflection,
    } = options;
    // Register and data are both reflected or both not; seed and result follow their own flag.
    let value = match bypass_inversion_reflection == bypass_data_reflection {
        true => value,
        false => width.reversed(value),
    };
    match bypass_inversion_reflection {
        true => value,
        false => width.inverted(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;

    fn options(bypass_inversion_reflection: bool, bypass_data_reflection: bool) -> CrcOptions {
        CrcOptions {
            bypass_inversion_reflection,
            bypass_data_reflection,
        }
    }

    fn every_option() -> [CrcOptions; 4] {
        [(false, false), (true, false), (false, true), (true, true)]
            .map(|(inversion, data)| options(inversion, data))
    }

    #[test]
    fn check_values_of_32_bits() {
        for crc in [crc32c, oracle::crc32c] {
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
    fn check_values_of_64_bits() {
        for crc in [crc64, oracle::crc64] {
            // The check value of CRC-64/NVME in the same catalogue.
            let check = crc(0, b"123456789", CrcOptions::default());
            assert_eq!(check, 0xae8b_1486_0a79_9888);
            // NVM Express, NVM command set specification, test cases of the 64-bit guard.
            let zeros = crc(0, &[0; 4096], CrcOptions::default());
            assert_eq!(zeros, 0x6482_d367_eb22_b64e);
            let ones = crc(0, &[0xff; 4096], CrcOptions::default());
            assert_eq!(ones, 0xc0dd_ba73_02ec_a3ac);
        }
    }

    #[test]
    fn parts_chain_through_the_seed() {
        for options in every_option() {
            for crc in [crc32c, oracle::crc32c] {
                let whole = crc(0, b"123456789", options);
                for split in 0..=9 {
                    let (first, second) = b"123456789".split_at(split);
                    assert_eq!(crc(crc(0, first, options), second, options), whole);
                }
            }
            for crc in [crc64, oracle::crc64] {
                let whole = crc(0, b"123456789", options);
                for split in 0..=9 {
                    let (first, second) = b"123456789".split_at(split);
                    assert_eq!(crc(crc(0, first, options), second, options), whole);
                }
            }
        }
    }

    #[test]
    fn bypassing_data_reflection_is_reversing_every_byte() {
        let reversed = b"123456789".map(u8::reverse_bits);
        for inversion in [false, true] {
            let bypassed = crc64(5, b"123456789", options(inversion, true));
            assert_eq!(bypassed, crc64(5, &reversed, options(inversion, false)));
        }
    }
}
