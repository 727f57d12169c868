//! The tests of the Python package, which are pytest's, on the module that cargo has built.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the test programs, where cargo puts libraries, too.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.parent().expect("a folder").to_owned()
}

/// The package as a wheel has it: the module beside the sources.
fn package(folder: &Path) {
    let package = folder.join("dray");
    fs::create_dir(&package).expect("a folder");
    symlink(built().join("lib_dray.so"), package.join("_dray.abi3.so")).expect("a link");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/dray");
    for source in fs::read_dir(sources).expect("the sources are there") {
        let source = source.expect("an entry").path();
        let name = source.file_name().expect("a name");
        if name != "__pycache__" {
            symlink(&source, package.join(name)).expect("a link");
        }
    }
}

/// Runs a file of tests, unless the interpreter of tests/setup is not there.
fn pytest(file: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/python/bin/python");
    let dray = built().with_file_name("dray");
    if dray_skip::lacks(&[&python, &dray].map(|path| path.to_str().expect("UTF-8"))) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    package(folder.path());
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let mut command = Command::new(python);
    command
        .args([
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "error",
        ])
        .arg(tests.join(file))
        .current_dir(folder.path())
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MPLBACKEND", "Agg")
        .env("MPLCONFIGDIR", folder.path().join("matplotlib"))
        .env("DRAY", dray)
        .env("DRAY_ROOT", root);
    let output = command.output().expect("python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains(" passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{said}");
}

#[test]
fn python_movers() {
    pytest("test_mover.py");
}

#[test]
fn python_answers_are_those_of_the_command() {
    pytest("test_answer.py");
}

#[test]
fn python_sweeps_are_resumed_and_merged() {
    pytest("test_sweep.py");
}

#[test]
fn python_notebooks_run() {
    pytest("test_notebooks.py");
}
