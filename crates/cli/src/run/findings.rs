//! What `--sanitize` has found.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use dray_run::{Class, Finding, Findings};
use dray_spec::Descriptor;
use serde_json::{Value, json};

/// Sums up what was found; whether there is anything.
pub(super) fn say(findings: &Findings) -> bool {
    let counts: Vec<String> = counts(findings)
        .map(|(class, count)| format!("{} {count}", class.name()))
        .collect();
    let looked = format!(
        "{} descriptors were looked at, their memory for {:.3} s",
        findings.descriptors,
        findings.looks.as_secs_f64()
    );
    match counts.is_empty() {
        true => eprintln!("dray sanitize: nothing found; {looked}"),
        false => eprintln!("dray sanitize: found: {}; {looked}", counts.join(", ")),
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

/// Writes them as JSON.
pub(super) fn write(findings: &Findings, file: File, path: &Path) -> anyhow::Result<()> {
    let counts = counts(findings).map(|(class, count)| (class.name().to_owned(), count.into()));
    let said = findings.said.iter().map(finding);
    let document = json!({
        "schema": 1,
        "descriptors": findings.descriptors,
        "looks_s": findings.looks.as_secs_f64(),
        "counts": counts.collect::<serde_json::Map<_, _>>(),
        "findings": said.collect::<Vec<_>>(),
    });
    let mut file = BufWriter::new(file);
    let written = serde_json::to_writer_pretty(&mut file, &document).map_err(std::io::Error::from);
    let written = written
        .and_then(|()| writeln!(file))
        .and_then(|()| file.flush());
    written.with_context(|| format!("{}", path.display()))
}

fn finding(finding: &Finding) -> Value {
    json!({
        "class": finding.class.name(),
        "pid": finding.pid,
        "place": finding.place,
        "detail": finding.detail,
        "descriptor": finding.descriptor.as_ref().map(descriptor),
        "other": finding.other.as_ref().map(descriptor),
        "rule": finding.class.rule(),
        "mend": finding.class.fix(),
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
