//! Text that is nearly right: a good one, edited.

use crate::draw::Draw;

/// What is put in the place of something.
const PIECES: &[&str] = &[
    "-1",
    "0",
    "1",
    "255",
    "65536",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1.5",
    "1e300",
    "-0.0",
    "nan",
    "inf",
    "\"\"",
    "null",
    "[]",
    "{}",
    "true",
    "\"shared\"",
    "\"4k..1M*0\"",
    "\"1..18446744073709551615\"",
    "\"0xffffffffffffffff\"",
    "\u{feff}",
    "\u{1f6b2}",
    "\n",
    "[",
    "\"",
];

/// Any text, or one of `good` with a few edits.
pub(crate) fn text(mut draw: Draw<'_>, good: &[&str]) -> String {
    if draw.once_in(4) {
        return String::from_utf8_lossy(draw.rest()).into_owned();
    }
    let mut text = draw.pick(good).to_owned();
    for _ in 0..=draw.below(8) {
        edit(&mut draw, &mut text);
    }
    text
}

fn edit(draw: &mut Draw<'_>, text: &mut String) {
    let at = boundary(text, draw.below(text.len() as u64 + 1) as usize);
    match draw.below(5) {
        // A value, from behind the next sign to the end of the line or of the value.
        0..=2 => {
            let Some(start) = text[at..].find([':', '=']).map(|n| at + n + 1) else {
                return;
            };
            let end = text[start..]
                .find([',', '\n', '}'])
                .map_or(text.len(), |n| start + n);
            let piece = match draw.any() {
                true => draw.pick(PIECES).to_owned(),
                false => draw.any::<i64>().to_string(),
            };
            text.replace_range(start..end, &piece);
        }
        // A line, twice or not at all.
        3 => {
            let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
            let end = text[at..].find('\n').map_or(text.len(), |n| at + n + 1);
            let line = text[start..end].to_owned();
            match draw.any() {
                true => text.insert_str(start, &line),
                false => text.replace_range(start..end, ""),
            }
        }
        _ => {
            let end = boundary(text, (at + draw.below(9) as usize).min(text.len()));
            text.replace_range(at..end.max(at), draw.pick(PIECES));
        }
    }
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
