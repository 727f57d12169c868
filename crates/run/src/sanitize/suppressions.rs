//! Findings that are not to be reported, by file.
//!
//! A line is `CLASS:PATTERN`, as in the suppressions of the compilers' sanitizers; what begins with `#` is a comment. The
//! pattern is found anywhere in the function, source file or object of a frame; `*` stands for anything, `^` and `$` for the
//! ends. `*` alone matches findings without a place, too.

use thiserror::Error;

use super::Class;
use crate::sites::Site;

/// Bytes of a file of suppressions.
const MOST_BYTES: usize = 1 << 20;

/// Why a file of suppressions is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SuppressionError {
    /// It is too large.
    #[error("{bytes} bytes of suppressions; at most {MOST_BYTES} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A line has no class or no pattern.
    #[error("line {line} is not CLASS:PATTERN")]
    Form {
        /// Which.
        line: usize,
    },
    /// There is no such class.
    #[error("line {line}: {class:?} is no class of findings")]
    Class {
        /// Which.
        line: usize,
        /// What stands there.
        class: String,
    },
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suppression {
    class: Class,
    pattern: String,
}

/// The lines of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Suppression>);

impl Suppressions {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// It is too large, or a line is none.
    pub fn parse(text: &str) -> Result<Suppressions, SuppressionError> {
        if text.len() > MOST_BYTES {
            return Err(SuppressionError::TooLarge { bytes: text.len() });
        }
        let mut all = Vec::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (class, pattern) = text
                .split_once(':')
                .filter(|(_, pattern)| !pattern.is_empty())
                .ok_or(SuppressionError::Form { line })?;
            let known = Class::ALL.into_iter().find(|known| known.name() == class);
            let class = known.ok_or_else(|| SuppressionError::Class {
                line,
                class: class.to_owned(),
            })?;
            all.push(Suppression {
                class,
                pattern: pattern.to_owned(),
            });
        }
        Ok(Suppressions(all))
    }

    /// The first line that a finding with these places is suppressed by.
    pub(super) fn find(&self, class: Class, sites: &[Option<&Site>]) -> Option<String> {
        let matches = |of: &&Suppression| {
            let frames = sites.iter().flatten().flat_map(|site| &site.frames);
            let mut texts = frames.flat_map(|f| [&f.function, &f.file, &f.module]);
            of.class == class
                && (of.pattern == "*" || texts.any(|t| t.as_deref().is_some_and(|t| of.is_in(t))))
        };
        let found = self.0.iter().find(matches)?;
        Some(format!("{}:{}", found.class.name(), found.pattern))
    }

    /// Whether a class has lines.
    pub(super) fn has(&self, class: Class) -> bool {
        self.0.iter().any(|of| of.class == class)
    }
}

impl Suppression {
    fn is_in(&self, text: &str) -> bool {
        let (from_start, rest) = match self.pattern.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, &*self.pattern),
        };
        let (to_end, rest) = match rest.strip_suffix('$') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let pieces: Vec<&str> = rest.split('*').collect();
        let mut at = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let (first, last) = (index == 0, index + 1 == pieces.len());
            let left = &text[at..];
            let found = match (first && from_start, last && to_end) {
                (true, true) => (left == *piece).then_some(0),
                (true, false) => left.starts_with(piece).then_some(0),
                (false, true) => left.ends_with(piece).then(|| left.len() - piece.len()),
                (false, false) => left.find(piece),
            };
            match found {
                Some(offset) => at += offset + piece.len(),
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Frame;

    fn is_in(pattern: &str, text: &str) -> bool {
        let suppression = Suppression {
            class: Class::Overlap,
            pattern: pattern.to_owned(),
        };
        suppression.is_in(text)
    }

    #[test]
    fn patterns_are_found_anywhere_but_for_anchors() {
        for pattern in [
            "copy",
            "ring_copy_2",
            "^ring",
            "2$",
            "r*y*2",
            "^ring*2$",
            "*",
            "^ring_copy_2$",
        ] {
            assert!(is_in(pattern, "ring_copy_2"), "{pattern}");
        }
        for pattern in ["^copy", "copy$", "y*r", "^ring$", "ring*3", "^ring*y$"] {
            assert!(!is_in(pattern, "ring_copy_2"), "{pattern}");
        }
        // The same bytes do not match twice.
        assert!(!is_in("^ab*ba$", "aba") && is_in("^ab*ba$", "abba"));
    }

    #[test]
    fn a_finding_is_suppressed_by_class_and_any_of_its_frames() {
        let text = "# a comment\n\noverlap:known_race\n source:libfoo.so\nrecord:*\n";
        let all = Suppressions::parse(text).expect("lines");
        let site = |function: &str, module: &str| Site {
            thread: 1,
            frames: vec![Frame {
                function: Some(function.into()),
                module: Some(module.into()),
                ..Frame::default()
            }],
        };
        let (race, other) = (site("known_race", "/bin/x"), site("f", "/lib/libfoo.so.1"));
        let found = |class, sites: &[Option<&Site>]| all.find(class, sites);
        assert_eq!(
            found(Class::Overlap, &[Some(&other), Some(&race)]).as_deref(),
            Some("overlap:known_race")
        );
        assert_eq!(found(Class::Overlap, &[Some(&other), None]), None);
        assert_eq!(found(Class::Source, &[Some(&race)]), None);
        assert!(found(Class::Source, &[Some(&other)]).is_some());
        assert!(found(Class::Record, &[None, None]).is_some());
    }

    #[test]
    fn what_is_no_line_is_refused_with_its_number() {
        let error = |text: &str| Suppressions::parse(text).expect_err("no line");
        assert_eq!(
            error("overlap:x\nnonsense"),
            SuppressionError::Form { line: 2 }
        );
        assert_eq!(error("overlap:"), SuppressionError::Form { line: 1 });
        let class = "race".to_owned();
        assert_eq!(error("race:x"), SuppressionError::Class { line: 1, class });
        let long = "#".repeat(MOST_BYTES + 1);
        assert!(matches!(error(&long), SuppressionError::TooLarge { .. }));
    }
}
