//! Reading files as text and numbers.

use crate::machine::{Machine, Reading, Unreadable};

/// Longest text that is quoted from a file that makes no sense.
const QUOTED_CHARS: usize = 40;

/// A machine whose files are read as what they hold.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a>(pub(crate) &'a dyn Machine);

impl Look<'_> {
    /// Text of any number of lines; bytes that are no text are replaced.
    pub(crate) fn lines(self, path: &str) -> Reading<String> {
        let bytes = self.0.read(path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// One line of printable text, such as an attribute of sysfs holds; it may be empty.
    pub(crate) fn text(self, path: &str) -> Reading<String> {
        let bytes = self.0.read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\0', ' ']);
        let bad = |c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER;
        match text.contains(bad) {
            true => Err(garbage(text)),
            false => Ok(text.to_owned()),
        }
    }

    /// A number, decimal or hexadecimal with `0x`, perhaps negative.
    pub(crate) fn number(self, path: &str) -> Reading<i64> {
        let text = self.text(path)?;
        let number = match text.strip_prefix("0x") {
            // The 64 bits as they stand: registers use all of them.
            Some(digits) => u64::from_str_radix(digits, 16).map(u64::cast_signed),
            None => text.parse(),
        };
        number.map_err(|_| garbage(&text))
    }

    /// A hexadecimal number without a prefix.
    pub(crate) fn hex(self, path: &str) -> Reading<u64> {
        let text = self.text(path)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(|_| garbage(&text))
    }

    /// The last part of what a link points to.
    pub(crate) fn link_name(self, path: &str) -> Reading<String> {
        let target = self.0.link(path)?;
        let name = target.trim_end_matches('/').rsplit('/').next();
        Ok(name.unwrap_or_default().to_owned())
    }

    /// Whether something exists, if that is known.
    pub(crate) fn exists(self, path: &str) -> Reading<bool> {
        match self.0.stat(path) {
            Ok(_) => Ok(true),
            Err(Unreadable::Missing) => Ok(false),
            Err(reason) => Err(reason),
        }
    }

    /// The names in a directory, none if there is no such directory.
    pub(crate) fn names(self, path: &str) -> Reading<Vec<String>> {
        match self.0.list(path) {
            Err(Unreadable::Missing) => Ok(Vec::new()),
            reading => reading,
        }
    }
}

fn garbage(text: &str) -> Unreadable {
    let plain = text.chars().map(|c| match c.is_control() {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    });
    Unreadable::Garbage(plain.take(QUOTED_CHARS).collect())
}
