//! The programs in `examples/`.

use std::path::Path;

use crate::toolchain::{C, CPP, ROOT, compile};

/// Compiles an example, with the shared or the static library, and runs it on a backend.
fn run(compiler: &[&str], example: &str, shared: bool, backend: &str) -> String {
    let source = Path::new(ROOT).join("examples").join(example);
    compile(compiler, &source, shared).run(&[backend])
}

/// The virtual device of the process, and the core.
const BACKENDS: [&str; 2] = ["1", "2"];

#[test]
fn every_example_runs_in_c_and_in_cpp() {
    let examples = std::fs::read_dir(Path::new(ROOT).join("examples")).expect("examples");
    let mut names: Vec<String> = examples
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.ends_with(".c"))
        .filter(|name| !["copy.c", "bad_input.c", "guard_pages.c"].contains(&name.as_str()))
        .collect();
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    for name in &names {
        let stem = name.trim_end_matches(".c");
        for (compiler, backend) in [(C, BACKENDS[0]), (CPP, BACKENDS[1])] {
            let out = run(compiler, name, true, backend);
            let refused =
                stem == "crc64" && backend == BACKENDS[0] && out.contains("not supported");
            assert!(
                refused || out == format!("{stem}: right\n"),
                "{name} {backend}: {out}"
            );
        }
    }
}

/// Examples that differ between device and core, in C++ as well.
#[test]
fn deadline_and_page_report_run_on_a_device_in_cpp() {
    for stem in ["deadline", "page_report"] {
        let out = run(CPP, &format!("{stem}.c"), true, BACKENDS[0]);
        assert_eq!(out, format!("{stem}: right\n"));
    }
}

#[test]
fn the_copy_example_runs_with_shared_and_static_library() {
    for (compiler, shared) in [(C, true), (C, false), (CPP, false)] {
        for executor in BACKENDS {
            let out = run(compiler, "copy.c", shared, executor);
            let expected = format!(
                "copy 42: status 1, executor {executor}\ncompare: result 1 at 4096\n\
                 crc32c: e3069283\nnull: an argument or a field of a structure is not valid\n"
            );
            assert_eq!(out, expected, "{compiler:?} {shared}");
        }
    }
}

#[test]
fn memory_that_cannot_be_accessed_is_a_page_fault() {
    for backend in BACKENDS {
        let out = run(C, "guard_pages.c", true, backend);
        assert_eq!(out, "guard_pages: right\n");
    }
}

#[test]
fn bad_input_returns_its_error_codes() {
    for backend in BACKENDS {
        assert_eq!(run(C, "bad_input.c", true, backend), "bad input: right\n");
    }
}

#[test]
fn every_operation_runs_through_the_cpp_header() {
    for backend in BACKENDS {
        let out = run(CPP, "every_operation.cpp", true, backend);
        assert_eq!(out, "every operation: right\n");
        let compiler = [CPP, &["-fno-exceptions", "-fno-rtti"]].concat();
        let out = run(&compiler, "no_exceptions.cpp", true, backend);
        assert_eq!(out, "no exceptions: right\n");
    }
    // The oldest standard.
    let compiler = ["c++", "-std=c++14", "-Wpedantic", "-x", "c++"];
    let out = run(&compiler, "every_operation.cpp", false, BACKENDS[0]);
    assert_eq!(out, "every operation: right\n");
}

/// Headers alone, as strict as compilers are.
#[test]
fn the_headers_compile_without_warnings() {
    let strict = ["-pedantic", "-Wshadow", "-Wconversion"];
    let includes = |header: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let source = directory.path().join("includes.cc");
        let text =
            format!("#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n");
        std::fs::write(&source, text).expect("a file");
        (directory, source)
    };
    let (_c, source) = includes("dray.h");
    for standard in ["-std=c89", "-std=c99", "-std=c11", "-std=c17"] {
        let strict = [&strict[..], &["-pedantic-errors"]].concat();
        let compiler = [&["cc", standard, "-x", "c"], &strict[..]].concat();
        compile(&compiler, &source, true);
    }
    let (_cpp, source) = includes("dray.hpp");
    for standard in [
        &["-std=c++14", "-Wold-style-cast"][..],
        &["-std=c++14", "-fno-exceptions", "-fno-rtti"],
        &["-std=c++17"],
        &["-std=c++20"],
        &["-std=c++17", "-fno-exceptions"],
    ] {
        let compiler = [&["c++", "-x", "c++"], standard, &strict[..]].concat();
        compile(&compiler, &source, true);
    }
}
