//! Texts of the C library, without memory of one's own.

use std::ffi::{CStr, c_char};

/// Bytes with a zero behind them, in a place of fixed size.
#[derive(Debug, Clone)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) fn new() -> Text<N> {
        Text {
            bytes: [0; N],
            length: 0,
        }
    }

    /// Adds bytes; whether there was room for all of them and the zero.
    pub(crate) fn push(&mut self, more: &[u8]) -> bool {
        let end = self.length + more.len();
        match self.bytes.get_mut(self.length..end) {
            Some(place) if end < N => {
                place.copy_from_slice(more);
                self.length = end;
                true
            }
            _ => false,
        }
    }

    /// Adds a number; whether there was room.
    pub(crate) fn push_number(&mut self, mut number: u32) -> bool {
        let mut digits = [0; 10];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.push(&digits[at..]);
            }
        }
    }

    /// Keeps the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        self.bytes[self.length] = 0;
    }

    /// Has `fill` write into the whole place; it says how many bytes it has written.
    pub(crate) fn fill(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) {
        let length = fill(&mut self.bytes[..N - 1]).min(N - 1);
        self.length = length;
        self.bytes[length] = 0;
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The bytes and their zero.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}

fn environment() -> *const *const c_char {
    unsafe extern "C" {
        static mut environ: *const *const c_char;
    }
    // SAFETY: it is read as the C library does.
    unsafe { environ }
}

/// Whether the C library has the environment yet: a static memory checker calls functions of this library
/// before.
pub(crate) fn has_environment() -> bool {
    !environment().is_null()
}

/// A variable of the environment, as it is now. Without getenv, which memory checkers interpose.
pub(crate) fn variable(name: &str) -> Option<&'static [u8]> {
    let mut entry = environment();
    while !entry.is_null() {
        // SAFETY: the list ends with null.
        let text = unsafe { *entry };
        if text.is_null() {
            break;
        }
        // SAFETY: an entry is a text with its end.
        let text = unsafe { CStr::from_ptr(text) }.to_bytes();
        let value = text.strip_prefix(name.as_bytes());
        if let Some(value) = value.and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
        // SAFETY: the entry was not the last.
        entry = unsafe { entry.add(1) };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_is_not_added() {
        let mut text = Text::<8>::new();
        assert!(text.push(b"fd/"));
        assert!(text.push_number(1207));
        assert!(!text.push(b"x"));
        assert_eq!(text.as_bytes(), b"fd/1207");
        text.truncate(3);
        assert!(text.push_number(0));
        assert_eq!(text.as_bytes(), b"fd/0");
        text.fill(|place| place.len());
        assert_eq!(text.as_bytes().len(), 7);
    }

    #[test]
    fn environment_variables_are_found() {
        assert!(variable("PATH").is_some_and(|path| !path.is_empty()));
        assert_eq!(variable("DRAY_NO_SUCH_VARIABLE"), None);
    }
}
