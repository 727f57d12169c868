//! Small inputs that went wrong once, each with its right result: `tests/repro`.
//!
//! A row is an input and a way to start it. To add one, put the input there and a row into the table of its
//! kind; each is a line of the output.

mod config;
mod run;
mod surroundings;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::directory;
use crate::session::program;

/// One input, started in one way.
struct Row {
    /// The file below `tests/repro`; the script finds its path in `$INPUT`.
    input: &'static str,
    /// The way, in a few words.
    way: &'static str,
    /// For bash, in an empty directory, with `dray` in the search path.
    script: &'static str,
    /// The right exit code.
    code: i32,
    /// What is said, on either stream.
    says: &'static [&'static str],
    /// What is not.
    never: &'static [&'static str],
    /// A program of the machine without which the row is skipped.
    needs: &'static str,
}

/// What scripts have.
const PRELUDE: &str = r#"
set -u
# A tree that looks like /sys, in the place of this machine's.
tree() {
    dray config new-tree "$PWD/sys" "$@" || exit 99
    export DRAY_SYSFS_PATH=$PWD/sys DRAY_STATE_DIR=$PWD/state
}
# The same without shared virtual memory.
tree_without_sva() {
    tree "$@"
    local file=$DRAY_SYSFS_PATH/bus/dsa/devices/dsa0/pasid_enabled
    chmod u+w "$file" && echo 0 >"$file" || exit 99
}
attribute() { cat "${DRAY_SYSFS_PATH:-/sys}/bus/dsa/devices/$1"; }
compile() { ${CC:-cc} -O1 -o "$1" "$INPUT" "${@:2}" || exit 99; }
"#;

fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/repro")
}

impl Row {
    fn start(&self) -> Output {
        let folder = directory();
        let beside = program();
        let beside = beside.parent().expect("it is in a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut bash = Command::new("timeout");
        bash.args([
            "120",
            "bash",
            "-c",
            &format!("{PRELUDE}{}\nexit $?", self.script),
        ]);
        bash.current_dir(folder.path())
            .env("PATH", format!("{}:{path}", beside.display()))
            .env("INPUT", inputs().join(self.input))
            .env_remove("DRAY_SYSFS_PATH");
        bash.output().expect("bash is there")
    }

    fn can_start(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        self.needs.is_empty()
            || std::env::split_paths(&path).any(|folder| folder.join(self.needs).is_file())
    }

    /// What is wrong with the result.
    fn wrong(&self) -> Option<String> {
        let output = self.start();
        let [out, err] =
            [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
        let said = |text: &&&str| out.contains(**text) || err.contains(**text);
        let mut wrong = Vec::new();
        if output.status.code() != Some(self.code) {
            wrong.push(format!("{}, expected {}", output.status, self.code));
        }
        let missing = self.says.iter().filter(|text| !said(text));
        wrong.extend(missing.map(|text| format!("does not say {text:?}")));
        let bad = self.never.iter().filter(said);
        wrong.extend(bad.map(|text| format!("says {text:?}")));
        (!wrong.is_empty()).then(|| format!("{}\n{out}{err}", wrong.join("; ")))
    }
}

/// Starts all of a table, prints a line for each, and fails if one is wrong.
fn check(rows: &[Row]) {
    let mut failures = Vec::new();
    let mut skipped = 0;
    for row in rows {
        if !row.can_start() {
            skipped += 1;
            println!(
                "skip  {}: {}: there is no {}",
                row.input, row.way, row.needs
            );
            continue;
        }
        let wrong = row.wrong();
        let mark = if wrong.is_none() { "ok   " } else { "WRONG" };
        println!("{mark} {}: {}", row.input, row.way);
        failures.extend(wrong.map(|wrong| format!("{}: {}: {wrong}", row.input, row.way)));
    }
    let started = rows.len() - skipped;
    let right = started - failures.len();
    println!("{right} of {started}, {skipped} skipped");
    assert!(
        failures.is_empty(),
        "{right} of {started}\n{}",
        failures.join("\n")
    );
}

#[test]
fn configurations() {
    check(config::ROWS);
}

#[test]
fn programs() {
    check(run::ROWS);
}

#[test]
fn programs_with_surroundings() {
    check(surroundings::ROWS);
}

#[test]
fn every_input_has_a_row() {
    let named: Vec<&str> = config::ROWS
        .iter()
        .chain(run::ROWS)
        .chain(surroundings::ROWS)
        .map(|row| row.input)
        .collect();
    for kind in ["config", "run"] {
        for entry in std::fs::read_dir(inputs().join(kind)).expect("inputs") {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name");
            let input = format!("{kind}/{name}");
            let included = input.ends_with(".h");
            assert!(
                included || named.contains(&input.as_str()),
                "{input} has no row"
            );
        }
    }
}
