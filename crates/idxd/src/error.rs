//! Why a profile cannot be used.

use std::io;

use crate::Finding;
use crate::names::GRAMMAR;

/// Why a profile cannot be read, or no device made of it.
///
/// `origin` is the file name or what the caller gave for it; `path` the place in the JSON.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read.
    #[error("cannot read profile {path}")]
    Read {
        /// File name.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The text is longer than any configuration of this hardware.
    #[error("profile {origin} is longer than {limit_bytes} bytes, which is the limit")]
    TooLong {
        /// Where the text came from.
        origin: String,
        /// Largest accepted length in bytes.
        limit_bytes: u64,
    },
    /// The file is not UTF-8.
    #[error("profile {origin} is not text: byte {offset} is not UTF-8")]
    NotText {
        /// Where the text came from.
        origin: String,
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// The text is not JSON.
    #[error("{origin}:{line}:{column}: {message}")]
    Syntax {
        /// Where the text came from.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser expected.
        message: String,
    },
    /// A key that accel-config does not write.
    #[error("{origin}: {path}: unknown key {key:?}{}", did_you_mean(.nearest))]
    UnknownKey {
        /// Where the text came from.
        origin: String,
        /// Place in the JSON.
        path: String,
        /// The key.
        key: String,
        /// The known key that is spelled most alike, if any is.
        nearest: Option<String>,
        /// All keys that are known here.
        known: Vec<&'static str>,
    },
    /// A key that stands twice, perhaps once under its older name.
    #[error("{origin}: {path}: {key:?} is given twice; accel-config would take the last one")]
    DuplicateKey {
        /// Where the text came from.
        origin: String,
        /// Place in the JSON.
        path: String,
        /// The key.
        key: String,
    },
    /// A value of the wrong kind.
    #[error("{origin}: {path}: {key} is {value}; expected {expected}")]
    Value {
        /// Where the text came from.
        origin: String,
        /// Place in the JSON.
        path: String,
        /// The key, or `value` for an element of a list.
        key: String,
        /// What stands there.
        value: String,
        /// What belongs there.
        expected: String,
    },
    /// An object whose first key is not `dev`.
    #[error(
        "{origin}: {path}: the first key must be \"dev\", not {first:?}: accel-config gives what stands before it to the object before"
    )]
    DevNotFirst {
        /// Where the text came from.
        origin: String,
        /// Place in the JSON.
        path: String,
        /// The key that comes first.
        first: String,
    },
    /// A file that describes no DSA.
    #[error("{origin} describes no DSA, only IAA (analytics accelerators): {}", .iaa.join(", "))]
    OnlyIaa {
        /// Where the text came from.
        origin: String,
        /// Names of the devices.
        iaa: Vec<String>,
    },
    /// More objects than any device has.
    #[error("{origin}: {path}: {count} {what}, at most {limit} can be described")]
    TooMany {
        /// Where the text came from.
        origin: String,
        /// Place in the JSON.
        path: String,
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The driver or the device would refuse the configuration.
    #[error("{title}: {}{}", count_text(.findings.len()), list_text(.findings))]
    Invalid {
        /// The profile.
        title: String,
        /// All that is wrong.
        findings: Vec<Finding>,
    },
    /// A name that is no profile.
    #[error("no profile is named {name:?}: {reason}")]
    UnknownName {
        /// The name.
        name: String,
        /// Where it leaves the grammar.
        reason: String,
        /// Names that are spelled alike.
        near: Vec<String>,
    },
}

impl ProfileError {
    /// What to type next, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, .. } => Some(format!(
                "name an existing file, or a profile such as 1e1w-d instead of {path}"
            )),
            Self::UnknownKey { known, .. } => {
                Some(format!("keys that are known here: {}", known.join(", ")))
            }
            Self::UnknownName { near, .. } => {
                let near = match near.as_slice() {
                    [] => String::new(),
                    names => format!("; near names: {}", names.join(", ")),
                };
                Some(format!("names are built as {GRAMMAR}{near}"))
            }
            _ => None,
        }
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!("; did you mean {key:?}?"),
        None => String::new(),
    }
}

fn count_text(count: usize) -> String {
    match count {
        1 => "1 setting would be refused".to_owned(),
        _ => format!("{count} settings would be refused"),
    }
}

/// More than this would hide the first one.
const SHOWN: usize = 20;

fn list_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings.iter().take(SHOWN) {
        text.push('\n');
        text.push_str(&finding.to_string());
    }
    if findings.len() > SHOWN {
        text.push_str(&format!("\nand {} more", findings.len() - SHOWN));
    }
    text
}
