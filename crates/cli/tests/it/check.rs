//! `dray figures --check`.

use crate::common::{directory, dray, output};

#[test]
fn check_prints_the_errors_of_every_table() {
    let dir = directory();
    let text = output(dir.path(), "figures --check");
    for part in [
        "sync-latency",
        "op=memmove, size=64",
        "measured with:",
        "median",
        "worst",
        "parameters",
        "fitted",
        "left out: median",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "it writes nothing"
    );
}

#[test]
fn json_and_csv_hold_the_same_points() {
    let dir = directory();
    let json: serde_json::Value =
        serde_json::from_str(&output(dir.path(), "figures --check --format json")).unwrap();
    let tables = json["tables"].as_array().unwrap();
    assert!(tables.len() >= 16 && json["parameters"].as_u64().unwrap() > 40);
    let points: usize = tables
        .iter()
        .map(|t| t["points"].as_array().unwrap().len())
        .sum();
    let csv = output(dir.path(), "figures --check --format csv");
    assert_eq!(csv.lines().count(), points + 1);
    let sync = tables.iter().find(|t| t["id"] == "sync-latency").unwrap();
    assert_eq!(sync["target"], 10.0);
    assert_eq!(sync["unit"], "us");
    let faults = tables.iter().find(|t| t["id"] == "fault-cost").unwrap();
    let fitted = faults["fitted_parameters"].as_u64().unwrap();
    assert!(fitted >= 4, "{fitted}");
    assert_eq!(sync["points"].as_array().unwrap().len(), 60);
}

#[test]
fn strict_fails_where_a_target_is_missed() {
    let dir = directory();
    // A second generation at the rate of the first would be a wrong model of the first.
    dray(dir.path(), "figures --check --platform dsa2-2s --strict")
        .assert()
        .code(1);
    dray(dir.path(), "figures --strict").assert().code(2);
    dray(dir.path(), "figures --leave-out").assert().code(2);
    dray(dir.path(), "figures --coverage").assert().code(2);
}
