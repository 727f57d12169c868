//! Text for terminals: files say what it is made of, and a terminal executes what it is told.

use std::borrow::Cow;
use std::fmt::Write;

/// A text without characters that a terminal takes for commands, or that turn the direction of what follows: each stands as
/// `\uXXXX`, which is what it was where the text is JSON or TOML. Ends of lines and tabs stay.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match commands(c) {
            // None of them is beyond four digits. A String takes all.
            true => drop(write!(plain, "\\u{:04x}", u32::from(c))),
            false => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

fn commands(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_and_not_executed() {
        let plain = "a\tb\n\u{e4}\u{1f600}";
        assert!(matches!(shown(plain), Cow::Borrowed(text) if text == plain));
        let text = "\x1b]0;t\x07 \r\x7f\u{9b}\u{202e}";
        assert_eq!(
            shown(text),
            "\\u001b]0;t\\u0007 \\u000d\\u007f\\u009b\\u202e"
        );
    }
}
