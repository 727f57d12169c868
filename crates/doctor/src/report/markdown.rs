//! For an issue report.

use std::fmt::Write;

use super::{summary, unjudged};
use crate::check::Check;
use crate::checks::CHECKS;
use crate::diagnosis::{CheckResult, Diagnosis};
use crate::finding::{Cause, Evidence, Finding, Fix};

/// The same as the table, to be pasted into an issue.
#[must_use]
pub fn markdown(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{text}");
    };
    line(format!("### dray doctor\n\n{}\n", text(&diagnosis.machine)));
    line(format!("{}\n", summary(diagnosis)));
    for (place, finding) in diagnosis.findings().enumerate() {
        line(describe(place + 1, finding));
    }
    line("| link | | |\n|---|---|---|".to_owned());
    for judged in &diagnosis.checks {
        let (word, seen) = match &judged.outcome {
            CheckResult::Holds(seen) => ("ok", seen.as_str()),
            CheckResult::Broken(findings) => match findings.first() {
                Some(finding) => (finding.severity.name(), finding.what.as_str()),
                None => continue,
            },
            _ => continue,
        };
        line(format!("| {} | {word} | {} |", judged.check, text(seen)));
    }
    for (reason, checks) in unjudged(diagnosis) {
        line(format!("| {} | - | {} |", checks.join(", "), text(&reason)));
    }
    out
}

fn describe(number: usize, finding: &Finding) -> String {
    let mut out = format!(
        "#### {number}. {}: {}\n\n",
        finding.severity.name(),
        text(&finding.what)
    );
    out.push_str(&evidence(&finding.evidence));
    out.push_str(&fix(&finding.fix));
    for cause in &finding.causes {
        out.push_str(&describe_cause(cause));
    }
    let check = CHECKS.iter().find(|check| check.id == finding.check);
    out.push_str(&sources(check));
    out
}

fn describe_cause(cause: &Cause) -> String {
    let what = text(&cause.what);
    let name = cause.likelihood.name();
    let (evidence, fix) = (evidence(&cause.evidence), fix(&cause.fix));
    format!("**{name}**: {what}\n\n{evidence}{fix}")
}

fn evidence(evidence: &[Evidence]) -> String {
    let lines = evidence
        .iter()
        .map(|seen| format!("{}: {}\n", seen.path, seen.text));
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => String::new(),
        false => fenced("text", &lines),
    }
}

fn fix(fix: &Fix) -> String {
    let mut out = match fix.advice.is_empty() {
        true => String::new(),
        false => format!("{}\n\n", text(&fix.advice)),
    };
    if !fix.commands.is_empty() {
        let commands = fix.commands.join("\n") + "\n";
        out.push_str(&fenced("sh", &commands));
    }
    out
}

fn sources(check: Option<&Check>) -> String {
    let sources = check.map(|check| check.sources).unwrap_or_default();
    let lines = sources.iter().map(|source| format!("- {}\n", text(source)));
    let lines: String = lines.collect();
    format!("Documented in:\n\n{lines}\n")
}

/// A block of code that its content cannot end.
fn fenced(language: &str, content: &str) -> String {
    let mut fence = "```".to_owned();
    while content.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{content}{fence}\n\n")
}

/// Text that means nothing to Markdown.
fn text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '|' | '*' | '<' | '>' | '[' | ']' | '`' | '\\' | '_') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_escaped_in_markdown() {
        assert_eq!(text("a|b<img>"), "a\\|b\\<img\\>");
        assert!(fenced("text", "x\n```\ny\n").starts_with("````text\n"));
    }
}
