//! `dray fabric`: jobs in the simulator, and what is said of what a topology does not know.

use std::fs;

use crate::common::{directory, dray, output};
use crate::fabric::{error, json};

/// A job that is slower than its path stays so in the simulator, beside another and after a late arrival.
#[test]
fn a_replay_keeps_to_the_demand_of_each_job() {
    let dir = directory();
    let jobs = "[[job]]\nfrom = \"gpu0\"\nto = \"gpu1\"\nbytes = \"1M\"\ndemand_gib_s = 5\n\
        [[job]]\nfrom = \"gpu2\"\nto = \"gpu1\"\nbytes = \"4M\"\narrival_us = 1e12\n";
    fs::write(dir.path().join("jobs.toml"), jobs).unwrap();
    let line = "fabric schedule --topology gpu8 --jobs jobs.toml --estimator maxmin";
    let document = json(dir.path(), line);
    for row in document["schedules"].as_array().unwrap() {
        for (job, alone_us) in [(0, 195.3), (1, 73.4)] {
            let job = &row["jobs"][job];
            let us = |key: &str| job[key].as_f64().unwrap() - job["known_us"].as_f64().unwrap();
            assert!((us("foreseen_us") / alone_us - 1.0).abs() < 0.02, "{job}");
            assert!((us("replayed_us") / alone_us - 1.0).abs() < 0.02, "{job}");
        }
    }
    fs::write(
        dir.path().join("jobs.toml"),
        jobs.replace("= 5", "= 0.0001"),
    )
    .unwrap();
    let words = error(dir.path(), line, 2);
    assert!(words.contains("--no-replay"), "{words}");
    let table = output(dir.path(), &format!("{line} --no-replay"));
    assert!(table.contains("foreseen"), "{table}");
}

/// What is foreseen does not wait for a simulation of hours, and its size is said before it begins.
#[test]
fn what_is_foreseen_comes_before_a_large_replay() {
    use std::io::{BufRead, BufReader};
    let dir = directory();
    let jobs = "[[job]]\nfrom = \"gpu0\"\nto = \"gpu1\"\nbytes = \"1024G\"\n";
    fs::write(dir.path().join("jobs.toml"), jobs).unwrap();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("dray"))
        .current_dir(dir.path())
        .args([
            "fabric",
            "schedule",
            "--topology",
            "gpu8",
            "--jobs",
            "jobs.toml",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let rows: Vec<String> = stdout.lines().take(14).map(Result::unwrap).collect();
    let said = stderr.lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        rows[13].contains("guided") && rows[13].contains("foreseen"),
        "{rows:?}"
    );
    // Two edges, 2^32 packets; the paced one and the others.
    assert!(
        said.contains("2 simulations to run, of 17180 million packets"),
        "{said}"
    );
}

/// Writes between devices through a root complex: its limit holds for all estimators, and is missed where it is not given.
#[test]
fn every_estimator_knows_what_a_root_complex_forwards() {
    let dir = directory();
    fs::write(dir.path().join("flows.csv"), "from,to\nL,A\n").unwrap();
    let line = "fabric predict --topology testbed --flows flows.csv --estimator ecr,maxmin,ingress,des,divide-by-n";
    let document = json(dir.path(), line);
    let flow = &document["flows"][0];
    for (name, estimate) in flow["estimates"].as_object().unwrap() {
        let rate = estimate["gib_s"].as_f64().unwrap();
        assert!((rate - 4.3).abs() < 0.01, "{name} {rate}");
        assert_eq!(estimate["bottleneck"], "host1.0 peer writes", "{name}");
    }
    assert_eq!(document["notes"], serde_json::json!([]));
    output(dir.path(), &format!("{line} --svg loaded.svg"));
    let flows = "from,to,weight\ngpu0,gpu7,3\ngpu1,gpu2,1\n";
    fs::write(dir.path().join("flows.csv"), flows).unwrap();
    let table = output(
        dir.path(),
        "fabric predict --topology gpu8 --flows flows.csv",
    );
    assert!(
        table.starts_with("note: 1 of 2 flows go from device to device through server.0"),
        "{table}"
    );
    assert!(
        table.contains("`weight` counts for maxmin and ecr alone: des gives"),
        "{table}"
    );
    let csv = dray(
        dir.path(),
        "fabric collective all-to-all --bytes 1M --format csv",
    )
    .assert();
    let words = String::from_utf8_lossy(&csv.get_output().stderr).into_owned();
    assert!(words.starts_with("note: 32 of 56 jobs go"), "{words}");
    let window = "from,to,outstanding_bytes\ngpu0,gpu7,1\n";
    fs::write(dir.path().join("flows.csv"), window).unwrap();
    let words = error(
        dir.path(),
        "fabric predict --topology gpu8 --flows flows.csv",
        2,
    );
    assert!(
        words.contains("outstanding_bytes = 1 is less than a packet of 256 bytes"),
        "{words}"
    );
}
