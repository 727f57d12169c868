//! A diagnosis for people: as a table, as Markdown, and what a check is about.

mod explain;
mod markdown;
mod table;

pub use explain::explain;
pub use markdown::markdown;
pub use table::table;

use crate::diagnosis::{CheckResult, Diagnosis};
use crate::finding::{Severity, count};

/// How many findings there are, in words.
fn summary(diagnosis: &Diagnosis) -> String {
    let number = |severity| {
        let of = diagnosis.findings().filter(|f| f.severity == severity);
        of.count()
    };
    let severities = [Severity::Error, Severity::Warning, Severity::Note];
    let counts = severities.map(|severity| (number(severity), severity.name()));
    let some = counts.into_iter().filter(|&(number, _)| number > 0);
    let parts: Vec<_> = some.map(|(number, name)| count(number, name)).collect();
    match (parts.is_empty(), diagnosis.worst()) {
        (true, _) => "Nothing is wrong.".to_owned(),
        (false, Some(Severity::Error)) if parts.len() > 1 || number(Severity::Error) > 1 => {
            format!("{}. Fix the first, then look again.", parts.join(", "))
        }
        (false, _) => format!("{}.", parts.join(", ")),
    }
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

/// Lines of at most `width` characters, broken between words.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
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
