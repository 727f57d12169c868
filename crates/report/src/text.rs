//! How wide text is, and where it breaks, without a font at hand.

/// How a piece of text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// The main text.
    Plain,
    /// What must not be overlooked.
    Bold,
    /// What may be overlooked.
    Quiet,
    /// What a reader must be warned of.
    Alert,
}

/// A piece of text in one face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) face: Face,
}

impl Span {
    pub(crate) fn new(text: impl Into<String>, face: Face) -> Self {
        Self {
            text: text.into(),
            face,
        }
    }
}

/// A line of text in one or more faces.
pub(crate) type Line = Vec<Span>;

/// Advance widths of Helvetica for the characters from space to tilde, in thousandths of the size.
#[rustfmt::skip]
const ADVANCE: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Room for a reader's font that is wider than Helvetica, as DejaVu Sans is, in thousandths.
const MARGIN: u32 = 1150;
/// The same for bold text.
const BOLD_MARGIN: u32 = 1260;
/// Width of a character that the table does not have, unless it is an ideograph.
const OTHER: u32 = 600;

/// Width of a text at a font size, with some room to spare.
pub(crate) fn width(text: &str, size: f64, face: Face) -> f64 {
    let units: u32 = text
        .chars()
        .map(|c| match c {
            ' '..='~' => u32::from(ADVANCE[c as usize - ' ' as usize]),
            '\u{300}'..='\u{36f}' => 0,
            '\u{1100}'.. if !matches!(c, '\u{2000}'..='\u{2bff}') => 1000,
            _ => OTHER,
        })
        .fold(0, u32::saturating_add);
    let margin = match face {
        Face::Bold | Face::Alert => BOLD_MARGIN,
        Face::Plain | Face::Quiet => MARGIN,
    };
    f64::from(units) * f64::from(margin) * size / 1e6
}

/// Width of a line at a font size.
pub(crate) fn line_width(line: &[Span], size: f64) -> f64 {
    line.iter().map(|s| width(&s.text, size, s.face)).sum()
}

/// Breaks spans into lines of at most `room`, at spaces, and inside a word that has no line to fit.
pub(crate) fn wrap(spans: &[Span], size: f64, room: f64) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut line: Line = Vec::new();
    let mut used = 0.0;
    for span in spans {
        for word in span.text.split_whitespace() {
            let gap = if line.is_empty() {
                0.0
            } else {
                width(" ", size, span.face)
            };
            if !line.is_empty() && used + gap + width(word, size, span.face) > room {
                lines.push(std::mem::take(&mut line));
                used = 0.0;
            }
            let mut rest = word;
            while width(rest, size, span.face) > room {
                let cut = fitting(rest, size, span.face, room);
                let (head, tail) = rest.split_at(cut);
                lines.push(vec![Span::new(head, span.face)]);
                rest = tail;
            }
            if rest.is_empty() {
                continue;
            }
            let spaced = if line.is_empty() {
                rest.to_owned()
            } else {
                format!(" {rest}")
            };
            used += width(&spaced, size, span.face);
            match line.last_mut() {
                Some(last) if last.face == span.face => last.text.push_str(&spaced),
                _ => line.push(Span::new(spaced, span.face)),
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Breaks plain text into lines.
pub(crate) fn wrap_plain(text: &str, size: f64, room: f64, face: Face) -> Vec<Line> {
    wrap(&[Span::new(text, face)], size, room)
}

/// The text, or as much of it as fits `room` with an ellipsis.
pub(crate) fn shortened(text: &str, size: f64, room: f64) -> String {
    if width(text, size, Face::Plain) <= room {
        return text.to_owned();
    }
    let room = room - width("…", size, Face::Plain);
    let cut = fitting(text, size, Face::Plain, room);
    format!("{}…", text[..cut].trim_end())
}

/// How many bytes of a text fit, at least one character.
fn fitting(text: &str, size: f64, face: Face, room: f64) -> usize {
    let mut cut = 0;
    for (index, c) in text.char_indices() {
        let end = index + c.len_utf8();
        if cut > 0 && width(&text[..end], size, face) > room {
            break;
        }
        cut = end;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(lines: &[Line]) -> Vec<String> {
        lines
            .iter()
            .map(|l| l.iter().map(|s| s.text.as_str()).collect())
            .collect()
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        let lines = wrap_plain("one two three", 10.0, 45.0, Face::Plain);
        assert_eq!(joined(&lines), ["one two", "three"]);
    }

    #[test]
    fn a_word_longer_than_a_line_is_broken() {
        let lines = wrap_plain("a mmmmmmmm b", 10.0, 40.0, Face::Plain);
        assert_eq!(joined(&lines), ["a", "mmmm", "mmmm", "b"]);
    }

    #[test]
    fn shortened_text_ends_with_an_ellipsis() {
        assert_eq!(shortened("short", 10.0, 100.0), "short");
        let cut = shortened("a rather long category", 10.0, 60.0);
        assert!(cut.ends_with('…') && width(&cut, 10.0, Face::Plain) <= 60.0);
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit_and_keep_every_character(
            text in "\\PC{0,60}", room in 15.0..200.0f64
        ) {
            let lines = wrap_plain(&text, 10.0, room, Face::Plain);
            for line in &lines {
                prop_assert!(line_width(line, 10.0) <= room + 1e-9 || line[0].text.chars().count() == 1);
            }
            let kept: String = joined(&lines).concat().split_whitespace().collect();
            let whole: String = text.split_whitespace().collect();
            prop_assert_eq!(kept, whole);
        }
    }
}
