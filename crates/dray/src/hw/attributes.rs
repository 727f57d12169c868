//! Attributes of the driver in sysfs.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::HwError;

/// A directory with attributes.
pub(super) struct Attributes {
    directory: PathBuf,
}

impl Attributes {
    pub(super) fn of(directory: PathBuf) -> Attributes {
        Attributes { directory }
    }

    /// The text of an attribute, without white space around it. `None` if this kernel has no such
    /// attribute, or refuses it for the queue's mode or state.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, HwError> {
        let path = self.directory.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(source) => Err(HwError::Read { path, source }),
        }
    }

    /// A decimal number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, HwError> {
        self.parsed(name, "decimal number", |text| text.parse().ok())
    }

    /// A hexadecimal number, with or without 0x.
    pub(super) fn hexadecimal(&self, name: &str) -> Result<Option<u64>, HwError> {
        self.parsed(name, "hexadecimal number", |text| {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            u64::from_str_radix(digits, 16).ok()
        })
    }

    pub(super) fn parsed<T>(
        &self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, HwError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match parse(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(HwError::Attribute {
                path: self.path(name),
                text: text.chars().take(64).collect(),
                expected,
            }),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(Path::new(name))
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported)
        || error.raw_os_error() == Some(libc::EOPNOTSUPP)
}
