//! Text as it was printed: without what terminals, editors, mails and web pages add.

/// Tags of HTML that are left out; `<IRQ>` and `<6>` are the kernel's.
const TAGS: [&str; 24] = [
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "div",
    "em",
    "font",
    "h1",
    "h2",
    "h3",
    "i",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "table",
    "td",
    "th",
    "tr",
    "tt",
    "ul",
];

const ENTITIES: [(&str, &str); 7] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&nbsp;", " "),
    ("&amp;", "&"),
];

/// The text of a line.
pub(super) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            // As syslog daemons write an escape.
            '#' if rest.as_str().starts_with("033[") => {
                rest.nth(2);
                skip_escape(&mut rest);
            }
            '\t' | '\u{a0}' | '\u{2007}' | '\u{202f}' => out.push(' '),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            '\u{201c}' | '\u{201d}' => out.push('"'),
            // Between the bytes of UTF-16, a mark at its start, marks in the middle of words.
            '\0' | '\u{feff}' | '\u{200b}' | '\u{fffd}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    if out.contains(['<', '&']) {
        out = web(&out);
    }
    let quoted = out.trim_start_matches(['>', ' ', '`']);
    quoted.trim_end_matches([' ', '`']).to_owned()
}

/// Skips an escape sequence of a terminal, of which the escape is read.
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    match rest.next() {
        Some('[') => {
            // Parameters, then one letter or sign.
            rest.find(|c| !(' '..='?').contains(c));
        }
        Some(']') => {
            rest.find(|c| matches!(c, '\u{7}' | '\\'));
        }
        _ => {}
    }
}

/// Without tags and entities of HTML.
fn web(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let end = tag.find('>').filter(|&end| is_tag(&tag[1..end]));
        rest = match end {
            Some(end) => {
                // `<br>` and `</td>` end a word.
                out.push_str(if tag.starts_with("<br") || tag.starts_with("</t") {
                    " "
                } else {
                    ""
                });
                &tag[end + 1..]
            }
            None => {
                out.push('<');
                &tag[1..]
            }
        };
    }
    out.push_str(rest);
    for (entity, text) in ENTITIES {
        if out.contains(entity) {
            out = out.replace(entity, text);
        }
    }
    out
}

fn is_tag(tag: &str) -> bool {
    let name = tag.trim_start_matches('/').split([' ', '/']).next();
    let name = name.unwrap_or_default().to_ascii_lowercase();
    TAGS.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_of_terminals_mails_and_pages_are_left_out() {
        for (line, text) in [
            (
                "\x1b[32m[    7.9]\x1b[0m \x1b[33midxd\x1b[0m: no",
                "[    7.9] idxd: no",
            ),
            ("#033[31midxd#033[0m: no", "idxd: no"),
            ("\x1b]0;title\x07idxd", "idxd"),
            ("> > idxd: no", "idxd: no"),
            ("`idxd: no`", "idxd: no"),
            (
                "<pre><code>idxd &lt;&amp;&gt; &quot;x&quot;<br/>y",
                "idxd <&> \"x\" y",
            ),
            ("<6>[ 1.0] <IRQ> a < b", "<6>[ 1.0] <IRQ> a < b"),
            ("i\0d\0x\0d\0", "idxd"),
            ("\u{feff}say \u{201c}a\u{201d}\u{a0}b", "say \"a\" b"),
        ] {
            assert_eq!(clean(line.as_bytes()), text);
        }
    }
}
