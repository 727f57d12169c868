//! Lines of memory that are fetched before they are needed.

/// Asks for the line that holds a byte, to read it: a hint, which waits for nothing.
///
/// The compiler moves the intrinsic `_mm_prefetch` behind loads that follow, where it comes too late.
#[inline(always)]
pub(crate) fn line_of(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which every processor of the architecture takes, which cannot fault and which changes no byte.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) byte, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}

/// Asks for the first and the last line: the pages of both may be looked up at the same time.
#[inline(always)]
pub(crate) fn ends_of(bytes: &[u8]) {
    if let [first, .., last] = bytes {
        line_of(first);
        line_of(last);
    }
}

/// Bytes of the smallest page.
pub(crate) const PAGE: usize = 4096;

/// How many pages ahead a page is asked for: its address is found while the pages before it are read.
pub(crate) const PAGES_AHEAD: usize = 2;

/// The index of the first part that `differs`, in the order of addresses.
///
/// At the start of each page, asks for the first lines of the page after the next one. The processor's prefetchers
/// follow one stream into the next page, but wait there until its address is found.
#[inline(always)]
pub(crate) fn position<const BYTES: usize>(
    parts: &[[u8; BYTES]],
    differs: impl Fn(&[u8; BYTES]) -> bool,
) -> Option<usize> {
    const { assert!(BYTES >= 128 && PAGE.is_multiple_of(BYTES)) };
    let ahead = const { PAGES_AHEAD * PAGE / BYTES };
    let mut done = 0;
    while let Some(first) = parts.get(done + ahead) {
        line_of(&first[0]);
        line_of(&first[64]);
        // Up to the first part that starts in the next page.
        let bytes = PAGE - parts[done].as_ptr().addr() % PAGE;
        let next = done + bytes.div_ceil(BYTES);
        if let Some(at) = parts[done..next].iter().position(&differs) {
            return Some(done + at);
        }
        done = next;
    }
    let at = parts[done..].iter().position(differs)?;
    Some(done + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_looked_at_once_and_in_order() {
        let bytes = vec![0_u8; 6 * PAGE];
        for skip in [0, 1, 64, 255, 256, 300, 4000, 4095] {
            for parts in [0, 1, 15, 16, 17, 32, 33, 34, 50, 70] {
                let parts = &bytes[skip..].as_chunks::<256>().0[..parts];
                let seen = std::cell::RefCell::new(Vec::new());
                let found = position(parts, |part| {
                    seen.borrow_mut().push(part.as_ptr());
                    false
                });
                assert_eq!(found, None);
                let expected: Vec<_> = parts.iter().map(|part| part.as_ptr()).collect();
                assert!(seen.into_inner() == expected, "{skip}, {}", parts.len());
                for n in 0..parts.len() {
                    let found = position(parts, |part| part.as_ptr() == parts[n].as_ptr());
                    assert_eq!(found, Some(n), "{skip}, {}", parts.len());
                }
            }
        }
    }
}
