//! Values of parameters, and sizes as people write them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value of a parameter: a count or a number of bytes, or a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A count, or a size in bytes.
    Integer(u64),
    /// A word, such as the name of an operation.
    Text(String),
}

impl Value {
    /// The number, if it is one.
    pub fn integer(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    /// The word, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Integer(_) => None,
            Self::Text(text) => Some(text),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not digits with a known suffix.
    #[error("`{text}` is not a size; write bytes as 256, 4k, 2M, 2MiB or 1G (k = 2^10)")]
    NotASize {
        /// What was written.
        text: String,
    },
    /// `KB`, `MB` and the like, which some read as powers of ten.
    #[error("`{text}` could mean powers of 2 or of 10; write `{fix}` (k = 2^10)")]
    Ambiguous {
        /// What was written.
        text: String,
        /// The same with a suffix that has one meaning.
        fix: String,
    },
    /// More than 2^64 - 1 bytes.
    #[error("`{text}` is above the limit of 2^64 - 1 bytes; write a smaller size")]
    TooLarge {
        /// What was written.
        text: String,
    },
}

/// Suffixes, largest first, and the power of two each stands for.
const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

/// Reads a size: `256`, `4k`, `1M`, `2MiB`, `1G`.
///
/// Bytes; every suffix is a power of two. `KB` and `MB` are refused, since half the world
/// reads them as powers of ten.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = trimmed.split_at(digits);
    let suffix = suffix.trim_start();
    let not_a_size = || SizeError::NotASize {
        text: clip(trimmed),
    };
    if number.is_empty() {
        return Err(not_a_size());
    }
    let shift = match suffix {
        "" | "B" => 0,
        _ => {
            let mut letters = suffix.chars();
            let letter = letters.next().map(|letter| letter.to_ascii_uppercase());
            let unit = UNITS.iter().find(|(name, _)| letter == Some(*name));
            let (name, shift) = *unit.ok_or_else(not_a_size)?;
            match letters.as_str().to_ascii_lowercase().as_str() {
                "" | "ib" | "i" => shift,
                "b" => {
                    let fix = format!("{}{name}", clip(number));
                    return Err(SizeError::Ambiguous {
                        text: clip(trimmed),
                        fix,
                    });
                }
                _ => return Err(not_a_size()),
            }
        }
    };
    // Only digits are left, so that the one way to fail is to be too large.
    let number = number.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| SizeError::TooLarge {
            text: clip(trimmed),
        })
}

/// Writes a size the short way: 4096 as `4K`, 1048576 as `1M`, 4097 as `4097`.
pub fn format_bytes(bytes: u64) -> String {
    for (name, shift) in UNITS {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{name}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// The text for a message: what a program wrote by mistake can be megabytes long.
pub(crate) fn clip(text: &str) -> String {
    const LIMIT: usize = 80;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn suffixes_of_sizes_are_powers_of_1024() {
        let cases = [
            ("0", 0),
            ("256", 256),
            ("4k", 4096),
            ("4K", 4096),
            (" 4 KiB ", 4096),
            ("16kib", 16 << 10),
            ("2mi", 2 << 20),
            ("1M", 1 << 20),
            ("2MiB", 2 << 20),
            ("1G", 1 << 30),
            ("1T", 1 << 40),
            ("64B", 64),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn malformed_sizes_are_refused() {
        for text in [
            "", "k", "-1", "+4", "4.5k", "4kk", "4 q", "0x10", "4kiBx", "٣",
        ] {
            let refused = parse_bytes(text);
            assert!(
                matches!(refused, Err(SizeError::NotASize { .. })),
                "{text}: {refused:?}"
            );
        }
        let message = parse_bytes("4KB").unwrap_err().to_string();
        assert!(message.contains("`4K`"), "{message}");
        for text in ["18446744073709551616", "16777216T"] {
            assert!(
                matches!(parse_bytes(text), Err(SizeError::TooLarge { .. })),
                "{text}"
            );
        }
        assert_eq!(parse_bytes("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn long_texts_are_shortened_in_messages() {
        let message = parse_bytes(&"é".repeat(100_000)).unwrap_err().to_string();
        assert!(message.len() < 400, "{}", message.len());
    }

    #[test]
    fn only_exact_multiples_get_a_suffix() {
        let cases = [
            (0, "0"),
            (256, "256"),
            (4096, "4K"),
            (4097, "4097"),
            (1 << 20, "1M"),
        ];
        for (bytes, text) in cases {
            assert_eq!(format_bytes(bytes), text);
        }
        assert_eq!(format_bytes(1536 << 20), "1536M");
    }

    proptest! {
        #[test]
        fn formatted_sizes_survive_a_round_trip(number in any::<u64>(), shift in 0u32..64) {
            let bytes = number << shift;
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn random_text_is_parsed_or_refused(text in any::<String>()) {
            let _ = parse_bytes(&text);
        }
    }
}
