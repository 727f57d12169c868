//! For an issue report.

use std::fmt::Write;

use super::{summary, unjudged};
use crate::check::Check;
use crate::checks::CHECKS;
use crate::diagnosis::{CheckResult, Diagnosis};
use crate::finding::{Cause, Evidence, Finding, Fix, count};
use crate::text::Explanation;

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
    for seen in &finding.confirmed_by {
        out.push_str(&format!(
            "Confirmed by `{}` of {}.\n\n",
            seen.text.replace('`', "'"),
            text(&seen.path)
        ));
    }
    let check = CHECKS.iter().find(|check| check.id == finding.check);
    out.push_str(&sources(check));
    out
}

/// What the messages of a text mean, to be pasted into an issue.
#[must_use]
pub fn messages_markdown(explanation: &Explanation) -> String {
    let mut out = "### dray doctor\n\n".to_owned();
    for conflict in &explanation.conflicts {
        out.push_str(&format!("{}\n\n", text(conflict)));
    }
    for (number, finding) in (1..).zip(&explanation.findings) {
        let name = finding.severity.name();
        out.push_str(&format!(
            "#### {number}. {name}: {}\n\n",
            text(&finding.what)
        ));
        let lines = finding
            .seen
            .iter()
            .map(|seen| format!("{}:{}: {}\n", seen.text, seen.line, seen.says));
        out.push_str(&fenced("text", &lines.collect::<String>()));
        out.push_str(&format!(
            "By {} ({}), {}.\n\n",
            text(&finding.by),
            text(&finding.versions),
            count(finding.count as usize, "line")
        ));
        out.push_str(&fix(&finding.fix));
    }
    let unknown = &explanation.unknown;
    if unknown.count > 0 {
        out.push_str(&format!(
            "About DSA and not known: {}.\n\n",
            count(unknown.count as usize, "line")
        ));
        let lines = unknown
            .lines
            .iter()
            .map(|(number, line)| format!("{number}: {line}\n"));
        out.push_str(&fenced("text", &lines.collect::<String>()));
    }
    if explanation.findings.is_empty() && unknown.count == 0 {
        out.push_str("Nothing is wrong.\n");
    }
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
