//! Programs on the submit and poll API.

#[path = "../../../dml/tests/it/installed.rs"]
mod installed;

use std::path::Path;
use std::process::Command;

use installed::{Installed, said};

fn installed() -> Installed {
    Installed::new(&xtask::DTO, "dto", "include")
}

#[test]
fn without_a_work_queue_all_is_left_to_the_caller() {
    let installed = installed();
    for compiler in [
        &["cc", "-std=c99", "-pedantic"][..],
        &["c++", "-std=c++17", "-x", "c++"],
    ] {
        let program = installed.compile(compiler, "submit.c");
        let output = Command::new(&program)
            .env("DRAY_DEV_PATH", "/nonexistent")
            .output();
        let expected = ("0 submitted, all right\n".to_owned(), Some(0));
        assert_eq!(said(&output.expect("it runs")), expected);
    }
}

#[test]
fn the_interface_is_that_of_the_record() {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi");
    if let Err(error) = xtask::abi::check(&xtask::DTO, &installed().path(""), &record) {
        panic!("{error:#}");
    }
}
