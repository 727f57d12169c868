//! `dray bench`: the documented command lines, the three formats, and what is refused.

use std::process::Output;

use assert_cmd::Command;

fn dray(args: &[&str]) -> Output {
    Command::cargo_bin("dray")
        .unwrap()
        .arg("bench")
        .args(args)
        .output()
        .unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = dray(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = dray(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "bench", prepend_module_to_snapshot => false, omit_expression => true }, {
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(name, text);
    });
}

const QUICK_START: &str = "--benchmark_filter=move/api:c/path:.*/exec:.*/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/.*";

#[test]
fn the_quick_start_prints_the_guides_table() {
    let text = stdout(&["--benchmark_min_time=0.3", QUICK_START]);
    snapshot("quick-start", &text);
}

#[test]
fn every_command_line_of_the_guide_runs() {
    for (filter, min_time) in [
        ("copy/api:c/path:cpu/exec:sync/.*", "0.5"),
        ("copy/.*/path:dsa/exec:sync/.*/size:4096/.*", "0.1"),
        ("move/.*/path:dsa/exec:sync/.*/size:4096/.*", "0.1"),
        (
            "copy/api:c/path:dsa/exec:async/qsize:128/.*/size:4096/.*/threads:8",
            "0.5",
        ),
        (
            "move/api:c/path:dsa/exec:async/qsize:128/.*/size:4096/.*/threads:8",
            "0.5",
        ),
    ] {
        let text = stdout(&[
            &format!("--benchmark_filter={filter}"),
            &format!("--benchmark_min_time={min_time}"),
        ]);
        assert!(text.lines().count() > 3, "{filter}");
        assert!(!text.contains("ERROR"), "{text}");
    }
}

const SMALL: [&str; 4] = [
    "--block_size=4k",
    "--queue_size=16",
    "--batch_size=0",
    "--benchmark_filter=^(fill|crc)/api:rust/.*timer:full/.*(real_time|threads:4)$",
];

#[test]
fn json_csv_and_columns_in_modelled_time_are_exact() {
    let with = |more: &[&'static str]| {
        let args: Vec<&str> = SMALL.iter().chain(more).copied().collect();
        stdout(&args)
    };
    snapshot("json", &with(&["--benchmark_format=json"]));
    snapshot(
        "csv",
        &with(&["--benchmark_format=csv", "--benchmark_repetitions=2"]),
    );
    snapshot(
        "tabular",
        &with(&[
            "--benchmark_counters_tabular=true",
            "--benchmark_repetitions=3",
            "--benchmark_report_aggregates_only",
            "--benchmark_time_unit=us",
        ]),
    );
    snapshot("list", &with(&["--benchmark_list_tests"]));
}

#[test]
fn a_file_is_written_beside_the_console() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.csv");
    let out = format!("--benchmark_out={}", path.display());
    let mut args = SMALL.to_vec();
    args.extend([out.as_str(), "--benchmark_out_format=csv"]);
    assert!(stdout(&args).starts_with("-----"));
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written.starts_with("name,iterations,real_time,"),
        "{written}"
    );
}

#[test]
fn bad_filters_and_values_are_refused_with_the_possible_ones() {
    let message = refused(&["--benchmark_filter=dif_check/api:cpp/path:dsa/.*"]);
    assert!(
        message.contains("dif_check and api:cpp never meet"),
        "{message}"
    );
    let message = refused(&["--benchmark_filter=mvoe/api:c/.*"]);
    assert!(message.contains("near: move/api:c/"), "{message}");
    let message = refused(&["--block_size=4q"]);
    assert!(
        message.contains("--block_size") && message.contains("4q"),
        "{message}"
    );
    let message = refused(&["--in_mem=l9"]);
    assert!(message.contains("--in_mem=l9"), "{message}");
    let message = refused(&["--batch_size=1"]);
    assert!(message.contains("--batch_size=1"), "{message}");
    let message = refused(&["--benchmark_fltr=x"]);
    assert!(message.contains("--benchmark_filter"), "{message}");
    let message = refused(&["--benchmark_perf_counters=CYCLES"]);
    assert!(message.contains("perf stat"), "{message}");
    let message = refused(&["--dataset=corpus"]);
    assert!(message.contains("--dataset=corpus"), "{message}");
    let message = refused(&["--real", "--node=99"]);
    assert!(message.contains("--node=99"), "{message}");
}

/// One line for each operation on each path: in modelled time they are exact.
#[test]
fn lines_of_every_operation_on_device_and_core_are_exact() {
    let text = stdout(&[
        "--block_size=4k",
        "--queue_size=16",
        "--batch_size=0,8",
        "--benchmark_filter=api:rust/.*timer:full/.*(real_time|threads:1)$",
    ]);
    snapshot("operations", &text);
}

#[test]
fn a_dry_run_is_one_iteration() {
    let text = stdout(&[
        "--benchmark_dry_run",
        "--benchmark_repetitions=5",
        "--block_size=4k",
        "--queue_size=16",
        "--benchmark_format=csv",
        "--benchmark_filter=^move/api:rust/path:dsa/exec:sync/qsize:16/bsize:0/.*full",
    ]);
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), 1, "{text}");
    assert!(rows[0].contains("real_time,1,"), "{text}");
}

#[test]
fn a_case_larger_than_the_work_queue_is_an_error_row() {
    let output = dray(&[
        "--config=1e1w-d-wqsz8",
        "--block_size=4k",
        "--benchmark_filter=^move/api:rust/path:dsa/exec:sync/qsize:16/bsize:0/.*full",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ERROR OCCURRED: 'qsize 16"), "{text}");
}

#[test]
fn measured_cases_record_the_machine_and_percentiles() {
    let text = stdout(&[
        "--real",
        "--block_size=4k",
        "--queue_size=1",
        "--in_mem=l1",
        "--out_mem=l1",
        "--benchmark_min_time=10x",
        "--benchmark_repetitions=3",
        "--benchmark_filter=^(copy|crc)/.*exec:sync",
        "--benchmark_format=json",
    ]);
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["context"]["dray_time"], "measured");
    for key in [
        "date",
        "host_name",
        "dray_kernel",
        "dray_microcode",
        "dray_governor",
        "caches",
    ] {
        assert!(result["context"].get(key).is_some(), "{key}: {text}");
    }
    let rows = result["benchmarks"].as_array().unwrap();
    // copy by library and C library, crc by library: three measurements and four numbers of them.
    assert_eq!(rows.len(), 3 * 7);
    for row in rows {
        assert!(
            row.get("p99").is_some() && row.get("Latency/Op").is_some(),
            "{row}"
        );
        let name = row["name"].as_str().unwrap();
        assert!(
            !name.contains("path:dsa") && !name.contains("api:c/"),
            "{name}"
        );
        // Of ten iterations the 99th percentile is the slowest: not below the mean.
        if row["run_type"] == "iteration" {
            let value = |name: &str| row[name].as_f64().unwrap();
            assert!(value("p99") * 1.01 > value("Latency"), "{row}");
        }
    }
}

#[test]
fn real_refuses_cases_that_only_the_model_has() {
    let message = refused(&["--real", "--benchmark_filter=move/api:c/path:cpu/.*"]);
    assert!(
        message.contains("api is one of cpp, rust, glibc"),
        "{message}"
    );
    let message = refused(&["--real", "--config=1e1w-d"]);
    assert!(message.contains("--real"), "{message}");
}
