//! `tests/sum`: the last line of the test command.

use std::process::{Command, Output};

fn sum(script: &str) -> Output {
    command(script).output().expect("bash and awk are there")
}

fn command(script: &str) -> Command {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sum");
    let mut command = Command::new(program);
    command
        .args(["sh", "-c", script])
        .env_remove("DRAY_KNOWN_SKIPS");
    command
}

#[test]
fn results_of_all_programs_are_added_and_a_failure_stays_one() {
    let script = "echo 'test result: ok. 44 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1s'
        echo 'a test that says test result: ok. 7 passed; 0 failed; 0 ignored'
        echo 'test result: FAILED. 3 passed; 2 failed; 4 ignored; 0 measured; 9 filtered out; finished in 0.0s'
        exit 101";
    let output = sum(script);
    assert_eq!(output.status.code(), Some(101));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("test result: ok. 44 passed"),
        "the output is shown: {text}"
    );
    assert_eq!(
        text.lines().last(),
        Some("47 passed, 2 failed, 5 skipped"),
        "{text}"
    );
}

#[test]
fn a_program_without_results_is_as_red_as_its_command() {
    let output = sum("kill -9 $$");
    assert_eq!(output.status.code(), Some(137));
    assert_eq!(output.stdout, b"0 passed, 0 failed, 0 skipped\n");
    assert_eq!(sum("exit 0").status.code(), Some(0));
}

/// Three tests passed for their runner, two of which did not run; one did not run twice.
const SKIPS: &str = r"echo 'test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured'
    printf 'a::b\tno root\nc\tno device\na::b\tno root\ntests/qemu net\tno time\n' >> $DRAY_SKIPS";

#[test]
fn a_test_that_did_not_run_is_named_and_is_no_pass() {
    let output = sum(SKIPS);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let expected = [
        "skipped: a::b: no root",
        "skipped: c: no device",
        "skipped: tests/qemu net: no time",
        "1 passed, 0 failed, 4 skipped",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_skip_that_is_not_known_fails() {
    let directory = tempfile::tempdir().unwrap();
    let known = directory.path().join("known");
    let run = |text: &str| {
        std::fs::write(&known, text).unwrap();
        let mut command = command(SKIPS);
        let output = command.env("DRAY_KNOWN_SKIPS", &known).output();
        output.expect("bash and awk are there")
    };
    assert!(run("# why\na::b\nc\ntests/qemu net\n").status.success());
    let output = run("# c\na::b\ntests/qemu net\n");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("known: c\n"), "{text}");
}
