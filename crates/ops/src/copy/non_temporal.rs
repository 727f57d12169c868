//! A copy that does not fill the caches.

use super::LengthMismatch;

/// Bytes of a cache line: what non-temporal stores write to memory at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Copies `src` to `dst` with non-temporal stores: for data that is larger than the caches, or that no core
/// reads soon. Memory moves two bytes for each byte copied, instead of three: no line of `dst` is read before
/// it is written, and what the caches hold stays there.
///
/// The stores are complete, for other cores and devices, when the call returns. Lines that `dst` has only in
/// part, and all of it where the processor has no such stores, are copied through the caches.
///
/// ```
/// let source = vec![7_u8; 4 << 20];
/// let mut target = vec![0_u8; 4 << 20];
/// dray_ops::copy_non_temporal(&source, &mut target)?;
/// assert_eq!(target, source);
/// # Ok::<(), dray_ops::LengthMismatch>(())
/// ```
///
/// # Errors
///
/// [`LengthMismatch`] if the lengths differ; nothing is written then.
pub fn copy_non_temporal(src: &[u8], dst: &mut [u8]) -> Result<(), LengthMismatch> {
    LengthMismatch::check(src, dst)?;
    #[cfg(target_arch = "x86_64")]
    lines(src, dst);
    #[cfg(not(target_arch = "x86_64"))]
    dst.copy_from_slice(src);
    Ok(())
}

/// Both are of the same length.
#[cfg(target_arch = "x86_64")]
fn lines(src: &[u8], dst: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    const VECTORS: usize = LINE / size_of::<__m128i>();
    let head = dst.as_ptr().align_offset(LINE).min(dst.len());
    let (first, rest) = dst.split_at_mut(head);
    let (src_first, src_rest) = src.split_at(head);
    first.copy_from_slice(src_first);
    let (to, last) = rest.as_chunks_mut::<LINE>();
    let (from, src_last) = src_rest.as_chunks::<LINE>();
    for (to, from) in to.iter_mut().zip(from) {
        let (to, from): (*mut __m128i, *const __m128i) =
            (to.as_mut_ptr().cast(), from.as_ptr().cast());
        for n in 0..VECTORS {
            // SAFETY: within the line; the load needs no alignment.
            let vector = unsafe { _mm_loadu_si128(from.wrapping_add(n)) };
            // SAFETY: within the line, which begins at a multiple of 64.
            unsafe { _mm_stream_si128(to.wrapping_add(n), vector) };
        }
    }
    last.copy_from_slice(src_last);
    // Non-temporal stores are not ordered with others, nor with a doorbell.
    // SAFETY: SSE is part of x86-64.
    unsafe { _mm_sfence() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_every_alignment_and_length_and_nothing_beside() {
        let source: Vec<u8> = (0..1024_u32).map(|n| (n * 7) as u8).collect();
        for from in [0, 1, 15, 63] {
            for to in [0, 1, 31, 63, 64] {
                for len in (0..200).chain([256, 511, 512, 513]) {
                    let mut target = vec![0xa5_u8; 1024];
                    let result =
                        copy_non_temporal(&source[from..from + len], &mut target[to..to + len]);
                    assert_eq!(result, Ok(()));
                    let mut expected = vec![0xa5_u8; 1024];
                    expected[to..to + len].copy_from_slice(&source[from..from + len]);
                    assert_eq!(target, expected, "from {from} to {to}, {len} bytes");
                }
            }
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        let mut target = [1_u8; 65];
        assert!(copy_non_temporal(&[0; 64], &mut target).is_err());
        assert_eq!(target, [1; 65]);
    }
}
