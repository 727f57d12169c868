//! Copies by the core.
//!
//! A guest may write its memory at any time, as the kernel may write what it shares: such memory is read and written by
//! volatile accesses, or by code that the compiler does not see. What decides is read once; bytes of a packet may be read twice.

use std::ffi::c_void;
use std::hint;
use std::ptr::NonNull;

/// What is read and written at once.
#[cfg(target_arch = "x86_64")]
type Piece = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Piece = u128;

/// Bytes of a piece.
const PIECE: usize = size_of::<Piece>();

/// A value wherever it lies.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Anywhere<T>(T);

/// Reads a value of a guest's memory, once.
///
/// # Safety
/// Its bytes are mapped, and any bytes are a valid value.
#[inline]
pub(crate) unsafe fn read<T: Copy>(from: NonNull<u8>) -> T {
    // SAFETY: the caller's promise; it needs no alignment.
    let Anywhere(value) = unsafe { from.cast::<Anywhere<T>>().read_volatile() };
    value
}

/// Writes a value to a guest's memory.
///
/// # Safety
/// Its bytes are mapped and writable.
#[inline]
pub(crate) unsafe fn write<T: Copy>(to: NonNull<u8>, value: T) {
    // SAFETY: the caller's promise; it needs no alignment.
    unsafe { to.cast::<Anywhere<T>>().write_volatile(Anywhere(value)) };
}

/// Copies between a packet's buffer and a guest's memory. Short packets are copied without a loop.
///
/// # Safety
/// Both sides have `len` bytes, mapped, and they are different memory.
#[inline]
pub(crate) unsafe fn copy(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    match len {
        // SAFETY: the caller's promise is the same.
        0..=15 => unsafe { copy_bytes(from, to, len) },
        // SAFETY: the caller's promise is the same.
        16..=32 => unsafe { copy_ends::<1>(from, to, len) },
        // SAFETY: the caller's promise is the same.
        33..=64 => unsafe { copy_ends::<2>(from, to, len) },
        // SAFETY: the caller's promise is the same.
        65..=128 => unsafe { copy_ends::<4>(from, to, len) },
        // SAFETY: the caller's promise is the same.
        _ => unsafe { copy_long(from, to, len) },
    }
}

/// # Safety
/// As [`copy`].
#[inline]
unsafe fn copy_bytes(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    for at in 0..len {
        // SAFETY: the byte is one of `len`.
        let (from, to) = (unsafe { from.add(at) }, unsafe { to.add(at) });
        // SAFETY: as above.
        let byte: u8 = unsafe { read(from) };
        // SAFETY: as above.
        unsafe { write(to, byte) };
    }
}

/// Copies the first and the last `N` pieces, which together are all `len` bytes.
///
/// # Safety
/// As [`copy`]; `len` is from `16 * N` to `32 * N`.
#[inline]
unsafe fn copy_ends<const N: usize>(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    let back = len - PIECE * N;
    // SAFETY: they lie within the `len` bytes.
    let first: [Piece; N] = unsafe { pieces(from, 0) };
    // SAFETY: as above.
    let last: [Piece; N] = unsafe { pieces(from, back) };
    // SAFETY: as above.
    unsafe { put(to, 0, first) };
    // SAFETY: as above.
    unsafe { put(to, back, last) };
}

/// By the C library's function, called through a pointer that the compiler knows nothing of: to it these are accesses of others,
/// as a device's are, and what it copies may change meanwhile. Loops of volatile accesses take twice as long from 256 bytes
/// on, and four times where lines are crossed.
///
/// # Safety
/// As [`copy`].
#[inline]
unsafe fn copy_long(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    let by: Copy = hint::black_box(libc::memcpy);
    // SAFETY: the caller's promise.
    unsafe { by(to.as_ptr().cast(), from.as_ptr().cast(), len) };
}

/// # Safety
/// So many pieces are mapped from the offset on.
#[inline]
unsafe fn pieces<const N: usize>(from: NonNull<u8>, at: usize) -> [Piece; N] {
    std::array::from_fn(|piece| {
        // SAFETY: the caller's promise.
        let from = unsafe { from.add(at + piece * PIECE) };
        // SAFETY: as above; any bytes are a number.
        unsafe { read(from) }
    })
}

/// # Safety
/// So many pieces are mapped from the offset on, and writable.
#[inline]
unsafe fn put<const N: usize>(to: NonNull<u8>, at: usize, pieces: [Piece; N]) {
    for (nth, piece) in pieces.into_iter().enumerate() {
        // SAFETY: the caller's promise.
        let to = unsafe { to.add(at + nth * PIECE) };
        // SAFETY: as above.
        unsafe { write(to, piece) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_exactly() {
        let source: Vec<u8> = (0..700u32).map(|i| (i * 7 + 1) as u8).collect();
        for len in (0..=260).chain([512, 513, 600]) {
            let mut target = vec![0u8; 700];
            let from = NonNull::from(&source[3..]).cast();
            let to = NonNull::from(&mut target[5..]).cast();
            // SAFETY: both have so many bytes from there.
            unsafe { copy(from, to, len) };
            assert_eq!(target[5..5 + len], source[3..3 + len]);
            assert!(target[..5].iter().all(|b| *b == 0));
            assert!(target[5 + len..].iter().all(|b| *b == 0), "{len}");
        }
    }

    #[test]
    fn values_need_no_alignment() {
        let mut bytes = [0u8; 24];
        let at = NonNull::from(&mut bytes[3..]).cast();
        // SAFETY: 16 bytes are there.
        unsafe { write(at, 0x0102_0304_0506_0708_u64) };
        // SAFETY: as above.
        assert_eq!(unsafe { read::<u64>(at) }, 0x0102_0304_0506_0708);
        assert_eq!(bytes[3..11], 0x0102_0304_0506_0708_u64.to_ne_bytes());
    }
}
