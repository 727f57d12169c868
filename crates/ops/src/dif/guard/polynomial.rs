//! Arithmetic modulo the guard's polynomial, at compile time.

/// 0x18BB7 without the highest bit (spec appendix B).
const LOW: u16 = 0x8bb7;

/// The polynomial, of degree 16.
pub(super) const POLYNOMIAL: u64 = 0x1_8bb7;

/// A residue times x.
const fn times_x(residue: u16) -> u16 {
    (residue << 1) ^ ((residue >> 15) * LOW)
}

/// x to the power of `exponent`, as a residue.
pub(super) const fn power(exponent: u32) -> u64 {
    let mut residue = 1;
    let mut done = 0;
    while done < exponent {
        residue = times_x(residue);
        done += 1;
    }
    residue as u64
}

/// A CRC register after as many bytes of 0.
pub(super) const fn through_zeros(mut register: u16, bytes: usize) -> u16 {
    let mut bit = 0;
    while bit < 8 * bytes {
        register = times_x(register);
        bit += 1;
    }
    register
}

/// x to the power of `exponent`, 17 to 63, divided by the polynomial, for Barrett's reduction.
pub(super) const fn quotient(exponent: u32) -> u64 {
    let mut remainder: u64 = 1 << exponent;
    let mut quotient = 0;
    let mut place = exponent - 16;
    loop {
        if remainder >> (place + 16) & 1 == 1 {
            remainder ^= POLYNOMIAL << place;
            quotient |= 1 << place;
        }
        if place == 0 {
            break quotient;
        }
        place -= 1;
    }
}
