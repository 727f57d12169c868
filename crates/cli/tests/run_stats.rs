//! `dray run --stats` and `--trace`: what went through the work queues.

#[path = "run/session.rs"]
#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod session;

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;
use session::{Ended, Session};

const LOAD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/load.py");

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
    assert_eq!(row(&ended, ["wq0.0", "dedicated"])[3], "100");
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
fn what_nobody_waited_for_is_counted_all_the_same() {
    let ended = load(&Session::new(), &["--stats"], ["blind", "0", "10"]);
    assert_eq!(row(&ended, ["wq0.0", "noop"])[2], "10");
}

#[test]
fn nothing_is_said_of_a_session_that_did_not_ask() {
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
fn a_trace_that_cannot_be_ends_the_session_before_it_begins() {
    for name in ["t.txt", "t", "none/t.json"] {
        let ended = Session::new().shell(&["--trace", name], "echo ran");
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
        assert!(ended.err.contains(name), "{ended:?}");
    }
}

#[test]
fn a_full_disk_is_said_once_and_the_command_goes_on() {
    let session = Session::new();
    symlink("/dev/full", session.path().join("f.json")).unwrap();
    for (script, code) in [("echo on", 1), ("echo on; exit 3", 3)] {
        let ended = session.shell(&["--trace", "f.json"], script);
        assert_eq!((ended.code, &*ended.out), (Some(code), "on\n"), "{ended:?}");
        assert_eq!(ended.err.matches("No space left").count(), 1, "{ended:?}");
    }
}
