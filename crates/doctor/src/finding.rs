//! What a check finds.

mod saying;

use std::fmt;

use serde::Serialize;

pub(crate) use self::saying::Saying;
use crate::catalogue::{catalogue, collapse};
use crate::machine::Reading;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The device cannot be used.
    Error,
    /// Some programs cannot use it, or it will fail later.
    Warning,
    /// It works, but affects measurements.
    Note,
}

impl Severity {
    /// As a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Where something was seen, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// A path, `dmesg`, `CPUID` or the like.
    pub path: String,
    /// What stands there, or why it cannot be read.
    pub text: String,
}

impl Evidence {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// A kernel message.
    pub(crate) fn log(line: &str) -> Self {
        Self::new("dmesg", line)
    }

    /// What was read, or why it was not.
    pub(crate) fn of<T: fmt::Display>(path: impl Into<String>, reading: &Reading<T>) -> Self {
        match reading {
            Ok(value) => {
                let value = value.to_string();
                let text = match value.as_str() {
                    "" => "(empty)",
                    text => text,
                };
                Self::new(path, text)
            }
            Err(reason) => Self::new(path, reason.to_string()),
        }
    }
}

/// Commands that load the driver again.
pub(crate) const RELOAD: [&str; 2] = ["sudo modprobe -r idxd", "sudo modprobe idxd"];
/// The cures are f41c538881ee and b7cb9a034305 of Linux 6.17.
const RELOAD_CAUTION: &str = "Kernels of May to September 2025 (6.15, 6.16, stable 6.12.30, 6.6.92 and later; 6.1 until January 2026) damage their \
memory when idxd is unloaded or unbound: restart the machine there instead. So does loading it while the device is halted.";

/// What fixes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What to do, in words.
    pub advice: String,
    /// What to type, in order; what begins with `#` is for the reader.
    pub commands: Vec<String>,
}

impl Fix {
    pub(crate) fn advice(advice: impl Into<String>) -> Self {
        Self {
            advice: advice.into(),
            commands: Vec::new(),
        }
    }

    /// Loads the driver again, with what can go wrong. The last lines of commands do so.
    pub(crate) fn reload(self) -> Self {
        let advice = match self.advice.is_empty() {
            true => RELOAD_CAUTION.to_owned(),
            false => format!("{} {RELOAD_CAUTION}", self.advice),
        };
        Self { advice, ..self }.then(RELOAD)
    }

    pub(crate) fn then<C: Into<String>>(self, commands: impl IntoIterator<Item = C>) -> Self {
        let mut all = self.commands;
        all.extend(commands.into_iter().map(Into::into));
        Self {
            commands: all,
            ..self
        }
    }
}

/// How sure a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Likelihood {
    /// The evidence shows it.
    Proven,
    /// The evidence points to it.
    Likely,
    /// Nothing speaks against it.
    Possible,
}

impl Likelihood {
    /// As a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }
}

/// One of the possible causes of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// How sure it is.
    pub likelihood: Likelihood,
    /// What may be wrong.
    pub what: String,
    /// What speaks for it.
    pub evidence: Vec<Evidence>,
    /// What would fix it.
    pub fix: Fix,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in a sentence.
    pub what: String,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// What fixes it; empty if the causes have their own.
    pub fix: Fix,
    /// Possible causes, the most likely first; empty if there is no doubt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Messages that would confirm it, with who prints them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirmed_by: Vec<Evidence>,
}

impl Finding {
    /// A finding of the check that is running; the diagnosis enters its name.
    pub(crate) fn new(severity: Severity, what: impl Into<String>) -> Self {
        Self {
            check: "",
            severity,
            what: what.into(),
            evidence: Vec::new(),
            fix: Fix::default(),
            causes: Vec::new(),
            confirmed_by: Vec::new(),
        }
    }

    pub(crate) fn error(what: impl Into<String>) -> Self {
        Self::new(Severity::Error, what)
    }

    pub(crate) fn warning(what: impl Into<String>) -> Self {
        Self::new(Severity::Warning, what)
    }

    pub(crate) fn note(what: impl Into<String>) -> Self {
        Self::new(Severity::Note, what)
    }

    pub(crate) fn seen(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// A message that would confirm it, with who prints it.
    pub(crate) fn confirmed_by(mut self, saying: Saying) -> Self {
        let plain = collapse(saying.0).to_ascii_lowercase();
        let found = catalogue().look_up(&plain).into_iter().next();
        let by = found.map_or_else(String::new, |found| found.source.by.clone());
        self.confirmed_by.push(Evidence::new(by, saying.0));
        self
    }

    pub(crate) fn fix(self, fix: Fix) -> Self {
        Self { fix, ..self }
    }

    /// Without control characters of terminals: names and messages come from the machine.
    pub(crate) fn printable(self) -> Self {
        let fix = |fix: Fix| Fix {
            advice: printable(&fix.advice),
            commands: fix.commands.iter().map(|c| printable(c)).collect(),
        };
        let evidence = |evidence: Vec<Evidence>| {
            let plain = evidence.into_iter().map(|seen| Evidence {
                path: printable(&seen.path),
                text: printable(&seen.text),
            });
            plain.collect()
        };
        let causes = self.causes.into_iter().map(|cause| Cause {
            what: printable(&cause.what),
            evidence: evidence(cause.evidence),
            fix: fix(cause.fix),
            ..cause
        });
        Self {
            what: printable(&self.what),
            causes: causes.collect(),
            evidence: evidence(self.evidence),
            fix: fix(self.fix),
            ..self
        }
    }
}

/// Longest text that is shown.
const MAX_CHARS: usize = 600;

/// Text without control characters, and not without end.
pub(crate) fn printable(text: &str) -> String {
    let plain = text.chars().map(|c| match c {
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        // They turn the direction of what follows.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    plain.take(MAX_CHARS).collect()
}

/// A number of things.
pub(crate) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}
