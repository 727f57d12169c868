//! `tests/sum`: the last line of the test command.

use std::process::{Command, Output};

fn sum(script: &str) -> Output {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sum");
    let mut command = Command::new(program);
    let output = command.args(["sh", "-c", script]).output();
    output.expect("bash and awk are there")
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
