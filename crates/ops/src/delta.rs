//! Delta records: where two buffers differ, and the second one's words there.
//!
//! A record is a list of entries in ascending order: the offset in units of 8 bytes as 16 bits,
//! little-endian, then the 8 bytes of the second source (spec 8.3.8).

mod apply;
mod error;

pub use apply::{DeltaCursor, DeltaEntry, apply_delta};
pub use error::{DeltaError, DeltaSizeError};

use crate::compare;

/// Bytes of an entry.
pub const DELTA_ENTRY_BYTES: usize = 10;

/// Largest transfer that 16 bits of offset can describe, in bytes.
pub const DELTA_MAX_BYTES: usize = 0x8_0000;

/// What a comparison found (spec 8.3.8).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DeltaCreated {
    /// No difference; nothing was written. Result 0.
    Equal,
    /// All differences are in the record. Result 1.
    Complete {
        /// Bytes of the record that were written.
        record_bytes: usize,
    },
    /// There is no room for a further entry. Result 2.
    Overflow {
        /// Bytes of the record that were written: whole entries.
        record_bytes: usize,
        /// Bytes compared before the first difference that is not in the record.
        compared_bytes: usize,
    },
}

impl DeltaCreated {
    /// The Result field of the completion record.
    pub const fn result(self) -> u8 {
        match self {
            Self::Equal => 0,
            Self::Complete { .. } => 1,
            Self::Overflow { .. } => 2,
        }
    }

    /// Bytes of the record that were written.
    pub const fn record_bytes(self) -> usize {
        match self {
            Self::Equal => 0,
            Self::Complete { record_bytes } | Self::Overflow { record_bytes, .. } => record_bytes,
        }
    }
}

/// Writes what turns `src1` into `src2` into a record of at most `record.len()` bytes.
///
/// Bytes of `record` behind the last entry stay as they are.
///
/// # Errors
///
/// [`DeltaSizeError`]: lengths that differ, are no multiple of 8 or too large; nothing is written.
#[inline]
pub fn create_delta(
    src1: &[u8],
    src2: &[u8],
    record: &mut [u8],
) -> Result<DeltaCreated, DeltaSizeError> {
    create_delta_at(0, src1, src2, record)
}

/// As [`create_delta`], for a part of a transfer that starts `offset_bytes` into it.
///
/// Only the offsets in the record count from the start of the transfer; `compared_bytes` does not.
///
/// # Errors
///
/// [`DeltaSizeError`], also if the part starts at no multiple of 8 or ends behind the limit.
#[inline]
pub fn create_delta_at(
    offset_bytes: usize,
    src1: &[u8],
    src2: &[u8],
    record: &mut [u8],
) -> Result<DeltaCreated, DeltaSizeError> {
    DeltaSizeError::check(offset_bytes, src1, src2)?;
    Ok(match compare(src1, src2) {
        None => DeltaCreated::Equal,
        Some(equal) => differences(offset_bytes, equal, src1, src2, record),
    })
}

/// Writes the record of two sources that first differ at `differ_at`.
#[inline(never)]
fn differences(
    offset_bytes: usize,
    differ_at: usize,
    src1: &[u8],
    src2: &[u8],
    record: &mut [u8],
) -> DeltaCreated {
    let capacity = record.len() / DELTA_ENTRY_BYTES;
    let mut used = 0;
    let mut block = Block::new();
    let mut start = 0;
    let mut next = Some(differ_at);
    while let Some(equal) = next {
        start += equal - equal % WORD;
        let end = src1.len().min(start + BLOCK);
        let entries = block.compare(
            (offset_bytes + start) / WORD,
            &src1[start..end],
            &src2[start..end],
        );
        start = end;
        let room = entries.len().min(capacity - used);
        let written = &mut record[used * DELTA_ENTRY_BYTES..(used + room) * DELTA_ENTRY_BYTES];
        written.copy_from_slice(entries[..room].as_flattened());
        used += room;
        if let Some([low, high, ..]) = entries.get(room) {
            let word = usize::from(u16::from_le_bytes([*low, *high]));
            return DeltaCreated::Overflow {
                record_bytes: used * DELTA_ENTRY_BYTES,
                compared_bytes: word * WORD - offset_bytes,
            };
        }
        next = compare(&src1[start..], &src2[start..]);
    }
    DeltaCreated::Complete {
        record_bytes: used * DELTA_ENTRY_BYTES,
    }
}

/// Bytes that an entry describes.
const WORD: usize = 8;

/// How much is searched word by word from the first difference on.
const BLOCK: usize = 1024;

/// Words that are compared without a branch, so that the compiler uses vectors.
const LINE: usize = 8;

/// The entries of one block that differs.
struct Block {
    entries: [u8; MAX_ENTRIES * DELTA_ENTRY_BYTES + SPILL],
    used_bytes: usize,
}

const MAX_ENTRIES: usize = BLOCK / WORD;

/// An entry is written as 16 bytes, of which the next one overwrites what is too much.
const SPILL: usize = 16 - DELTA_ENTRY_BYTES;

impl Block {
    fn new() -> Self {
        Self {
            entries: [0; MAX_ENTRIES * DELTA_ENTRY_BYTES + SPILL],
            used_bytes: 0,
        }
    }

    /// Entries for two buffers of at most a block; `first` is the number of their first word.
    fn compare(&mut self, first: usize, src1: &[u8], src2: &[u8]) -> &[[u8; DELTA_ENTRY_BYTES]] {
        self.used_bytes = 0;
        let words1 = src1.as_chunks::<WORD>().0;
        let words2 = src2.as_chunks::<WORD>().0;
        let (lines1, rest1) = words1.as_chunks::<LINE>();
        let (lines2, rest2) = words2.as_chunks::<LINE>();
        for (index, (line1, line2)) in lines1.iter().zip(lines2).enumerate() {
            let words = line1.iter().zip(line2);
            if words.fold(0, |any, (a, b)| any | difference(a, b)) != 0 {
                self.compare_words(first + index * LINE, line1, line2);
            }
        }
        self.compare_words(first + lines1.len() * LINE, rest1, rest2);
        self.entries[..self.used_bytes].as_chunks().0
    }

    /// Writes an entry for every word and keeps it if the word differs: data decide no branch.
    fn compare_words(&mut self, first: usize, src1: &[[u8; WORD]], src2: &[[u8; WORD]]) {
        for (index, (word1, word2)) in src1.iter().zip(src2).enumerate() {
            let number = (first + index) as u16;
            let entry = u128::from(u64::from_le_bytes(*word2)) << 16 | u128::from(number);
            let place = &mut self.entries[self.used_bytes..self.used_bytes + 16];
            place.copy_from_slice(&entry.to_le_bytes());
            self.used_bytes += DELTA_ENTRY_BYTES * usize::from(difference(word1, word2) != 0);
        }
    }
}

fn difference(a: &[u8; WORD], b: &[u8; WORD]) -> u64 {
    u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)
}

#[cfg(test)]
mod tests;
