//! Programs that met something else under `dray tier` than without it, each beside itself without: what it prints and how
//! it ends is the same. Pages move as fast as they can meanwhile.

use std::path::Path;
use std::process::Command;

use crate::common::directory;

/// The sources, each a program of its own.
const SOURCES: [&str; 9] = [
    "alone", "children", "filter", "guards", "joins", "locks", "pins", "rights", "robust",
];

/// What a row shows, and the program with its argument.
const ROWS: [(&str, &str); 22] = [
    ("threads end and are joined, by pthreads and C11", "./joins"),
    ("children by fork(3)", "./children fork"),
    ("children by _Fork(3)", "./children _Fork"),
    ("children by clone(3)", "./children clone"),
    ("children by syscall(SYS_fork)", "./children SYS_fork"),
    ("children by syscall(SYS_clone)", "./children SYS_clone"),
    ("children by a system call instruction", "./children inline"),
    ("robust mutexes of a process that is killed", "./robust"),
    ("a daemon becomes another user", "./rights daemon"),
    (
        "a daemon with threads becomes another user",
        "./rights threads",
    ),
    (
        "capabilities are kept over setuid, and dropped",
        "./rights capabilities",
    ),
    (
        "setpriv",
        "setpriv --reuid=65534 --regid=65534 --clear-groups /bin/echo hello",
    ),
    ("su", "su -s /bin/sh -c id nobody"),
    (
        "unshare of a user namespace",
        "unshare --user /bin/echo hello",
    ),
    ("a filter for all threads: calls fail", "./filter eperm"),
    ("a filter for all threads: calls kill", "./filter kill"),
    ("guard regions", "./guards"),
    ("memory that AF_XDP pins", "./pins"),
    ("all memory is locked first", "./locks before"),
    ("all memory is locked later", "./locks after"),
    ("the last thread ends the program", "./alone"),
    ("a program executes itself", "./alone exec"),
];

fn compiled(dir: &Path) -> bool {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hazards");
    for name in SOURCES {
        let source = format!("{sources}/{name}.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o", name, &source]);
        match compiler.current_dir(dir).status() {
            Err(_) => return false,
            Ok(status) => assert!(status.success(), "{name}.c"),
        }
    }
    true
}

/// Output and end of a command; standard error for the message of a failure.
fn outcome(dir: &Path, words: &[&str]) -> (String, String) {
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(dir)
        .output();
    match output {
        Err(error) => (format!("{}", error.kind()), String::new()),
        Ok(output) => (
            format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                output.status
            ),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ),
    }
}

/// Pages that moved, by the statistics on standard error.
fn demoted(said: &str) -> u64 {
    let json = said.find('{').map_or("", |at| &said[at..]);
    let stats: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let processes = stats["processes"].as_array().into_iter().flatten();
    let values = processes.map(|process| process["values"]["demoted_pages"].as_u64());
    values.map(|value| value.unwrap_or(0)).sum()
}

#[test]
fn programs_meet_the_same_under_tier_as_without() {
    let dir = directory();
    if !compiled(dir.path()) {
        eprintln!("skipped: there is no cc");
        return;
    }
    let tier = "tier --back-end uffd --fast 4M --policy rotate --knob interval_ms=1 --knob promote_rate_limit_MBps=8000 --stats-file=/dev/stderr --";
    let mut failures = Vec::new();
    for (what, command) in ROWS {
        let program: Vec<&str> = command.split(' ').collect();
        let mut tiered = vec![env!("CARGO_BIN_EXE_dray")];
        tiered.extend(tier.split(' '));
        tiered.extend(&program);
        let (plain, _) = outcome(dir.path(), &program);
        let (with_dray, said) = outcome(dir.path(), &tiered);
        // Rows of other people's programs are too short to be tiered, and locked memory does not move.
        let still = !command.starts_with("./") || command.ends_with("before");
        let moves = still || demoted(&said) > 0;
        if plain != with_dray || !moves {
            failures.push(format!(
                "{what}\nplain: {plain}\ntiered: {with_dray}\n{said}"
            ));
        }
    }
    eprintln!(
        "{} of {} programs meet the same",
        ROWS.len() - failures.len(),
        ROWS.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
