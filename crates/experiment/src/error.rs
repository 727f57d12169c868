//! Why a file was refused.

use std::io;

use crate::sweep::SweepError;
use crate::vocabulary::VocabularyError;

/// Why an experiment file or a reference table was refused.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("{origin}: cannot be read; check the path and its permissions")]
    Read {
        /// The file.
        origin: String,
        /// What the system said.
        source: io::Error,
    },
    /// Not TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// The file.
        origin: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// A key that means nothing here.
    #[error("{origin}: unknown key `{key}`; {hint}")]
    UnknownKey {
        /// The file.
        origin: String,
        /// The key, with the tables around it.
        key: String,
        /// The nearest key, or all of them.
        hint: String,
    },
    /// A key that must be there.
    #[error("{origin}: `{key}` is missing; add {fix}")]
    Missing {
        /// The file.
        origin: String,
        /// The key, with the tables around it.
        key: String,
        /// What to write.
        fix: String,
    },
    /// A value of the wrong type.
    #[error("{origin}: `{key}` is {found}; write {expected}")]
    Kind {
        /// The file.
        origin: String,
        /// The key, with the tables around it.
        key: String,
        /// What stands there.
        found: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// A sweep that cannot be expanded.
    #[error("{origin}: `{key}`: {reason}")]
    Sweep {
        /// The file.
        origin: String,
        /// The key, with the tables around it.
        key: String,
        /// What is wrong with it.
        reason: Box<SweepError>,
    },
    /// A name or a value that the program does not know.
    #[error("{origin}: `{key}`: {reason}")]
    Parameter {
        /// The file.
        origin: String,
        /// The key, with the tables around it.
        key: String,
        /// What is wrong with it.
        reason: Box<VocabularyError>,
    },
    /// A value that breaks a rule.
    #[error("{origin}: `{key}` = {value} {problem}; {fix}")]
    Invalid {
        /// The file.
        origin: String,
        /// The key, with the tables around it.
        key: String,
        /// The value.
        value: String,
        /// The rule that it breaks.
        problem: String,
        /// What to do.
        fix: String,
    },
}

pub(crate) type Result<T> = std::result::Result<T, FileError>;
