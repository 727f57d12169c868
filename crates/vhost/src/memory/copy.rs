//! Copies by the core.

use std::ptr::{self, NonNull};

/// Copies between a packet's buffer and a guest's memory. Short packets are copied without a call.
///
/// # Safety
/// Both sides have `len` bytes, mapped, and they are different memory.
#[inline]
pub(crate) unsafe fn copy(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    match len {
        // SAFETY: the caller's promise is the same.
        16..=32 => unsafe { copy_ends::<1>(from, to, len) },
        // SAFETY: the caller's promise is the same.
        33..=64 => unsafe { copy_ends::<2>(from, to, len) },
        // SAFETY: the caller's promise is the same.
        65..=128 => unsafe { copy_ends::<4>(from, to, len) },
        // SAFETY: the caller's promise is the same.
        _ => unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), len) },
    }
}

/// Copies the first and the last `N` pieces of 16 bytes, which together are all `len` bytes.
///
/// # Safety
/// As [`copy`]; `len` is from `16 * N` to `32 * N`.
#[inline]
unsafe fn copy_ends<const N: usize>(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    let back = len - 16 * N;
    let mut pieces = [[0u128; 2]; N];
    for (i, piece) in pieces.iter_mut().enumerate() {
        let at = 16 * i;
        // SAFETY: the piece lies within the `len` bytes.
        let first = unsafe { read(from, at) };
        // SAFETY: as above.
        let last = unsafe { read(from, back + at) };
        *piece = [first, last];
    }
    for (i, [first, last]) in pieces.into_iter().enumerate() {
        let at = 16 * i;
        // SAFETY: the piece lies within the `len` bytes.
        unsafe { write(to, at, first) };
        // SAFETY: as above.
        unsafe { write(to, back + at, last) };
    }
}

/// # Safety
/// 16 bytes are mapped at the offset.
#[inline]
unsafe fn read(from: NonNull<u8>, at: usize) -> u128 {
    // SAFETY: the caller's promise is the same.
    let at = unsafe { from.add(at) };
    // SAFETY: as above; any bytes are a number.
    unsafe { at.cast().read_unaligned() }
}

/// # Safety
/// 16 bytes are mapped at the offset, and nothing else of this process uses them.
#[inline]
unsafe fn write(to: NonNull<u8>, at: usize, piece: u128) {
    // SAFETY: the caller's promise is the same.
    let at = unsafe { to.add(at) };
    // SAFETY: as above.
    unsafe { at.cast().write_unaligned(piece) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_exactly() {
        let source: Vec<u8> = (0..300u32).map(|i| (i * 7 + 1) as u8).collect();
        for len in 0..=260 {
            let mut target = vec![0u8; 300];
            let from = NonNull::from(&source[3]);
            let to = NonNull::from(&mut target[5]);
            // SAFETY: both have so many bytes from there.
            unsafe { copy(from, to, len) };
            assert_eq!(target[5..5 + len], source[3..3 + len]);
            assert!(target[..5].iter().all(|b| *b == 0));
            assert!(target[5 + len..].iter().all(|b| *b == 0), "{len}");
        }
    }
}
