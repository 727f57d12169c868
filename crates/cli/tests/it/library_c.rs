//! Programs in C and C++ on libdray inside `dray run`, where they are DSA programs like any other.

#[path = "../../../capi/tests/it/toolchain.rs"]
#[allow(dead_code, reason = "the tests of dray-capi use the rest")]
pub(crate) mod toolchain;

use std::path::{Path, PathBuf};
use std::process::Command;

use toolchain::{C, CPP, Program, ROOT, compile, prefix};

/// A program, and what it prints on a work queue.
struct Case {
    name: String,
    program: Program,
    expected: String,
}

/// The examples of dray-capi, in either language and on either library.
fn cases() -> Vec<Case> {
    let directory = Path::new(ROOT).join("examples");
    let entries = std::fs::read_dir(&directory).expect("examples");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in &files {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let stem = file
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let exceptions = [CPP, &["-fno-exceptions"]].concat();
        let (compiler, expected) = match name.as_str() {
            "example.h" => continue,
            "every_operation.cpp" => (CPP, "every operation: right\n".to_owned()),
            "no_exceptions.cpp" => (&exceptions[..], "no exceptions: right\n".to_owned()),
            "bad_input.c" => (C, "bad input: right\n".to_owned()),
            "copy.c" => (
                C,
                "copy 42: status 1, executor 0\ncompare: result 1 at 4096\n\
                 crc32c: e3069283\nnull: an argument or a field of a structure is not valid\n"
                    .to_owned(),
            ),
            // Devices of version 1 have none.
            "crc64.c" => (C, "crc64: ".to_owned()),
            _ => (C, format!("{stem}: right\n")),
        };
        let shared = cases.len() % 2 == 0;
        cases.push(Case {
            program: compile(compiler, file, shared),
            name,
            expected,
        });
    }
    assert!(cases.len() >= 23, "{}", cases.len());
    cases
}

/// What a program prints inside `dray run`, on a work queue. A page that the kernel is just moving is a page
/// fault (status 3), as on a DSA: the program is run again then.
fn output(profile: &str, program: &Program, name: &str) -> String {
    let mut errors = String::new();
    for _ in 0..5 {
        let output = Command::new(env!("CARGO_BIN_EXE_dray"))
            .args(["run", "--profile", profile, "--"])
            .arg(program.path())
            .arg("0")
            .env("LD_LIBRARY_PATH", prefix().join("lib"))
            .output()
            .expect("dray runs");
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
        errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if !errors.contains("0x03 page_fault") {
            break;
        }
    }
    panic!("{name} on {profile}: {errors}");
}

#[test]
fn every_example_runs_on_a_work_queue() {
    let cases = cases();
    for profile in ["1e1w-d", "4e1w-s"] {
        for case in &cases {
            let out = output(profile, &case.program, &case.name);
            assert!(
                out.starts_with(&case.expected),
                "{} on {profile}: {out}",
                case.name
            );
        }
    }
}

#[test]
fn the_examples_of_readme_run_on_work_queues() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("../../docs/commands/library.md"))
        .expect("README");
    for (language, compiler) in [("c", C), ("cpp", CPP)] {
        let (_, block) = text
            .split_once(&format!("\n```{language}\n"))
            .expect("an example");
        let (block, _) = block.split_once("\n```\n").expect("its end");
        let directory = tempfile::tempdir().expect("a directory");
        let source = directory.path().join("readme.cc");
        std::fs::write(&source, format!("{block}\n")).expect("a file");
        let compiler = match language {
            "c" => [compiler, &["-x", "c"]].concat(),
            _ => compiler.to_vec(),
        };
        let program = compile(&compiler, &source, true);
        let out = output("2e2w-s", &program, language);
        assert_eq!(out, "status 1 by executor 0\n");
    }
}
