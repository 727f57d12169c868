//! What the messages of a text mean, for people.

use std::fmt::Write;

use super::{severities, wrap};
use crate::finding::{Severity, count};
use crate::text::{Explained, Explanation, Seen};

/// The answer, then each message with its meaning, what to fix first first.
#[must_use]
pub fn messages(explanation: &Explanation, width: usize) -> String {
    let mut out = Paragraphs {
        text: String::new(),
        width: width.max(40),
    };
    for line in head(explanation) {
        out.add("", "", &line);
    }
    for conflict in &explanation.conflicts {
        out.add("note: ", "", conflict);
    }
    for (place, finding) in explanation.findings.iter().enumerate() {
        out.text.push('\n');
        describe(&mut out, place + 1, finding, explanation);
    }
    tail(&mut out, explanation);
    out.text
}

/// How many problems there are, and what was read.
fn head(explanation: &Explanation) -> Vec<String> {
    let number = |severity| {
        let of = explanation.findings.iter();
        of.filter(|finding| finding.severity == severity).count()
    };
    let names: Vec<&str> = explanation
        .texts
        .iter()
        .map(|text| text.name.as_str())
        .collect();
    let lines: u64 = explanation.texts.iter().map(|text| text.lines).sum();
    let within = format!("{} ({} lines)", names.join(", "), lines).replace("(1 lines)", "(1 line)");
    let about = explanation.usual + explanation.unknown.count;
    let found = severities(number);
    let mut head = vec![match (found.is_empty(), explanation.unknown.count) {
        (false, _) => format!("{found} in {within}."),
        (true, 0) if about == 0 => format!(
            "Nothing about a DSA is in {within}. Is it the whole log? `sudo dmesg`, or `journalctl -k -b`, has the driver's messages."
        ),
        (true, _) if !explanation.crashed.is_empty() => {
            format!(
                "A program or the kernel crashed in {within}, and nothing that is known of a DSA says why: {}.",
                crashed(explanation)
            )
        }
        (true, 0) => format!(
            "Nothing is wrong in {within}: {}, all usual.",
            about_a_dsa(about)
        ),
        (true, unknown) => format!(
            "No problem that is known is in {within}; {} not known.",
            are(unknown)
        ),
    }];
    let systems = explanation
        .systems
        .iter()
        .filter(|system| system.kernel.is_some() || system.host.is_some());
    let systems: Vec<String> = systems
        .map(|system| {
            let kernel = system
                .kernel
                .as_ref()
                .map(|kernel| format!("Linux {kernel}"));
            let name = [system.host.clone(), kernel].into_iter().flatten();
            format!(
                "{} (from line {})",
                name.collect::<Vec<_>>().join(", "),
                system.first_line
            )
        })
        .collect();
    match systems.as_slice() {
        [] => {}
        [one] => head.push(format!("It is of {}.", one.replace(" (from line 1)", ""))),
        several => head.push(format!(
            "It holds {} systems: {}.",
            several.len(),
            several.join("; ")
        )),
    }
    for text in &explanation.texts {
        if let Some(reason) = &text.incomplete {
            head.push(format!(
                "{} ends early: {reason}. What was read up to there counts.",
                text.name
            ));
        }
    }
    head
}

/// The lines that say that something crashed.
fn crashed(explanation: &Explanation) -> String {
    let lines = explanation.crashed.iter();
    let lines: Vec<String> = lines
        .map(|(number, line)| format!("line {number}, {line:?}"))
        .collect();
    lines.join("; ")
}

fn about_a_dsa(lines: u64) -> String {
    match lines {
        1 => "1 line about a DSA".to_owned(),
        _ => format!("{lines} lines about a DSA"),
    }
}

fn are(lines: u64) -> String {
    format!(
        "{} {}",
        about_a_dsa(lines),
        if lines == 1 { "is" } else { "are" }
    )
}

fn describe(out: &mut Paragraphs, number: usize, finding: &Explained, explanation: &Explanation) {
    let head = format!("{number}. {}: ", finding.severity.name());
    out.add(&head, "   ", &finding.what);
    for (place, seen) in finding.seen.iter().enumerate() {
        let label = if place == 0 { "   said: " } else { "         " };
        out.add(
            label,
            "         ",
            &format!("{}: {}", at(seen, explanation), seen.says),
        );
    }
    if finding.count > finding.seen.len() as u64 {
        let more = finding.count - finding.seen.len() as u64;
        out.add(
            "         ",
            "         ",
            &format!("and {} more", count(more as usize, "time")),
        );
    }
    let by = match finding.versions.starts_with("Linux") {
        true => format!("{} (sources of {})", finding.by, finding.versions),
        false => format!("{} (sources of {})", finding.by, finding.versions),
    };
    out.add("   by:   ", "         ", &by);
    for conflict in &finding.conflicts {
        out.add("   but:  ", "         ", conflict);
    }
    out.add("   fix:  ", "         ", &finding.fix.advice);
    for command in &finding.fix.commands {
        out.line(&format!("           $ {command}"));
    }
    if !finding.checks.is_empty() {
        out.line(&format!(
            "   why:  dray doctor --explain {}",
            finding.checks[0]
        ));
    }
}

/// Where a line stands, and of which system it is if there are several.
fn at(seen: &Seen, explanation: &Explanation) -> String {
    let mut place = match explanation.texts.as_slice() {
        [one] if one.lines == 1 => return "here".to_owned(),
        [_] => format!("line {}", seen.line),
        _ => format!("{} line {}", seen.text, seen.line),
    };
    if explanation.systems.len() > 1
        && let Some(system) = explanation.systems.get(seen.system)
    {
        let kernel = system
            .kernel
            .as_ref()
            .map(|kernel| format!("Linux {kernel}"));
        for name in [&system.host, &kernel].into_iter().flatten() {
            let _ = write!(place, ", {name}");
        }
    }
    place
}

fn tail(out: &mut Paragraphs, explanation: &Explanation) {
    let unknown = &explanation.unknown;
    if unknown.count > 0 {
        out.text.push('\n');
        let shown = unknown.lines.len() as u64;
        let more = if shown < unknown.count {
            ", of which some"
        } else {
            ""
        };
        out.add("", "", &format!("{} not known{more}:", are(unknown.count)));
        for (number, line) in &unknown.lines {
            out.add("  ", "    ", &format!("line {number}: {line}"));
        }
    }
    if explanation.usual > 0 && explanation.worst().is_some() {
        out.text.push('\n');
        let usual = explanation.usual;
        let plural = if usual == 1 { "line" } else { "lines" };
        out.add(
            "",
            "",
            &format!("{usual} {plural} about DSA or the IOMMU: usual."),
        );
    }
    if explanation.more > 0 {
        out.add(
            "",
            "",
            &format!(
                "{} further messages of other kinds are not listed.",
                explanation.more
            ),
        );
    }
    let errors = explanation
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    if errors.count() > 1 {
        out.text.push('\n');
        out.add(
            "",
            "",
            "Fix the first, then look again: later ones often follow from it.",
        );
    }
}

/// Text that grows by paragraphs of a bounded width.
struct Paragraphs {
    text: String,
    width: usize,
}

impl Paragraphs {
    /// A paragraph that begins with `first`; its other lines begin with `rest`.
    fn add(&mut self, first: &str, rest: &str, paragraph: &str) {
        let room = self
            .width
            .saturating_sub(first.len().max(rest.len()))
            .max(20);
        for (place, line) in wrap(paragraph, room).iter().enumerate() {
            let indent = if place == 0 { first } else { rest };
            self.line(&format!("{indent}{line}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}
