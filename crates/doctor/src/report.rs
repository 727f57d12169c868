//! A diagnosis for people: as a table, as Markdown, and what a check is about.

mod explain;
mod markdown;
mod messages;
mod table;

pub use explain::explain;
pub use markdown::{markdown, messages_markdown};
pub use messages::messages;
pub use table::table;

use crate::diagnosis::{CheckResult, Diagnosis};
use crate::finding::{Severity, count};

/// How many findings there are, in words.
fn summary(diagnosis: &Diagnosis) -> String {
    let number = |severity| {
        let of = diagnosis.findings().filter(|f| f.severity == severity);
        of.count()
    };
    let parts = severities(number);
    match (parts.is_empty(), diagnosis.worst()) {
        (true, _) => "Nothing is wrong.".to_owned(),
        (false, Some(Severity::Error)) if diagnosis.findings().count() > 1 => {
            format!("{parts}. Fix the first, then look again.")
        }
        (false, _) => format!("{parts}."),
    }
}

/// Numbers of findings by severity, in words; empty if there are none.
fn severities(number: impl Fn(Severity) -> usize) -> String {
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    let some = all.into_iter().map(|severity| (number(severity), severity));
    let parts = some
        .filter(|&(number, _)| number > 0)
        .map(|(number, severity)| count(number, severity.name()));
    parts.collect::<Vec<_>>().join(", ")
}

/// Checks that were not judged, or do not apply, by the reason.
fn unjudged(diagnosis: &Diagnosis) -> Vec<(String, Vec<&'static str>)> {
    let mut reasons: Vec<(String, Vec<&'static str>)> = Vec::new();
    for judged in &diagnosis.checks {
        let reason = match &judged.outcome {
            CheckResult::NotJudged(why) => format!("not judged, {why}"),
            CheckResult::DoesNotApply(why) => format!("does not apply, {why}"),
            _ => continue,
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, checks)) => checks.push(judged.check),
            None => reasons.push((reason, vec![judged.check])),
        }
    }
    reasons
}

/// Lines of at most `width` characters, broken between words, and within words that are longer.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace().flat_map(|word| parts(word, width)) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A word in parts of at most `width` characters.
fn parts(word: &str, width: usize) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(width)
            .map_or(rest.len(), |(end, _)| end);
        let (part, after) = rest.split_at(end);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_asked() {
        let text = format!("a few words and {} long one", "é".repeat(50));
        for width in [1, 7, 20, 80] {
            let lines = wrap(&text, width);
            assert!(
                lines.iter().all(|line| line.chars().count() <= width),
                "{lines:?}"
            );
            let joined: String = lines.concat().split(' ').collect();
            assert_eq!(joined, text.split(' ').collect::<String>());
        }
    }
}
