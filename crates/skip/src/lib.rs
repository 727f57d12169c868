//! Records a test that cannot run on this machine, so that it is counted.
//!
//! A test that returns early passes, and the test runner hides what it prints. The file that `DRAY_SKIPS` names gets a
//! line for each instead: name of the test, a tab, the reason. `tests/sum` makes that file and counts the lines.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;

/// The variable that names the file.
const FILE: &str = "DRAY_SKIPS";

/// Records that the rest of the test of this thread does not run, and why. The caller returns.
///
/// # Panics
/// The file that `DRAY_SKIPS` names cannot be written: a skip that is not counted would look like a pass.
pub fn skip(reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a thread without a name");
    println!("skipped {test}: {reason}");
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let line = format!("{test}\t{}\n", reason.trim().replace(['\n', '\t'], " "));
    let file = File::options().append(true).create(true).open(&path);
    // One write appends a whole line beside those of other processes.
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("{}: {error}", path.display());
    }
}

/// Whether one of these programs is missing, by name in `PATH` or by path; then the test is recorded as skipped.
/// `tests/setup` installs them.
///
/// # Panics
/// As [`skip`].
pub fn lacks(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = |name: &&&str| match name.contains('/') {
        true => !Path::new(name).exists(),
        false => !std::env::split_paths(&path).any(|folder| folder.join(name).exists()),
    };
    let Some(name) = programs.iter().find(missing) else {
        return false;
    };
    skip(&format!("{name} is not installed: tests/setup installs it"));
    true
}
