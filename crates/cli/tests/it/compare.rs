//! `dray compare`: results of `dray bench`, `dray micros` and dsa_perf_micros.

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

fn dray(args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("dray").unwrap();
    command.args(args).output().unwrap()
}

fn bench(directory: &Path, name: &str, wait: &str) -> String {
    let path = directory.join(name).display().to_string();
    let output = dray(&[
        "bench",
        "--block_size=4k,64k",
        "--queue_size=16",
        "--batch_size=0",
        "--benchmark_filter=^copy/api:rust/path:dsa/.*timer:full.*(real_time|threads:1)$",
        "--benchmark_repetitions=3",
        &format!("--wait={wait}"),
        &format!("--benchmark_out={path}"),
    ]);
    assert!(output.status.success());
    path
}

/// Names of cases are what a file says: none of its characters is a command for the terminal.
#[test]
fn names_of_cases_are_no_commands() {
    let directory = tempfile::tempdir().unwrap();
    let path = bench(directory.path(), "old.json", "poll");
    let other = bench(directory.path(), "new.json", "umwait");
    for path in [&path, &other] {
        let text = fs::read_to_string(path).unwrap();
        let spoiled = text.replace("copy/api", "\\u001b]0;copy\\u0007/api");
        assert_ne!(text, spoiled);
        fs::write(path, spoiled).unwrap();
    }
    for format in ["table", "json", "csv"] {
        let output = dray(&["compare", &path, &other, "--format", format]);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("u001b]0;copy"), "{shown}");
        assert!(!shown.contains(['\x1b', '\x07']), "{format}: {shown:?}");
    }
    let toml = directory.path().join("a.toml").display().to_string();
    fs::write(&toml, "name = \"a\x1b]0;b\x07\n").unwrap();
    let output = dray(&["fabric", "show", &toml]);
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("a\\u001b]0;b\\u0007"), "{shown}");
}

#[test]
fn a_slowdown_beyond_fail_over_fails_and_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let old = bench(directory.path(), "old.json", "poll");
    let new = bench(directory.path(), "new.json", "umwait");
    let svg = directory.path().join("change.svg");
    let output = dray(&["compare", &old, &new, "--svg", svg.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let table = String::from_utf8(output.stdout).unwrap();
    let answer = "4 cases: 4 slower, 0 faster, 0 the same; new time by old time 1.0057 (geometric mean), from 1.0000";
    assert!(table.starts_with(answer), "{table}");
    // What all names have is said once, and only what has changed is listed.
    let cases = table
        .lines()
        .filter(|line| line.starts_with(" copy/"))
        .collect::<Vec<_>>();
    assert!(
        cases
            .iter()
            .all(|line| line.ends_with("slower ") && !line.contains("path:dsa")),
        "{table}"
    );
    assert_eq!(cases.len(), 4, "{table}");
    assert!(
        table.contains("Each case: api:rust/path:dsa/qsize:16/"),
        "{table}"
    );
    let same = String::from_utf8(dray(&["compare", &old, &old]).stdout).unwrap();
    assert!(
        same.starts_with("4 cases: none changed; ") && same.lines().count() == 1,
        "{same}"
    );
    assert!(fs::read_to_string(svg).unwrap().contains("</svg>"));
    let code = |a: &str, b: &str| {
        let output = dray(&["compare", a, b, "--fail-over", "0.1%"]);
        output.status.code()
    };
    assert_eq!(code(&old, &old), Some(0));
    // UMWAIT has a longer latency than polling.
    assert_eq!(code(&old, &new), Some(1));
    assert_eq!(code(&new, &old), Some(0));
}

#[test]
fn logs_and_json_of_micros_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let log = |name: &str, ns: [u32; 3]| {
        let path = directory.path().join(name);
        let lines: String = ns
            .iter()
            .map(|ns| format!("GB per sec = 7.5 latency(cycles) = 1.0, {ns}.5 ns, cycles/sec =2000000000 cpu 1.0 kopsrate = 1846\n"))
            .collect();
        fs::write(&path, format!("./src/dsa_perf_micros -n1 -q1\n{lines}")).unwrap();
        path.display().to_string()
    };
    let (old, new) = (log("a.log", [540, 541, 542]), log("b.log", [600, 601, 602]));
    let output = dray(&[
        "compare",
        &old,
        &new,
        "--fail-over",
        "5%",
        "--format",
        "csv",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n-n1 -q1,541.5,601.5,1.11"), "{text}");
    assert!(
        text.trim_end().ends_with(",3,3,slower,measured,measured"),
        "{text}"
    );

    let model = directory.path().join("model.json");
    let output = dray(&["micros", "-n1", "-q1", "--format", "json"]);
    fs::write(&model, output.stdout).unwrap();
    let output = dray(&["compare", &old, model.to_str().unwrap()]);
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(
        warnings.contains("the first result is measured, the second modelled"),
        "{warnings}"
    );
    let table = String::from_utf8(output.stdout).unwrap();
    let head = table
        .lines()
        .find(|line| line.starts_with(" case"))
        .unwrap();
    assert!(
        head.contains("old ns, measured") && head.contains("new ns, modelled"),
        "{table}"
    );
}

/// The same measurement, as a shell shows it on hardware and as it is modelled here.
#[test]
fn a_log_of_hardware_and_a_modelled_result_have_their_case_in_common() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("hardware.log");
    let command = "./src/dsa_perf_micros -n128 -s16k -j -c -f -i8000 -k5 -w0 -zF,F -o3";
    let lines = format!(
        "$ sudo {command}\n{command}\n-j option is deprecated (default behavior)\nblen  16384\n\
         GB per sec = 31.170166 cpu 6.270452 kopsrate = 1902\n"
    );
    fs::write(&log, lines).unwrap();
    let flags = "micros -n128 -s16384 -cf -i200 -k5 -w0 -zF,F --config 1e1w-d --format json";
    let modelled = dray(&flags.split(' ').collect::<Vec<_>>());
    let document: serde_json::Value = serde_json::from_slice(&modelled.stdout).unwrap();
    // Looks in vain are no work of the core, and one that finds a record is: hardware prints 6.3, submissions alone are 0.7.
    let cpu = document["cpu_percent"].as_f64().unwrap();
    assert!((2.0..9.0).contains(&cpu), "{cpu}");
    let model = directory.path().join("model.json");
    fs::write(&model, modelled.stdout).unwrap();
    let paths = [log, model].map(|path| path.display().to_string());
    let output = dray(&["compare", &paths[0], &paths[1], "--format", "csv"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.contains("-s16k")).unwrap();
    assert!(row.contains(",measured,modelled"), "{text}");
}

#[test]
fn files_without_a_case_in_common_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let nothing = file("nothing", "hello\n");
    let a = file("a", "GB per sec = 1.0 cpu 1.0 kopsrate = 5\n");
    let b = file(
        "b",
        "dsa_perf_micros -n5\nGB per sec = 1.0 cpu 1.0 kopsrate = 5\n",
    );
    for (args, part) in [
        ([a.as_str(), nothing.as_str()], "no measurement"),
        ([a.as_str(), b.as_str()], "no case in common"),
        ([a.as_str(), "/does/not/exist"], "cannot read"),
    ] {
        let output = dray(&["compare", args[0], args[1]]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(part), "{message}");
    }
    let output = dray(&["compare", &a, &a, "--fail-over", "much"]);
    assert_eq!(output.status.code(), Some(2));
}
