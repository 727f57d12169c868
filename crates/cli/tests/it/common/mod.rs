//! Runs the command in a directory of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use tempfile::TempDir;

/// A command that takes longer hangs: it is killed, and the test fails. The longest take less than a minute.
const LONGEST: Duration = Duration::from_secs(1200);

/// A directory to run in; it is removed at the end.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("the system has room for temporary files")
}

/// `dray` with these arguments, apart by spaces, in `dir`.
pub(crate) fn dray(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::cargo_bin("dray").expect("cargo builds it for its tests");
    command.current_dir(dir).args(arguments.split_whitespace());
    command.timeout(LONGEST);
    command
}

/// What it wrote to stdout; it must have succeeded.
#[allow(dead_code, reason = "not every file of tests needs it")]
pub(crate) fn output(dir: &Path, arguments: &str) -> String {
    let output = dray(dir, arguments)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    String::from_utf8(output).expect("it writes text")
}

/// The program of `examples/races` of this name, built in `dir`.
pub(crate) fn race_example(dir: &Path, name: &str) -> PathBuf {
    race_example_with(dir, name, &[])
}

/// The same with these flags of the compiler.
pub(crate) fn race_example_with(dir: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/races")
        .join(name)
        .with_extension("c");
    let program = dir.join(name);
    let built = std::process::Command::new("cc")
        .args(["-O1", "-Wall", "-Wno-psabi"])
        .args(flags)
        .arg("-o")
        .args([&program, &source])
        .status();
    assert!(built.expect("a compiler").success());
    program
}
