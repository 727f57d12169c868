//! Programs on the job API.

mod installed;
mod refused;

use std::process::Command;

use installed::{Installed, said};

#[test]
fn a_program_in_c_or_cpp_is_right_on_the_core() {
    let installed = Installed::new();
    for compiler in [
        &["cc", "-std=c99", "-pedantic"][..],
        &["c++", "-std=c++17", "-x", "c++"],
    ] {
        let program = installed.jobs(compiler);
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
fn only_the_api_is_exported() {
    let installed = Installed::new();
    let output = Command::new("readelf")
        .args(["--dyn-syms", "--wide"])
        .arg(installed.path("lib/libdray_dml.so"))
        .output()
        .expect("binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let exported = text
        .lines()
        .filter(|line| line.contains(" DEFAULT ") && !line.contains(" UND "))
        .filter_map(|line| line.split_whitespace().last())
        .filter_map(|name| name.strip_suffix("@@DRAY_DML_1"));
    let header = include_str!("../../include/dml/dml.h");
    let mut count = 0;
    for name in exported {
        assert!(header.contains(&format!("{name}(")), "{name}");
        count += 1;
    }
    let declared = header.matches("\ndml_status_t dml_").count() + 1;
    assert_eq!(count, declared);
}
