//! For the terminal.

use std::fmt::Write;

use super::{summary, unjudged, wrap};
use crate::diagnosis::{CheckResult, Diagnosis};
use crate::finding::{Cause, Evidence, Finding, Fix};

/// The chain, link by link, and then the findings, what to fix first first.
#[must_use]
pub fn table(diagnosis: &Diagnosis, width: usize) -> String {
    let width = width.max(40);
    let mut out = wrap(&diagnosis.machine, width).join("\n") + "\n\n";
    for judged in &diagnosis.checks {
        let (word, text) = match &judged.outcome {
            CheckResult::Holds(seen) => ("ok", seen.as_str()),
            CheckResult::Broken(findings) => match findings.first() {
                Some(finding) => (finding.severity.name(), finding.what.as_str()),
                None => continue,
            },
            _ => continue,
        };
        let lines = wrap(text, width - 24);
        let (first, rest) = lines.split_first().map_or(("", &[][..]), |(f, r)| (f, r));
        line(&mut out, &format!("{word:8}{:16}{first}", judged.check));
        for more in rest {
            line(&mut out, &format!("{:24}{more}", ""));
        }
    }
    for (reason, checks) in unjudged(diagnosis) {
        for (place, text) in wrap(&format!("{}: {reason}", checks.join(", ")), width - 10)
            .iter()
            .enumerate()
        {
            let mark = if place == 0 { "-" } else { "" };
            line(&mut out, &format!("{mark:8}{text}"));
        }
    }
    for (place, finding) in diagnosis.findings().enumerate() {
        out.push('\n');
        describe(&mut out, place + 1, finding, width);
    }
    out.push('\n');
    out.push_str(&summary(diagnosis));
    out.push('\n');
    out
}

fn describe(out: &mut String, number: usize, finding: &Finding, width: usize) {
    let head = format!("{number}. {}: {}", finding.severity.name(), finding.what);
    for (place, text) in wrap(&head, width).iter().enumerate() {
        let indent = if place == 0 { "" } else { "   " };
        line(out, &format!("{indent}{text}"));
    }
    evidence(out, &finding.evidence, "   ", width);
    fix(out, &finding.fix, "   ", width);
    for cause in &finding.causes {
        describe_cause(out, cause, width);
    }
    for seen in &finding.confirmed_by {
        let text = format!("{:?} of {} would confirm it", seen.text, seen.path);
        for (place, text) in wrap(&text, width - 9).iter().enumerate() {
            let label = if place == 0 { "   look:" } else { "        " };
            line(out, &format!("{label} {text}"));
        }
    }
    line(
        out,
        &format!("   why:  dray doctor --explain {}", finding.check),
    );
}

fn describe_cause(out: &mut String, cause: &Cause, width: usize) {
    let head = format!("{}: {}", cause.likelihood.name(), cause.what);
    for (place, text) in wrap(&head, width - 5).iter().enumerate() {
        let indent = if place == 0 { "   - " } else { "     " };
        line(out, &format!("{indent}{text}"));
    }
    evidence(out, &cause.evidence, "     ", width);
    fix(out, &cause.fix, "     ", width);
}

fn evidence(out: &mut String, evidence: &[Evidence], indent: &str, width: usize) {
    for seen in evidence {
        let text = format!("{}: {}", seen.path, seen.text);
        // As it stands there, if there is room.
        if text.chars().count() + 12 <= width {
            line(out, &format!("{indent}seen: {text}"));
            continue;
        }
        for (place, text) in wrap(&text, width - 12).iter().enumerate() {
            let label = if place == 0 { "seen: " } else { "      " };
            line(out, &format!("{indent}{label}{text}"));
        }
    }
}

fn fix(out: &mut String, fix: &Fix, indent: &str, width: usize) {
    for (place, text) in wrap(&fix.advice, width - 12).iter().enumerate() {
        let label = if place == 0 { "fix: " } else { "     " };
        line(out, &format!("{indent}{label}{text}"));
    }
    for command in &fix.commands {
        line(
            out,
            &format!("{indent}      $ {command}").replace("$ # ", "# "),
        );
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{}", text.trim_end());
}
