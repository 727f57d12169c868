//! The job API of DML inside `dray run`: its jobs go to the shared work queues.

#[path = "../../../dml/tests/it/installed.rs"]
mod installed;

use std::process::Command;

use installed::{Installed, said};

#[test]
fn jobs_go_to_shared_work_queues_by_any_path_but_the_cores() {
    let program = Installed::new();
    let jobs = program.jobs(&["cc", "-std=c99"]);
    let run = |profile: &str, require: bool, path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dray"));
        command.args(["run", "--profile", profile]);
        if require {
            command.args(["--require", "work"]);
        }
        let output = command.arg("--").arg(&jobs).arg(path).output();
        said(&output.expect("dray"))
    };
    for (profile, path) in [("4e1w-s", "hw"), ("4e1w-s", "auto"), ("1e1w-s", "hw")] {
        let expected = ("all right\n".to_owned(), Some(0));
        assert_eq!(run(profile, true, path), expected, "{profile}, {path}");
    }
    // A dedicated queue would lose jobs without a word.
    assert_eq!(
        run("1e1w-d", false, "hw"),
        ("no shared work queue\n".to_owned(), Some(3))
    );
    assert_eq!(
        run("1e1w-d", false, "auto"),
        ("all right\n".to_owned(), Some(0))
    );
    assert_eq!(
        run("4e1w-s", false, "sw"),
        ("all right\n".to_owned(), Some(0))
    );
}
