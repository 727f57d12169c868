//! Rules that names and numbers of a file keep, and errors that name the file and the entry.

use crate::PcieError;

/// Makes errors with the file's name.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) file: &'a str,
}

impl Rules<'_> {
    pub(super) fn error(&self, entry: impl Into<String>, rule: impl Into<String>) -> PcieError {
        PcieError::Rule {
            file: self.file.to_owned(),
            entry: entry.into(),
            rule: rule.into(),
        }
    }

    /// A name: something, no blanks, nothing that tables and edge names use.
    pub(super) fn word(&self, entry: &str, name: &str) -> Result<(), PcieError> {
        let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '>' | ',' | '"');
        if name.is_empty() || name.len() > 64 || name.contains(bad) {
            let rule = format!(
                "the name `{}` is not 1 to 64 characters without blanks, `>`, `,` and quotes",
                name.escape_debug()
            );
            return Err(self.error(entry, rule));
        }
        Ok(())
    }

    /// A time or rate: finite, not negative, not absurd.
    pub(super) fn number(&self, entry: &str, key: &str, value: f64) -> Result<(), PcieError> {
        if value.is_finite() && (0.0..=1e9).contains(&value) {
            Ok(())
        } else {
            Err(self.error(entry, format!("{key} = {value} is not between 0 and 1e9")))
        }
    }

    pub(super) fn count(
        &self,
        entry: &str,
        key: &str,
        value: u32,
        min: u32,
        max: u32,
    ) -> Result<(), PcieError> {
        if (min..=max).contains(&value) {
            Ok(())
        } else {
            Err(self.error(
                entry,
                format!("{key} = {value} is not between {min} and {max}"),
            ))
        }
    }
}
