//! Compare: where two buffers, or a buffer and a pattern, differ first.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::level::Level;
use crate::prefetch;

/// Bytes of two buffers that are compared without a branch.
const GROUP: usize = 128;

/// Bytes of two buffers that are, where there is much to compare.
const BLOCK: usize = 4 * GROUP;

/// Bytes of one buffer that are: as many loads.
const PATTERN_GROUP: usize = 2 * GROUP;

/// Loads of whole vectors that start at multiples of this cross no cache line.
const LINE: usize = 64;

/// Offset of the first byte that differs, or `None` if the buffers are equal (spec 8.3.6).
///
/// If one buffer is the beginning of the other, they differ where it ends.
#[inline]
pub fn compare(a: &[u8], b: &[u8]) -> Option<usize> {
    compare_at(Level::best(), a, b)
}

#[inline]
fn compare_at(level: Level, a: &[u8], b: &[u8]) -> Option<usize> {
    match level {
        Level::Baseline => in_groups(a, b, |a, b| a != b, |a, b| a != b, |a, b| a != b),
        // SAFETY: a level is only made where the processor has its instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::compare(a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::compare(a, b) },
    }
}

/// As [`compare`]; the functions say whether two groups, two lines and two blocks differ. All of it is
/// inlined where they have their instructions, because three calls take as long as a KiB.
#[inline(always)]
fn in_groups(
    a: &[u8],
    b: &[u8],
    differ: impl Fn(&[u8; GROUP], &[u8; GROUP]) -> bool,
    lines_differ: impl Fn(&[u8; LINE], &[u8; LINE]) -> bool,
    blocks_differ: impl Fn(&[u8; BLOCK], &[u8; BLOCK]) -> bool,
) -> Option<usize> {
    let common = a.len().min(b.len());
    let (a_all, b_all) = (&a[..common], &b[..common]);
    let (Some(a_last), Some(b_last)) = (a_all.last_chunk::<GROUP>(), b_all.last_chunk()) else {
        return exact(a, b, 0);
    };
    let (Some(a_first), Some(b_first)) = (a_all.first_chunk(), b_all.first_chunk()) else {
        return exact(a, b, 0);
    };
    // Often on other pages, whose addresses take as long to find as the data.
    prefetch::line_of(&a_last[GROUP - 1]);
    prefetch::line_of(&b_last[GROUP - 1]);
    let first = a.as_ptr().align_offset(LINE).min(LINE);
    if first > 0 && lines_differ(a_first, b_first) {
        return exact(a, b, 0);
    }
    let (a_blocks, rest) = a_all[first..].as_chunks::<BLOCK>();
    let b_blocks = b_all[first..].as_chunks::<BLOCK>().0;
    for (n, (a_block, b_block)) in a_blocks.iter().zip(b_blocks).enumerate() {
        if blocks_differ(a_block, b_block) {
            return exact(a, b, first + n * BLOCK);
        }
    }
    let done = common - rest.len();
    let (a_groups, rest) = rest.as_chunks::<GROUP>();
    let b_groups = b_all[done..].as_chunks::<GROUP>().0;
    for (n, (a_group, b_group)) in a_groups.iter().zip(b_groups).enumerate() {
        if differ(a_group, b_group) {
            return exact(a, b, done + n * GROUP);
        }
    }
    if !rest.is_empty() && differ(a_last, b_last) {
        return exact(a, b, common - GROUP);
    }
    (a.len() != b.len()).then_some(common)
}

/// As [`compare`], word by word from an offset on: what is before it is equal.
#[inline(never)]
fn exact(a: &[u8], b: &[u8], from: usize) -> Option<usize> {
    match first_difference(&a[from..], &b[from..]) {
        Some(at) => Some(from + at),
        None => (a.len() != b.len()).then_some(a.len().min(b.len())),
    }
}

/// The groups of a buffer: one where it starts, those from a line on, one that ends where it does.
struct Steps {
    first: usize,
    last: usize,
}

impl Steps {
    /// `None` if the buffer is shorter than a group.
    fn of(src: &[u8]) -> Option<Self> {
        Some(Self {
            last: src.len().checked_sub(PATTERN_GROUP)?,
            first: src.as_ptr().align_offset(LINE).min(LINE),
        })
    }
}

/// Offset of the first byte that differs from a pattern of 8 bytes, or `None` (spec 8.3.7).
///
/// Hardware may report any offset up to this one; this is the exact one.
#[inline]
pub fn compare_pattern(src: &[u8], pattern: [u8; 8]) -> Option<usize> {
    compare_pattern_at(Level::best(), src, pattern)
}

fn compare_pattern_at(level: Level, src: &[u8], pattern: [u8; 8]) -> Option<usize> {
    let wanted = u64::from_le_bytes(pattern);
    let equal = equal_to_pattern(level, src, wanted);
    let pattern = from(wanted, equal).to_le_bytes();
    let (words, rest) = src[equal..].as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let difference = difference(word, &pattern);
        if difference != 0 {
            return Some(equal + first_byte(index, difference));
        }
    }
    let at = rest.iter().zip(pattern).position(|(a, b)| *a != b)?;
    Some(equal + words.len() * 8 + at)
}

/// A pattern as it goes on so many bytes later.
fn from(pattern: u64, bytes: usize) -> u64 {
    pattern.rotate_right(8 * (bytes as u32 % 8))
}

/// Bytes at the beginning that are the pattern's: all, or all in front of the group that differs.
#[inline]
fn equal_to_pattern(level: Level, src: &[u8], pattern: u64) -> usize {
    let differs = |src: &[[u8; PATTERN_GROUP]], pattern| match level {
        Level::Baseline => {
            let wanted = u64::to_le_bytes(pattern);
            let words = |group: &[u8; PATTERN_GROUP]| {
                let words = group.as_chunks::<8>().0.iter();
                words.fold(0, |any, word| any | difference(word, &wanted))
            };
            prefetch::position(src, |group| words(group) != 0)
        }
        // SAFETY: a level is only made where the processor has its instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::differs_from_pattern(src, pattern) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::differs_from_pattern(src, pattern) },
    };
    let Some(steps) = Steps::of(src) else {
        return 0;
    };
    prefetch::ends_of(src);
    if differs(&src.as_chunks::<PATTERN_GROUP>().0[..1], pattern).is_some() {
        return 0;
    }
    let groups = src[steps.first..].as_chunks::<PATTERN_GROUP>().0;
    if let Some(groups) = differs(groups, from(pattern, steps.first)) {
        return steps.first + groups * PATTERN_GROUP;
    }
    let last = src[steps.last..].as_chunks::<PATTERN_GROUP>().0;
    match differs(last, from(pattern, steps.last)) {
        Some(_) => steps.last,
        None => src.len(),
    }
}

fn difference(a: &[u8; 8], b: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)
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
        let difference = difference(a, b);
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
    fn every_position_is_found_exactly_at_every_level() {
        // Twice the largest step, from starts with every alignment to a line that words have.
        let bytes = 2 * PATTERN_GROUP + LINE + 13;
        for level in Level::all() {
            for skip in (0..LINE).step_by(7) {
                let a = vec![0x5a; skip + bytes];
                let a = &a[skip..];
                assert_eq!(compare_at(level, a, a), None);
                assert_eq!(compare_pattern_at(level, a, [0x5a; 8]), None);
                for at in 0..a.len() {
                    let mut b = a.to_vec();
                    b[at] ^= 0x80;
                    b[bytes - 1] ^= 1;
                    assert_eq!(compare_at(level, a, &b), Some(at), "{level:?}");
                    assert_eq!(compare_at(level, &b, a), Some(at), "{level:?}");
                    let found = compare_pattern_at(level, &b, [0x5a; 8]);
                    assert_eq!(found, Some(at), "{level:?}");
                }
            }
        }
    }

    #[test]
    fn positions_in_several_pages_are_found_exactly_at_every_level() {
        let bytes = 5 * 4096 + LINE + 13;
        let pattern = *b"ABCDEFGH";
        for level in Level::all() {
            for skip in [0, 1, 16, 4095] {
                let mut a = vec![0; skip + bytes];
                crate::oracle::fill(&mut a[skip..], crate::Pattern::Eight(pattern));
                let a = &a[skip..];
                let mut b = a.to_vec();
                assert_eq!(compare_pattern_at(level, a, pattern), None);
                assert_eq!(compare_at(level, a, &b), None);
                for at in (0..bytes).step_by(61) {
                    b[at] ^= 0x80;
                    let found = compare_pattern_at(level, &b, pattern);
                    assert_eq!(found, Some(at), "{level:?}");
                    assert_eq!(compare_at(level, a, &b), Some(at), "{level:?}");
                    b[at] ^= 0x80;
                }
            }
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
