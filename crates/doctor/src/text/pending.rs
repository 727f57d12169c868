//! A line whose messages may go on in the next.

use super::command_line;
use super::source_code::is_printed_by;
use crate::catalogue::{BOOT_WORD, Match, catalogue};

/// Longest piece in which messages are looked for at once.
const MAX_PIECE_BYTES: usize = 4096;
/// As much of a line is joined with the next, where a message goes on in the next.
const MAX_JOINED_BYTES: usize = 512;
/// No terminal and no mail is narrower.
const SHORTEST_CUT: usize = 40;

/// A line whose messages may go on in the next.
pub(super) struct Pending {
    pub(super) number: u64,
    pub(super) system: usize,
    /// Single spaces; in small letters it is as long.
    pub(super) text: String,
    pub(super) found: Vec<Match<'static>>,
    /// Where the words begin, if it is the command line of a kernel.
    pub(super) command_line: Option<usize>,
    /// It begins with a time.
    pub(super) in_log: bool,
}

impl Pending {
    /// Looks for messages. `asked`: the line before asks for the command line.
    pub(super) fn new(number: u64, system: usize, text: String, asked: bool) -> Self {
        if let Some(from) = command_line::begins(&text, asked) {
            return Self {
                number,
                system,
                found: hindering(&text, from),
                command_line: Some(from),
                in_log: false,
                text,
            };
        }
        // A bare number is what `cat cmd_status` prints.
        let plain = match text
            .strip_prefix("0x80")
            .is_some_and(|digits| digits.len() == 6)
        {
            true => format!("cmd_status: {}", text.to_ascii_lowercase()),
            false => text.to_ascii_lowercase(),
        };
        let mut found = catalogue().look_up(&plain);
        if plain.contains('"') {
            found.retain(|found| !is_printed_by(&plain, &(found.start..found.end)));
        }
        Self {
            number,
            system,
            found,
            command_line: None,
            in_log: false,
            text,
        }
    }

    /// The same, as a line that begins with a time or not.
    pub(super) fn in_log(self, in_log: bool) -> Self {
        Self { in_log, ..self }
    }

    /// One line, if a message begins in the first and ends in the second, or needs a word of the
    /// first. The flag says that the first is counted by itself, too.
    pub(super) fn join(&self, next: &Self) -> Option<(Self, bool)> {
        let tail = tail(&self.text);
        let edge = tail.len();
        let is_part = edge < self.text.len();
        let apart = self.matched() + next.matched();
        // A terminal cuts anywhere, a mail between words.
        let joined = ["", " "].into_iter().filter_map(|gap| {
            let text = format!("{tail}{gap}{}", next.text);
            let mut joined =
                Self::new(self.number, self.system, text, self.command_line == Some(0));
            if is_part {
                joined.found.retain(|found| found.end > edge);
            }
            let across = joined
                .found
                .iter()
                .any(|found| found.start < edge && found.end > edge + gap.len());
            let by_word = edge >= SHORTEST_CUT && joined.matched() > apart;
            (across || by_word).then_some(joined.in_log(self.in_log))
        });
        let joined = joined.max_by_key(Self::matched)?;
        Some((joined, is_part))
    }

    /// How much of it is messages.
    fn matched(&self) -> usize {
        self.found.iter().map(|found| found.end - found.start).sum()
    }

    /// Its messages, without the words beside a number that is decoded.
    pub(super) fn said(&self) -> impl Iterator<Item = &Match<'static>> {
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

/// The words of a command line that the catalogue knows, each where it stands.
fn hindering(text: &str, from: usize) -> Vec<Match<'static>> {
    let words = command_line::hindering(text, from).into_iter();
    let found = words.flat_map(|(place, known)| {
        let found = catalogue().look_up(&format!("{BOOT_WORD} {known}"));
        found.into_iter().map(move |found| Match {
            start: place.start,
            end: place.end,
            ..found
        })
    });
    found.collect()
}

/// A text in pieces of bounded length, cut between words.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
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
