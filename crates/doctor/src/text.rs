//! Messages of any text: a log of the kernel, the output of a tool, a question in a forum.

mod clean;
mod collect;
mod journal;
mod open;
mod prefix;
mod systems;
mod unknown;

use std::io::{BufRead, Read};

use serde::Serialize;

use self::clean::clean;
use self::collect::Findings;
pub use self::collect::{Explained, Seen};
pub use self::open::TextError;
use self::open::open;
use self::prefix::{Prefix, prefix};
pub use self::systems::System;
use self::systems::Systems;
pub use self::unknown::Unknown;
use self::unknown::{Unknowns, is_about_dsa};
use crate::catalogue::{Match, begins_with_function, catalogue, collapse};
use crate::finding::{Severity, printable};

/// What the messages of texts mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The texts that were read.
    pub texts: Vec<Text>,
    /// Kernels and hosts that they are of.
    pub systems: Vec<System>,
    /// Messages that show a problem, what to fix first first.
    pub findings: Vec<Explained>,
    /// What does not fit together.
    pub conflicts: Vec<String>,
    /// Lines about a DSA that healthy systems have, too.
    pub usual: u64,
    /// Lines about a DSA that are not known.
    pub unknown: Unknown,
    /// Messages of further kinds, of which too many are there to be listed.
    pub more: u64,
}

/// A text that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Text {
    /// As it was named.
    pub name: String,
    /// How many lines it has.
    pub lines: u64,
    /// Why it was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

impl Explanation {
    /// How bad the worst message is.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).min()
    }
}

/// Longest line that is looked at as one: a record of the journal.
const MAX_LINE_BYTES: u64 = 1 << 16;
/// Longest piece in which messages are looked for at once.
const MAX_PIECE_BYTES: usize = 4096;
/// As much of a line is joined with the next, where a message goes on in the next.
const MAX_JOINED_BYTES: usize = 512;

/// No terminal and no mail is narrower.
const SHORTEST_CUT: usize = 40;

/// Reads texts, and looks for messages in them.
#[derive(Default)]
pub struct Texts {
    texts: Vec<Text>,
    systems: Systems,
    findings: Findings,
    unknown: Unknowns,
    usual: u64,
    pending: Option<Pending>,
    /// Of the last line that named one.
    host: Option<String>,
    /// Every line counts that is not known, whatever it is about.
    all_matter: bool,
}

/// A line whose messages may go on in the next.
struct Pending {
    number: u64,
    system: usize,
    /// Single spaces; in small letters it is as long.
    text: String,
    found: Vec<Match<'static>>,
}

impl Texts {
    /// Nothing is read yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a text of any length, plain or compressed by gzip, in bounded memory.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    pub fn read(&mut self, name: &str, input: impl Read + 'static) -> Result<(), TextError> {
        let mut input = open(input)?;
        self.begin(name);
        let mut line = Vec::new();
        let mut number = 0;
        let incomplete = loop {
            line.clear();
            match input
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
            {
                Ok(0) => break None,
                Ok(_) => {}
                // What was read before counts: a file may be cut short.
                Err(error) if number > 0 => break Some(error.to_string()),
                Err(error) => return Err(error.into()),
            }
            number += 1;
            self.line(number, &line);
        };
        self.end(number, incomplete);
        Ok(())
    }

    /// Reads what a user typed: every line of it matters.
    pub fn message(&mut self, text: &str) {
        self.all_matter = true;
        self.begin("--message");
        let mut number = 0;
        for line in text.lines() {
            number += 1;
            self.line(number, line.as_bytes());
        }
        self.end(number, None);
        self.all_matter = false;
    }

    /// What was found.
    #[must_use]
    pub fn finish(self) -> Explanation {
        let more = self.findings.more;
        let (findings, conflicts) = self.findings.finish(&self.systems);
        Explanation {
            texts: self.texts,
            systems: self.systems.all,
            findings,
            conflicts,
            usual: self.usual,
            unknown: self.unknown.finish(),
            more,
        }
    }

    fn begin(&mut self, name: &str) {
        self.texts.push(Text {
            name: printable(name),
            lines: 0,
            incomplete: None,
        });
        self.systems.next_text();
        self.host = None;
    }

    fn end(&mut self, lines: u64, incomplete: Option<String>) {
        self.flush();
        if let Some(text) = self.texts.last_mut() {
            text.lines = lines;
            text.incomplete = incomplete;
        }
    }

    fn line(&mut self, number: u64, bytes: &[u8]) {
        if let Some(record) = journal::record(bytes) {
            for line in record.message.lines() {
                let prefix = Prefix {
                    starts: true,
                    host: record.host.clone(),
                    seconds: None,
                };
                let text = clean(line.as_bytes());
                self.text(number, &prefix, record.boot.as_deref(), &text);
            }
            return;
        }
        // Progress is printed over itself.
        for piece in bytes.split(|&byte| byte == b'\r' || byte == b'\n') {
            let text = clean(piece);
            if !text.is_empty() {
                let prefix = prefix(&text);
                self.text(number, &prefix, None, &text);
            }
        }
    }

    fn text(&mut self, number: u64, prefix: &Prefix, boot: Option<&str>, text: &str) {
        // What has no head of its own goes on with the line before.
        let mut prefix = prefix.clone();
        match prefix.starts {
            true => self.host.clone_from(&prefix.host),
            false => prefix.host.clone_from(&self.host),
        }
        let system = self.systems.of(number, &prefix, boot, text);
        let text = collapse(text);
        let mut starts = prefix.starts || begins_with_function(&text);
        for piece in pieces(&text) {
            let next = Pending::new(number, system, piece.to_owned());
            let next = match self.pending.take() {
                Some(before) if !starts && before.system == system => self.join(before, next),
                Some(before) => {
                    self.settle(&before);
                    next
                }
                None => next,
            };
            self.pending = Some(next);
            starts = false;
        }
    }

    /// One line, if a message begins in the first and ends in the second, or needs a word of the
    /// first.
    fn join(&mut self, before: Pending, next: Pending) -> Pending {
        let tail = tail(&before.text);
        let edge = tail.len();
        let apart = before.matched() + next.matched();
        // A terminal cuts anywhere, a mail between words.
        let joined = ["", " "].into_iter().filter_map(|gap| {
            let text = format!("{tail}{gap}{}", next.text);
            let mut joined = Pending::new(before.number, before.system, text);
            if edge < before.text.len() {
                // The first is counted by itself.
                joined.found.retain(|found| found.end > edge);
            }
            let across = joined
                .found
                .iter()
                .any(|found| found.start < edge && found.end > edge + gap.len());
            let by_word = edge >= SHORTEST_CUT && joined.matched() > apart;
            (across || by_word).then_some(joined)
        });
        match joined.max_by_key(Pending::matched) {
            Some(joined) => {
                if edge < before.text.len() {
                    self.settle(&before);
                }
                joined
            }
            None => {
                self.settle(&before);
                next
            }
        }
    }

    fn flush(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.settle(&pending);
        }
    }

    /// Counts the messages of a line.
    fn settle(&mut self, line: &Pending) {
        let plain = line.text.to_ascii_lowercase();
        self.findings.note_function(&plain);
        if line.found.is_empty() {
            let about = is_about_dsa(&plain)
                || (["dmar", " aer: "].iter().any(|word| plain.contains(word))
                    && self.findings.names_function(&plain));
            if about || self.all_matter {
                self.unknown.add(line.number, &line.text);
            }
            return;
        }
        let mut bad = false;
        let mut entries: Vec<usize> = Vec::new();
        for found in line.said() {
            // Two formats of one message.
            if entries.contains(&found.number) {
                continue;
            }
            entries.push(found.number);
            let Some(severity) = found.severity() else {
                continue;
            };
            bad = true;
            let name = self.texts.last().map(|text| text.name.clone());
            let seen = Seen {
                text: name.unwrap_or_default(),
                line: line.number,
                says: printable(&line.text),
                system: line.system,
                span: found.span,
            };
            self.findings.add(found, severity, seen);
        }
        self.usual += u64::from(!bad);
    }
}

impl Pending {
    fn new(number: u64, system: usize, text: String) -> Self {
        // A bare number is what `cat cmd_status` prints.
        let plain = match text
            .strip_prefix("0x80")
            .is_some_and(|digits| digits.len() == 6)
        {
            true => format!("cmd_status: {}", text.to_ascii_lowercase()),
            false => text.to_ascii_lowercase(),
        };
        Self {
            number,
            system,
            found: catalogue().look_up(&plain),
            text,
        }
    }

    /// How much of it is messages.
    fn matched(&self) -> usize {
        self.found.iter().map(|found| found.end - found.start).sum()
    }

    /// Its messages, without the words beside a number that is decoded.
    fn said(&self) -> impl Iterator<Item = &Match<'static>> {
        let decoded = self.found.iter().any(|found| !found.decoded.is_empty());
        self.found.iter().filter(move |found| {
            let beside = decoded && found.decoded.is_empty() && self.found.len() > 1;
            !beside
                || !self
                    .found
                    .iter()
                    .any(|other| !other.decoded.is_empty() && other.source.by == found.source.by)
        })
    }
}

/// A text in pieces of bounded length, cut between words.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let piece = match rest.len() > MAX_PIECE_BYTES {
            true => {
                let whole = boundary(rest, MAX_PIECE_BYTES);
                let cut = rest[..whole].rfind(' ').filter(|&cut| cut > 0);
                &rest[..cut.unwrap_or(whole)]
            }
            false => rest,
        };
        rest = &rest[piece.len()..];
        Some(piece)
    })
}

fn tail(text: &str) -> &str {
    &text[boundary(text, text.len().saturating_sub(MAX_JOINED_BYTES))..]
}

/// The last start of a character up to a place.
fn boundary(text: &str, place: usize) -> usize {
    let starts = (0..=place).rev();
    starts
        .into_iter()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}
