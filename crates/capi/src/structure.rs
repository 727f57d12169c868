//! Structures of the caller's, which begin with their size.

use std::mem::MaybeUninit;
use std::ptr;

use crate::error::Refusal;

/// Bytes of a structure at most: what is larger has no size in its first field.
const LARGEST: usize = 4096;

/// A structure of the caller's, of an earlier version, whose sizes are `earlier`, this one or a later one:
/// what an earlier one does not have is 0, and what this version does not know must be.
///
/// # Safety
/// `at` must be NULL or point to as many readable bytes as its first field says, a `usize`; a `T` must be
/// valid whatever its bytes are.
pub(crate) unsafe fn sized<T: Copy>(
    name: &str,
    at: *const T,
    earlier: &[usize],
) -> Result<T, Refusal> {
    let refuse = |message: std::fmt::Arguments| Err(Refusal::new(libc::EINVAL, message));
    if at.is_null() {
        return refuse(format_args!("the pointer to {name} is NULL"));
    }
    if !at.is_aligned() {
        return refuse(format_args!("{name} is not aligned"));
    }
    let latest = size_of::<T>();
    // SAFETY: readable, by the caller's promise, and aligned as a structure that begins with it.
    let size = unsafe { at.cast::<usize>().read() };
    if size > LARGEST || size < latest && !earlier.contains(&size) {
        return refuse(format_args!(
            "the size of {name} is {size}: set it to sizeof, which is {latest} in this version"
        ));
    }
    let known = size.min(latest);
    // SAFETY: so many bytes are readable, by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), size) };
    if bytes[known..].iter().any(|byte| *byte != 0) {
        return refuse(format_args!(
            "{name} has fields of a later version that are not 0: this one knows {latest} bytes of {size}"
        ));
    }
    let mut read = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` bytes are readable, and no more than a `T` has.
    unsafe { ptr::copy_nonoverlapping(at.cast::<u8>(), read.as_mut_ptr().cast::<u8>(), known) };
    // SAFETY: whatever its bytes are, by the caller's promise.
    Ok(unsafe { read.assume_init() })
}

/// A field that means nothing in this version is 0.
pub(crate) fn reserved(name: &str, value: impl Into<u64>) -> Result<(), Refusal> {
    match value.into() {
        0 => Ok(()),
        value => Err(Refusal::new(
            libc::EINVAL,
            format_args!("{name} is {value}: it must be 0"),
        )),
    }
}

/// One word of a few, by its number.
pub(crate) fn word<T: Copy>(name: &str, value: u32, words: &[T]) -> Result<T, Refusal> {
    words.get(value as usize).copied().ok_or_else(|| {
        let most = words.len() - 1;
        Refusal::new(
            libc::EINVAL,
            format_args!("{name} is {value}: 0 to {most} are possible"),
        )
    })
}
