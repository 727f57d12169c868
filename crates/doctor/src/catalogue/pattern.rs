//! A printed format as a pattern of text.
//!
//! A pattern is the format as the program's source has it. It is matched against text in small
//! letters with single spaces; how it begins and ends is free.

use std::ops::Range;

use super::decode::Code;

/// One piece of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Text, in small letters.
    Literal(String),
    /// `%s` and the like: any text.
    Any,
    /// `%d` and the like.
    Decimal,
    /// `%f`.
    Float,
    /// `%x` and the like.
    Hex,
    /// `%{name}`: a number or word that is decoded.
    Code(Code),
}

/// A format to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    parts: Vec<Part>,
    /// It begins with text of its own, not with what stands for other text.
    pub(super) begins: bool,
    /// A word at the end may go on: `idxd_%s`.
    open: bool,
    /// What stands behind, which a line may lack: it tells formats apart.
    tail: Vec<Part>,
}

/// Where a format was found, and what stood for its codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    /// Where it ends with what a line may lack.
    pub(super) whole: usize,
    /// The line has all of that.
    pub(super) is_whole: bool,
    pub(super) codes: Vec<(Code, String)>,
}

/// Text with each run of white space as one space, and none at the edges.
pub(crate) fn collapse(text: &str) -> String {
    let mut single = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !single.is_empty() {
            single.push(' ');
        }
        single.push_str(word);
    }
    single
}

/// A format for people: what stands for other text is an ellipsis.
pub(crate) fn readable(format: &str) -> String {
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(place) = rest.find('%') {
        out.push_str(&rest[..place]);
        let (part, length) = conversion(&rest[place..]).unwrap_or((None, 1));
        out.push_str(if part.is_some() { "..." } else { "%" });
        rest = &rest[place + length..];
    }
    out + rest
}

/// The words of plain text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Format {
    /// Compiles a format.
    ///
    /// # Errors
    /// A conversion is not known, or no text is left to look for.
    pub(super) fn compile(format: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = format;
        while let Some(place) = rest.find('%') {
            literal.push_str(&rest[..place]);
            let (part, length) = conversion(&rest[place..])?;
            match part {
                None => literal.push('%'),
                Some(part) => {
                    push_literal(&mut parts, &mut literal);
                    if !(part == Part::Any && parts.last() == Some(&Part::Any)) {
                        parts.push(part);
                    }
                }
            }
            rest = &rest[place + length..];
        }
        literal.push_str(rest);
        push_literal(&mut parts, &mut literal);
        let begins = matches!(parts.first(), Some(Part::Literal(_)));
        let (open, tail) = trim(&mut parts);
        match parts.first() {
            Some(Part::Literal(text)) if text.chars().any(is_word) => Ok(Self {
                parts,
                begins,
                open,
                tail,
            }),
            _ => Err(format!("no text is left of {format:?}")),
        }
    }

    /// Words that stand whole in every text that matches.
    pub(super) fn anchors(&self) -> Vec<&str> {
        let last = self.parts.len() - 1;
        let mut anchors = Vec::new();
        for (place, part) in self.parts.iter().enumerate() {
            let Part::Literal(text) = part else { continue };
            for word in words(text) {
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                let whole_start = start > 0 || place == 0;
                let whole_end = start + word.len() < text.len() || (place == last && !self.open);
                if word.len() >= 2 && whole_start && whole_end {
                    anchors.push(word);
                }
            }
        }
        anchors
    }

    /// How much text the format has: letters, and words of at least two letters.
    pub(super) fn text(&self) -> (usize, usize) {
        let literals = self.parts.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(text.as_str()),
            _ => None,
        });
        let mut size = (0, 0);
        for literal in literals {
            size.0 += literal.chars().filter(char::is_ascii_alphabetic).count();
            size.1 += words(literal).filter(|word| word.len() > 1).count();
        }
        size
    }

    /// The text that it begins with.
    pub(super) fn first(&self) -> &str {
        match self.parts.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// How much of the format's first text stands at the end of a line that was cut there, if it is
    /// at least so much.
    pub(super) fn begins_at_end(&self, line: &str, least: usize) -> Option<usize> {
        let text = self.first();
        let place = line.rfind(text.get(..least)?)?;
        let is_cut = text.len() > line.len() - place && text.starts_with(&line[place..]);
        (is_cut && begins_word(line, place, text)).then_some(line.len() - place)
    }

    /// How much of the format's last text stands at the start of a line that was cut there, if it
    /// is at least so much.
    pub(super) fn ends_at_start(&self, line: &str, least: usize) -> Option<usize> {
        let Some(Part::Literal(text)) = self.parts.last() else {
            return None;
        };
        let place = text.find(line.get(..least)?)?;
        (place > 0 && line.starts_with(&text[place..])).then_some(text.len() - place)
    }

    /// A text that the format prints.
    #[cfg(test)]
    pub(super) fn example(&self) -> String {
        let parts = self.parts.iter().chain(&self.tail);
        let texts = parts.map(|part| match part {
            Part::Literal(text) => text.as_str(),
            Part::Any => "x",
            Part::Decimal => "3",
            Part::Float => "3.5",
            Part::Hex => "2a",
            Part::Code(code) => code.example(),
        });
        texts.collect()
    }

    /// The first place where the format stands in plain text.
    pub(super) fn find(&self, text: &str) -> Option<Found> {
        let Some(Part::Literal(first)) = self.parts.first() else {
            return None;
        };
        let starts = text
            .match_indices(first.as_str())
            .map(|(start, _)| start)
            .filter(|&start| begins_word(text, start, first));
        let gaps = self.parts.contains(&Part::Any);
        for start in starts {
            let mut codes = Vec::new();
            let first = self.parts.split(|part| *part == Part::Any).next();
            let begun = fixed(first.unwrap_or_default(), text, start, &mut codes);
            let Some(end) = begun else { continue };
            let found = self.find_rest(text, start, end, codes);
            // Behind a `%s` a later start finds no more than the first.
            if found.is_some() || gaps {
                return found;
            }
        }
        None
    }

    /// What stands behind the first `%s`. Each piece takes the first place that it fits: a later
    /// one would leave less for the rest.
    fn find_rest(
        &self,
        text: &str,
        start: usize,
        mut end: usize,
        mut codes: Vec<(Code, String)>,
    ) -> Option<Found> {
        for piece in self.parts.split(|part| *part == Part::Any).skip(1) {
            end = match piece.first() {
                Some(Part::Literal(first)) => {
                    let mut places = text[end..].match_indices(first.as_str());
                    places.find_map(|(from, _)| fixed(piece, text, end + from, &mut codes))?
                }
                _ => {
                    let mut places = text[end..].char_indices();
                    places.find_map(|(from, _)| fixed(piece, text, end + from, &mut codes))?
                }
            };
        }
        let inside = text[..end].ends_with(is_word) && text[end..].starts_with(is_word);
        let tail = self.tail.split(|part| *part == Part::Any).next();
        let whole = fixed(tail.unwrap_or_default(), text, end, &mut Vec::new());
        (self.open || !inside).then_some(Found {
            range: start..end,
            whole: whole.unwrap_or(end),
            is_whole: whole.is_some(),
            codes,
        })
    }
}

/// Where a piece without `%s` ends that begins at `from`.
fn fixed(
    piece: &[Part],
    text: &str,
    from: usize,
    codes: &mut Vec<(Code, String)>,
) -> Option<usize> {
    let known = codes.len();
    let mut at = from;
    for part in piece {
        let rest = &text[at..];
        let length = match part {
            Part::Literal(literal) => rest.starts_with(literal.as_str()).then_some(literal.len()),
            Part::Decimal => number(rest, |c| c.is_ascii_digit()),
            Part::Float => number(rest, |c| c.is_ascii_digit() || c == '.'),
            Part::Hex => number(rest, |c| c.is_ascii_hexdigit()),
            Part::Code(code) => code.length(rest).inspect(|&length| {
                codes.push((*code, rest[..length].trim().to_owned()));
            }),
            Part::Any => None,
        };
        let Some(length) = length else {
            codes.truncate(known);
            return None;
        };
        at += length;
    }
    Some(at)
}

/// The length of a number, with the spaces of its field and its sign.
pub(super) fn number(text: &str, digit: impl Fn(char) -> bool) -> Option<usize> {
    let spaces = text.len() - text.trim_start_matches(' ').len();
    let rest = &text[spaces..];
    let sign = usize::from(rest.starts_with('-'));
    let prefix = match rest[sign..].starts_with("0x") {
        true => 2,
        false => 0,
    };
    let digits = &rest[sign + prefix..];
    let hex = |c: char| match prefix {
        0 => digit(c),
        _ => c.is_ascii_hexdigit(),
    };
    let length = digits.len() - digits.trim_start_matches(hex).len();
    (length > 0).then_some(spaces + sign + prefix + length)
}

/// The part that a conversion stands for, none for `%%`, and its length.
fn conversion(text: &str) -> Result<(Option<Part>, usize), String> {
    if let Some(rest) = text.strip_prefix("%{") {
        let end = rest.find('}').ok_or("a %{ has no end")?;
        let code = Code::named(&rest[..end]).ok_or(format!("no code is named {}", &rest[..end]))?;
        return Ok((Some(Part::Code(code)), end + 3));
    }
    let rest = &text[1..];
    let letters = |c: char| c.is_ascii_digit() || "#-+ .*lzhjqL".contains(c);
    let flags = rest.len() - rest.trim_start_matches(letters).len();
    let part = match rest[flags..].chars().next() {
        Some('%') if flags == 0 => None,
        Some('s' | 'c' | 'p') => Some(Part::Any),
        Some('d' | 'u' | 'i') => Some(Part::Decimal),
        Some('f') => Some(Part::Float),
        Some('x' | 'X') => Some(Part::Hex),
        _ => return Err(format!("no conversion: {text:?}")),
    };
    Ok((part, flags + 2))
}

fn push_literal(parts: &mut Vec<Part>, literal: &mut String) {
    // Spaces at the edges of a literal belong to the format.
    let text: String = literal
        .chars()
        .map(|c| match c {
            c if c.is_whitespace() => ' ',
            c => c.to_ascii_lowercase(),
        })
        .collect();
    let mut single = String::with_capacity(text.len());
    for c in text.chars() {
        if c != ' ' || !single.ends_with(' ') {
            single.push(c);
        }
    }
    literal.clear();
    if !single.is_empty() {
        parts.push(Part::Literal(single));
    }
}

/// Leaves out what a line may lack: what stands for other text at the edges, and punctuation.
/// Whether a word at the end was cut, and what was left out there.
fn trim(parts: &mut Vec<Part>) -> (bool, Vec<Part>) {
    let loose = |part: &Part| match part {
        Part::Literal(text) => !text.contains(is_word),
        Part::Code(_) => false,
        _ => true,
    };
    let start = parts
        .iter()
        .position(|part| !loose(part) && !matches!(part, Part::Code(_)));
    parts.drain(..start.unwrap_or(parts.len()));
    let mut open = false;
    let end = parts.iter().rposition(|part| !loose(part));
    let mut tail = parts.split_off(end.map_or(0, |end| end + 1));
    if let Some(first) = tail.first() {
        open = !matches!(first, Part::Literal(_));
    }
    let cut = matches!(parts.last(), Some(Part::Literal(text)) if text.ends_with(is_word));
    open &= cut;
    if let Some(Part::Literal(text)) = parts.first_mut() {
        *text = text
            .trim_start_matches(['.', ':', ',', ' ', '/', ']'])
            .to_owned();
    }
    if let Some(Part::Literal(text)) = parts.last_mut() {
        let end = text.trim_end_matches(['.', ':', ',', ' ', '!', '(']).len();
        let rest = text.split_off(end);
        if !rest.is_empty() {
            tail.insert(0, Part::Literal(rest));
        }
    }
    (open, tail)
}

fn begins_word(text: &str, start: usize, literal: &str) -> bool {
    !literal.starts_with(is_word) || !text[..start].ends_with(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(format: &str, text: &str) -> Option<String> {
        let text = collapse(text).to_ascii_lowercase();
        let found = Format::compile(format).unwrap().find(&text)?;
        Some(text[found.range].to_owned())
    }

    #[test]
    fn formats_match_what_they_print() {
        for (format, text) in [
            (
                "WQ %d in wrong state: %d",
                "idxd 0000:6a:01.0: WQ 3 in wrong state: 2",
            ),
            (
                "Error[%#10x] %s",
                "Error[      0x14] dsa0/wq0.0: out of range",
            ),
            ("%s: timeout!", "dma0chan0: timeout!"),
            (
                "fault addr 0x%llx [fault reason 0x%02x] %s",
                "fault addr 0x7f01 [fault reason 0x5a] SM: x",
            ),
            (
                "%s SVM disabled, incompatible paging mode",
                "dmar3 SVM  disabled,\tincompatible paging mode",
            ),
            ("Delta %d%% of", "delta 30% of"),
            ("iops %llu.%02llu", "iops 12.50"),
        ] {
            assert!(found(format, text).is_some(), "{format}: {text}");
        }
        for (format, text) in [
            ("WQ %d enabled", "WQ 1 enabledness"),
            ("WQ %d enabled", "KWQ 1 enabled"),
            ("WQ %d enabled", "WQ one enabled"),
            ("%s: timeout!", "timeouts"),
        ] {
            assert_eq!(found(format, text), None, "{format}: {text}");
        }
    }

    #[test]
    fn what_a_line_may_lack_counts_where_it_stands() {
        for (format, text, whole) in [
            ("failed: %d", "failed: -28", 11),
            ("failed.", "failed: -28", 6),
            ("failed.", "failed.", 7),
            ("failed. %d", "failed.", 6),
            ("failed: %s (%d)", "failed: x (3)", 8),
        ] {
            let found = Format::compile(format).unwrap().find(text).unwrap();
            assert_eq!(
                (found.range.end, found.whole),
                (6, whole),
                "{format}: {text}"
            );
        }
    }

    #[test]
    fn what_is_left_of_a_text_that_was_cut_is_measured() {
        let format = Format::compile("Unable to turn on user SVA feature.").unwrap();
        let end = |line| format.begins_at_end(line, 20);
        assert_eq!(end("idxd: unable to turn on user sva fea"), Some(30));
        assert_eq!(end("idxd: unable to turn"), None);
        assert_eq!(end("idxd: unable to turn on user sva fea x"), None);
        let start = |line| format.ends_at_start(line, 20);
        assert_eq!(start("le to turn on user sva feature."), Some(30));
        assert_eq!(start("x le to turn on user sva feature."), None);
    }

    #[test]
    fn a_hostile_line_costs_no_more_than_its_length() {
        let format = Format::compile("a%sa%sa%sa%sa%sa%sa%sb").unwrap();
        assert_eq!(format.find(&"a ".repeat(2000)), None);
    }

    #[test]
    fn anchors_are_words_that_every_match_has() {
        let format = Format::compile("wq%d portal mapped at %p, state %s").unwrap();
        assert_eq!(format.anchors(), ["portal", "mapped", "at", "state"]);
        assert!(Format::compile("%s: %d").is_err());
        assert!(Format::compile("%y").is_err());
        assert!(Format::compile("x %{nothing}").is_err());
    }
}
