//! The adversary of `dray run`: a program that is wrong fails with seeds, which are reduced to what matters; its right
//! twin does not.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::race_example;

fn dray(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dray"));
    command.arg("run").args(["--profile", "1e1w-d"]);
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    dray(arguments).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_seed_that_fails_is_reduced_to_the_choices_that_matter() {
    let directory = TempDir::new().expect("a directory");
    let program = race_example(directory.path(), "fault");
    let program = program.to_str().expect("text");
    let all = run(&["--chaos", "1..6", "--", program, "wrong"]);
    assert_eq!(all.status.code(), Some(1), "{all:?}");
    let lines = text(&all.stdout);
    let mut tried = 0;
    for line in lines.lines() {
        let (own, _) = line.split_once(" -- ").expect("the command");
        let chaos = own.rsplit(' ').next().expect("the choices");
        let (kinds, window) = chaos.split_once('@').expect("submissions");
        assert!(kinds.ends_with(":fault"), "{line}");
        let (first, last) = window.split_once('-').expect("a range");
        assert_eq!(first, last, "{line}");
        // And it fails so, and not without that submission.
        let again = run(&["--chaos", chaos, "--", program, "wrong"]);
        assert_eq!(again.status.code(), Some(1), "{line}");
        let next = first.parse::<u64>().expect("a number") + 1;
        let other = format!("{kinds}@{next}-{next}");
        let other = run(&["--chaos", &other, "--", program, "right"]);
        assert!(other.status.success(), "{line}");
        tried += 1;
    }
    assert!(tried > 0, "{all:?}");
    let right = run(&["--chaos", "1..6", "--", program, "right"]);
    assert!(
        right.status.success() && right.stdout.is_empty(),
        "{right:?}"
    );
    assert!(text(&right.stderr).contains("0 of 6 seeds failed"));
}

/// Findings are no failure without `=error`, and what a session says is not shown where it does not fail.
#[test]
fn seeds_with_findings_that_do_not_fail_are_counted() {
    let directory = TempDir::new().expect("a directory");
    let program = race_example(directory.path(), "clinic");
    let program = program.to_str().expect("text");
    let said = |sanitize: &str, twin: &str| {
        let chaos = [sanitize, "--chaos", "1..2:delay", "--"];
        text(&run(&[&chaos[..], &[program, "size-zero", twin]].concat()).stderr)
    };
    let wrong = said("--sanitize", "wrong");
    assert!(
        wrong.contains("0 of 2 seeds failed\nnote: 2 seeds with findings did not fail"),
        "{wrong}"
    );
    assert!(!said("--sanitize", "right").contains("note: "));
    let error = said("--sanitize=error", "wrong");
    assert!(
        error.contains("fails without an adversary") && !error.contains("note: "),
        "{error}"
    );
}

#[test]
fn a_program_without_an_answer_to_outages_fails_and_its_twin_does_not() {
    let directory = TempDir::new().expect("a directory");
    let program = race_example(directory.path(), "outage");
    let program = program.to_str().expect("text");
    for kind in ["disable", "abort", "halt", "dead"] {
        let mut seeds = (1..40).map(|seed| format!("{seed}:{kind}"));
        let fails = |seed: &String| {
            let wrong = run(&["--chaos", seed, "--", program, "wrong"]);
            assert!(matches!(wrong.status.code(), Some(0 | 1)), "{wrong:?}");
            !wrong.status.success()
        };
        let seed = seeds.find(fails).expect("a seed");
        if kind != "dead" {
            let right = run(&["--chaos", &seed, "--", program, "right"]);
            assert!(right.status.success(), "{seed}: {right:?}");
        }
    }
}

#[test]
fn what_fails_anyway_and_what_is_no_seed_are_errors() {
    let fails = run(&["--chaos", "1..3", "--", "sh", "-c", "echo told; exit 7"]);
    let said = text(&fails.stderr);
    assert_eq!(fails.status.code(), Some(1));
    assert!(said.contains("without an adversary too: exit code 7") && said.contains("  told"));
    for (arguments, part) in [
        (&["--chaos", "3..1"][..], "3..1 has no seed"),
        (&["--chaos", "1:dealy"], "\"dealy\" is no kind"),
        (
            &["--chaos", "1..2", "--trace", "x.json"],
            "--trace has one file",
        ),
    ] {
        let output = run(&[arguments, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(part), "{output:?}");
    }
}

#[test]
fn a_shell_has_one_seed() {
    let mut shell = Command::new(assert_cmd::cargo::cargo_bin!("dray"));
    let output = shell
        .args(["shell", "--chaos", "1..2"])
        .stdin(Stdio::null());
    let output = output.output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("one seed"));
}

#[test]
fn an_interrupt_ends_all_of_it() {
    let mut command = dray(&["--chaos", "1..100000", "--", "sleep", "600"]);
    let null = Stdio::null;
    let child = command.stdout(null()).stderr(null()).spawn();
    let mut child = child.expect("it starts");
    // A session is running, or about to.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let since = Instant::now();
    while std::fs::read_to_string(&children)
        .expect("it lives")
        .is_empty()
    {
        assert!(since.elapsed() < Duration::from_secs(60), "no session");
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill(1)").success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
}
