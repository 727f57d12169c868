//! `dray run --stats` and `--trace`: counts and events of the work queues.

use std::fs;
use std::os::unix::fs::symlink;

use crate::session::{Ended, Session};
use serde_json::Value;

const LOAD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/load.py");

/// Writes descriptors to the first queue of two: kind, size, count.
fn load(session: &Session, options: &[&str], what: [&str; 3]) -> Ended {
    let mut arguments = vec!["--personality", "7.2", "--profile", "2e2w-d"];
    arguments.extend(options);
    arguments.extend(["--", "python3", LOAD, "/dev/dsa/wq0.0"]);
    arguments.extend(what);
    session.run(&arguments)
}

/// The words of the first line of stderr that begins with these.
#[track_caller]
fn row<'a>(ended: &'a Ended, begin: [&str; 2]) -> Vec<&'a str> {
    let rows = ended.err.lines().map(|line| line.split_whitespace());
    let mut rows = rows.map(Iterator::collect::<Vec<_>>);
    rows.find(|row| row.starts_with(&begin))
        .unwrap_or_else(|| panic!("{ended:?}"))
}

#[test]
fn copies_are_counted_and_small_ones_named() {
    let ended = load(&Session::new(), &["--stats"], ["copy", "512", "100"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The driver disables the queue for a moment when its user has gone: the mode is that of the moment.
    let queue = ended.err.lines().find(|line| line.starts_with("wq0.0 "));
    let queue: Vec<&str> = queue.unwrap_or_default().split_whitespace().collect();
    assert_eq!(queue.get(3), Some(&"100"), "{ended:?}");
    let fidelity = "fidelity: of 100 descriptors 100 exact, 0 approximate, 0 unsupported";
    assert!(ended.err.contains(fidelity), "{ended:?}");
    let copies = row(&ended, ["wq0.0", "memmove"]);
    assert_eq!(
        copies[2..],
        ["100", "0", "51200", "0", "0", "0", "512", "100", "%"]
    );
    for advice in [
        "advice: wq0.0: 100 % of the submissions are below 1 KiB: batch them, see `dray advise`",
        "advice: wq0.1: never used",
    ] {
        assert!(ended.err.contains(advice), "{ended:?}");
    }
}

#[test]
fn faults_and_errors_are_counted() {
    let ended = load(&Session::new(), &["--stats"], ["fault", "4096", "3"]);
    assert_eq!(row(&ended, ["wq0.0", "memmove"])[5], "3");
    assert!(ended.err.contains("3 page faults"), "{ended:?}");
    let ended = load(&Session::new(), &["--stats"], ["bad", "0", "2"]);
    assert_eq!(row(&ended, ["wq0.0", "0x7f"])[5..7], ["0", "2"]);
    assert!(ended.err.contains("2 of 0x7f ended with"), "{ended:?}");
}

#[test]
fn descriptors_without_completion_record_are_counted() {
    let ended = load(&Session::new(), &["--stats"], ["blind", "0", "10"]);
    assert_eq!(row(&ended, ["wq0.0", "noop"])[2], "10");
}

#[test]
fn a_session_without_stats_prints_nothing() {
    let ended = load(&Session::new(), &[], ["copy", "64", "1"]);
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
}

#[test]
fn a_trace_has_each_descriptor() {
    let session = Session::new();
    let ended = load(&session, &["--trace", "t.json"], ["copy", "4096", "5"]);
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
    let text = fs::read_to_string(session.path().join("t.json")).unwrap();
    let events: Vec<Value> = serde_json::from_str(&text).unwrap();
    let copies: Vec<&Value> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert_eq!(copies.len(), 5);
    for copy in copies {
        assert_eq!(copy["name"], "memmove");
        let args = &copy["args"];
        assert_eq!(
            [&args["wq"], &args["status"], &args["size"]],
            [&Value::from("wq0.0"), &"success".into(), &4096.into()]
        );
        assert_ne!(args["pid"], 0);
    }
    load(&session, &["--trace", "t.csv"], ["fault", "4096", "2"]);
    let text = fs::read_to_string(session.path().join("t.csv")).unwrap();
    let faults = text
        .lines()
        .filter(|line| line.contains("memmove") && line.contains("page_fault"));
    assert_eq!(faults.count(), 2, "{text}");
}

#[test]
fn a_bad_trace_path_is_refused_before_the_command_starts() {
    for name in ["t.txt", "t", "none/t.json"] {
        let ended = Session::new().shell(&["--trace", name], "echo ran");
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
        assert!(ended.err.contains(name), "{ended:?}");
    }
}

#[test]
fn a_full_disk_is_reported_once_and_the_command_continues() {
    let session = Session::new();
    symlink("/dev/full", session.path().join("f.json")).unwrap();
    for (script, code) in [("echo on", 1), ("echo on; exit 3", 3)] {
        let ended = session.shell(&["--trace", "f.json"], script);
        assert_eq!((ended.code, &*ended.out), (Some(code), "on\n"), "{ended:?}");
        assert_eq!(ended.err.matches("No space left").count(), 1, "{ended:?}");
    }
}

const WRONG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/wrong.py");

/// A program that writes to its queue in the wrong way, in a session with these options.
fn wrong(options: &[&str], profile: &str, what: &[&str]) -> Ended {
    let mut arguments = vec!["--profile", profile];
    arguments.extend(options);
    arguments.extend(["--", "python3", WRONG, "/dev/dsa/wq0.0"]);
    arguments.extend(what);
    Session::new().run(&arguments)
}

#[test]
fn writes_of_the_wrong_kind_are_counted_and_explained() {
    let ended = wrong(&["--stats"], "1e1w-d", &["enqcmd", "7"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let advice =
        "advice: wq0.0: 7 ENQCMD were answered with retry, as each will be: the queue is dedicated";
    assert!(ended.err.contains(advice), "{ended:?}");
    let ended = wrong(&["--stats"], "1e1w-s", &["movdir64b", "5"]);
    let advice = "advice: wq0.0: 5 MOVDIR64B were ignored without a report: the queue is shared";
    assert!(ended.err.contains(advice), "{ended:?}");
    assert!(!ended.err.contains("did not find the device"), "{ended:?}");
    // A write of the right kind is not mentioned.
    let ended = wrong(&["--stats"], "1e1w-d", &["movdir64b", "5"]);
    assert!(!ended.err.contains("ENQCMD"), "{ended:?}");
}

/// A program without the library in its environment, and without a supervisor.
const LOST: [&str; 2] = ["--supervise", "never"];

fn without_library(options: &[&str], preload: &str) -> Ended {
    let script = format!("env LD_PRELOAD={preload} python3 {WRONG} /dev/dsa/wq0.0 fall-back");
    Session::new().shell(
        &[&LOST, &["--profile", "1e1w-d"], options].concat(),
        &script,
    )
}

#[test]
fn a_program_that_lost_the_library_is_named() {
    for preload in ["", "libm.so.6"] {
        let ended = without_library(&["--stats"], preload);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.out.starts_with("falls back: "), "{ended:?}");
        let said = "opened wq0.0 without the preload library, and got no portal";
        for begin in ["warning: python3 ", "no portal: python3 "] {
            assert!(ended.err.contains(&format!("{begin}{said}")), "{ended:?}");
        }
        assert!(!ended.err.contains("did not find the device"), "{ended:?}");
    }
}

#[test]
fn require_portal_fails_where_a_program_has_no_portal() {
    const PORTAL: [&str; 2] = ["--require", "portal"];
    let lost = without_library(&PORTAL, "");
    let error = "error: --require portal: python3 opened wq0.0 without the preload library";
    assert_eq!(lost.code, Some(1), "{lost:?}");
    assert!(lost.err.contains(error), "{lost:?}");

    // By number, past the C library's mmap.
    let raw = wrong(&PORTAL, "1e1w-d", &["raw"]);
    assert_eq!((raw.code, &*raw.out), (Some(0), "raw mapped\n"), "{raw:?}");
    let nothing = wrong(&PORTAL, "1e1w-d", &["nothing"]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    let error = "opened wq0.0 and submitted nothing by it";
    assert!(nothing.err.contains(error), "{nothing:?}");

    let none = Session::new().shell(&PORTAL, "true");
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(
        none.err.contains("no program has mapped a portal"),
        "{none:?}"
    );
    // A command that fails keeps its exit code.
    assert_eq!(Session::new().shell(&PORTAL, "exit 7").code, Some(7));

    let had = wrong(&PORTAL, "1e1w-d", &["fall-back"]);
    assert_eq!((had.code, &*had.err), (Some(0), ""), "{had:?}");
    // By the supervisor as well.
    let script = format!("env LD_PRELOAD= python3 {WRONG} /dev/dsa/wq0.0 fall-back");
    let options = [&PORTAL[..], &["--profile", "1e1w-d"]].concat();
    let supervised = Session::new().shell(&options, &script);
    assert_eq!(supervised.code, Some(0), "{supervised:?}");
}
