//! The library as it is installed: programs in C and C++ are compiled by pkg-config's word, and run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use xtask::{Library, install};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Where cargo has put this crate's static library.
fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let deps = test.parent().expect("a directory");
    let found = [deps.join("libdray_c.a"), deps.join("../libdray_c.a")];
    let newest = found.into_iter().filter(|file| file.exists());
    let newest = newest.max_by_key(|file| file.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo builds the library before the tests")
}

/// The library, installed below a directory that stays until the tests end.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    let directory = PREFIX.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let files = install(&Library {
            archive: archive(),
            headers: Path::new(ROOT).join("include"),
            prefix: directory.path().to_path_buf(),
            destdir: None,
            libdir: "lib".into(),
            version: "0.1.0".into(),
        });
        assert_eq!(files.expect("it can be installed").len(), 7);
        directory
    });
    directory.path()
}

/// What pkg-config says.
fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let output = Command::new("pkg-config")
        .args(arguments)
        .arg("dray")
        .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"))
        .output()
        .expect("pkg-config");
    assert!(output.status.success());
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.split_whitespace().map(str::to_owned).collect()
}

/// Compiles an example, with the shared or the static library, and runs it on a backend.
fn run(compiler: &[&str], example: &str, shared: bool, backend: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("program");
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(pkg_config(&["--cflags"]))
        .arg(Path::new(ROOT).join("examples").join(example))
        .args(["-x", "none"]);
    match shared {
        true => command.args(pkg_config(&["--libs"])),
        false => {
            let system = pkg_config(&["--libs", "--static"]).into_iter();
            command
                .arg(prefix().join("lib/libdray.a"))
                .args(system.filter(|word| word != "-ldray"))
        }
    };
    let compiled = command
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a compiler");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(
        compiled.status.success(),
        "{compiler:?} {example}: {errors}"
    );
    let mut program = Command::new(&program);
    if shared {
        program.env("LD_LIBRARY_PATH", prefix().join("lib"));
    }
    let output = program.arg(backend).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler:?} {example} {backend}: {errors}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const C: &[&str] = &["cc", "-std=c99", "-D_GNU_SOURCE"];
const CPP: &[&str] = &["c++", "-std=c++17", "-x", "c++"];

/// The virtual device of the process, and the core.
const BACKENDS: [&str; 2] = ["1", "2"];

#[test]
fn every_example_in_c_and_in_cpp() {
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

#[test]
fn the_readmes_example_on_either_library() {
    for (compiler, shared) in [(C, true), (C, false), (CPP, false)] {
        for executor in BACKENDS {
            let out = run(compiler, "copy.c", shared, executor);
            let expected = format!(
                "copy 42: status 1, executor {executor}\ncompare: result 1 at 4096\n\
                 crc32c: e3069283\nnull: an argument is not valid\n"
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
fn options_of_the_first_version_are_taken() {
    // Before `checked`: 24 bytes.
    let options = dray_c::Options {
        size: 24,
        backend: dray_c::Backend::Cpu as u32,
        slots: 4,
        queue: std::ptr::null(),
        // What is behind the size is not read.
        checked: u32::MAX,
        reserved: u32::MAX,
    };
    let mut mover = std::ptr::null_mut();
    // SAFETY: options, and a place for a pointer.
    let opened = unsafe { dray_c::dray_open(&raw const options, &raw mut mover) };
    assert_eq!(opened, 0);
    // SAFETY: it was opened above.
    assert_eq!(unsafe { dray_c::dray_close(mover) }, 0);
    for size in [23, 25, 31] {
        let options = dray_c::Options { size, ..options };
        // SAFETY: as above.
        let opened = unsafe { dray_c::dray_open(&raw const options, &raw mut mover) };
        assert_eq!(opened, -22, "{size}: EINVAL");
    }
}

#[test]
fn what_is_wrong_has_a_code() {
    for backend in BACKENDS {
        assert_eq!(run(C, "bad_input.c", true, backend), "bad input: right\n");
    }
}

#[test]
fn the_header_for_cpp() {
    for backend in BACKENDS {
        let out = run(CPP, "every_operation.cpp", true, backend);
        assert_eq!(out, "every operation: right\n");
    }
}

#[test]
fn symbols_have_a_version_and_nothing_else_is_exported() {
    let library = prefix().join("lib/libdray.so");
    let output = Command::new("readelf")
        .args(["--dyn-syms", "--wide"])
        .arg(&library)
        .output()
        .expect("binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let defined = text
        .lines()
        .filter(|line| line.contains(" DEFAULT ") && !line.contains(" UND "));
    let names = defined.filter_map(|line| line.split_whitespace().last());
    let names: Vec<&str> = names.filter(|name| *name != "DRAY_1").collect();
    let header = include_str!("../include/dray.h");
    for name in &names {
        let plain = name.strip_suffix("@@DRAY_1");
        let plain = plain.unwrap_or_else(|| panic!("{name} has no version"));
        assert!(header.contains(&format!("{plain}(")), "{plain} is exported");
    }
    let declared =
        header.matches("\nint dray_").count() + header.matches("\nconst char *dray_").count();
    assert_eq!(names.len(), declared, "{names:?}");
    let output = Command::new("readelf")
        .arg("-d")
        .arg(&library)
        .output()
        .expect("binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("[libdray.so.1]"), "{text}");
    assert_eq!(pkg_config(&["--modversion"]), ["0.1.0"]);
}
