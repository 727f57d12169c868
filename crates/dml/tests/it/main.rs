//! Programs on the job API.

mod installed;
mod refused;

use std::path::Path;
use std::process::Command;

use installed::{Installed, said};

fn installed() -> Installed {
    Installed::new(&xtask::DML, "dml", "include/dml")
}

#[test]
fn a_program_in_c_or_cpp_is_right_on_the_core() {
    let installed = installed();
    for compiler in [
        &["cc", "-std=c99", "-pedantic"][..],
        &["c++", "-std=c++17", "-x", "c++"],
    ] {
        let program = installed.compile(compiler, "jobs.c");
        for path in ["sw", "auto"] {
            // No device is looked for where none can be.
            let output = Command::new(&program)
                .arg(path)
                .env("DRAY_DEV_PATH", "/nonexistent")
                .output()
                .expect("it runs");
            assert_eq!(said(&output), ("all right\n".into(), Some(0)), "{path}");
        }
    }
}

#[test]
fn the_interface_is_that_of_the_record() {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi");
    if let Err(error) = xtask::abi::check(&xtask::DML, &installed().path(""), &record) {
        panic!("{error:#}");
    }
}
