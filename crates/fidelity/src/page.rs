//! The page of the guide.

use std::fmt::Write;

use dray_device::Fidelity;

use crate::{AREAS, sheet};

/// The heading of an area, and the sentence below it.
fn about(area: &str) -> (&'static str, &'static str) {
    match area {
        "rule" => (
            "Rules of the specification",
            "By section of the specification, revision 3.0.",
        ),
        "operation" => ("Operations", "Descriptors with these codes."),
        "status" => (
            "Statuses",
            "Of completion records, SWERROR and the event log.",
        ),
        "register" => ("Registers", "Of BAR0, by offset, and the tables in it."),
        "command" => ("Commands", "Written to CMD."),
        "attribute" => (
            "Attributes in sysfs",
            "Of the Linux driver, with the kernels that have them.",
        ),
        "cdev" => (
            "Character devices",
            "What programs do with `/dev/dsa/wqN.M` inside `dray run`.",
        ),
        _ => ("vfio-user", "Messages that `dray vfio` answers."),
    }
}

/// The page: written by `dray fidelity --format markdown`, and kept equal to it by a test.
pub fn page() -> String {
    let all = sheet();
    let count = |fidelity| {
        all.iter()
            .filter(|entry| entry.fidelity == fidelity)
            .count()
    };
    let mut text = format!(
        "# Fidelity\n\n\
         What of a DSA the virtual device has. *Exact*: it does what the specification or the driver says; times are those of\n\
         the model or of this machine. *Approximate*: it ends so, and something beside is missing. *Unsupported*: it is refused,\n\
         or does nothing. Of {} entries {} are exact, {} approximate, {} unsupported. The test is the one that shows it; `dray\n\
         fidelity` prints the sheet, and how true a run was stands at the end of `dray run --stats` and of `dray vfio`.\n",
        all.len(),
        count(Fidelity::Exact),
        count(Fidelity::Approximate),
        count(Fidelity::Unsupported),
    );
    for area in AREAS {
        let (title, sentence) = about(area);
        let _ = write!(
            text,
            "\n## {title}\n\n{sentence}\n\n| name | of | fidelity | test |\n|---|---|---|---|\n"
        );
        for entry in all.iter().filter(|entry| entry.area == area) {
            let missing = entry.missing.as_ref();
            let missing = missing.map_or(String::new(), |missing| format!(": {missing}"));
            let test = entry.test.map_or("–".to_owned(), |test| {
                format!("{}: `{}`", test.package, test.function)
            });
            let (name, of, word) = (&entry.name, &entry.of, entry.fidelity.name());
            let _ = writeln!(text, "| {name} | {of} | {word}{missing} | {test} |");
        }
    }
    text
}
