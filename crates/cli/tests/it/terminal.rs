//! What people see on terminals: no line of a table is wider, colours are for verdicts, and NO_COLOR is obeyed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{directory, output};

/// What the command prints on a terminal of so many columns.
fn on_terminal(dir: &Path, columns: u32, environment: &str, arguments: &str) -> String {
    let line = format!("stty rows 50 cols {columns}; {environment} exec \"$DRAY\" {arguments}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(dir);
    script
        .env("DRAY", env!("CARGO_BIN_EXE_dray"))
        .env("TERM", "xterm");
    for name in ["COLUMNS", "NO_COLOR"] {
        script.env_remove(name);
    }
    let output = script.output().expect("script(1)");
    String::from_utf8(output.stdout)
        .expect("text")
        .replace('\r', "")
}

/// Sequences of colour, taken out.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

/// Two results, of which one case is slower.
fn results(dir: &Path) {
    let line = "bench --benchmark_filter=^copy/ --block_size 4096 --batch_size 0 --benchmark_out";
    output(dir, &format!("{line} old.json"));
    let mut new: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.join("old.json")).unwrap()).unwrap();
    let time = &mut new["benchmarks"][0]["real_time"];
    *time = (time.as_f64().unwrap() * 2.0).into();
    fs::write(dir.join("new.json"), new.to_string()).unwrap();
}

const COMMANDS: [&str; 7] = [
    "",
    "advise --op copy --size 16k",
    "compare old.json new.json",
    "figures --list",
    "doctor",
    "doctor --list",
    "fabric predict --topology validation --flows flows.toml",
];

#[test]
fn no_line_is_wider_than_the_terminal() {
    let dir = directory();
    results(dir.path());
    let flows = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/flows.toml");
    fs::copy(flows, dir.path().join("flows.toml")).unwrap();
    for columns in [40, 80, 120, 200] {
        for command in COMMANDS {
            let text = plain(&on_terminal(dir.path(), columns, "", command));
            assert!(!text.is_empty(), "{command}");
            for line in text.lines() {
                // A word that is longer stays whole, and so does a command to be typed.
                let fits = line.trim_end().chars().count() <= columns as usize;
                let typed =
                    line.trim_start().starts_with("dray ") || line.trim_start().starts_with('$');
                assert!(fits || typed, "{columns} {command}: {line}");
            }
        }
    }
    // A variable that is set goes before.
    let text = on_terminal(dir.path(), 200, "COLUMNS=40", "figures --list");
    assert!(text.starts_with("figure fig2\n  points  112\n"), "{text}");
}

#[test]
fn verdicts_have_colours_unless_these_are_unwanted() {
    let dir = directory();
    results(dir.path());
    let command = "compare old.json new.json";
    let coloured = on_terminal(dir.path(), 200, "", command);
    let red: Vec<&str> = coloured
        .lines()
        .filter(|line| line.contains("\x1b[31m"))
        .collect();
    assert!(red.len() == 1 && red[0].contains("slower"), "{coloured}");
    for unwanted in ["NO_COLOR=1", "TERM=dumb"] {
        let text = on_terminal(dir.path(), 200, unwanted, command);
        assert_eq!(text, plain(&coloured), "{unwanted}");
    }
    // An empty variable is none.
    assert_eq!(on_terminal(dir.path(), 200, "NO_COLOR=", command), coloured);
    assert!(!output(dir.path(), command).contains('\x1b'));
}
