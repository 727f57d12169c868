//! Fill: a pattern over and over.

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

    /// The bytes of the pattern, over and over.
    fn line(&self) -> [u8; LINE] {
        let sixteen = match self {
            Self::Eight(bytes) => u128::from(u64::from_le_bytes(*bytes)) * (1 << 64 | 1),
            Self::Sixteen(bytes) => u128::from_le_bytes(*bytes),
        };
        let mut line = [0; LINE];
        for part in line.as_chunks_mut::<16>().0 {
            *part = sixteen.to_le_bytes();
        }
        line
    }
}

/// One cache line, which both sizes of pattern divide.
const LINE: usize = 64;

/// What is filled line by line and then copied over and over: small beside the first-level cache.
const HEAD: usize = 8 * 1024;

/// Fills `dst`; the pattern starts at its first byte and is cut off at its end.
pub fn fill(dst: &mut [u8], pattern: Pattern) {
    let bytes = pattern.bytes();
    if bytes.iter().all(|byte| *byte == bytes[0]) {
        // The usual case, and memset beats any loop.
        dst.fill(bytes[0]);
        return;
    }
    let line = pattern.line();
    let (head, rest) = dst.split_at_mut(dst.len().min(HEAD));
    let (lines, end) = head.as_chunks_mut::<LINE>();
    lines.fill(line);
    end.copy_from_slice(&line[..end.len()]);
    // The library's memcpy stores faster than any portable loop.
    for part in rest.chunks_mut(HEAD) {
        part.copy_from_slice(&head[..part.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIXTEEN: Pattern = Pattern::Sixteen(*b"0123456789abcdef");

    #[test]
    fn the_pattern_starts_at_the_first_byte_and_is_cut_off() {
        let mut dst = [b'.'; 20];
        fill(&mut dst[1..19], SIXTEEN);
        assert_eq!(&dst, b".0123456789abcdef01.");
        fill(&mut dst[1..19], Pattern::Eight(*b"ABCDEFGH"));
        assert_eq!(&dst, b".ABCDEFGHABCDEFGHAB.");
        fill(&mut dst[1..4], Pattern::Eight([b'x'; 8]));
        assert_eq!(&dst, b".xxxDEFGHABCDEFGHAB.");
    }

    #[test]
    fn nothing_is_filled_with_nothing() {
        fill(&mut [], SIXTEEN);
    }
}
