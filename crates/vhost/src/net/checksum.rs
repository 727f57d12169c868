//! The internet checksum (RFC 1071).

/// The ones' complement sum of 16-bit big-endian words, not folded; an odd byte is padded with 0.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    // Sums of 32-bit words, in native order, fold to the same value as those of 16-bit ones; swapped
    // at the end (RFC 1071, 2 (B) and (C)).
    let mut total: u64 = 0;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        total += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    total += u64::from(u32::from_ne_bytes(last));
    u64::from(u16::from_be(fold(total)))
}

/// Folds a sum to 16 bits.
pub(crate) fn fold(mut total: u64) -> u16 {
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The checksum of a sum.
pub(crate) fn finish(total: u64) -> u16 {
    !fold(total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As RFC 1071 says it.
    fn by_words(bytes: &[u8]) -> u16 {
        let mut total = 0u32;
        for pair in bytes.chunks(2) {
            let word = u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total += word;
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn the_checksum_of_the_example_of_rfc_1071_is_correct() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
    }

    proptest! {
        #[test]
        fn the_checksum_equals_that_computed_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(fold(sum(&bytes)), by_words(&bytes));
        }
    }
}
