//! The files of the catalogue, `catalogue/*.txt`.
//!
//! | line | says |
//! |---|---|
//! | `@by NAME` | who prints what follows; begins a source |
//! | `@of VERSIONS` | which versions were read |
//! | `@scope WORD...` | words of which one stands in the line of a short message; `WORD*` is a prefix, and a number stands for `#` |
//! | `@scope! WORD...` | the same, for every message |
//! | `error CHECK...: TEXT` | an entry: how bad it is, the checks that find its cause, what it means |
//! | `error after CHECK...: TEXT` | one that follows from what stands before it in a text, if something does |
//! | `error explains CHECK...: TEXT` | one that is all there is to say of those that follow |
//! | `fix: TEXT`, `$ COMMAND` | what to do; `$ RELOAD` loads idxd again |
//! | `or: TEXT` | the same, where no number of the message says it |
//! | `error shared CHECK...: TEXT` | one that devices of others cause as well: a warning where no DSA is named |
//! | `given FACT...: TEXT` | what to do instead where the text says all that: `intel_iommu=on,sm_on`, `no5lvl`, `iaa_crypto` |
//! | `trace: WORD...` | a report of a crash of the entry, by functions, files, kinds and drivers |
//! | `"FORMAT" [FIRST-LAST]` | a message of the entry, as printf has it, and the kernels that print it |
//! | `"^FORMAT$"` | one in words of any program: the whole line, or one with a word of the scope |
//!
//! A line that begins with two spaces continues the one before; `#` begins a comment. Instead of
//! `error` stands `warning`, `note` or `usual`.

use super::pattern::Format;
use super::{Crash, Entry, Pattern, Source, Span};
use crate::finding::{Fix, Severity};

/// What the files hold.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) sources: Vec<Source>,
    pub(super) entries: Vec<Entry>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) crashes: Vec<Crash>,
}

impl Parsed {
    /// Reads one file.
    ///
    /// # Errors
    /// A line is none of the above, with its number.
    pub(super) fn add(&mut self, text: &'static str) -> Result<(), String> {
        let mut logical: Vec<(usize, String)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            match line.strip_prefix("  ") {
                Some(more) => {
                    let last = logical.last_mut().ok_or("nothing to continue")?;
                    last.1.push(' ');
                    last.1.push_str(more.trim());
                }
                None if line.trim().is_empty() || line.starts_with('#') => {}
                None => logical.push((number, line.trim_end().to_owned())),
            }
        }
        for (number, line) in logical {
            self.line(&line)
                .ok_or_else(|| format!("line {number}: {line}"))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Option<()> {
        if let Some(rest) = line.strip_prefix('@') {
            let (key, value) = rest.split_once(' ')?;
            return self.about(key, value);
        }
        if let Some(rest) = line.strip_prefix('"') {
            return self.format(rest);
        }
        if let Some(command) = line.strip_prefix("$ ") {
            let entry = self.entries.last_mut()?;
            match command {
                "RELOAD" => entry.reload(),
                command => entry.fix.commands.push(command.to_owned()),
            }
            return Some(());
        }
        let (head, text) = line.split_once(": ")?;
        if head == "fix" || head == "or" {
            let entry = self.entries.last_mut()?;
            entry.fix.advice = text.to_owned();
            entry.spare = head == "or";
            return Some(());
        }
        if let Some(facts) = head.strip_prefix("given ") {
            let facts = facts.split(' ').map(str::to_owned).collect();
            let entry = self.entries.last_mut()?;
            entry.given.push((facts, text.to_owned()));
            return Some(());
        }
        if head == "trace" {
            self.crashes.push(Crash {
                words: text.split(' ').map(str::to_owned).collect(),
                entry: self.entries.len().checked_sub(1)?,
            });
            return Some(());
        }
        let mut words = head.split(' ').peekable();
        let severity = match words.next()? {
            "error" => Some(Severity::Error),
            "warning" => Some(Severity::Warning),
            "note" => Some(Severity::Note),
            "usual" => None,
            _ => return None,
        };
        let follows = words.next_if_eq(&"after").is_some();
        let explains = words.next_if_eq(&"explains").is_some();
        let shared = words.next_if_eq(&"shared").is_some();
        self.entries.push(Entry {
            follows,
            explains,
            shared,
            source: self.sources.len().checked_sub(1)?,
            severity,
            checks: words.map(str::to_owned).collect(),
            what: text.to_owned(),
            fix: Fix::default(),
            spare: false,
            given: Vec::new(),
        });
        Some(())
    }

    fn about(&mut self, key: &str, value: &str) -> Option<()> {
        if key == "by" {
            self.sources.push(Source {
                by: value.to_owned(),
                ..Source::default()
            });
            return Some(());
        }
        let source = self.sources.last_mut()?;
        match key {
            "of" => source.of = value.to_owned(),
            "scope" | "scope!" => {
                source.scope = value.split(' ').map(str::to_owned).collect();
                source.always = key.ends_with('!');
            }
            _ => return None,
        }
        Some(())
    }

    fn format(&mut self, rest: &str) -> Option<()> {
        let (text, span) = rest.rsplit_once('"')?;
        let span = match span.trim() {
            "" => None,
            span => Some(Span::parse(span)?),
        };
        let alone = text
            .strip_prefix('^')
            .and_then(|text| text.strip_suffix('$'));
        let text = alone.unwrap_or(text);
        let format = Format::compile(text).ok()?;
        let (letters, count) = format.text();
        self.patterns.push(Pattern {
            format,
            letters,
            is_long: letters >= 15 && count >= 2,
            is_alone: alone.is_some(),
            text: text.to_owned(),
            entry: self.entries.len().checked_sub(1)?,
            span,
        });
        Some(())
    }
}
