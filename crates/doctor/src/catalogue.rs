//! Messages about a DSA, and what they mean.
//!
//! The messages stand in `catalogue/*.txt`, as the programs' sources print them, with their
//! meaning in words of this project. Every message of the kernel's driver, of its users and of the
//! remapping unit is there: `tests/messages` has a line of each.

mod advice;
mod decode;
mod fault;
mod kernels;
mod library;
mod origin;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use self::decode::Code;
pub(crate) use self::decode::Decoded;
pub(crate) use self::kernels::{Span, upstream};
use self::origin::Origin;
pub(crate) use self::origin::begins_with_function;
use self::parse::Parsed;
use self::pattern::{Format, Found};
pub(crate) use self::pattern::{collapse, readable, words};
use crate::finding::{Fix, Severity};

/// Stands before a word of a command line that is looked up: nobody prints it.
pub(crate) const BOOT_WORD: &str = "__command_line__";

/// Less is left of many messages.
const MIN_CUT_BYTES: usize = 20;
/// Less at the start of a text may be what any program says, where no word names who says it.
const MIN_CUT_FRONT_BYTES: usize = 30;

const FILES: [&str; 16] = [
    include_str!("../catalogue/idxd.txt"),
    include_str!("../catalogue/idxd-debug.txt"),
    include_str!("../catalogue/iaa-crypto.txt"),
    include_str!("../catalogue/dmaengine.txt"),
    include_str!("../catalogue/iommu.txt"),
    include_str!("../catalogue/iommu-boot.txt"),
    include_str!("../catalogue/kernel.txt"),
    include_str!("../catalogue/crashes.txt"),
    include_str!("../catalogue/accel-config.txt"),
    include_str!("../catalogue/accel-config-test.txt"),
    include_str!("../catalogue/libraries.txt"),
    include_str!("../catalogue/spdk.txt"),
    include_str!("../catalogue/dpdk.txt"),
    include_str!("../catalogue/micros.txt"),
    include_str!("../catalogue/micros-usual.txt"),
    include_str!("../catalogue/system.txt"),
];

/// Who prints messages.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// As in `Linux, drivers/dma/idxd`.
    pub(crate) by: String,
    /// Which versions were read.
    pub(crate) of: String,
    scope: Vec<String>,
    /// Whether a word of the scope stands before long messages, too.
    always: bool,
}

/// What some messages mean.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) source: usize,
    /// None for what a healthy system prints, or a debugging aid.
    pub(crate) severity: Option<Severity>,
    /// It follows from a message that stands before it, if there is one.
    pub(crate) follows: bool,
    /// It is all there is to say of messages of the same program that follow from it.
    pub(crate) explains: bool,
    /// Devices of others cause it as well.
    pub(crate) shared: bool,
    /// Checks that find the cause, the most likely first.
    pub(crate) checks: Vec<String>,
    pub(crate) what: String,
    pub(crate) fix: Fix,
    /// What to do if no number of the message says it.
    pub(crate) spare: bool,
    /// What to do instead where a text says all of some facts.
    pub(crate) given: Vec<(Vec<String>, String)>,
}

impl Entry {
    /// Adds to the commands, and to each advice, that the driver is loaded again.
    fn reload(&mut self) {
        self.fix = std::mem::take(&mut self.fix).reload();
        for (_, advice) in &mut self.given {
            *advice = Fix::advice(advice.as_str()).reload().advice;
        }
    }
}

/// A message.
pub(crate) struct Pattern {
    format: Format,
    /// Letters of its own.
    letters: usize,
    /// It has text enough to be told from messages of others.
    is_long: bool,
    /// Where no word of the source's scope stands, it is all of a line.
    is_alone: bool,
    /// As the program's source has it.
    pub(crate) text: String,
    pub(crate) entry: usize,
    /// Kernels that print it; none if they all do, or it is no kernel's.
    span: Option<Span>,
}

impl Pattern {
    /// Whether it is looked for in a line, which has a word of the source's scope or not.
    fn is_tried(&self, by: &Source, origin: Origin, named: bool) -> bool {
        let admitted = named || by.scope.is_empty() || (!by.always && self.is_long);
        match origin {
            Origin::Unknown => admitted,
            Origin::Kernel => by.is_kernel() && admitted,
            Origin::Driver => by.is_kernel() && by.always && named,
            Origin::Module => by.is_kernel() && by.scope.is_empty(),
        }
    }
}

/// A report of a crash, by words that it has.
pub(crate) struct Crash {
    /// Functions of its stack, source files, kinds and drivers; `*` at the end stands for a rest.
    words: Vec<String>,
    entry: usize,
}

impl Crash {
    /// It names a driver or a source file, and no function.
    fn is_of_driver(&self) -> bool {
        let driver = |word: &String| {
            ["idxd", "iaa_crypto"].contains(&word.as_str()) || word.contains(['/', '*'])
        };
        self.words.iter().all(driver)
    }

    fn is_in(&self, report: &BTreeSet<String>) -> bool {
        self.words.iter().all(|word| match word.strip_suffix('*') {
            Some(start) => report.iter().any(|known| known.starts_with(start)),
            None => report.contains(word),
        })
    }
}

/// A message that was found in a line.
pub(crate) struct Match<'a> {
    /// Kernels that print it; none if they all do, or it is no kernel's.
    pub(crate) span: Option<Span>,
    pub(crate) entry: &'a Entry,
    pub(crate) source: &'a Source,
    /// The place of the entry, which names it.
    pub(crate) number: usize,
    /// Where it begins in the plain line.
    pub(crate) start: usize,
    /// Where it ends there.
    pub(crate) end: usize,
    /// What its numbers say.
    pub(crate) decoded: Vec<Decoded>,
    /// The PCI function that it names.
    pub(crate) function: Option<String>,
}

impl Match<'_> {
    /// How bad it is; none if it is usual, or its numbers say that all is well.
    pub(crate) fn severity(&self) -> Option<Severity> {
        let fine = !self.decoded.is_empty() && self.decoded.iter().all(|decoded| decoded.fine);
        self.entry.severity.filter(|_| !fine)
    }
}

/// A format that was found, and is not part of another.
struct Kept {
    place: usize,
    found: Found,
    span: Option<Span>,
}

/// All messages.
pub(crate) struct Catalogue {
    parsed: Parsed,
    /// Patterns by a word that each of their texts has.
    index: HashMap<String, Vec<usize>>,
    /// Patterns by the first bytes of their first text: what is left of a line that was cut.
    heads: HashMap<[u8; MIN_CUT_BYTES], Vec<usize>>,
    /// Bytes of the longest first text.
    longest_head: usize,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut parsed = Parsed::default();
    for file in FILES {
        parsed
            .add(file)
            .expect("the built-in files are well formed");
    }
    Catalogue::of(parsed)
});

/// The messages that are known.
pub(crate) fn catalogue() -> &'static Catalogue {
    &CATALOGUE
}

impl Catalogue {
    fn of(parsed: Parsed) -> Self {
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for pattern in &parsed.patterns {
            for word in pattern.format.anchors() {
                *uses.entry(word).or_default() += 1;
            }
        }
        let mut index: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, pattern) in parsed.patterns.iter().enumerate() {
            let anchors = pattern.format.anchors().into_iter();
            let rarest = anchors.min_by_key(|word| (uses[word], usize::MAX - word.len()));
            let word = rarest.expect("every format has a whole word");
            index.entry(word.to_owned()).or_default().push(place);
        }
        let mut heads: HashMap<_, Vec<usize>> = HashMap::new();
        let mut longest_head = 0;
        for (place, pattern) in parsed.patterns.iter().enumerate() {
            let text = pattern.format.first();
            if let Some(head) = text.as_bytes().first_chunk() {
                heads.entry(*head).or_default().push(place);
                longest_head = longest_head.max(text.len());
            }
        }
        Self {
            parsed,
            index,
            heads,
            longest_head,
        }
    }

    /// The messages in a plain line, from left to right.
    pub(crate) fn look_up(&self, line: &str) -> Vec<Match<'_>> {
        let candidates: BTreeSet<usize> = words(line)
            .filter_map(|word| self.index.get(word))
            .flatten()
            .copied()
            .collect();
        let origin = origin::origin(line);
        // Whether a line has a word of a source's scope.
        let mut admitted: Vec<Option<bool>> = vec![None; self.parsed.sources.len()];
        let mut found: Vec<(usize, Found)> = Vec::new();
        for place in candidates {
            let pattern = &self.parsed.patterns[place];
            let source = self.parsed.entries[pattern.entry].source;
            let by = &self.parsed.sources[source];
            let admits = || words(line).any(|word| by.admits(word));
            let named = *admitted[source].get_or_insert_with(admits);
            if pattern.is_tried(by, origin, named)
                && let Some(at) = pattern.format.find(line)
                && !self.is_part(pattern, by, &at, line)
                && (named || !pattern.is_alone || (at.range.start == 0 && at.whole == line.len()))
            {
                found.push((place, at));
            }
        }
        let mut kept: Vec<Kept> = Vec::new();
        // Of those that overlap, the one with the most text of its own, then the longest.
        found.sort_by_key(|(place, found)| std::cmp::Reverse(self.rank(*place, found)));
        for (place, found) in found {
            let span = self.parsed.patterns[place].span;
            let mut overlap = kept.iter_mut().filter(|known| {
                let known = &known.found.range;
                known.start < found.range.end && found.range.start < known.end
            });
            match overlap.next() {
                None => kept.push(Kept { place, found, span }),
                // A line that was cut does not say which of two formats it had.
                Some(known) if self.rank(known.place, &known.found) == self.rank(place, &found) => {
                    known.span = known.span.zip(span).map(|(one, other)| one.union(other));
                }
                Some(_) => {}
            }
        }
        kept.sort_by_key(|kept| kept.found.range.start);
        kept.into_iter().map(|kept| self.matched(kept)).collect()
    }

    /// What a report of a crash means: the one that names the most of its words.
    pub(crate) fn crash(
        &self,
        report: &BTreeSet<String>,
        function: Option<&str>,
    ) -> Option<Match<'_>> {
        let known = self
            .parsed
            .crashes
            .iter()
            .filter(|crash| crash.is_in(report));
        let crash = known.rev().max_by_key(|crash| crash.words.len())?;
        let entry = &self.parsed.entries[crash.entry];
        // Of an entry for all reports of a driver, where each stopped tells them apart.
        let decoded = function.filter(|_| crash.is_of_driver());
        Some(Match {
            span: None,
            entry,
            source: &self.parsed.sources[entry.source],
            number: crash.entry,
            start: 0,
            end: 0,
            decoded: decoded.map(Decoded::place).into_iter().collect(),
            function: None,
        })
    }

    /// What to do by an entry where some facts hold, if it is not what it says otherwise.
    pub(crate) fn advice_given(&self, number: usize, holds: impl Fn(&str) -> bool) -> Option<&str> {
        let given = &self.parsed.entries[number].given;
        let given = given
            .iter()
            .find(|(facts, _)| facts.iter().all(|fact| holds(fact)));
        given.map(|(_, advice)| advice.as_str())
    }

    /// The message that a plain line was cut in, at its end or, with `front`, at its start: none if
    /// what is left is short, or is the same of several.
    pub(crate) fn look_up_cut(&self, line: &str, front: bool) -> Option<Match<'_>> {
        let candidates: BTreeSet<usize> = match front {
            true => (0..self.parsed.patterns.len()).collect(),
            false => {
                let from = line.len().saturating_sub(self.longest_head);
                let windows = line.as_bytes()[from..].windows(MIN_CUT_BYTES);
                let known = windows.filter_map(|window| self.heads.get(window));
                known.flatten().copied().collect()
            }
        };
        let origin = origin::origin(line);
        let mut longest: (usize, Option<usize>) = (0, None);
        for place in candidates {
            let pattern = &self.parsed.patterns[place];
            let by = &self.parsed.sources[self.parsed.entries[pattern.entry].source];
            let length = match front {
                true => pattern.format.ends_at_start(line, MIN_CUT_BYTES),
                false => pattern.format.begins_at_end(line, MIN_CUT_BYTES),
            };
            let Some(length) = length.filter(|&length| length >= longest.0) else {
                continue;
            };
            let named = words(line).any(|word| by.admits(word));
            let is_little = front && !named && length < MIN_CUT_FRONT_BYTES;
            if is_little || !pattern.is_tried(by, origin, named) {
                continue;
            }
            // What several entries have says of none which it was.
            let is_other = |known: usize| self.parsed.patterns[known].entry != pattern.entry;
            let tied = length == longest.0 && longest.1.is_none_or(is_other);
            longest = (length, (!tied).then_some(place));
        }
        let place = longest.1?;
        let pattern = &self.parsed.patterns[place];
        let entry = &self.parsed.entries[pattern.entry];
        Some(Match {
            span: pattern.span,
            entry,
            source: &self.parsed.sources[entry.source],
            number: pattern.entry,
            start: 0,
            end: line.len(),
            decoded: Vec::new(),
            function: None,
        })
    }

    /// Whether a word or two that are usual by themselves stand within another message.
    fn is_part(&self, pattern: &Pattern, by: &Source, found: &Found, line: &str) -> bool {
        let usual = self.parsed.entries[pattern.entry].severity.is_none();
        if pattern.is_long || !usual || !by.scope.is_empty() {
            return false;
        }
        let before = line[..found.range.start].trim_end();
        let begins = !pattern.format.begins || before.is_empty() || before.ends_with([':', ']']);
        !begins || !found.is_whole
    }

    /// How much of a line a format explains.
    fn rank(&self, place: usize, found: &Found) -> (usize, usize) {
        let letters = self.parsed.patterns[place].letters;
        (letters, found.whole - found.range.start)
    }

    fn matched(&self, Kept { place, found, span }: Kept) -> Match<'_> {
        let pattern = &self.parsed.patterns[place];
        let entry = &self.parsed.entries[pattern.entry];
        let mut function = None;
        let mut decoded = Vec::new();
        for (code, text) in found.codes {
            match code {
                Code::Function => function = Some(text),
                code => decoded.extend(code.decode(&text)),
            }
        }
        Match {
            span,
            entry,
            source: &self.parsed.sources[entry.source],
            number: pattern.entry,
            start: found.range.start,
            end: found.range.end,
            decoded,
            function,
        }
    }

    /// What would confirm the finding of a check: messages of entries that name it, with who
    /// prints them.
    pub(crate) fn confirming(&self, check: &str) -> Vec<(&str, &str)> {
        let entries = self.parsed.entries.iter().enumerate();
        let mut entries: Vec<_> = entries
            .filter_map(|(number, entry)| {
                let place = entry.checks.iter().position(|known| known == check)?;
                Some((place, number, entry))
            })
            .collect();
        entries.sort_by_key(|&(place, number, _)| (place, number));
        let patterns = &self.parsed.patterns;
        let messages = entries.into_iter().filter_map(|(_, number, entry)| {
            let pattern = patterns.iter().find(|pattern| pattern.entry == number)?;
            let by = self.parsed.sources[entry.source].by.as_str();
            Some((by, pattern.text.as_str()))
        });
        messages.collect()
    }
}

impl Source {
    fn is_kernel(&self) -> bool {
        self.by.starts_with("Linux")
    }

    fn admits(&self, word: &str) -> bool {
        self.scope.iter().any(|known| {
            let numbered = known
                .strip_suffix('#')
                .and_then(|name| word.strip_prefix(name));
            let begun = known
                .strip_suffix('*')
                .is_some_and(|name| word.starts_with(name));
            let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            begun || numbered.is_some_and(number) || known == word
        })
    }
}
