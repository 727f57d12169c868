//! One value of a file, and where it stands.

use toml::Value as Toml;

use crate::error::{FileError, Result};
use crate::sweep::{Sweep, first_repeat};
use crate::value::{Value, clip};
use crate::vocabulary::{Vocabulary, VocabularyError};

/// Where a value stands.
#[derive(Clone, Copy)]
pub(crate) struct Location<'a> {
    pub(crate) origin: &'a str,
    pub(crate) key: &'a str,
}

impl Location<'_> {
    pub(crate) fn invalid(
        self,
        value: impl ToString,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> FileError {
        FileError::Invalid {
            origin: self.origin.to_owned(),
            key: self.key.to_owned(),
            value: clip(&value.to_string()),
            problem: problem.into(),
            fix: fix.into(),
        }
    }

    pub(crate) fn kind(self, found: &Toml, expected: &'static str) -> FileError {
        let found = clip(&match found {
            Toml::String(text) => format!("the text \"{text}\""),
            Toml::Integer(number) => format!("the number {number}"),
            Toml::Float(number) => format!("the number {number:?}"),
            Toml::Boolean(flag) => format!("{flag}"),
            Toml::Datetime(date) => format!("the date {date}"),
            Toml::Array(_) => "a list".to_owned(),
            Toml::Table(_) => "a table".to_owned(),
        });
        FileError::Kind {
            origin: self.origin.to_owned(),
            key: self.key.to_owned(),
            found,
            expected,
        }
    }

    pub(crate) fn parameter(self, reason: VocabularyError) -> FileError {
        FileError::Parameter {
            origin: self.origin.to_owned(),
            key: self.key.to_owned(),
            reason: Box::new(reason),
        }
    }

    /// One value as it stands; a flag becomes the word `true` or `false`.
    pub(crate) fn value(self, found: &Toml) -> Result<Value> {
        const EXPECTED: &str = "a whole number of 0 or more, a text, true or false";
        match found {
            Toml::Integer(number) => {
                let number = u64::try_from(*number).map_err(|_| self.kind(found, EXPECTED))?;
                Ok(Value::Integer(number))
            }
            Toml::String(text) => Ok(Value::Text(text.clone())),
            Toml::Boolean(flag) => Ok(Value::Text(flag.to_string())),
            _ => Err(self.kind(found, EXPECTED)),
        }
    }

    /// One or more values: a number, a sweep, or a list of both.
    fn expanded(self, found: &Toml) -> Result<Vec<Value>> {
        match found {
            Toml::String(text) => Sweep::parse(text).map_err(|reason| FileError::Sweep {
                origin: self.origin.to_owned(),
                key: self.key.to_owned(),
                reason: Box::new(reason),
            }),
            Toml::Array(items) => {
                let mut values = Vec::new();
                for item in items {
                    match item {
                        Toml::Array(_) => {
                            return Err(self.kind(item, "one list without lists in it"));
                        }
                        _ => values.extend(self.expanded(item)?),
                    }
                }
                Ok(values)
            }
            _ => Ok(vec![self.value(found)?]),
        }
    }

    /// The values of the parameter `name`, normalised, each once, at least one.
    pub(crate) fn values(
        self,
        name: &str,
        found: &Toml,
        vocabulary: &Vocabulary,
    ) -> Result<Vec<Value>> {
        // An unknown name is reported first, before its values.
        vocabulary
            .check_name(name)
            .map_err(|reason| self.parameter(reason))?;
        self.checked(name, &self.expanded(found)?, vocabulary)
    }

    /// The same, for values that were read before.
    pub(crate) fn checked(
        self,
        name: &str,
        values: &[Value],
        vocabulary: &Vocabulary,
    ) -> Result<Vec<Value>> {
        if values.is_empty() {
            let fix = "write at least one value, as in 1,4,16 or 256..1M*4";
            return Err(self.invalid("[]", "expands to nothing", fix));
        }
        let checked = values.iter().map(|value| vocabulary.check(name, value));
        let checked: Vec<Value> = checked
            .collect::<std::result::Result<_, _>>()
            .map_err(|reason| self.parameter(reason))?;
        match first_repeat(&checked) {
            Some(value) => Err(self.invalid(value, "is there twice", "name each value once")),
            None => Ok(checked),
        }
    }
}
