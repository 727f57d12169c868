//! The APIs of DML and DTO inside `dray run`: what is submitted goes to the shared work queues.

#[path = "../../../dml/tests/it/installed.rs"]
#[allow(dead_code, reason = "the tests of dray-dml use the rest")]
mod installed;

use std::process::Command;

use installed::{Installed, said};

#[test]
fn jobs_go_to_shared_work_queues_by_any_path_but_the_cores() {
    let installed = Installed::new(&xtask::DML, "dml", "include/dml");
    let jobs = installed.compile(&["cc", "-std=c99"], "jobs.c");
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

#[test]
fn operations_that_are_polled_go_to_shared_work_queues() {
    let installed = Installed::new(&xtask::DTO, "dto", "include");
    let submit = installed.compile(&["cc", "-std=c99"], "submit.c");
    for (profile, variable, submitted) in
        [("4e1w-s", "0", 5), ("1e1w-d", "0", 0), ("4e1w-s", "1", 0)]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_dray"))
            .args(["run", "--profile", profile, "--"])
            .arg(&submit)
            .env("DTO_USESTDC_CALLS", variable)
            .output();
        let expected = format!("{submitted} submitted, all right\n");
        assert_eq!(
            said(&output.expect("dray")),
            (expected, Some(0)),
            "{profile}, {variable}"
        );
    }
}
