//! What no compiler checks: long functions and files, circles of files, public items that nobody uses, words that the
//! glossary has not. Today's exceptions stand in `exceptions.txt`, which can only shrink.

mod circles;
mod source;
mod unused;
mod words;

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use source::Source;

/// Lines of a function.
const LONGEST_FUNCTION: usize = 70;
/// Lines of a file.
const LONGEST_FILE: usize = 500;

/// By rule and subject: how much there is of it.
type Findings = BTreeMap<String, usize>;

fn root() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("crates/xtask")
}

fn find() -> Findings {
    let sources = source::all(root());
    assert!(sources.len() > 1000, "{} files", sources.len());
    let mut findings = Findings::new();
    for source in &sources {
        let lines = source.text.lines().count();
        if lines > LONGEST_FILE {
            findings.insert(format!("file {}", source.path), lines);
        }
        for (name, lines) in source.functions() {
            if lines > LONGEST_FUNCTION {
                findings.insert(format!("function {} {name}", source.path), lines);
            }
        }
    }
    words::count(&sources, &mut findings);
    unused::find(&sources, &mut findings);
    circles::find(&sources, &mut findings);
    findings
}

fn read(text: &str) -> Findings {
    let line = |line: &str| {
        let (number, subject) = line.split_once(' ')?;
        Some((subject.to_owned(), number.parse().ok()?))
    };
    let kept = text.lines().filter(|text| !text.starts_with('#'));
    kept.map(|text| line(text).unwrap_or_else(|| panic!("no exception: {text:?}")))
        .collect()
}

/// Differences, those that are worse first: a line each.
fn compare(now: &Findings, listed: &Findings) -> (Vec<String>, Vec<String>) {
    let (mut worse, mut better) = (Vec::new(), Vec::new());
    for (subject, number) in now {
        let before = listed.get(subject).copied().unwrap_or(0);
        if *number > before {
            worse.push(format!("{subject}: {number}, not over {before}"));
        }
    }
    for (subject, before) in listed {
        let number = now.get(subject).copied().unwrap_or(0);
        if number < *before {
            better.push(format!("{subject}: {number}, no longer {before}"));
        }
    }
    (worse, better)
}

#[test]
fn exceptions_only_shrink() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tidy/exceptions.txt");
    let now = find();
    let listed = read(&fs::read_to_string(&file).expect("the exceptions"));
    let (worse, better) = compare(&now, &listed);
    assert!(worse.is_empty(), "{}", worse.join("\n"));
    if env::var_os("DRAY_WRITE_TIDY").is_some() {
        let mut text = String::from(
            "# What is longer or more than the rules say; DRAY_WRITE_TIDY=1 removes what is no longer so.\n",
        );
        for (subject, number) in &now {
            text += &format!("{number} {subject}\n");
        }
        return fs::write(&file, text).expect("the exceptions are written");
    }
    let better = better.join("\n");
    assert!(
        better.is_empty(),
        "better now; DRAY_WRITE_TIDY=1 writes it down:\n{better}"
    );
}

#[test]
fn what_is_new_or_more_is_worse_and_what_is_gone_is_better() {
    let findings = |pairs: &[(&str, usize)]| -> Findings {
        pairs
            .iter()
            .map(|(subject, number)| ((*subject).to_owned(), *number))
            .collect()
    };
    let listed = findings(&[("file a", 600), ("file b", 510), ("file c", 501)]);
    let now = findings(&[("file a", 601), ("file b", 509), ("file d", 700)]);
    let (worse, better) = compare(&now, &listed);
    assert_eq!(
        worse,
        ["file a: 601, not over 600", "file d: 700, not over 0"]
    );
    assert_eq!(
        better,
        ["file b: 509, no longer 510", "file c: 0, no longer 501"]
    );
}

#[test]
fn each_rule_finds_what_it_is_for() {
    let body = "    let a = 1;\n".repeat(75);
    let long = format!(
        "pub fn long() {{\n{body}}}\n\n/// What it is.\npub fn short() {{\n    long();\n}}\n"
    );
    let source = |path: &str, text: &str| Source::new(path.to_owned(), text.to_owned());
    let one = source("crates/x/src/one.rs", &long);
    let functions: Vec<_> = one.functions();
    assert_eq!(
        functions,
        [("long".to_owned(), 77), ("short".to_owned(), 3)]
    );
    let two = source(
        "crates/x/src/two.rs",
        "use crate::one::short;\npub fn other() { crate::three::third() }\n",
    );
    let three = source(
        "crates/x/src/three.rs",
        "use super::two::other;\npub(crate) fn third() {}\n",
    );
    let sources = [one, two, three];
    let mut findings = Findings::new();
    words::count(&sources, &mut findings);
    unused::find(&sources, &mut findings);
    circles::find(&sources, &mut findings);
    let found: Vec<_> = findings
        .iter()
        .map(|(subject, number)| (subject.as_str(), *number))
        .collect();
    assert_eq!(
        found,
        [
            ("circle crates/x two.rs three.rs", 2),
            ("words crates/x What", 1)
        ]
    );
    let sources = [source("crates/x/src/one.rs", "pub struct Alone;\n")];
    let mut findings = Findings::new();
    unused::find(&sources, &mut findings);
    assert_eq!(
        findings.into_keys().collect::<Vec<_>>(),
        ["unused crates/x/src/one.rs Alone"]
    );
}
