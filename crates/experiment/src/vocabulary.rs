//! The parameters that experiments may name, and what each may be.

use dray_suggest::suggest;

use crate::value::{Value, clip, format_bytes, parse_bytes};

/// The parameter that every vocabulary has: who executes the point.
pub const BACKEND: &str = "backend";

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in files, in `--set` and in the results.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// One line for the help.
    pub help: &'static str,
}

/// What the values of a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A size in bytes, written as `4096` or `4k`; the limits are included.
    Bytes {
        /// Smallest size.
        min: u64,
        /// Largest size.
        max: u64,
    },
    /// A number; the limits are included.
    Count {
        /// Smallest number.
        min: u64,
        /// Largest number.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// Why a name or a value is not in the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    /// No parameter has this name.
    #[error("unknown parameter `{name}`; {hint}")]
    UnknownName {
        /// The name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A word where a number should stand, or a size that cannot be read.
    #[error("{name} = `{value}` is not a {expected}; write {fix}")]
    NotANumber {
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// What it should be.
        expected: &'static str,
        /// An example.
        fix: &'static str,
    },
    /// Outside of the limits.
    #[error("{name} = {value} is outside of {min} to {max}; write a value within")]
    OutOfRange {
        /// The parameter.
        name: String,
        /// The value.
        value: u64,
        /// Smallest value, as the user would write it.
        min: String,
        /// Largest value, as the user would write it.
        max: String,
    },
    /// Not one of the words.
    #[error("{name} = `{value}` is not one of its values; {hint}")]
    NotAChoice {
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// The nearest value, or all of them.
        hint: String,
    },
}

/// The parameters, backends and metrics of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    parameters: &'static [Parameter],
    backends: &'static [&'static str],
    metrics: &'static [&'static str],
}

impl Vocabulary {
    /// A vocabulary of these parameters, with any backend and any metric.
    pub const fn new(parameters: &'static [Parameter]) -> Self {
        Self {
            parameters,
            backends: &[],
            metrics: &[],
        }
    }

    /// The same, with these backends only.
    pub const fn with_backends(self, backends: &'static [&'static str]) -> Self {
        Self { backends, ..self }
    }

    /// The same, with these metrics only.
    pub const fn with_metrics(self, metrics: &'static [&'static str]) -> Self {
        Self { metrics, ..self }
    }

    /// The parameters, in the order given.
    pub const fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    /// The backends; empty if any will do.
    pub const fn backends(&self) -> &'static [&'static str] {
        self.backends
    }

    /// The metrics; empty if any will do.
    pub const fn metrics(&self) -> &'static [&'static str] {
        self.metrics
    }

    /// The value as the parameter `name` takes it: `4k` becomes 4096 where sizes are meant.
    ///
    /// Errors: an unknown name, a value of the wrong kind or outside of the limits.
    pub fn check(&self, name: &str, value: &Value) -> Result<Value, VocabularyError> {
        match self.kind(name)? {
            None => Ok(Value::Text(value.to_string())),
            Some(Kind::Bytes { min, max }) => {
                let number = read(
                    name,
                    value,
                    "size",
                    "whole bytes as 256, 4k, 4KiB or 1M (4KB is 4000 to some and 4096 to others)",
                )?;
                let limits = (format_bytes(min), format_bytes(max));
                within(name, number, min, max, limits)
            }
            Some(Kind::Count { min, max }) => {
                let number = read(name, value, "count", "a number as 16")?;
                within(name, number, min, max, (min.to_string(), max.to_string()))
            }
            Some(Kind::Choice(choices)) => {
                let value = value.to_string();
                if choices.contains(&value.as_str()) {
                    return Ok(Value::Text(value));
                }
                let hint = suggest(&value, choices.iter().copied());
                Err(VocabularyError::NotAChoice {
                    name: name.to_owned(),
                    value: clip(&value),
                    hint,
                })
            }
        }
    }

    /// The value as people write it: 4096 as `4K` where sizes are meant.
    pub fn label(&self, name: &str, value: &Value) -> String {
        match (self.kind(name), value) {
            (Ok(Some(Kind::Bytes { .. })), Value::Integer(bytes)) => format_bytes(*bytes),
            _ => value.to_string(),
        }
    }

    /// Refuses a name that is no parameter.
    pub fn check_name(&self, name: &str) -> Result<(), VocabularyError> {
        self.kind(name).map(|_| ())
    }

    /// Refuses a name that is no metric.
    pub(crate) fn check_metric(&self, key: &str, name: &str) -> Result<(), VocabularyError> {
        if self.metrics.is_empty() || self.metrics.contains(&name) {
            return Ok(());
        }
        let hint = suggest(name, self.metrics.iter().copied());
        Err(VocabularyError::NotAChoice {
            name: key.to_owned(),
            value: clip(name),
            hint,
        })
    }

    /// The kind of a parameter; none if any text will do.
    fn kind(&self, name: &str) -> Result<Option<Kind>, VocabularyError> {
        if let Some(parameter) = self.parameters.iter().find(|known| known.name == name) {
            return Ok(Some(parameter.kind));
        }
        if name == BACKEND {
            return Ok((!self.backends.is_empty()).then_some(Kind::Choice(self.backends)));
        }
        let hint = suggest(
            name,
            self.parameters
                .iter()
                .map(|known| known.name)
                .chain([BACKEND]),
        );
        Err(VocabularyError::UnknownName {
            name: clip(name),
            hint,
        })
    }
}

fn read(
    name: &str,
    value: &Value,
    expected: &'static str,
    fix: &'static str,
) -> Result<u64, VocabularyError> {
    match value {
        Value::Integer(number) => Ok(*number),
        Value::Text(text) => parse_bytes(text).map_err(|_| VocabularyError::NotANumber {
            name: name.to_owned(),
            value: clip(text),
            expected,
            fix,
        }),
    }
}

fn within(
    name: &str,
    value: u64,
    min: u64,
    max: u64,
    limits: (String, String),
) -> Result<Value, VocabularyError> {
    if (min..=max).contains(&value) {
        return Ok(Value::Integer(value));
    }
    let name = name.to_owned();
    Err(VocabularyError::OutOfRange {
        name,
        value,
        min: limits.0,
        max: limits.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: Vocabulary = Vocabulary::new(&[
        Parameter {
            name: "op",
            kind: Kind::Choice(&["memmove", "fill", "compare"]),
            help: "operation",
        },
        Parameter {
            name: "mode",
            kind: Kind::Choice(&["sync", "async"]),
            help: "queue depth",
        },
        Parameter {
            name: "batch",
            kind: Kind::Count { min: 1, max: 1024 },
            help: "batch size",
        },
        Parameter {
            name: "wq_size",
            kind: Kind::Count { min: 1, max: 128 },
            help: "WQ entries",
        },
        Parameter {
            name: "size",
            kind: Kind::Bytes {
                min: 1,
                max: 1 << 31,
            },
            help: "bytes",
        },
    ])
    .with_backends(&["model", "cpu"])
    .with_metrics(&[
        "throughput_gbps",
        "latency_ns",
        "prepare_ns",
        "submit_ns",
        "wait_ns",
    ]);

    #[test]
    fn values_are_converted_to_the_type_of_their_parameter() {
        let size = |value: Value| VOCABULARY.check("size", &value);
        assert_eq!(size("4k".into()), Ok(4096.into()));
        assert_eq!(size(4096.into()), Ok(4096.into()));
        assert_eq!(VOCABULARY.check("mode", &"sync".into()), Ok("sync".into()));
        assert_eq!(VOCABULARY.check("batch", &1024.into()), Ok(1024.into()));
        assert_eq!(VOCABULARY.check("backend", &"cpu".into()), Ok("cpu".into()));
        assert_eq!(VOCABULARY.label("size", &4096.into()), "4K");
        assert_eq!(VOCABULARY.label("batch", &1024.into()), "1024");
    }

    #[test]
    fn numbers_are_accepted_where_words_are_choices() {
        const VERSIONS: Vocabulary = Vocabulary::new(&[Parameter {
            name: "version",
            kind: Kind::Choice(&["1", "2"]),
            help: "",
        }]);
        assert_eq!(VERSIONS.check("version", &2.into()), Ok("2".into()));
        assert_eq!(
            VERSIONS.check("backend", &"anything".into()),
            Ok("anything".into())
        );
    }

    #[test]
    fn errors_name_parameter_value_limit_and_fix() {
        let cases: [(&str, Value, &str); 8] = [
            ("size", 0.into(), "size = 0 is outside of 1 to 2G"),
            ("batch", 1025.into(), "batch = 1025 is outside of 1 to 1024"),
            (
                "size",
                "many".into(),
                "size = `many` is not a size; write whole bytes as",
            ),
            ("batch", "many".into(), "batch = `many` is not a count"),
            ("mode", "asinc".into(), "did you mean `async`?"),
            ("mode", "other".into(), "known: sync, async"),
            ("backend", "cpus".into(), "did you mean `cpu`?"),
            (
                "wqsize",
                1.into(),
                "unknown parameter `wqsize`; did you mean `wq_size`?",
            ),
        ];
        for (name, value, expected) in cases {
            let message = VOCABULARY.check(name, &value).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
