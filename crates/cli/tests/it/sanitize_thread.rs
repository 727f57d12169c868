//! `--sanitize=thread`: programs with ThreadSanitizer that race with the device, each beside its right twin.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::read::{Object, ObjectSymbol};
use tempfile::TempDir;

use crate::common::race_example;

/// A late device is late in most runs: a machine may give the program no processor for as long.
const TRIES: usize = 20;
/// As often a program must start to count as one that runs here.
const LOADS: usize = 20;

/// The example with ThreadSanitizer, with more flags; `None` where the compiler has none, or it does not run.
fn example(directory: &Path, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/races/threads.c");
    let program = directory.join("threads");
    let built = Command::new("cc")
        .args([
            "-O1",
            "-g",
            "-Wall",
            "-Wno-psabi",
            "-Wno-tsan",
            "-pthread",
            "-fsanitize=thread",
        ])
        .args(flags)
        .arg("-o")
        .args([&program, &source])
        .output()
        .expect("a compiler");
    // Where addresses are random a runtime may find its own taken, in some runs.
    let runs = || {
        (0..LOADS).all(|_| {
            let list = Command::new(&program).arg("list").output();
            list.is_ok_and(|output| output.status.success())
        })
    };
    if !(built.status.success() && runs()) {
        dray_skip::skip("the C compiler has no ThreadSanitizer that runs here");
        return None;
    }
    Some(program)
}

/// Whether the runtime is a shared object: some compilers link their own statically without a flag.
fn calls_runtime(program: &Path) -> bool {
    let bytes = std::fs::read(program).expect("the program");
    let object = object::File::parse(&*bytes).expect("an object");
    object
        .dynamic_symbols()
        .any(|symbol| symbol.is_undefined() && symbol.name() == Ok("__tsan_init"))
}

/// As [`example`], with the runtime in a shared object.
fn shared_example(directory: &Path) -> Option<PathBuf> {
    let program = example(directory, &[])?;
    let shared = calls_runtime(&program);
    if !shared {
        dray_skip::skip("the C compiler links ThreadSanitizer statically");
    }
    shared.then_some(program)
}

fn session(options: &[&str], program: &Path, case: &str, twin: &str) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("dray"))
        .args(["run", "--profile", "1e1w-d", "--sanitize=thread"])
        .args(options)
        .arg("--")
        .args([program, Path::new(case), Path::new(twin)])
        .output()
        .expect("it runs")
}

#[test]
fn every_race_is_reported_with_the_device_and_the_right_twin_is_not() {
    let directory = TempDir::new().expect("a directory");
    let Some(program) = shared_example(directory.path()) else {
        return;
    };
    let list = Command::new(&program)
        .arg("list")
        .output()
        .expect("it runs");
    let list = String::from_utf8(list.stdout).expect("text");
    assert!(list.lines().count() >= 15, "{list}");
    for case in list.lines() {
        let reported = (1..=TRIES).any(|seed| {
            let chaos = format!("{seed}:delay");
            let output = session(&["--chaos", &chaos], &program, case, "wrong");
            let said = String::from_utf8_lossy(&output.stderr);
            let named = said.contains("WARNING: ThreadSanitizer: data race")
                && said.contains("'dray: wq0.0 ")
                && said.contains(" main ");
            let code = output.status.code();
            // A report that does not name both is a try.
            assert!(matches!(code, Some(0 | 66)), "{case}: {said}");
            named && code == Some(66)
        });
        assert!(reported, "{case}");
        for options in [&[][..], &["--chaos", "1:delay"]] {
            let output = session(options, &program, case, "right");
            let said = String::from_utf8_lossy(&output.stderr);
            // Of a child that is not looked at one line says so.
            let expected = match case {
                "forked-child" => said.lines().count() == 1 && said.contains("is not looked at"),
                _ => said.is_empty(),
            };
            assert!(output.status.success() && expected, "{case}: {output:?}");
        }
    }
}

#[test]
fn programs_whose_reads_are_not_seen_are_refused_with_the_flag() {
    let directory = TempDir::new().expect("a directory");
    let mut programs = vec![race_example(directory.path(), "clinic")];
    programs.extend(example(directory.path(), &["-static-libtsan"]));
    for program in programs {
        let output = session(&[], &program, "read-early", "right");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("-fsanitize=thread") && said.contains("-static-libtsan"),
            "{said}"
        );
    }
}

/// One that another program starts is refused when it maps a portal.
#[test]
fn a_child_without_thread_sanitizer_gets_no_portal() {
    let directory = TempDir::new().expect("a directory");
    let clinic = race_example(directory.path(), "clinic");
    let Some(program) = shared_example(directory.path()) else {
        return;
    };
    let output = Command::new(assert_cmd::cargo::cargo_bin!("dray"))
        .args(["run", "--profile", "1e1w-d", "--sanitize=thread", "--"])
        .args(["sh", "-c", "\"$1\" copy-of-copy right", "sh"])
        .args([&clinic, &program])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("cannot be mapped") && said.contains("-fsanitize=thread"),
        "{said}"
    );
}
