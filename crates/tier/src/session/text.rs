//! Text in a session's file.

use std::sync::atomic::{AtomicU64, Ordering};

/// A text of less than `8 * WORDS` bytes, empty at first. One side writes, others read; a reader may see the start
/// of one text and the rest of the next.
#[derive(Debug)]
#[repr(transparent)]
pub struct Text<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Text<WORDS> {
    /// Replaces the text; what does not fit is cut off.
    pub fn put(&self, text: &str) {
        let mut len = text.len().min(8 * WORDS - 1);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut chunks = text.as_bytes()[..len].chunks(8);
        for word in &self.0 {
            let mut bytes = [0; 8];
            let chunk = chunks.next().unwrap_or_default();
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// The text.
    pub fn get(&self) -> String {
        let words = self.0.iter();
        let bytes: Vec<u8> = words
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Moves the text to another place if that is empty; afterwards this one is.
    pub(super) fn move_to(&self, other: &Text<WORDS>) {
        let free = other.0[0].load(Ordering::Relaxed) == 0;
        for (from, to) in self.0.iter().zip(&other.0) {
            let word = from.swap(0, Ordering::Relaxed);
            if free {
                to.store(word, Ordering::Relaxed);
            }
        }
    }
}
