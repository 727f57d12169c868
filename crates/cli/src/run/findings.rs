//! What `--sanitize` has found.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use dray_output::counted;
use dray_run::{Class, Finding, Findings, Frame, Site, Suppressions};
use dray_spec::Descriptor;
use serde_json::{Value, json};

use super::sarif;
use crate::complain::Usage;

/// Bytes of a file of suppressions that are read.
const SUPPRESSIONS: u64 = 1 << 20;

/// What the line begins with that sums up findings.
pub(super) const FOUND: &str = "dray sanitize: found: ";

/// Reads a file of suppressions.
pub(super) fn suppressions(path: &Path) -> anyhow::Result<Suppressions> {
    let text = dray_output::read_text(path, SUPPRESSIONS);
    let text = text.with_context(|| format!("{}", path.display()))?;
    Suppressions::parse(&text).map_err(|error| {
        Usage::error(
            format!("{}: {error}", path.display()),
            "a line is CLASS:PATTERN, for example overlap:known_race or source:libfoo.so",
        )
    })
}

/// Sums up what was found, and what it took; whether there is anything. `failed`: the program has ended so by itself.
pub(super) fn say(findings: &Findings, failed: bool) -> bool {
    for (line, count) in &findings.suppressed {
        let times = counted(*count as usize, "finding");
        eprintln!("dray sanitize: {times} suppressed by {line}");
    }
    let counts: Vec<String> = counts(findings)
        .map(|(class, count)| format!("{} {count}", class.name()))
        .collect();
    let looked = format!(
        "{} descriptors were looked at, {} of them closely",
        findings.descriptors, findings.observed
    );
    let seconds = |time: Duration| time.as_secs_f64();
    eprintln!(
        "dray sanitize: cost: the order of descriptors {:.3} s, memory (source, destination, lifetime) {:.3} s, time for programs to go on {:.3} s",
        seconds(findings.books),
        seconds(findings.looks),
        seconds(findings.waits)
    );
    if let (true, Some(open)) = (failed, findings.counts.get(&Class::Close)) {
        eprintln!(
            "note: the program failed with {} in flight: one that polls for a while only may give up, for a device is slower under --sanitize",
            counted(*open as usize, "descriptor")
        );
    }
    match counts.is_empty() {
        true => eprintln!("dray sanitize: nothing found; {looked}"),
        false => eprintln!("{FOUND}{}; {looked}", counts.join(", ")),
    }
    !counts.is_empty()
}

fn counts(findings: &Findings) -> impl Iterator<Item = (Class, u64)> {
    let classes = Class::ALL.into_iter();
    classes.filter_map(|class| Some((class, *findings.counts.get(&class)?)))
}

/// The file for them.
pub(super) fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("{}", path.display()))
}

/// Writes them as SARIF where the name says so, as JSON otherwise.
pub(super) fn write(findings: &Findings, file: File, path: &Path) -> anyhow::Result<()> {
    let is_sarif = path
        .extension()
        .is_some_and(|extension| extension == "sarif");
    let document = match is_sarif {
        true => sarif::document(findings),
        false => document(findings),
    };
    let mut file = BufWriter::new(file);
    let written = serde_json::to_writer_pretty(&mut file, &document).map_err(std::io::Error::from);
    let written = written
        .and_then(|()| writeln!(file))
        .and_then(|()| file.flush());
    written.with_context(|| format!("{}", path.display()))
}

fn document(findings: &Findings) -> Value {
    let counts = counts(findings).map(|(class, count)| (class.name().to_owned(), count.into()));
    let said = findings.said.iter().map(finding);
    json!({
        "schema": 2,
        "descriptors": findings.descriptors,
        "observed": findings.observed,
        "cost_s": {
            "order": findings.books.as_secs_f64(),
            "memory": findings.looks.as_secs_f64(),
            "waits": findings.waits.as_secs_f64(),
        },
        "suppressed": findings.suppressed,
        "counts": counts.collect::<serde_json::Map<_, _>>(),
        "findings": said.collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "class": finding.class.name(),
        "pid": finding.pid,
        "place": finding.place,
        "detail": finding.detail,
        "descriptor": finding.descriptor.as_ref().map(descriptor),
        "site": finding.site.as_ref().map(site),
        "other": finding.other.as_ref().map(descriptor),
        "other_site": finding.other_site.as_ref().map(site),
        "rule": finding.class.rule(),
        "mend": finding.mend,
    })
}

fn site(site: &Site) -> Value {
    json!({
        "thread": site.thread,
        "frames": site.frames.iter().map(frame).collect::<Vec<_>>(),
    })
}

fn frame(frame: &Frame) -> Value {
    json!({
        "address": format!("{:#x}", frame.address),
        "module": frame.module,
        "offset": frame.offset.map(|offset| format!("{offset:#x}")),
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
    })
}

/// Addresses are text: numbers of JSON have no more than 53 bits everywhere.
fn descriptor(d: &Descriptor) -> Value {
    json!({
        "operation": d.opcode().map_or("unknown", |opcode| opcode.name()),
        "opcode": d.opcode_byte(),
        "flags": d.flags().bits(),
        "size": d.size,
        "address1": format!("{:#x}", d.address1),
        "address2": format!("{:#x}", d.address2),
        "record": format!("{:#x}", d.completion_addr),
    })
}
