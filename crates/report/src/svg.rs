//! Writes SVG elements: escaped, and with numbers in one fixed form.

use quick_xml::escape::escape;

use crate::number;
use crate::text::{Face, Line};

/// Text and axis lines.
pub(crate) const INK: &str = "#222222";
/// Text that may be overlooked.
pub(crate) const QUIET: &str = "#5f6368";
/// What must not be overlooked.
pub(crate) const ALERT: &str = "#a33c00";
/// Grid lines.
pub(crate) const GRID: &str = "#e2e4e8";
/// Grid lines without a number.
pub(crate) const FAINT: &str = "#f0f1f3";

/// An SVG fragment in the making.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    out: String,
}

impl Svg {
    /// Starts an element.
    pub(crate) fn tag(&mut self, name: &'static str) -> Tag<'_> {
        self.out.push('<');
        self.out.push_str(name);
        Tag { svg: self, name }
    }

    /// Ends the element that was opened last under that name.
    pub(crate) fn end(&mut self, name: &'static str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
    }

    /// A line of text that starts at `x`, with its baseline at `y`.
    pub(crate) fn line_of_text(&mut self, x: f64, y: f64, size: f64, line: &Line) {
        let tag = self
            .tag("text")
            .number("x", x)
            .number("y", y)
            .number("font-size", size);
        if let [span] = line.as_slice() {
            tag.face(span.face).text(&span.text);
            return;
        }
        tag.word("xml:space", "preserve").open();
        for span in line {
            self.tag("tspan").face(span.face).inline(&span.text);
        }
        self.end("text");
    }

    pub(crate) fn into_string(self) -> String {
        self.out
    }
}

/// An element whose attributes are being written.
#[derive(Debug)]
pub(crate) struct Tag<'a> {
    svg: &'a mut Svg,
    name: &'static str,
}

impl Tag<'_> {
    pub(crate) fn word(self, key: &'static str, value: &str) -> Self {
        let out = &mut self.svg.out;
        out.push(' ');
        out.push_str(key);
        out.push_str("=\"");
        out.push_str(&escaped(value));
        out.push('"');
        self
    }

    pub(crate) fn number(self, key: &'static str, value: f64) -> Self {
        self.word(key, &number::coordinate(value))
    }

    pub(crate) fn face(self, face: Face) -> Self {
        match face {
            Face::Plain => self.word("fill", INK),
            Face::Bold => self.word("fill", INK).word("font-weight", "bold"),
            Face::Quiet => self.word("fill", QUIET),
            Face::Alert => self.word("fill", ALERT).word("font-weight", "bold"),
        }
    }

    /// Ends the element, which has no content.
    pub(crate) fn empty(self) {
        self.svg.out.push_str("/>\n");
    }

    /// Leaves the element open for other elements.
    pub(crate) fn open(self) {
        self.svg.out.push('>');
    }

    /// Ends the element with a text as its content.
    pub(crate) fn text(self, text: &str) {
        let name = self.name;
        let svg = self.svg;
        svg.out.push('>');
        svg.out.push_str(&escaped(text));
        svg.end(name);
    }

    /// The same, with nothing after it that could be taken for a space.
    pub(crate) fn inline(self, text: &str) {
        let out = &mut self.svg.out;
        out.push('>');
        out.push_str(&escaped(text));
        out.push_str("</");
        out.push_str(self.name);
        out.push('>');
    }

    /// Ends the element with a text and, where that was shortened, the whole text for a pointer.
    pub(crate) fn tooltip_after(self, text: &str, whole: &str) {
        if text == whole {
            return self.text(text);
        }
        let name = self.name;
        let svg = self.svg;
        svg.out.push('>');
        svg.out.push_str(&escaped(text));
        svg.out.push_str("<title>");
        svg.out.push_str(&escaped(whole));
        svg.out.push_str("</title>");
        svg.end(name);
    }

    /// Ends the element with a text that a pointer resting on it shows.
    pub(crate) fn tooltip(self, text: &str) {
        let name = self.name;
        let svg = self.svg;
        svg.out.push_str("><title>");
        svg.out.push_str(&escaped(text));
        svg.out.push_str("</title>");
        svg.end(name);
    }
}

/// Text for content or attributes; what XML 1.0 cannot hold at all becomes U+FFFD.
fn escaped(text: &str) -> String {
    let allowed: String = text
        .chars()
        .map(|c| match c {
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' => '\u{fffd}',
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            _ => c,
        })
        .collect();
    escape(allowed).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Span;

    #[test]
    fn attributes_and_text_are_escaped() {
        let mut svg = Svg::default();
        svg.tag("g").word("id", "a\"b").open();
        svg.tag("text").number("x", 1.005).text("a<b & c\u{1}");
        svg.end("g");
        assert_eq!(
            svg.into_string(),
            "<g id=\"a&quot;b\"><text x=\"1\">a&lt;b &amp; c\u{fffd}</text>\n</g>\n"
        );
    }

    #[test]
    fn spans_of_a_line_keep_their_spaces() {
        let mut svg = Svg::default();
        let line = vec![Span::new("a", Face::Plain), Span::new(" b", Face::Quiet)];
        svg.line_of_text(0.0, 0.0, 10.0, &line);
        let text = svg.into_string();
        assert!(text.contains(">a</tspan><tspan"), "{text}");
        assert!(text.contains("> b</tspan>"), "{text}");
    }
}
