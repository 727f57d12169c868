//! CRCs, bit by bit.

use crate::CrcOptions;

/// Divides by 0x11EDC6F41, most significant bit first (spec 8.3.12, appendix A).
pub fn crc32c(seed: u32, data: &[u8], options: CrcOptions) -> u32 {
    let convert = |value: u32| {
        if options.bypass_inversion_reflection {
            value
        } else {
            !value.reverse_bits()
        }
    };
    let mut register = convert(seed);
    for bit in bits(data, options) {
        let feedback = (register >> 31 == 1) ^ bit;
        register <<= 1;
        if feedback {
            register ^= 0x1edc_6f41;
        }
    }
    convert(register)
}

/// Divides by 0x1AD93D23594C93659, most significant bit first (spec 8.3.12, appendix A).
pub fn crc64(seed: u64, data: &[u8], options: CrcOptions) -> u64 {
    let convert = |value: u64| {
        if options.bypass_inversion_reflection {
            value
        } else {
            !value.reverse_bits()
        }
    };
    let mut register = convert(seed);
    for bit in bits(data, options) {
        let feedback = (register >> 63 == 1) ^ bit;
        register <<= 1;
        if feedback {
            register ^= 0xad93_d235_94c9_3659;
        }
    }
    convert(register)
}

/// The bits of the data in the order in which they enter.
fn bits(data: &[u8], options: CrcOptions) -> impl Iterator<Item = bool> {
    let place = move |step| match options.bypass_data_reflection {
        true => 7 - step,
        false => step,
    };
    data.iter()
        .flat_map(move |byte| (0..8).map(move |step| byte >> place(step) & 1 == 1))
}
