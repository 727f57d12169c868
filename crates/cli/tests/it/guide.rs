//! The guide: its links lead somewhere, its tutorials run, and five people have their answer in five lines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Markdown files of the project that people read, below the root.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![
        "README.md".into(),
        "SECURITY.md".into(),
        "ARCHITECTURE.md".into(),
        "CONTRIBUTING.md".into(),
    ];
    for directory in ["docs", "docs/commands", "docs/tutorials"] {
        for entry in fs::read_dir(Path::new(ROOT).join(directory)).expect("the guide") {
            let name = entry.expect("an entry").file_name();
            let path = Path::new(directory).join(name);
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// What the links of a page lead to.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

#[test]
fn every_link_of_a_page_leads_to_a_file() {
    for page in pages() {
        let text = fs::read_to_string(Path::new(ROOT).join(&page)).expect("a page");
        let directory = page.parent().expect("a directory");
        for link in links(&text).filter(|link| !link.contains("://")) {
            let file = link.split('#').next().unwrap_or_default();
            let target = Path::new(ROOT).join(directory).join(file);
            assert!(target.exists(), "{}: {link}", page.display());
            // The guide is read without the rest, too.
            let up = Path::new(file)
                .components()
                .filter(|part| *part == Component::ParentDir)
                .count();
            let leaves = page.starts_with("docs") && up >= page.components().count() - 1;
            assert!(!leaves, "{}: {link} leads out of the guide", page.display());
        }
    }
}

#[test]
fn every_page_of_the_guide_is_in_its_table_of_contents() {
    let summary = fs::read_to_string(Path::new(ROOT).join("docs/SUMMARY.md")).expect("a summary");
    let listed: Vec<&str> = links(&summary).collect();
    for page in pages() {
        if let Ok(page) = page.strip_prefix("docs") {
            let name = page.to_str().expect("a name");
            assert!(name == "SUMMARY.md" || listed.contains(&name), "{name}");
        }
    }
}

/// Lines of a tutorial that need what is not here, by a part of them.
const NOT_RUN: [(&str, &str); 5] = [
    ("sudo ", "it changes the machine"),
    ("hw:wq", "it needs a DSA"),
    ("./test", "a test of the reader"),
    ("./program", "a program of the reader"),
    ("journalctl", "there may be no journal"),
];

/// A log in which the driver says why user queues do not work.
const DMESG: &str = "\
[    0.000000] Linux version 6.1.0-18-amd64
[    4.012345] idxd 0000:6a:01.0: Unable to turn on user SVA feature.
[    4.112345] idxd 0000:6a:01.0: Intel(R) Accelerator Device (v100)
[    5.000000] e1000e 0000:00:1f.6 eth0: NIC Link is Up 1000 Mbps Full Duplex
";

/// A directory with the examples and a log, in which commands run.
fn workplace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let examples = Path::new(ROOT).join("examples");
    symlink(examples, directory.path().join("examples")).expect("a link");
    fs::write(directory.path().join("dmesg.txt"), DMESG).expect("a log");
    directory
}

fn shell(directory: &Path, line: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_dray"))
        .parent()
        .expect("a directory");
    let path = std::env::var("PATH").expect("PATH");
    Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()
        .expect("sh")
}

#[test]
fn the_lines_of_the_tutorials_and_of_the_doctor_run_in_order() {
    if dray_skip::lacks(&["sqlite3"]) {
        return;
    }
    let tutorials = pages();
    let tutorials = tutorials
        .iter()
        .filter(|page| page.starts_with("docs/tutorials") || page.ends_with("doctor.md"));
    let mut ran = 0;
    for page in tutorials {
        let text = fs::read_to_string(Path::new(ROOT).join(page)).expect("a page");
        let directory = workplace();
        let blocks = text.split("```sh\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split_once("```").map(|(block, _)| block));
        for line in blocks.flat_map(str::lines) {
            if NOT_RUN.iter().any(|(part, _)| line.contains(part)) {
                continue;
            }
            let output = shell(directory.path(), line);
            // A doctor that finds something wrong says so by its code.
            let codes: &[i32] = if line.starts_with("dray doctor") {
                &[0, 1, 3]
            } else {
                &[0]
            };
            let code = output.status.code().expect("a code");
            assert!(
                codes.contains(&code),
                "{}: {line}: {output:?}",
                page.display()
            );
            ran += 1;
        }
    }
    assert!(ran >= 22, "{ran} lines");
}

/// The first five lines that a command prints.
fn five_lines(directory: &Path, line: &str) -> String {
    let output = shell(directory, &format!("exec 2>&1; {line}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().take(5).collect();
    lines.join("\n")
}

/// The command below a question in what `dray` alone prints.
fn command_for(directory: &Path, question: &str) -> String {
    let output = shell(directory, "dray");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text
        .lines()
        .skip_while(|line| !line.contains(question))
        .skip(1);
    let line = lines.next().unwrap_or_else(|| panic!("{question}: {text}"));
    line.trim().to_owned()
}

#[test]
fn five_people_have_their_answer_in_the_first_five_lines() {
    if dray_skip::lacks(&["sqlite3", "redis-server"]) {
        return;
    }
    let directory = workplace();
    let directory = directory.path();
    let compiled = shell(directory, "cc -O2 -o copy examples/program.c");
    assert!(compiled.status.success(), "{compiled:?}");
    // Question as `dray` prints it; what is put in place of its example; what the answer has.
    let people = [
        (
            "16 KiB copies",
            [("", ""); 2],
            "offload if 4 or more are outstanding",
        ),
        (
            "does not work",
            [("dray doctor, or ", ""), ("", "")],
            "no shared virtual addressing for programs",
        ),
        ("without one", [("./test", "./copy"), ("", "")], "copied"),
        (
            "give my program",
            [
                (
                    "redis-server",
                    "sqlite3 :memory: 'select hex(zeroblob(100000))' | cut -c1-80 | tail -n +2",
                ),
                ("", ""),
            ],
            ": a DSA would save",
        ),
        (
            "behind a PCIe switch",
            [
                ("T.toml", "examples/two-gpus.toml"),
                ("F.toml", "examples/two-gpus-flows.toml"),
            ],
            "host>gpu0",
        ),
    ];
    for (question, replaced, answer) in people {
        let command = command_for(directory, question);
        let command = replaced
            .iter()
            .filter(|(from, _)| !from.is_empty())
            .fold(command, |command, (from, to)| command.replace(from, to));
        let said = five_lines(directory, &command);
        assert!(said.contains(answer), "{command}\n{said}");
    }
    // The same for a test that did not use the device: the first line says so.
    let said = five_lines(
        directory,
        "dray run --profile 1e1w-d --require work -- true",
    );
    assert!(
        said.starts_with("error: --require work: no descriptor was submitted"),
        "{said}"
    );
}

#[test]
fn the_recording_in_readme_is_what_the_commands_print() {
    let programs = Path::new(env!("CARGO_BIN_EXE_dray"))
        .parent()
        .expect("a directory");
    let lines = xtask::recording::record(programs).expect("the commands run");
    let svg = xtask::recording::svg(&lines).expect("text");
    let kept = fs::read_to_string(Path::new(ROOT).join("docs/run.svg")).expect("the picture");
    assert_eq!(svg, kept, "cargo xtask recording draws it anew");
}
