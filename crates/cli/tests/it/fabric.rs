//! `dray fabric predict`, `schedule`, `collective` and `compare-estimators`, and what each of the fabric's verbs refuses.

use std::fs;
use std::path::Path;

use crate::common::{directory, dray, output};
use serde_json::Value;

const FLOWS: &str = include_str!("../../../../examples/flows.toml");

pub(crate) fn error(dir: &Path, arguments: &str, code: i32) -> String {
    let assert = dray(dir, arguments).assert().code(code);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

pub(crate) fn json(dir: &Path, arguments: &str) -> Value {
    serde_json::from_str(&output(dir, &format!("{arguments} --format json"))).unwrap()
}

/// The documented counter-example: what ecr leaves at the host adapter, max-min gives to the flow from host to A.
#[test]
fn every_estimator_predicts_the_four_documented_flows() {
    let dir = directory();
    fs::write(dir.path().join("flows.toml"), FLOWS).unwrap();
    let line = "fabric predict --topology validation --flows flows.toml --estimator ingress,maxmin,ecr,des";
    let document = json(dir.path(), &format!("{line} --estimator ecr,maxmin,des"));
    let rate = |flow: usize, estimator: &str| {
        document["flows"][flow]["estimates"][estimator]["gib_s"]
            .as_f64()
            .unwrap()
    };
    assert!((rate(0, "ecr") - 5.775).abs() < 1e-9);
    assert!((rate(0, "maxmin") - 8.5).abs() < 1e-9);
    assert!((rate(0, "des") - 8.5).abs() < 0.17);
    let limit = &document["flows"][1]["estimates"]["maxmin"]["bottleneck"];
    assert_eq!(limit, "N>D");
    let table = output(dir.path(), &format!("{line} --svg loaded.svg"));
    assert!(
        table.contains("host>A") && table.contains("its demand"),
        "{table}"
    );
    let picture = fs::read_to_string(dir.path().join("loaded.svg")).unwrap();
    assert!(picture.contains("N&gt;D 8.74 GiB/s: 8.74"), "{picture}");
    let csv = output(dir.path(), &format!("{line} --format csv"));
    assert_eq!(csv.lines().count(), 1 + 4 * 4);
    fs::write(
        dir.path().join("flows.csv"),
        "from,to,demand_gib_s\nhost,A,8.5\nC, D ,7.19\n",
    )
    .unwrap();
    let csv = output(
        dir.path(),
        "fabric predict --topology validation --flows flows.csv --estimator ecr --format csv",
    );
    assert!(csv.contains("C>D,C,D,7.19,ecr,7.19,"), "{csv}");
}

/// The arbiter comes from the topology or from the option: `ingress` and the simulator use it.
#[test]
fn predictions_follow_the_arbiter() {
    let dir = directory();
    let flow = |from: &str, bytes: u32| {
        format!(
            "[[flow]]\nfrom = \"{from}\"\nto = \"D\"\ndemand_gib_s = 8\noutstanding_bytes = {bytes}\n"
        )
    };
    fs::write(
        dir.path().join("f.toml"),
        flow("A", 32768) + &flow("C", 8192),
    )
    .unwrap();
    let file = output(dir.path(), "fabric show validation --toml");
    fs::write(
        dir.path().join("oldest.toml"),
        format!("arbiter = \"oldest-first\"\n{file}"),
    )
    .unwrap();
    let rates = |topology: &str, options: &str| {
        let line = format!(
            "fabric predict --flows f.toml --estimator ingress,des --topology {topology} {options}"
        );
        let document = json(dir.path(), &line);
        ["ingress", "des"].map(|name| {
            [0, 1].map(|flow: usize| {
                document["flows"][flow]["estimates"][name]["gib_s"]
                    .as_f64()
                    .unwrap()
            })
        })
    };
    let [ingress, des] = rates("validation", "");
    // N's port to D serves both ingresses in turn.
    assert!((ingress[0] - 4.37).abs() < 0.01, "{ingress:?}");
    assert!((des[0] - 4.37).abs() < 0.1, "{des:?}");
    let oldest = rates("validation", "--arbiter oldest-first");
    for (rates, name) in oldest.into_iter().zip(["ingress", "des"]) {
        assert!(rates[0] > 1.2 * rates[1], "{name}: {rates:?}");
    }
    assert_eq!(oldest, rates("oldest.toml", ""));
    assert_eq!(
        [ingress, des],
        rates("oldest.toml", "--arbiter least-served")
    );
    fs::write(
        dir.path().join("wrong.toml"),
        format!("arbiter = \"oldest\"\n{file}"),
    )
    .unwrap();
    let message = error(
        dir.path(),
        "fabric predict --flows f.toml --topology wrong.toml",
        2,
    );
    assert!(
        message.contains("wrong.toml") && message.contains("oldest-first"),
        "{message}"
    );
}

#[test]
fn bad_flows_name_file_entry_and_rule() {
    let dir = directory();
    let path = dir.path().join("f.toml");
    let cases = [
        ("", "no flow"),
        (
            "[[flow]]\nfrom = \"host\"\nto = \"A\"\nrate = 1",
            "unknown field `rate`",
        ),
        ("[[flow]]\nfrom = \"host\"\nto = \"X\"", "flow 1: "),
        ("[[flow]]\nfrom = \"A\"\nto = \"A\"", "flow 1: "),
        (
            "[[flow]]\nname = \"big\"\nfrom = \"host\"\nto = \"A\"\ndemand_gib_s = -1",
            "flow 1 `big`: demand -1",
        ),
        (
            "[[flow]]\nfrom = \"host\"\nto = \"A\"\ndemand_gib_s = inf",
            "flow 1: demand_gib_s is infinite",
        ),
        (
            "[[flow]]\nfrom = \"host\"\nto = \"A\"\npath = [\"host.0>H\", \"S>M\"]",
            "a path is connected",
        ),
        (
            "[[flow]]\nfrom = \"host\"\nto = \"A\"\npath = [\"up\"]",
            "has no edge `up`",
        ),
        (
            "[[flow]]\nname = \"a\"\nfrom = \"host\"\nto = \"A\"\n[[flow]]\nname = \"a\"\nfrom = \"host\"\nto = \"B\"",
            "flow 2 `a`: the name is taken",
        ),
    ];
    for (text, rule) in cases {
        fs::write(&path, text).unwrap();
        let message = error(
            dir.path(),
            "fabric predict --topology validation --flows f.toml",
            2,
        );
        assert!(
            message.contains("f.toml: ") && message.contains(rule),
            "{rule}: {message}"
        );
        assert!(message.contains("hint: "), "{message}");
    }
    let message = error(
        dir.path(),
        "fabric predict --topology validation --flows none.toml",
        2,
    );
    assert!(message.contains("none.toml"), "{message}");
    let message = error(
        dir.path(),
        "fabric predict --topology valid --flows f.toml",
        2,
    );
    assert!(message.contains("valid"), "{message}");
}

/// The documented kinds of bad input of a topology.
#[test]
fn bad_topologies_name_file_entry_and_rule() {
    let dir = directory();
    let good = output(dir.path(), "fabric show validation --toml");
    let path = dir.path().join("t.toml");
    let two = "name = \"C\"";
    assert!(good.contains(two) && good.contains("11.55"));
    let first_link = good.find("[[link]]").unwrap();
    let cases = [
        (good.replace(two, "name = \"D\""), "`D`"),
        (good.replacen("11.55", "-11.55", 1), "-11.55"),
        (good.replacen("[[link]]", "[[link]]\nwidth = 3", 1), "width"),
        (good[..first_link].to_owned(), "t.toml"),
        (
            format!("{good}\n[[link]]\nends = [\"M\", \"N\"]\n"),
            "t.toml",
        ),
    ];
    for (text, rule) in cases {
        fs::write(&path, text).unwrap();
        let message = error(dir.path(), "fabric show t.toml", 2);
        assert!(
            message.contains("t.toml: ") && message.contains(rule),
            "{rule}: {message}"
        );
    }
    let experiment = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fabrics/experiments/arrival.toml"),
    )
    .unwrap();
    for (bytes, rule) in [("0", "0"), ("100", "64")] {
        let line = experiment
            .lines()
            .find(|line| line.trim().starts_with("bytes"))
            .unwrap();
        let text = experiment.replacen(line, &format!("bytes = {bytes}"), 1);
        fs::write(dir.path().join("e.toml"), text).unwrap();
        let message = error(dir.path(), "fabric bench --file e.toml --out r", 2);
        assert!(
            message.contains("e.toml") && message.contains(rule),
            "{message}"
        );
    }
}

#[test]
fn jobs_are_scheduled_by_every_policy_and_bad_jobs_refused() {
    let dir = directory();
    let line = "fabric collective all-to-all --bytes 256k --write-jobs jobs.toml";
    let table = output(dir.path(), line);
    assert!(table.contains("divide-by-n"), "{table}");
    let document = json(
        dir.path(),
        "fabric schedule --topology gpu8 --jobs jobs.toml --estimator maxmin",
    );
    let schedules = document["schedules"].as_array().unwrap();
    let policies: Vec<&str> = schedules
        .iter()
        .map(|s| s["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies, ["start-all", "first-come", "ordered", "guided"]);
    for schedule in schedules {
        let jobs = schedule["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 56);
        let foreseen = schedule["foreseen"]["makespan_us"].as_f64().unwrap();
        let replayed = schedule["replayed"]["makespan_us"].as_f64().unwrap();
        assert!(
            (foreseen / replayed - 1.0).abs() < 0.15,
            "{foreseen} {replayed}"
        );
        let jain = schedule["replayed"]["jain"].as_f64().unwrap();
        assert!(jain > 0.0 && jain <= 1.0);
        let promised = if schedule["policy"] == "guided" {
            56
        } else {
            0
        };
        assert_eq!(schedule["promises"], promised);
    }
    let csv = output(
        dir.path(),
        "fabric schedule --topology gpu8 --jobs jobs.toml --no-replay --format csv",
    );
    assert_eq!(csv.lines().count(), 1 + 12, "{csv}");
    let cases = [
        ("", "no job"),
        ("from = \"gpu0\"\nto = \"gpu1\"\nbytes = 0", "job 1"),
        ("from = \"gpu0\"\nto = \"gpu1\"\nbytes = 100", "64"),
        (
            "from = \"gpu0\"\nto = \"gpu1\"\nbytes = 64\narrival_us = -1",
            "arrival_us",
        ),
        (
            "from = \"gpu0\"\nto = \"gpu1\"\nbytes = 64\nafter = [\"x\"]",
            "no job is named `x`; known: gpu0>gpu1",
        ),
        (
            "name = \"a\"\nfrom = \"gpu0\"\nto = \"gpu1\"\nbytes = 64\nafter = [\"a\"]",
            "cycle",
        ),
        ("from = \"gpu0\"\nto = \"gpu9\"\nbytes = 64", "gpu9"),
    ];
    for (text, rule) in cases {
        let text = if text.is_empty() {
            String::new()
        } else {
            format!("[[job]]\n{text}\n")
        };
        fs::write(dir.path().join("bad.toml"), text).unwrap();
        let message = error(
            dir.path(),
            "fabric schedule --topology gpu8 --jobs bad.toml",
            2,
        );
        assert!(
            message.contains("bad.toml: ") && message.contains(rule),
            "{rule}: {message}"
        );
    }
    let message = error(
        dir.path(),
        "fabric schedule --topology gpu8 --jobs jobs.toml --share 2",
        2,
    );
    assert!(message.contains("--share"), "{message}");
}

/// The estimators take the credits and the latency of a path into account.
#[test]
fn estimates_of_an_all_reduce_agree_with_the_simulator() {
    let dir = directory();
    let document = json(dir.path(), "fabric collective all-reduce --bytes 1M");
    assert_eq!(document["jobs"], 8 * 14);
    for estimate in document["estimates"].as_array().unwrap() {
        let error = estimate["error"].as_f64().unwrap();
        assert!(error.abs() < 0.05, "{estimate}");
    }
    // As nccl-tests count: 8 members, each of 1 MiB.
    let number = |key: &str| document[key].as_f64().unwrap();
    let algorithm = f64::from(1 << 20) / number("des_us") * 1e-3;
    assert!((number("des_algbw_gb_s") / algorithm - 1.0).abs() < 1e-9);
    assert!((number("des_busbw_gb_s") / algorithm - 1.75).abs() < 1e-9);
    let message = error(dir.path(), "fabric collective all-reduce --bytes 100", 2);
    assert!(message.contains("--bytes"), "{message}");
    let message = error(dir.path(), "fabric collective all-reduce --kind disk", 2);
    assert!(message.contains("0 endpoints of kind `disk`"), "{message}");
}

#[test]
fn estimators_are_compared_on_the_same_instances() {
    let dir = directory();
    let line = "fabric compare-estimators --instances 6 --flows 3,5 --measure-us 20 --seed 7";
    let document = json(dir.path(), line);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 2);
    for row in rows {
        assert_eq!(row["instances"], 6);
        assert!(row["unsettled"].as_u64().unwrap() <= 6);
        let interval = &row["maxmin_minus_ingress"];
        assert!(interval["low"].as_f64().unwrap() <= interval["high"].as_f64().unwrap());
    }
    assert_eq!(
        document,
        json(dir.path(), line),
        "the same seed gives the same numbers"
    );
    let message = error(dir.path(), "fabric compare-estimators --instances 1", 2);
    assert!(message.contains("--instances"), "{message}");
    let message = error(dir.path(), "fabric compare-estimators --outstanding 1", 2);
    assert!(message.contains("--outstanding"), "{message}");
}

#[test]
fn machines_that_cannot_be_imported_are_refused() {
    let dir = directory();
    for (name, text) in [
        ("empty.xml", ""),
        ("cut.xml", "<topology><object type=\"Machine\">"),
        (
            "no-pci.xml",
            "<topology><object type=\"Machine\"/></topology>",
        ),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
        let message = error(dir.path(), &format!("fabric import {name}"), 2);
        assert!(message.contains(name), "{message}");
    }
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../pcie/tests/fixtures/hwloc/two-sockets.xml");
    fs::copy(fixture, dir.path().join("node.xml")).unwrap();
    output(dir.path(), "fabric import node.xml --out node.toml");
    let tree = output(dir.path(), "fabric show node.toml --svg node.svg");
    assert!(tree.contains("0000:03:00.0 [gpu]"), "{tree}");
    assert!(
        fs::read_to_string(dir.path().join("node.svg"))
            .unwrap()
            .contains("</svg>")
    );
}

/// A node sends more than 56 jobs: none ends before it is known, and the same is printed twice.
#[test]
fn many_jobs_of_one_node_end_after_they_are_known() {
    let dir = directory();
    let jobs: String = (0..66)
        .map(|index| {
            format!(
                "[[job]]\nfrom = \"host\"\nto = \"A\"\nbytes = 65536\narrival_us = {}\n",
                index * 100
            )
        })
        .collect();
    fs::write(dir.path().join("jobs.toml"), jobs).unwrap();
    let line = "fabric schedule --topology validation --jobs jobs.toml --policy start-all,guided";
    let document = json(dir.path(), &format!("{line} --estimator maxmin"));
    for schedule in document["schedules"].as_array().unwrap() {
        assert_eq!(schedule["promises_broken"], 0, "{schedule}");
        for job in schedule["jobs"].as_array().unwrap() {
            let time = |key: &str| job[key].as_f64().unwrap();
            assert!(time("replayed_us") > time("known_us"), "{job}");
        }
    }
    assert_eq!(output(dir.path(), line), output(dir.path(), line));
}

/// A flow without a demand is limited by its window, by the credits of its path or by an edge, and each is named; where
/// the estimators differ, that is the first line.
#[test]
fn a_limit_is_named_and_a_difference_is_said_first() {
    let dir = directory();
    let link = |end: &str, width: u32, more: &str| {
        format!(
            "[[endpoint]]\nname = \"{end}\"\n[[link]]\nends = [\"s\", \"{end}\"]\ngeneration = 5\nwidth = {width}\n{more}"
        )
    };
    let few = "credits = { posted_headers = 4, posted_data = 64 }\n";
    let text = [
        "name = \"box\"\n[[host]]\nname = \"h\"\n[[switch]]\nname = \"s\"\n".to_owned(),
        "[[link]]\nends = [\"h.0\", \"s\"]\ngeneration = 5\nwidth = 16\n".to_owned(),
        link("gpu0", 16, ""),
        link("gpu1", 16, ""),
        link("nvme", 4, ""),
        link("slow", 16, few),
    ];
    fs::write(dir.path().join("box.toml"), text.concat()).unwrap();
    let flows = |pairs: &[(&str, &str)]| -> String {
        pairs
            .iter()
            .map(|(from, to)| format!("[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\n"))
            .collect()
    };
    let pairs = [
        ("nvme", "gpu0"),
        ("h", "gpu0"),
        ("gpu0", "gpu1"),
        ("gpu1", "slow"),
    ];
    let few = "to = \"gpu1\"\noutstanding_bytes = 16384";
    let text = flows(&pairs).replace("to = \"gpu1\"", few);
    fs::write(dir.path().join("f.toml"), text).unwrap();
    let line = "fabric predict --topology box.toml --flows f.toml --estimator ingress,des";
    let document = json(dir.path(), line);
    for estimator in ["ingress", "des"] {
        let limits: Vec<_> = (0..4)
            .map(|flow| document["flows"][flow]["estimates"][estimator]["limit"].clone())
            .collect();
        assert_eq!(limits, ["edge", "edge", "window", "credits"], "{estimator}");
    }
    // A slow flow beside it leaves the rest of the edge to the host's.
    let rate = |estimator: &str| document["flows"][1]["estimates"][estimator]["gib_s"].clone();
    let (ingress, des) = (
        rate("ingress").as_f64().unwrap(),
        rate("des").as_f64().unwrap(),
    );
    assert!((des / ingress - 1.0).abs() < 0.02, "{ingress} {des}");
    assert!(document["difference"].is_null(), "{document}");
    let table = output(dir.path(), line);
    assert!(
        table.starts_with(" flow ") && table.contains("16384 B in flight"),
        "{table}"
    );
    let line = "fabric predict --topology box.toml --flows f.toml --estimator maxmin,ecr";
    let table = output(dir.path(), line);
    let first = table.lines().next().unwrap();
    let expected = "note: estimators differ by more than 10 % on 1 of 4 flows, most on h>gpu0: ecr";
    assert!(first.starts_with(expected), "{table}");
    assert!(json(dir.path(), line)["difference"].is_string());
}

/// The estimators that a fabric needs run unasked; the simulator does for few flows.
#[test]
fn many_flows_are_not_simulated_unless_that_is_asked_for() {
    let dir = directory();
    let flows = |count: usize| "from,to\n".to_owned() + &"gpu0,gpu1\n".repeat(count);
    fs::write(dir.path().join("few.csv"), flows(3)).unwrap();
    fs::write(dir.path().join("many.csv"), flows(3000)).unwrap();
    fs::write(dir.path().join("paper.csv"), "from,to\nhost,A\n").unwrap();
    let ran = |line: &str| -> Vec<String> {
        let document = json(dir.path(), &format!("fabric predict {line}"));
        let estimates = document["flows"][0]["estimates"].as_object().unwrap();
        estimates.keys().cloned().collect()
    };
    assert_eq!(ran("--topology gpu8 --flows few.csv"), ["des", "maxmin"]);
    assert_eq!(ran("--topology gpu8 --flows many.csv"), ["maxmin"]);
    // Its file has the buffers of the bench.
    let paper = ran("--topology validation --flows paper.csv");
    assert_eq!(paper, ["des", "ingress", "maxmin"]);
    let verified = ran("--topology gpu8 --flows few.csv --estimator ecr --verify");
    assert_eq!(verified, ["des", "ecr"]);
}
