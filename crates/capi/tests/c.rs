//! A program in C and in C++, on the shared and on the static library.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo has put this crate's libraries.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let deps = test.parent().expect("a directory").to_path_buf();
    let found = [deps.clone(), deps.join("..")];
    let found = found
        .into_iter()
        .find(|dir| dir.join("libdray_c.so").exists());
    found.expect("cargo builds the libraries before the tests")
}

fn run(compiler: &[&str], library: &str, backend: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = libraries();
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("copy");
    let compiled = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(root.join("examples/copy.c"))
        .args(["-x", "none"])
        .arg(libraries.join(library))
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lutil", "-lrt"])
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a compiler");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{compiler:?}: {errors}");
    let output = Command::new(&program)
        .arg(backend)
        .env("LD_LIBRARY_PATH", &libraries)
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler:?} {library}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn expected(executor: u32) -> String {
    format!(
        "copy 42: status 1, executor {executor}\ncompare: result 1 at 4096\ncrc32c: e3069283\n\
         null: an argument is not valid\n"
    )
}

#[test]
fn the_example_in_c_and_in_cpp_on_either_library() {
    for compiler in [&["cc", "-std=c99"][..], &["c++", "-std=c++17", "-x", "c++"]] {
        for library in ["libdray_c.so", "libdray_c.a"] {
            for executor in [1, 2] {
                let out = run(compiler, library, &executor.to_string());
                assert_eq!(out, expected(executor), "{compiler:?} {library}");
            }
        }
    }
}

#[test]
fn the_shared_library_exports_the_interface_and_nothing_else() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(libraries().join("libdray_c.so"))
        .output()
        .expect("binutils");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = out
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    let header = include_str!("../include/dray.h");
    for name in &names {
        assert!(header.contains(&format!("{name}(")), "{name} is exported");
    }
    assert!(names.len() >= 17, "{names:?}");
}
