//! `dray bench`, cases of api:cpp: measured through dray.hpp of the libdray that is installed.

use std::process::{Command, Output};

use crate::library_c::toolchain::prefix;

/// Runs the benchmark with the library that the tests have installed.
fn dray(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dray"))
        .args(arguments)
        .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"))
        .output()
        .expect("dray runs")
}

/// The results of a run that must succeed.
fn results(output: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Names of the cases that were measured, each in more than no time.
fn names(results: &serde_json::Value) -> Vec<String> {
    let cases = results["benchmarks"].as_array().expect("cases");
    let name = |case: &serde_json::Value| {
        let time = case["real_time"].as_f64();
        assert!(time.is_some_and(|time| time > 0.0), "{case}");
        assert!(case.get("error_occurred").is_none(), "{case}");
        case["name"].as_str().expect("a name").to_owned()
    };
    cases.iter().map(name).collect()
}

/// Operations of cases, each once.
fn operations(names: &[String]) -> Vec<&str> {
    let mut operations: Vec<&str> = names
        .iter()
        .filter_map(|name| name.split('/').next())
        .collect();
    operations.sort_unstable();
    operations.dedup();
    operations
}

const OF_CPP: [&str; 12] = [
    "apply_delta",
    "cache_flush",
    "compare",
    "compare_pattern",
    "copy",
    "copy_crc",
    "crc",
    "create_delta",
    "dualcast",
    "fill",
    "move",
    "nop",
];

#[test]
fn every_cpp_operation_is_measured_on_the_core() {
    let output = dray(&[
        "bench",
        "--real",
        "--block_size=4k",
        "--queue_size=4",
        "--threads=1",
        "--benchmark_min_time=8x",
        "--benchmark_filter=/api:cpp/",
        "--benchmark_format=json",
    ]);
    let results = results(&output);
    let names = names(&results);
    let on_core = OF_CPP.iter().filter(|name| **name != "nop");
    assert_eq!(operations(&names), on_core.copied().collect::<Vec<_>>());
    assert!(
        names.iter().all(|name| name.contains("/api:cpp/path:cpu/")),
        "{names:?}"
    );
    let library = results["context"]["dray_cpp"]
        .as_str()
        .expect("what was measured");
    let at = prefix().join("lib").display().to_string();
    assert!(
        library.contains(concat!("libdray ", env!("CARGO_PKG_VERSION"))) && library.contains(&at),
        "{library}"
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains(library));
}

#[test]
fn every_cpp_operation_is_measured_on_a_work_queue() {
    for profile in ["1e1w-d", "1e1w-s"] {
        let output = dray(&[
            "run",
            "--profile",
            profile,
            "--",
            env!("CARGO_BIN_EXE_dray"),
            "bench",
            "--device=hw",
            "--block_size=4k",
            "--queue_size=4",
            "--batch_size=0,4",
            "--threads=1",
            "--full_time",
            "--benchmark_min_time=4x",
            "--benchmark_filter=/api:cpp/",
            "--benchmark_format=json",
        ]);
        let names = names(&results(&output));
        assert_eq!(operations(&names), OF_CPP);
        assert!(
            names.iter().all(|name| name.contains("/api:cpp/path:dsa/")),
            "{names:?}"
        );
        for part in ["exec:sync", "exec:async", "bsize:0", "bsize:4"] {
            assert!(
                names.iter().any(|name| name.contains(part)),
                "{part}: {names:?}"
            );
        }
    }
}

#[test]
fn without_the_cpp_library_bench_names_what_is_missing() {
    let empty = tempfile::tempdir().expect("a directory");
    let bench = |filter: &str, compiler: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dray"));
        command.args(["bench", "--real", "--block_size=64", "--queue_size=1"]);
        command.args([
            "--threads=1",
            "--benchmark_min_time=2x",
            "--benchmark_format=json",
        ]);
        command.arg(format!("--benchmark_filter={filter}"));
        match compiler {
            Some(compiler) => command
                .env("CXX", compiler)
                .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")),
            None => command
                .env("PKG_CONFIG_LIBDIR", empty.path())
                .env_remove("PKG_CONFIG_PATH"),
        };
        let output = command.output().expect("dray runs");
        (String::from_utf8_lossy(&output.stderr).into_owned(), output)
    };
    let (said, output) = bench("copy/api:cpp/", None);
    assert!(!output.status.success());
    assert!(said.contains("pkg-config finds no libdray"), "{said}");
    assert!(said.contains("cargo xtask install --prefix DIR"), "{said}");
    // Without a filter that names them, the other cases are measured.
    let (said, output) = bench("copy/", None);
    assert!(
        said.contains("note: cases of api:cpp are left out"),
        "{said}"
    );
    let names = names(&results(&output));
    assert!(
        names.len() >= 2 && !names.iter().any(|name| name.contains("api:cpp")),
        "{names:?}"
    );
    let (said, output) = bench("copy/api:rust/", None);
    assert!(
        output.status.success() && !said.contains("api:cpp"),
        "{said}"
    );
    let (said, output) = bench("copy/api:cpp/", Some("/no/such/compiler"));
    assert!(!output.status.success());
    assert!(said.contains("/no/such/compiler cannot be run"), "{said}");
    // A compiler that runs, and fails.
    let (said, output) = bench("copy/api:cpp/", Some("false"));
    assert!(!output.status.success());
    assert!(
        said.contains(concat!(
            "false cannot compile the loop against libdray ",
            env!("CARGO_PKG_VERSION")
        )),
        "{said}"
    );
}
