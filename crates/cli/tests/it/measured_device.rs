//! `--device hw`: the same measurements on a device of this machine, which inside `dray run` is virtual.

mod restore;

use std::path::Path;
use std::process::{Command, Output};

use restore::listed;
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
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text.into_owned()
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

/// The line of a `-x` test for programs.
fn rate(profile: &str, arguments: &[&str]) -> Value {
    let line = ["micros", "--device", "hw", "--format", "json"];
    let output = inside(profile, &[&line[..], arguments].concat());
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn submission_rates_are_measured_in_bursts_of_equal_size() {
    for (profile, mask, entries) in [
        ("1e1w-d", "8000000", "128 entries"),
        ("1e1w-s", "40000000", "entries"),
    ] {
        for rotates in [&[][..], &["-c"][..]] {
            let found = rate(profile, &[&["-x", mask, "-i1000"], rotates].concat());
            let samples = found["burst_samples_ns"][0].as_array().expect("samples");
            let submitted = found["iterations"].as_u64().expect("a count");
            assert!(submitted >= 1000, "{submitted}");
            let burst = submitted / samples.len() as u64;
            assert_eq!(burst * samples.len() as u64, submitted);
            let made_on = found["made_on"].as_str().expect("text");
            assert!(made_on.contains(entries), "{made_on}");
            // Whole thousands a second: none, maybe, on a machine with other work.
            let took: u64 = samples.iter().filter_map(Value::as_u64).sum();
            let rate = (submitted as f64 / took as f64 * 1e6) as u64;
            assert_eq!(found["kopsrate"], rate, "{found}");
        }
    }
}

#[test]
fn flags_are_honoured_on_a_queue_or_refused_by_name() {
    let line = [
        "micros", "--device", "hw", "-n8", "-s4k", "-i3", "-a", "-c", "-C", "-x80",
    ];
    for rest in [&["-b4"][..], &["-b1", "-q1"], &["-K0@dsa0,0"]] {
        let text = stdout(&inside("1e1w-d", &[&line[..], rest].concat()));
        assert!(text.starts_with("GB per sec = "), "{rest:?}: {text}");
    }
    for (profile, arguments, reason) in [
        ("1e1w-d", &["-K[0-1]@dsa0,0"][..], "it takes one CPU"),
        ("1e1w-d", &["-K0@dsa0,7"], "there is no work queue wq0.7"),
        ("1e1w-d", &["-K0@dsa0,0", "-w1"], "wq0.0 is dedicated"),
        ("1e1w-d", &["-x40000000"], "shared work queues are free"),
        (
            "1e1w-d",
            &["-x8000000", "-w1"],
            "the other kind of work queue",
        ),
        ("1e1w-d", &["-x10000000"], "doorbells"),
        ("1e1w-d", &["-P"], "-P: each CPU is a thread"),
    ] {
        let start = ["micros", "--device", "hw"];
        let output = inside(profile, &[&start[..], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text.contains(reason), "{arguments:?}: {text}");
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

/// A shell script inside `dray run` with a profile; `$DRAY` is `dray`, `$OUT` a directory.
fn script(profile: &str, out: &Path, text: &str) -> Output {
    let dray = assert_cmd::cargo::cargo_bin("dray");
    let output = Command::new(&dray)
        .args(["run", "--profile", profile, "--", "sh", "-c", text])
        .env("DRAY", &dray)
        .env("OUT", out)
        .output();
    output.expect("dray runs")
}

const FIG4: &str = "$DRAY figures --device hw --only fig4 --set size=4k --jobs 1 --out $OUT/report";

#[test]
fn figures_are_measured_and_the_configuration_is_restored() {
    let out = tempfile::tempdir().expect("a directory");
    let text = format!(
        "$DRAY config list -i > $OUT/before && {FIG4} --set wq_size=1,16 && $DRAY config list -i > $OUT/after"
    );
    let output = script("4e1w-s", out.path(), &text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("the device is virtual"), "{errors}");
    let read = |name: &str| std::fs::read_to_string(out.path().join(name)).expect("a file");
    assert!(read("before").contains("\"shared\""));
    assert_eq!(read("before"), read("after"));
    let csv = read("report/fig4.csv");
    let measured: Vec<&str> = csv
        .lines()
        .filter(|line| line.contains(",device,"))
        .collect();
    assert_eq!(measured.len(), 2, "{csv}");
    for line in measured {
        assert!(
            line.contains("measured") && line.contains("virtual"),
            "{line}"
        );
    }
    let samples = read("report/device-samples.jsonl");
    let lines: Vec<Value> = samples
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!(line["virtual"], true);
        let samples = line["nanoseconds"].as_array().expect("samples");
        assert!(samples.len() >= 27, "{line}");
    }
    // What is outstanding is what the queue of each point holds.
    let outstanding = |line: &Value| line["operations_per_sample"].as_u64();
    let mut outstanding: Vec<Option<u64>> = lines.iter().map(outstanding).collect();
    outstanding.sort_unstable();
    assert_eq!(outstanding, [Some(1), Some(16)]);
    let page = read("report/index.html");
    assert!(page.contains("times of the emulation, not of hardware"));
    assert!(page.contains("virtual DSA here"));
}

#[test]
fn points_that_are_not_measured_are_named_with_the_reason() {
    let out = tempfile::tempdir().expect("a directory");
    let text = "$DRAY figures --device hw --only devices --set size=4k --set devices=1,2 --out $OUT/devices &&
        $DRAY figures --device hw --only fig6a --set size=4k --set src_node=local --out $OUT/fig6a";
    let output = script("1e1w-d", out.path(), text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let has_another_node = Path::new("/sys/devices/system/node/node1").exists();
    for (figure, line, is_expected) in [
        (
            "devices",
            "1 point is modelled only: 2 devices are needed, and programs leave 1 of this machine free",
            true,
        ),
        (
            "fig6a",
            "1 point is modelled only: this machine has no memory of another socket",
            !has_another_node,
        ),
    ] {
        let line = format!("{figure}: {line}");
        assert_eq!(errors.contains(&line), is_expected, "{line}\n{errors}");
        let page = out.path().join(figure).join("index.html");
        let page = std::fs::read_to_string(page).expect("a page");
        assert_eq!(page.contains(&line), is_expected, "{line}");
        let samples = out.path().join(figure).join("device-samples.jsonl");
        let samples = std::fs::read_to_string(samples).expect("samples");
        let count = if is_expected { 1 } else { 2 };
        assert_eq!(samples.lines().count(), count, "{figure}: {samples}");
    }
}

/// A profile of two devices, in a file.
fn two_devices(directory: &Path) -> String {
    let devices = ["1e1w-s", "dsa1-1e1w-s"].map(|name| {
        let profile = dray_idxd::Profile::named(name).expect("a profile");
        profile.device_profiles()[0].clone()
    });
    let path = directory.join("two.json");
    let profile = dray_idxd::Profile::of(devices.to_vec());
    std::fs::write(&path, profile.to_json()).expect("a file");
    path.display().to_string()
}

/// Figures measured on two devices with these arguments each, the configuration compared before and after:
/// what was printed, and the samples of each figure.
fn on_two_devices(out: &Path, figures: &[(&str, &str)]) -> (String, Vec<Vec<Value>>) {
    let mut text = "$DRAY config list -i > $OUT/before\n".to_owned();
    for (figure, set) in figures {
        let line = format!(
            "$DRAY figures --device hw --only {figure} {set} --jobs 1 --out $OUT/{figure} || exit 9\n"
        );
        text.push_str(&line);
    }
    text.push_str("$DRAY config list -i > $OUT/after\n");
    let output = script(&two_devices(out), out, &text);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert_eq!(listed(&out.join("before")), listed(&out.join("after")));
    let samples = figures.iter().map(|(figure, _)| {
        let path = out.join(figure).join("device-samples.jsonl");
        let text = std::fs::read_to_string(path).expect("samples");
        let line = |line: &str| serde_json::from_str(line).expect("JSON");
        text.lines().map(line).collect::<Vec<Value>>()
    });
    (errors, samples.collect())
}

/// Whether two threads can have a CPU each.
fn has_two_cpus() -> bool {
    let has = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2);
    if !has {
        dray_skip::skip("one CPU: what two threads measure");
    }
    has
}

/// The values of one column of a figure's rows that were measured on a device.
fn column(out: &Path, figure: &str, name: &str) -> Vec<f64> {
    let path = out.join(figure).join(format!("{figure}.csv"));
    let text = std::fs::read_to_string(path).expect("a table");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let at = |name: &str| {
        let at = names.iter().position(|known| *known == name);
        at.unwrap_or_else(|| panic!("no {name} in {names:?}"))
    };
    let (backend, value) = (at("backend"), at(name));
    let rows = lines.map(|line| line.split(',').collect::<Vec<&str>>());
    let measured = rows.filter(|row| row[backend] == "device");
    measured
        .map(|row| row[value].parse().expect("a number"))
        .collect()
}

#[test]
fn several_devices_are_measured_at_once_and_restored() {
    let out = tempfile::tempdir().expect("a directory");
    let figures = [
        ("devices", "--set size=4k --set devices=1,2,3"),
        ("split", "--set pages=8 --set devices=1,2"),
    ];
    let (errors, samples) = on_two_devices(out.path(), &figures);
    let why = "devices: 1 point is modelled only: 3 devices are needed, and programs leave 2 of this machine free";
    assert!(errors.contains(why), "{errors}");
    let queues = |lines: &[Value]| -> Vec<String> {
        let name = |line: &Value| line["queue"].as_str().expect("a name").to_owned();
        let mut names: Vec<String> = lines.iter().map(name).collect();
        names.sort();
        names
    };
    if !has_two_cpus() {
        assert!(errors.contains("2 threads need a CPU each"), "{errors}");
        return;
    }
    for ((figure, _), samples) in figures.iter().zip(&samples) {
        assert_eq!(queues(samples), ["wq0.0", "wq0.0", "wq1.0"], "{figure}");
        for line in samples {
            let taken = line["nanoseconds"].as_array().expect("samples");
            assert!(taken.len() >= 27, "{figure}: {}", taken.len());
        }
    }
    assert_eq!(column(out.path(), "devices", "throughput_gbps").len(), 2);
    let lists = column(out.path(), "split", "list_ns");
    assert!(
        lists.len() == 2 && lists.iter().all(|ns| *ns > 0.0),
        "{lists:?}"
    );
    let page = out.path().join("split/index.html");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("dsa0, dsa1 (virtual device of dray run"));
}

#[test]
fn one_core_feeds_two_devices() {
    let out = tempfile::tempdir().expect("a directory");
    let figures = [(
        "devices",
        "--set size=4k --set devices=2 --set cores=1 --set mode=sync,async",
    )];
    let (errors, samples) = on_two_devices(out.path(), &figures);
    assert_eq!(samples[0].len(), 2, "{errors}");
    for line in &samples[0] {
        assert_eq!(line["queue"], "wq0.0 wq1.0");
    }
}

#[test]
fn two_tenants_are_measured_beside_each_other() {
    let out = tempfile::tempdir().expect("a directory");
    let figures = [
        (
            "tenants",
            "--set size=4k --set wq_size=16 --set depth=4 --set neighbour_size=4k --set sharing=device",
        ),
        (
            "overtaking",
            "--set neighbour_size=4k --set wq_size=16 --set sharing=device",
        ),
        ("priorities", "--set priority=1,15 --set wq_size=16"),
    ];
    let (errors, samples) = on_two_devices(out.path(), &figures);
    if !has_two_cpus() {
        assert!(errors.contains("2 threads need a CPU each"), "{errors}");
        return;
    }
    let has = |line: &Value, queue: &str, is_neighbour: bool| {
        line["queue"] == queue && (line["neighbour"] == true) == is_neighbour
    };
    // A queue for each, in one group or in two. (One queue that both fill may keep a thread out for seconds on two
    // CPUs, which the device needs as well.)
    let expected = [
        ("tenants", 1, 0, 1),
        ("overtaking", 1, 0, 1),
        ("priorities", 2, 0, 2),
    ];
    for ((figure, own, shared, apart), lines) in expected.into_iter().zip(&samples) {
        let count = |queue, is_neighbour| {
            let lines = lines.iter().filter(|line| has(line, queue, is_neighbour));
            lines.count()
        };
        assert_eq!(count("wq0.0", false), own, "{figure}: {errors}");
        assert_eq!(count("wq0.0", true), shared, "{figure}");
        assert_eq!(count("wq0.1", true), apart, "{figure}");
    }
    for line in samples.iter().flatten() {
        let taken = line["nanoseconds"].as_array().expect("samples");
        assert!(taken.len() >= 27, "{}", taken.len());
    }
    for (figure, rows) in [("tenants", 1), ("overtaking", 1), ("priorities", 2)] {
        for name in ["throughput_gbps", "neighbour_gbps", "latency_ns"] {
            let values = column(out.path(), figure, name);
            assert_eq!(values.len(), rows, "{figure} {name}");
            assert!(values.iter().all(|value| *value > 0.0), "{figure} {name}");
        }
    }
}

#[test]
fn a_named_queue_is_measured_in_its_own_configuration() {
    let out = tempfile::tempdir().expect("a directory");
    let text = "$DRAY config list -i > $OUT/before
        $DRAY figures --device hw:wq0.0 --only fig4 --set size=4k --set wq_size=16,128 --out $OUT/report &&
        $DRAY config list -i > $OUT/after";
    let output = script("1e1w-d", out.path(), text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("one point is modelled only"), "{errors}");
    let read = |name: &str| std::fs::read_to_string(out.path().join(name)).expect("a file");
    assert_eq!(read("before"), read("after"));
    assert_eq!(read("report/device-samples.jsonl").lines().count(), 1);
    let both = "$DRAY figures --device hw:wq0.0 --config 1e1w-d --out $OUT/other";
    let output = script("1e1w-d", out.path(), both);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("as it is configured"), "{errors}");
}

#[test]
fn unknown_queues_and_devices_are_named() {
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
