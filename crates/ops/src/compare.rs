//! Compare: where two buffers, or a buffer and a pattern, differ first.

/// How much is compared at once: large enough that the library's `memcmp` runs at full speed,
/// small enough that finding the byte afterwards costs nothing.
const BLOCK: usize = 1024;

/// Offset of the first byte that differs, or `None` if the buffers are equal (spec 8.3.6).
///
/// If one buffer is the beginning of the other, they differ where it ends.
pub fn compare(a: &[u8], b: &[u8]) -> Option<usize> {
    let common = a.len().min(b.len());
    let blocks = a[..common].chunks(BLOCK).zip(b[..common].chunks(BLOCK));
    for (index, (a, b)) in blocks.enumerate() {
        if a != b {
            return first_difference(a, b).map(|at| index * BLOCK + at);
        }
    }
    (a.len() != b.len()).then_some(common)
}

/// Words of a pattern that are compared without a branch, so that the compiler uses vectors.
const WORDS: usize = 16;

/// Offset of the first byte that differs from a pattern of 8 bytes, or `None` (spec 8.3.7).
///
/// Hardware may report any offset up to this one; this is the exact one.
pub fn compare_pattern(src: &[u8], pattern: [u8; 8]) -> Option<usize> {
    let (words, rest) = src.as_chunks::<8>();
    let wanted = u64::from_le_bytes(pattern);
    let difference = |word: &[u8; 8]| u64::from_le_bytes(*word) ^ wanted;
    let (groups, _) = words.as_chunks::<WORDS>();
    let differs = |group: &[[u8; 8]; WORDS]| {
        let any = group.iter().fold(0, |any, word| any | difference(word));
        any != 0
    };
    // What is left after the groups, or the group that differs, is searched word by word.
    let equal = WORDS * groups.iter().position(differs).unwrap_or(groups.len());
    for (index, word) in words.iter().enumerate().skip(equal) {
        if difference(word) != 0 {
            return Some(first_byte(index, difference(word)));
        }
    }
    let at = rest.iter().zip(pattern).position(|(a, b)| *a != b)?;
    Some(words.len() * 8 + at)
}

/// Offset of the byte where word `index` differs.
fn first_byte(index: usize, difference: u64) -> usize {
    index * 8 + difference.trailing_zeros() as usize / 8
}

/// Offset of the first byte that differs within the common length.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let common = a.len().min(b.len());
    let (a_words, a_rest) = a[..common].as_chunks::<8>();
    let (b_words, b_rest) = b[..common].as_chunks::<8>();
    for (index, (a, b)) in a_words.iter().zip(b_words).enumerate() {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return Some(first_byte(index, difference));
        }
    }
    let at = a_rest.iter().zip(b_rest).position(|(a, b)| a != b)?;
    Some(a_words.len() * 8 + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_found_exactly() {
        let a = vec![0x5a; 2 * BLOCK + 13];
        assert_eq!(compare(&a, &a), None);
        assert_eq!(compare_pattern(&a, [0x5a; 8]), None);
        for at in 0..a.len() {
            let mut b = a.clone();
            b[at] ^= 0x80;
            let last = b.len() - 1;
            b[last] ^= 1;
            assert_eq!(compare(&a, &b), Some(at));
            assert_eq!(compare_pattern(&b, [0x5a; 8]), Some(at));
        }
    }

    #[test]
    fn a_shorter_buffer_differs_where_it_ends() {
        assert_eq!(compare(b"abc", b"abcd"), Some(3));
        assert_eq!(compare(b"abcd", b""), Some(0));
        assert_eq!(compare(b"", b""), None);
        assert_eq!(compare(b"abX", b"abcd"), Some(2));
    }

    #[test]
    fn the_pattern_is_cut_off_at_the_end() {
        assert_eq!(compare_pattern(b"", *b"ABCDEFGH"), None);
        assert_eq!(compare_pattern(b"ABC", *b"ABCDEFGH"), None);
        assert_eq!(compare_pattern(b"ABCDEFGHA", *b"ABCDEFGH"), None);
        assert_eq!(compare_pattern(b"ABCDEFGHB", *b"ABCDEFGH"), Some(8));
    }
}
