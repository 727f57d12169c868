//! Reading a TOML table key by key, with errors that name the file, the key and the fix.

use std::path::Path;

use toml::{Table, Value as Toml};

use dray_output::read_text;
use dray_suggest::suggest;

use crate::error::{FileError, Result};
use crate::location::Location;
use crate::value::clip;

/// A table of a file.
pub(crate) struct Fields<'a> {
    origin: &'a str,
    path: String,
    table: Table,
}

impl<'a> Fields<'a> {
    /// The table of a whole file, which may have the keys `known`.
    pub(crate) fn parse(text: &str, origin: &'a str, known: &[&str]) -> Result<Self> {
        let table = text.parse::<Table>().map_err(|error| FileError::Syntax {
            origin: origin.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        Self::closed(origin, String::new(), table, known)
    }

    /// A table that has no other keys than `known`.
    fn closed(origin: &'a str, path: String, table: Table, known: &[&str]) -> Result<Self> {
        let fields = Self {
            origin,
            path,
            table,
        };
        for name in fields.table.keys() {
            if !known.contains(&name.as_str()) {
                let hint = suggest(name, known.iter().copied());
                let key = clip(&fields.key(name));
                return Err(FileError::UnknownKey {
                    origin: origin.to_owned(),
                    key,
                    hint,
                });
            }
        }
        Ok(fields)
    }

    pub(crate) fn origin(&self) -> &'a str {
        self.origin
    }

    /// Where the table itself stands, as `panel[0]`.
    pub(crate) fn location(&self) -> Location<'_> {
        Location {
            origin: self.origin,
            key: &self.path,
        }
    }

    /// A key with the tables around it, as in `panel[0].where.mode`.
    pub(crate) fn key(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// An error about the value of a key.
    pub(crate) fn invalid(
        &self,
        name: &str,
        value: impl ToString,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> FileError {
        Location {
            origin: self.origin,
            key: &self.key(name),
        }
        .invalid(value, problem, fix)
    }

    pub(crate) fn missing(&self, name: &str, fix: impl Into<String>) -> FileError {
        let (origin, key) = (self.origin.to_owned(), self.key(name));
        FileError::Missing {
            origin,
            key,
            fix: fix.into(),
        }
    }

    fn kind(&self, name: &str, found: &Toml, expected: &'static str) -> FileError {
        Location {
            origin: self.origin,
            key: &self.key(name),
        }
        .kind(found, expected)
    }

    /// A text that must be there and not be empty.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        self.optional_text(name)?
            .ok_or_else(|| self.missing(name, format!("{name} = \"...\"")))
    }

    /// A text that, if there, is not empty.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>> {
        match self.table.get(name) {
            None => Ok(None),
            Some(Toml::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            Some(Toml::String(_)) => Err(self.invalid(
                name,
                "\"\"",
                "is empty",
                "write a text or leave the key out",
            )),
            Some(other) => Err(self.kind(name, other, "a text in quotes")),
        }
    }

    /// A list of texts, or one text; empty if it is not there.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>> {
        const EXPECTED: &str = "a list of texts, as [\"one\", \"two\"]";
        match self.table.get(name) {
            None => Ok(Vec::new()),
            Some(Toml::String(text)) => Ok(vec![text.clone()]),
            Some(Toml::Array(items)) => {
                let texts = items.iter().map(|item| match item {
                    Toml::String(text) => Ok(text.clone()),
                    other => Err(self.kind(name, other, EXPECTED)),
                });
                texts.collect()
            }
            Some(other) => Err(self.kind(name, other, EXPECTED)),
        }
    }

    /// A flag, with its value if it is not there.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.table.get(name) {
            None => Ok(default),
            Some(Toml::Boolean(flag)) => Ok(*flag),
            Some(other) => Err(self.kind(name, other, "true or false")),
        }
    }

    /// A finite number of 0 or more.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>> {
        let number = match self.table.get(name) {
            None => return Ok(None),
            Some(Toml::Float(number)) => *number,
            // Published numbers have far less than the 53 bits that this keeps.
            Some(Toml::Integer(number)) => *number as f64,
            Some(other) => return Err(self.kind(name, other, "a number")),
        };
        if number.is_finite() && number >= 0.0 {
            return Ok(Some(number));
        }
        let problem = if number < 0.0 {
            "is below the limit of 0"
        } else {
            "is not a finite number"
        };
        Err(self.invalid(name, number, problem, "write a finite number of 0 or more"))
    }

    /// The pairs of a table in the order written; empty if it is not there.
    pub(crate) fn pairs(&self, name: &str) -> Result<Vec<(String, Toml)>> {
        match self.table.get(name) {
            None => Ok(Vec::new()),
            Some(Toml::Table(table)) => Ok(table
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()),
            Some(other) => Err(self.kind(name, other, "a table, as [table] or { key = value }")),
        }
    }

    /// The pairs of this table whose keys are not among `known`, in the order written.
    pub(crate) fn pairs_beside(&self, known: &[&str]) -> impl Iterator<Item = (&str, &Toml)> {
        let beside = self
            .table
            .iter()
            .filter(move |(name, _)| !known.contains(&name.as_str()));
        beside.map(|(name, value)| (name.as_str(), value))
    }

    /// The tables of `[[name]]`; with `known`, they have no other keys.
    pub(crate) fn tables(&self, name: &str, known: Option<&[&str]>) -> Result<Vec<Fields<'a>>> {
        const EXPECTED: &str = "tables, each under its own [[...]]";
        let items = match self.table.get(name) {
            None => return Ok(Vec::new()),
            Some(Toml::Array(items)) => items,
            Some(other) => return Err(self.kind(name, other, EXPECTED)),
        };
        let mut tables = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.key(name));
            let Toml::Table(table) = item else {
                return Err(self.kind(name, item, EXPECTED));
            };
            tables.push(match known {
                Some(known) => Self::closed(self.origin, path, table.clone(), known)?,
                None => Self {
                    origin: self.origin,
                    path,
                    table: table.clone(),
                },
            });
        }
        Ok(tables)
    }

    /// An id, which becomes the name of a file.
    pub(crate) fn id(&self, name: &str) -> Result<String> {
        let id = self.text(name)?;
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if id.len() <= 64 && !id.starts_with('.') && id.bytes().all(letters) {
            return Ok(id);
        }
        let fix = "write up to 64 letters, digits, `-`, `_` and `.`, as in fig6a";
        Err(self.invalid(
            name,
            format!("\"{id}\""),
            "cannot be the name of a file",
            fix,
        ))
    }
}

/// Longest file that is read: an experiment, or a table of published numbers.
const MAX_BYTES: u64 = 16 << 20;

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String> {
    read_text(path, MAX_BYTES).map_err(|source| FileError::Read {
        origin: path.display().to_string(),
        source,
    })
}
