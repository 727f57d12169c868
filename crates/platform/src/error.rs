//! What can be wrong with a platform.

use thiserror::Error;

/// A platform file that cannot be used. Each message names file, field, value, limit and fix.
#[derive(Debug, Error)]
pub enum PlatformError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// Path as given.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML, or a field has another type than it should.
    #[error("{file}: {message}")]
    Syntax {
        /// Path as given.
        file: String,
        /// What the parser said, with line and column.
        message: String,
    },
    /// No platform of this name is built in and no such file exists.
    #[error("platform '{name}': no such file, and no built-in platform of that name; {hint}")]
    Unknown {
        /// Name as given.
        name: String,
        /// The built-in name that was meant, or all of them.
        hint: String,
    },
    /// A parameter that the model does not have.
    #[error("{file}: parameter '{name}' is unknown; {hint}")]
    UnknownParameter {
        /// Path as given.
        file: String,
        /// Name as given.
        name: String,
        /// The name that was meant, or all of them.
        hint: String,
    },
    /// A parameter that the file lacks.
    #[error("{file}: parameter '{name}' ({unit}) is missing; add it to [parameters]: {help}")]
    MissingParameter {
        /// Path as given.
        file: String,
        /// Name of the parameter.
        name: String,
        /// Unit that it must have.
        unit: String,
        /// What it means.
        help: String,
    },
    /// A parameter without unit, or with another unit than it is measured in.
    #[error(
        "{file}: parameter '{name}': unit {found} given, '{expected}' needed; write unit = \"{expected}\""
    )]
    Unit {
        /// Path as given.
        file: String,
        /// Name of the parameter.
        name: String,
        /// Unit in the file, or "none".
        found: String,
        /// Unit that it must have.
        expected: String,
    },
    /// A value outside the parameter's own range, negative, or not a finite number.
    #[error(
        "{file}: parameter '{name}': value {value} {unit} is outside [{low}, {high}] {unit}; {fix}"
    )]
    Range {
        /// Path as given.
        file: String,
        /// Name of the parameter.
        name: String,
        /// Value as given.
        value: f64,
        /// Unit of value and limits.
        unit: String,
        /// Smallest value allowed.
        low: f64,
        /// Largest value allowed.
        high: f64,
        /// What to do about it.
        fix: String,
    },
    /// Sockets, devices or cores that the model cannot hold.
    #[error("{file}: topology.{field} = {value}: must be between {low} and {high}")]
    Topology {
        /// Path as given.
        file: String,
        /// Field of the topology.
        field: &'static str,
        /// Value as given.
        value: u64,
        /// Smallest value allowed.
        low: u64,
        /// Largest value allowed.
        high: u64,
    },
}
