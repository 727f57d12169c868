//! Fill: a pattern over and over.

#[cfg(target_arch = "x86_64")]
mod string;
#[cfg(target_arch = "x86_64")]
mod vector;

use crate::level::Level;

/// What a fill writes (spec 8.3.5).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Eight bytes, the only size in version 1.
    Eight([u8; 8]),
    /// Sixteen bytes, from version 2.
    Sixteen([u8; 16]),
}

impl Pattern {
    /// The bytes of the pattern, once.
    pub const fn bytes(&self) -> &[u8] {
        match self {
            Self::Eight(bytes) => bytes,
            Self::Sixteen(bytes) => bytes,
        }
    }

    /// The bytes of the pattern, twice if it has eight.
    const fn sixteen(&self) -> u128 {
        match self {
            Self::Eight(bytes) => u64::from_le_bytes(*bytes) as u128 * (1 << 64 | 1),
            Self::Sixteen(bytes) => u128::from_le_bytes(*bytes),
        }
    }
}

/// One cache line, which both sizes of pattern divide.
const LINE: usize = 64;

/// Fills `dst`; the pattern starts at its first byte and is cut off at its end.
#[inline]
pub fn fill(dst: &mut [u8], pattern: Pattern) {
    let sixteen = pattern.sixteen();
    if sixteen == sixteen.rotate_right(8) {
        // One byte, the usual case, and memset beats any loop.
        dst.fill(sixteen as u8);
        return;
    }
    fill_words(dst, sixteen);
}

/// Fills `dst` with a pattern of more than one byte.
fn fill_words(dst: &mut [u8], sixteen: u128) {
    #[cfg(target_arch = "x86_64")]
    if dst.len() >= string::LEAST && sixteen == sixteen.rotate_right(64) && string::is_fast() {
        return fill_by_string(dst, sixteen);
    }
    fill_lines(Level::best(), dst, sixteen);
}

/// By the processor's own loop, which knows that whole lines are overwritten and fetches none.
#[cfg(target_arch = "x86_64")]
fn fill_by_string(dst: &mut [u8], sixteen: u128) {
    let (dst, sixteen) = fill_ends(dst, sixteen);
    string::store(dst.as_chunks_mut::<8>().0, sixteen as u64);
}

/// Line by line.
fn fill_lines(level: Level, dst: &mut [u8], sixteen: u128) {
    let (dst, sixteen) = fill_ends(dst, sixteen);
    let lines = dst.as_chunks_mut::<LINE>().0;
    match level {
        Level::Baseline => lines.fill(line_of(sixteen)),
        // SAFETY: a level is only made where the processor has its instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { vector::avx2(lines, sixteen) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { vector::avx512(lines, sixteen) },
    }
}

/// Fills both ends; the whole lines between them are left to do, with the pattern as it is there.
#[inline(always)]
fn fill_ends(dst: &mut [u8], sixteen: u128) -> (&mut [u8], u128) {
    let turned = |bytes: usize| sixteen.rotate_right(8 * (bytes as u32 % 16));
    let from_last = turned(dst.len().wrapping_sub(LINE));
    let Some(last) = dst.last_chunk_mut::<LINE>() else {
        let bytes = dst.len();
        dst.copy_from_slice(&line_of(sixteen)[..bytes]);
        return (&mut [], sixteen);
    };
    *last = line_of(from_last);
    if let Some(first) = dst.first_chunk_mut::<LINE>() {
        *first = line_of(sixteen);
    }
    let skipped = dst.as_ptr().align_offset(LINE).min(dst.len());
    let rest = &mut dst[skipped..];
    let lines = rest.len() / LINE * LINE;
    (&mut rest[..lines], turned(skipped))
}

/// Sixteen bytes, four times.
#[inline(always)]
fn line_of(sixteen: u128) -> [u8; LINE] {
    let mut line = [0; LINE];
    for part in line.as_chunks_mut::<16>().0 {
        *part = sixteen.to_le_bytes();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIXTEEN: Pattern = Pattern::Sixteen(*b"0123456789abcdef");
    const EIGHT: Pattern = Pattern::Eight(*b"ABCDEFGH");

    #[test]
    fn the_pattern_starts_at_the_first_byte_and_is_cut_off() {
        let mut dst = [b'.'; 20];
        fill(&mut dst[1..19], SIXTEEN);
        assert_eq!(&dst, b".0123456789abcdef01.");
        fill(&mut dst[1..19], EIGHT);
        assert_eq!(&dst, b".ABCDEFGHABCDEFGHAB.");
        fill(&mut dst[1..4], Pattern::Eight([b'x'; 8]));
        assert_eq!(&dst, b".xxxDEFGHABCDEFGHAB.");
    }

    #[test]
    fn nothing_is_filled_with_nothing() {
        fill(&mut [], SIXTEEN);
    }

    type Way = Box<dyn Fn(&mut [u8], Pattern)>;

    /// Every way of filling, at every alignment, for lengths around lines.
    #[test]
    fn every_way_fills_the_same() {
        let mut ways: Vec<Way> = Vec::new();
        for level in Level::all() {
            ways.push(Box::new(move |dst, pattern| {
                fill_lines(level, dst, pattern.sixteen());
            }));
        }
        #[cfg(target_arch = "x86_64")]
        ways.push(Box::new(|dst, pattern| match pattern {
            Pattern::Eight(_) => fill_by_string(dst, pattern.sixteen()),
            Pattern::Sixteen(_) => fill(dst, pattern),
        }));
        for way in ways {
            for skip in 0..LINE {
                for bytes in (0..20).chain(55..75).chain(120..140).chain(4090..4100) {
                    for pattern in [EIGHT, SIXTEEN] {
                        let mut filled = vec![b'.'; skip + bytes + 5];
                        let mut expected = filled.clone();
                        way(&mut filled[skip..skip + bytes], pattern);
                        crate::oracle::fill(&mut expected[skip..skip + bytes], pattern);
                        assert!(filled == expected, "{bytes} bytes behind {skip}");
                    }
                }
            }
        }
    }
}
