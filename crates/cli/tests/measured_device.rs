//! `--device hw`: the same measurements on a device of this machine, which inside `dray run` is virtual.

use std::process::{Command, Output};

use serde_json::Value;

/// `dray` inside `dray run` with a profile.
fn inside(profile: &str, arguments: &[&str]) -> Output {
    let dray = assert_cmd::cargo::cargo_bin("dray");
    let output = Command::new(&dray)
        .args(["run", "--profile", profile, "--"])
        .arg(&dray)
        .args(arguments)
        .output();
    output.expect("dray runs")
}

fn stdout(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn micros_keeps_the_samples_and_says_that_the_device_is_virtual() {
    for (profile, queue) in [("1e1w-d", "-w0"), ("1e1w-s", "-w1")] {
        let line = [
            "micros", "--device", "hw:wq0.0", queue, "-n8", "-s4k", "-i20",
        ];
        let rest = ["-q4", "-o3", "--format", "json"];
        let output = inside(profile, &[&line[..], &rest[..]].concat());
        let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        assert_eq!(found["time"], "measured");
        assert_eq!(found["virtual"], true);
        assert_eq!(found["iterations"], 20);
        assert_eq!(found["verified"], true);
        let samples = found["iteration_samples_ns"][0]
            .as_array()
            .expect("samples");
        assert_eq!(samples.len(), 20);
        assert!(
            samples
                .iter()
                .all(|sample| sample.as_u64().is_some_and(|ns| ns > 0))
        );
        let made_on = found["made_on"].as_str().expect("text");
        assert!(
            made_on.contains("wq0.0 (virtual device of dray run"),
            "{made_on}"
        );
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("the device is virtual"), "{errors}");
    }
}

#[test]
fn every_operation_of_micros_runs_on_a_queue_in_batches_too() {
    for opcode in [
        "0", "3", "4", "5", "6", "9", "0x10", "0x11", "0x12", "0x13", "0x14", "0x15",
    ] {
        let operation = format!("-o{opcode}");
        let line = ["micros", "--device", "hw", "-n8", "-s4k", "-i3", "-j"];
        for batch in ["-b1", "-b4"] {
            let output = inside("1e1w-d", &[&line[..], &[batch, &operation]].concat());
            let text = stdout(&output);
            assert!(
                text.starts_with("GB per sec = "),
                "{operation} {batch}: {text}"
            );
        }
    }
}

#[test]
fn bench_measures_its_cases_on_the_device() {
    let arguments = [
        "bench",
        "--device=hw",
        "--block_size=4k",
        "--queue_size=4",
        "--batch_size=0,4",
        "--threads=1",
        "--benchmark_min_time=5x",
        "--full_time",
        "--benchmark_filter=^(copy|crc)/",
        "--benchmark_format=json",
    ];
    let found: Value = serde_json::from_str(&stdout(&inside("1e1w-d", &arguments))).expect("JSON");
    let rows = found["benchmarks"].as_array().expect("rows");
    assert_eq!(rows.len(), 8);
    for row in rows {
        let name = row["name"].as_str().expect("a name");
        assert!(name.contains("api:rust/path:dsa"), "{name}");
        assert_eq!(row["iterations"], 5, "{name}");
    }
    let profile = found["context"]["dray_profile"].as_str().expect("a queue");
    assert!(profile.contains("virtual device of dray run"), "{profile}");
}

#[test]
fn what_is_not_there_is_named() {
    let refused = |profile: &str, arguments: &[&str]| {
        let output = inside(profile, arguments);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = refused("1e1w-d", &["micros", "--device", "hw:wq7.7"]);
    assert!(text.contains("wq7.7") && text.contains("wq0.0"), "{text}");
    let text = refused("1e1w-d", &["micros", "--device", "hv"]);
    assert!(text.contains("--device takes hw"), "{text}");
    let text = refused("1e1w-d", &["micros", "--device", "hw", "-w1"]);
    assert!(text.contains("shared work queues are free"), "{text}");
    let text = refused("1e1w-d", &["micros", "--device", "hw", "-n4096", "-b4096"]);
    assert!(text.contains("max_batch_size"), "{text}");
    // Outside, with no device at all.
    let empty = tempfile::tempdir().expect("a directory");
    let output = Command::new(assert_cmd::cargo::cargo_bin("dray"))
        .args(["micros", "--device", "hw"])
        .env("DRAY_DEV_PATH", empty.path())
        .output()
        .expect("dray runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && text.contains("dray doctor"),
        "{text}"
    );
}
