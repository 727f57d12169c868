//! `dray advise` on cases with a known side.

use assert_cmd::Command;

fn advise(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("dray").expect("the program");
    let output = command.arg("advise").args(args).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("a code");
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn advise_offloads_a_large_copy_and_not_a_small_one() {
    let (code, small, _) = advise(&["--size", "256", "--depth", "1"]);
    assert_eq!(code, 0);
    assert!(small.contains("Do not offload: one core has"), "{small}");
    let (_, large, _) = advise(&["--size", "64k", "--depth", "4"]);
    assert!(large.contains("Offload: "), "{large}");
}

/// Without a depth the first line is the answer, and what scripts read stays where it was.
#[test]
fn without_a_depth_several_are_compared() {
    let (code, text, _) = advise(&["--op", "copy", "--size", "16k"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("copy of 16 KiB: offload if 4 or more are outstanding (3.0 times"),
        "{text}"
    );
    let depths = lines[3..7]
        .iter()
        .map(|line| line.split_whitespace().next());
    assert!(depths.eq(["1", "4", "16", "64"].map(Some)), "{text}");
    assert_eq!(code, 0);
    let (_, text, _) = advise(&["--size", "64"]);
    assert!(
        text.starts_with("memmove of 64 B: do not offload"),
        "{text}"
    );
    // A queue of 16 entries cannot have 64 outstanding.
    let (_, json, _) = advise(&[
        "--size",
        "16k",
        "--config",
        "1e1w-d-wqsz16",
        "--format",
        "json",
    ]);
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["schema"], 1);
    assert_eq!(value["depths"].as_array().expect("a list").len(), 3);
    let (_, one, _) = advise(&[
        "--size",
        "16k",
        "--config",
        "1e1w-d-wqsz16",
        "--depth",
        "1",
        "--format",
        "json",
    ]);
    let one: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    for (name, field) in one.as_object().expect("an object") {
        assert_eq!(value[name], *field, "{name}");
    }
}

#[test]
fn json_and_csv_have_the_case_the_rates_and_the_break_even() {
    let args = ["--op", "fill", "--size", "16k", "--depth", "8"];
    let (_, json, _) = advise(&[&args[..], &["--format", "json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["case"]["size_bytes"], 16384);
    let metric = |side: &str| value[side]["metrics"]["throughput_gbps"].as_f64();
    assert!(metric("dsa") > metric("core"), "{json}");
    let from = value["break_even_bytes"].as_u64().expect("a size");
    assert!(from < 16384, "{json}");
    let least = &value["interval_90"]["least"]["break_even_bytes"];
    let most = &value["interval_90"]["most"]["break_even_bytes"];
    assert!(
        least.as_u64() < Some(from) && Some(from) < most.as_u64(),
        "{json}"
    );
    let interval = &value["dsa"]["intervals_90"]["throughput_gbps"];
    assert!(interval[0].as_f64() < metric("dsa") && metric("dsa") < interval[1].as_f64());
    let coverage = &value["coverage"][0];
    assert_eq!(coverage["class"], "throughput", "{json}");
    assert!(coverage["inside"].as_u64() <= coverage["points"].as_u64());
    let (_, csv, _) = advise(&[&args[..], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 6, "{csv}");
    assert!(csv.contains("core_time_umwait_ns,ns,"), "{csv}");
    assert!(csv.contains(",prepare umwait_wake,"), "{csv}");
}

const LLC: &[&str] = &[
    "--op",
    "compare",
    "--placement",
    "llc",
    "--depth",
    "32",
    "--size",
    "64k",
];

#[test]
fn a_verdict_that_rests_on_a_guess_says_so_in_every_format() {
    let (_, table, _) = advise(LLC);
    for part in [
        "(guess)",
        "guess: cpu_scale_llc = 0.4, possible are 0.2 to 0.9",
        "; from 0.4",
        "the verdict is another, at 0.9: Offload: ",
        "at no size that the work queue takes; 90 % interval 832 B to no size",
        "The range of cpu_scale_llc matters most",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let (_, csv, _) = advise(&[LLC, &["--format", "csv"]].concat());
    let throughput = csv.lines().find(|line| line.starts_with("throughput"));
    assert!(throughput.unwrap().ends_with(",cpu_scale_llc"), "{csv}");
    let (_, json, _) = advise(&[LLC, &["--format", "json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let named: Vec<&str> = value["parameters"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|guess| guess["parameter"].as_str())
        .collect();
    assert!(named.contains(&"cpu_scale_llc"), "{json}");
    assert_eq!(value["verdict"], "offload-if-the-core-has-other-work");
    assert_eq!(value["verdict_turns"][0]["verdict"], "offload", "{json}");
    assert_eq!(
        value["core"]["rests_on_guesses"]["throughput_gbps"][0],
        "cpu_scale_llc"
    );
}

#[test]
fn the_verdict_changes_at_the_break_even_size() {
    let (_, json, _) = advise(&["--size", "4k", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let from = value["break_even_bytes"].as_u64().expect("a size");
    let verdict = |size: u64| {
        let (_, text, _) = advise(&["--size", &size.to_string(), "--depth", "1"]);
        text.contains(" outstanding: Offload: ")
    };
    assert!(verdict(from) && !verdict(from - 64), "{from}");
    let (_, text, _) = advise(&["--size", &from.to_string(), "--depth", "1"]);
    assert!(text.contains("% more throughput than one core"), "{text}");
}

/// The time of a copy on the core, within what is published of it, decides more than anything else.
#[test]
fn a_break_even_is_an_interval_with_the_parameter_that_dominates_it() {
    let (_, text, _) = advise(&["--size", "16k", "--depth", "1"]);
    assert!(
        text.contains("from 16448 B on; 90 % interval 9119 B to 27150 B"),
        "{text}"
    );
    assert!(
        text.contains("The range of cpu_copy_line matters most"),
        "{text}"
    );
    assert!(text.contains("--measure-cpu"), "{text}");
}

#[test]
fn random_access_and_the_kernels_copy_change_the_core_time() {
    let core = |flags: &[&str]| {
        let (_, json, _) = advise(&[&["--size", "1k", "--format", "json"], flags].concat());
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        value["core"]["metrics"]["time_per_operation_ns"]
            .as_f64()
            .expect("a time")
    };
    let streaming = core(&[]);
    assert!(core(&["--access", "random"]) > 2.0 * streaming);
    assert!(core(&["--core", "kernel"]) < streaming);
}

#[test]
fn the_configured_device_is_used_and_named() {
    let tree = tempfile::tempdir().expect("a directory");
    let path = tree.path().join("sys");
    let dray = |args: &[&str]| {
        let mut command = Command::cargo_bin("dray").expect("the program");
        command.env("XDG_STATE_HOME", tree.path());
        command.env("DRAY_SYSFS_PATH", &path);
        command.args(args).output().expect("runs")
    };
    let new = dray(&["config", "new-tree", path.to_str().expect("text")]);
    assert!(new.status.success(), "{new:?}");
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    // Nothing is enabled yet.
    let idle = dray(&["advise", "--size", "4k"]);
    assert!(!said(&idle).contains("configured in"), "{idle:?}");
    let set_up = dray(&[
        "config", "setup", "-d", "dsa0", "-w", "1", "-m", "s", "-e", "4", "-s", "16",
    ]);
    assert!(set_up.status.success(), "{set_up:?}");
    for args in [
        &["advise", "--size", "4k"][..],
        &["micros", "-n32", "-s4k", "-i20", "-k0", "-w1"],
        &[
            "bench",
            "--benchmark_filter=move/api:rust/path:dsa/exec:sync/qsize:16/bsize:0/.*/size:4096/",
            "--benchmark_min_time=1x",
        ],
    ] {
        let output = dray(args);
        assert!(output.status.success(), "{output:?}");
        let note = format!("configured in {}", path.join("bus/dsa").display());
        assert!(said(&output).contains(&note), "{args:?}: {output:?}");
    }
    let advised = dray(&["advise", "--size", "4k"]);
    let text = String::from_utf8_lossy(&advised.stdout);
    assert!(text.contains("(shared, 16 entries, 4 engines)"), "{text}");
}

#[test]
fn the_work_queue_that_is_used_is_named() {
    let (_, text, _) = advise(&["--size", "4k", "--config", "4e4w-d"]);
    let used = "work queue 0 (dedicated, 32 entries, 4 engines; 3 more work queues idle)";
    assert!(text.contains(used), "{text}");
}

#[test]
fn bad_input_names_the_flag_and_the_fix() {
    for (args, parts) in [
        (&["--size", "0"][..], &["size", "outside"][..]),
        (&["--size", "4k", "--op", "memmov"], &["memmove"]),
        (&["--size", "4k", "--access", "randm"], &["'random'"]),
        (&["--size", "4k", "--core", "kernal"], &["'kernel'"]),
        (&["--size", "4KB"], &["4k", "KiB", "KB"]),
        (&["--size", "4k", "--op", "noop"], &["noop"]),
        (&["--size", "4k", "--depth", "200"], &["depth", "128"]),
        (&["--size", "64M"], &["size", "max_transfer_size"]),
    ] {
        let (code, out, error) = advise(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {error}");
        for part in parts {
            assert!(error.contains(part), "{args:?}: {error}");
        }
    }
}
