//! Messages of any text: a log of the kernel, the output of a tool, a question in a forum.

mod clean;
mod collect;
mod command_line;
mod journal;
mod objects;
mod open;
mod pending;
mod prefix;
mod quoted;
mod source_code;
mod systems;
mod trace;
mod unknown;

use std::io::{BufRead, Read};

use serde::Serialize;

use self::clean::clean;
use self::collect::Findings;
pub use self::collect::{Explained, Seen};
use self::objects::Objects;
pub use self::open::TextError;
use self::open::open;
use self::pending::{Pending, pieces};
use self::prefix::{Prefix, prefix};
use self::quoted::Quoted;
pub use self::systems::System;
use self::systems::Systems;
use self::trace::{Line, Trace, Traces};
pub use self::unknown::Unknown;
use self::unknown::{Unknowns, is_about_dsa};
use crate::catalogue::{Decoded, Match, begins_with_function, catalogue, collapse};
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
    /// Lines that say that a program died or the kernel crashed, of which nothing is known.
    pub crashed: Vec<(u64, String)>,
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

/// As far behind its cause a message follows from it: empty lines stand between.
const MAX_LINES_BETWEEN: u64 = 6;
/// Lines that are kept of programs and kernels that crashed.
const MAX_CRASHED: usize = 3;
/// What a shell, a library or the kernel says of a program that died.
const DIED: [&str; 5] = [
    "terminate called",
    "core dumped",
    "Segmentation fault",
    "segfault at ",
    "double free or corruption",
];

/// What is said of a stack without what happened.
const ASKED_FOR: &str =
    "no line says what happened, and a stack that was asked for (SysRq) looks the same";

/// Longest line that is looked at as one: a record of the journal.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// Reads texts, and looks for messages in them.
#[derive(Default)]
pub struct Texts {
    texts: Vec<Text>,
    systems: Systems,
    findings: Findings,
    unknown: Unknowns,
    usual: u64,
    pending: Option<Pending>,
    traces: Traces,
    /// What the line before asks for.
    asked: Option<Asked>,
    /// The last message that explains those of its program that follow from it.
    explained: Option<(u64, String, Objects)>,
    crashed: Vec<(u64, String)>,
    /// No piece of the text was looked at yet.
    at_start: bool,
    /// Of the last line that named one.
    host: Option<String>,
    /// Every line counts that is not known, whatever it is about.
    all_matter: bool,
}

/// What a command prints in the line behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Release,
    CommandLine,
}

impl Asked {
    fn of(text: &str) -> Option<Self> {
        if text.contains("/proc/cmdline") {
            return Some(Self::CommandLine);
        }
        text.contains("uname").then_some(Self::Release)
    }
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
        let mut quoted = Quoted::default();
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
            if let Some(line) = quoted.line(&line) {
                self.line(number, &line);
            }
        };
        self.line(number, &quoted.finish());
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
            crashed: self.crashed,
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
        self.explained = None;
        self.asked = None;
        self.at_start = true;
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
        let text = collapse(text);
        let asked = self.asked.take();
        let asks_release = asked == Some(Asked::Release);
        let system = self.systems.of(number, &prefix, boot, &text, asks_release);
        self.asked = Asked::of(&text);
        if DIED.iter().any(|words| text.contains(words)) {
            self.died(number, &text);
        }
        let mut starts = prefix.starts || begins_with_function(&text);
        for piece in pieces(&text) {
            let asks_line = asked == Some(Asked::CommandLine);
            let next = Pending::new(number, system, piece.to_owned(), asks_line);
            let next = next.in_log(prefix.starts);
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

    fn join(&mut self, before: Pending, next: Pending) -> Pending {
        match before.join(&next) {
            Some((joined, is_part)) => {
                if is_part {
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
        if let Some(trace) = self.traces.finish() {
            self.crash(trace);
        }
    }

    /// Counts a report of a crash.
    fn crash(&mut self, trace: Trace) {
        let found = catalogue().crash(&trace.words, trace.function.as_deref());
        match found.and_then(|found| Some((found.severity()?, found))) {
            Some((mut severity, mut found)) => {
                if trace.may_be_asked_for() {
                    severity = Severity::Note;
                    found.decoded.push(Decoded::place(ASKED_FOR));
                }
                let seen = self.seen(trace.number, trace.system, &trace.says, &found);
                self.findings.add(&found, severity, seen);
            }
            None => {
                if self.all_matter {
                    self.unknown.add(trace.number, &trace.says);
                }
                if trace.is_crash() {
                    self.died(trace.number, &trace.says);
                }
            }
        }
    }

    /// Notes a line that says that something crashed, which no finding is about.
    fn died(&mut self, number: u64, says: &str) {
        if self.crashed.len() < MAX_CRASHED {
            self.crashed.push((number, printable(says)));
        }
    }

    /// Whether a message of the same program, just before it, says all there is to say.
    fn is_explained(&self, number: u64, found: &Match<'_>, of: &Objects) -> bool {
        let before = self.explained.as_ref();
        before.is_some_and(|(line, by, objects)| {
            number - line <= MAX_LINES_BETWEEN && *by == found.source.by && objects.cover(of)
        })
    }

    fn seen(&self, line: u64, system: usize, says: &str, found: &Match<'_>) -> Seen {
        let name = self.texts.last().map(|text| text.name.clone());
        Seen {
            text: name.unwrap_or_default(),
            line,
            says: printable(says),
            system,
            span: found.span,
        }
    }

    /// Counts a line of which no message is whole: it may be cut, at its end, or at the start of a text.
    fn settle_cut(&mut self, line: &Pending, plain: &str, is_about: bool, at_start: bool) {
        let at_end = is_about.then(|| catalogue().look_up_cut(plain, false));
        let of_start = || at_start.then(|| catalogue().look_up_cut(plain, true));
        let found = at_end.flatten().or_else(|| of_start().flatten());
        match found.and_then(|found| Some((found.severity()?, found))) {
            Some((severity, found)) => {
                let seen = self.seen(line.number, line.system, &line.text, &found);
                self.findings.add(&found, severity, seen);
            }
            None if is_about => self.unknown.add(line.number, &line.text),
            None => {}
        }
    }

    /// Counts the messages of a line.
    fn settle(&mut self, line: &Pending) {
        let plain = line.text.to_ascii_lowercase();
        let at_start = std::mem::take(&mut self.at_start) && line.number == 1;
        self.findings.note_function(&plain);
        let (in_trace, ended) = self.traces.read(&Line {
            number: line.number,
            system: line.system,
            text: &line.text,
            plain: &plain,
            in_log: line.in_log,
        });
        if let Some(trace) = ended {
            self.crash(trace);
        }
        if let Some(from) = line.command_line {
            let facts = command_line::facts(&line.text, from);
            self.systems.tell(line.system, facts);
        }
        if plain.contains("iaa_crypto now enabled") {
            self.systems.note(line.system, vec!["iaa_crypto"]);
        }
        if line.found.is_empty() {
            if in_trace || line.command_line.is_some() {
                return;
            }
            let about = is_about_dsa(&plain)
                || (["dmar", " aer: "].iter().any(|word| plain.contains(word))
                    && self.findings.names_function(&plain));
            if about || self.all_matter || at_start {
                self.settle_cut(line, &plain, about || self.all_matter, at_start);
            }
            return;
        }
        let objects = Objects::of(&plain);
        let mut is_usual = true;
        let mut entries: Vec<usize> = Vec::new();
        for found in line.said() {
            // Two formats of one message.
            if entries.contains(&found.number) {
                continue;
            }
            entries.push(found.number);
            if found.entry.follows && self.is_explained(line.number, found, &objects) {
                is_usual = false;
                continue;
            }
            if found.entry.explains {
                let by = found.source.by.clone();
                self.explained = Some((line.number, by, objects.clone()));
            }
            let Some(severity) = found.severity() else {
                continue;
            };
            is_usual = false;
            let seen = self.seen(line.number, line.system, &line.text, found);
            self.findings.add(found, severity, seen);
        }
        self.usual += u64::from(is_usual);
    }
}
