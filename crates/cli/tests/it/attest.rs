//! `dray attest`, and its results side by side.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{directory, dray};
use crate::schemas::misfits;
use crate::session::program;

fn attested(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    serde_json::from_str(&text).unwrap()
}

fn count(document: &Value, field: &str) -> u64 {
    let rows = document["rows"].as_array().unwrap();
    rows.iter().map(|row| row[field].as_u64().unwrap()).sum()
}

/// Attests a queue in a session of `dray run` with these options; the exit code and what was said.
fn in_session(directory: &Path, options: &str, minutes: &str) -> (Option<i32>, String) {
    let ended = Command::new(program())
        .current_dir(directory)
        .arg("run")
        .args(options.split(' '))
        .arg("--")
        .arg(program())
        .args(["attest", "--minutes", minutes, "--out", "run.json"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code(), errors)
}

#[test]
fn nothing_deviates_on_the_virtual_device_and_in_a_session() {
    let directory = directory();
    let path = directory.path();
    dray(path, "attest --device virtual --out virtual.json")
        .assert()
        .success();
    let here = attested(&path.join("virtual.json"));
    assert_eq!(
        (&here["schema"], &here["document"]),
        (&1.into(), &"attest".into())
    );
    assert!(count(&here, "held") > 2000 && count(&here, "failed") == 0);
    // ENQCMD is refused by the processor for descriptors with a PASID.
    let (code, errors) = in_session(path, "--profile 1e1w-s", "1");
    assert_eq!(code, Some(0), "{errors}");
    let session = attested(&path.join("run.json"));
    assert_eq!(session["queue"]["submitted_by"], "enqcmd");
    assert!(count(&session, "held") > 1500 && count(&session, "failed") == 0);
    let points = session["points"]["measured"].as_array().unwrap();
    assert!(!points.is_empty() && session["calibration"].is_object());
    dray(path, "compare virtual.json").assert().success();
    let line = "compare virtual.json run.json --format json";
    let compared = dray(path, line).assert().success();
    fs::write(path.join("compared.json"), &compared.get_output().stdout).unwrap();
    let documents = [
        ("attest", path.join("virtual.json")),
        ("attest", path.join("run.json")),
        ("compare-attest", path.join("compared.json")),
    ];
    if let Some(wrong) = misfits(&documents) {
        assert!(wrong.is_empty(), "{wrong}");
    }
    for word in [gethostname(), std::env::var("USER").unwrap_or_default()] {
        let text = session.to_string();
        assert!(word.len() < 3 || !text.contains(&word), "{word} is in it");
    }
}

/// A device of a session that is wrong on purpose, and one of a batch in it.
#[test]
fn a_deviation_of_a_session_is_named_and_nothing_else_is() {
    let directory = directory();
    let path = directory.path();
    for (deviation, named) in [
        ("dualcast-alignment", "dualcast: destinations agree"),
        ("no-fence", "fence behind a size of 0"),
    ] {
        let options = format!("--profile 4e1w-s --deviation {deviation}");
        let (code, errors) = in_session(path, &options, "0");
        assert_eq!(code, Some(1), "{errors}");
        let result = attested(&path.join("run.json"));
        assert!(result["points"].is_null(), "{errors}");
        let said: Vec<&str> = errors
            .lines()
            .filter(|l| l.contains("deviates: "))
            .collect();
        assert!(said.iter().any(|line| line.contains(named)), "{errors}");
        let word = named.split([' ', ':']).next().unwrap();
        let is_about = |line: &&str| line.contains(word) || line.contains("failure");
        assert!(said.iter().all(is_about), "{errors}");
    }
    let (code, errors) = in_session(path, "--deviation fence", "0");
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("no-fence"), "{errors}");
}

fn gethostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// A result in which a rule and a case of order were made to deviate.
#[test]
fn what_deviates_is_named_with_its_section() {
    let directory = directory();
    let path = directory.path();
    dray(path, "attest --device virtual --out good.json")
        .assert()
        .success();
    let mut document = attested(&path.join("good.json"));
    let row = &mut document["rows"][3];
    (row["failed"], row["failures"]) = (2.into(), serde_json::json!(["reported 0x13"]));
    let (rule, section) = (row["rule"].to_string(), row["section"].to_string());
    let case = &mut document["litmus"][0];
    case["seen"] = serde_json::json!({"old": 3, "new": 197});
    fs::write(path.join("bad.json"), document.to_string()).unwrap();
    let ended = dray(path, "compare bad.json good.json").assert().code(1);
    let text = String::from_utf8_lossy(&ended.get_output().stdout).into_owned();
    let (rule, section) = (rule.trim_matches('"'), section.trim_matches('"'));
    assert!(
        text.contains(&format!("deviates: {rule} (spec {section})")),
        "{text}"
    );
    assert!(
        text.contains("\"new\" 197 times, \"old\" 3 times"),
        "{text}"
    );
    assert!(text.contains("(spec 3.9)"), "{text}");
}

#[test]
fn what_is_no_result_is_refused_with_the_reason() {
    let directory = directory();
    let path = directory.path();
    let newer = r#"{"schema": 99, "document": "attest"}"#;
    for (text, expected) in [
        ("{}", "no result of dray attest"),
        ("[[[[[[", "no result of dray attest"),
        (r#"{"document": "attest"}"#, "missing field"),
        (newer, "missing field"),
    ] {
        fs::write(path.join("broken.json"), text).unwrap();
        let ended = dray(path, "compare broken.json").assert().code(2);
        let errors = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
        assert!(errors.contains(expected), "{text}: {errors}");
    }
    dray(path, "attest --device hw:nothing").assert().code(2);
    dray(path, "attest --device virtual --minutes 61")
        .assert()
        .code(2);
}

#[test]
fn a_dry_run_says_what_it_would_do_and_writes_nothing() {
    let directory = directory();
    let ended = dray(directory.path(), "attest --device virtual --dry-run")
        .assert()
        .success();
    let text = String::from_utf8_lossy(&ended.get_output().stdout).into_owned();
    assert!(
        text.contains("rules of the specification") && text.contains("10 minutes"),
        "{text}"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
