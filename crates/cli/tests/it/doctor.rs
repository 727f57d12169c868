//! `dray doctor`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{directory, dray, output};

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doctor/fixtures");
    fixtures.join(name)
}

/// The output for a captured machine, and the exit code.
fn from(name: &str, arguments: &str) -> (String, i32) {
    let dir = directory();
    let from = format!("doctor --from {} {arguments}", fixture(name).display());
    let output = dray(dir.path(), &from).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, output.status.code().unwrap())
}

#[test]
fn exit_codes_follow_the_worst_finding() {
    for (name, code) in [
        ("healthy-6.8-bare-metal", 0),
        ("latency-varies-governor-and-c-states", 0),
        ("enqcmd-missing-on-kernel-5.15", 0),
        ("intel-iommu-sm_on-missing", 1),
        ("no-dsa-on-this-cpu", 3),
    ] {
        assert_eq!(from(name, "").1, code, "{name}");
    }
    assert!(from("healthy-guest", "").0.contains("Nothing is wrong."));
}

#[test]
fn every_format_has_the_same_findings() {
    let name = "intel-iommu-sm_on-missing";
    let (json, code) = from(name, "--format json");
    assert_eq!(code, 1);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let checks = json["checks"].as_array().unwrap();
    let line = checks
        .iter()
        .find(|c| c["check"] == "command-line")
        .unwrap();
    let finding = &line["outcome"]["broken"][0];
    assert_eq!(finding["severity"], "error");
    let what = finding["what"].as_str().unwrap();
    let reboot = finding["fix"]["commands"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(reboot, "sudo reboot");
    let (markdown, _) = from(name, "--format markdown");
    assert!(markdown.contains("```sh\nsudo sed -i"), "{markdown}");
    assert!(markdown.contains("https://github.com/intel/idxd-config/issues/5"));
    let (table, _) = from(name, "");
    assert!(table.contains(&format!("1. error: {what}")), "{table}");
}

#[test]
fn this_machine_is_examined_and_captured() {
    let dir = directory();
    let here = dray(dir.path(), "doctor").output().unwrap();
    assert!([0, 1, 3].contains(&here.status.code().unwrap()));
    let here = String::from_utf8(here.stdout).unwrap();
    assert!(here.contains("Linux "), "{here}");
    let listed = output(dir.path(), "doctor --capture here.tar.gz");
    assert!(listed.contains("/proc/cmdline"), "{listed}");
    assert!(!listed.contains("/etc/passwd"));
    let there = dray(dir.path(), "doctor --from here.tar.gz")
        .output()
        .unwrap();
    let there = String::from_utf8(there.stdout).unwrap();
    assert!(there.starts_with(here.lines().next().unwrap()), "{there}");
    // Never over a file.
    let again = dray(dir.path(), "doctor --capture here.tar.gz")
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("here.tar.gz exists"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_message_of_a_program_is_explained() {
    let dir = directory();
    let message = "accfg_device_set_read_buffer_limit: dsa0: write failed: Operation not permitted";
    let said = dray(dir.path(), "doctor --message")
        .arg(message)
        .output()
        .unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("sudo modprobe -r idxd"), "{text}");
    fs::write(dir.path().join("said.log"), message).unwrap();
    let file = dray(dir.path(), "doctor --messages said.log")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(file.stdout).unwrap(), text);
}

#[test]
fn checks_are_listed_and_explained() {
    let dir = directory();
    let list = output(dir.path(), "doctor --list");
    let ids: Vec<_> = list
        .lines()
        .skip(1)
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert_eq!(ids.first(), Some(&"pci"));
    for id in ids {
        let text = output(dir.path(), &format!("doctor --explain {id}"));
        assert!(text.contains("Documented in:"), "{id}");
    }
    let unknown = dray(dir.path(), "doctor --explain vtd").output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("known: pci,"));
}

#[test]
fn captures_that_cannot_be_read_are_refused_with_a_reason() {
    let dir = directory();
    fs::write(dir.path().join("half.tar.gz"), b"\x1f\x8b\x08\x00").unwrap();
    fs::write(dir.path().join("text.tar.gz"), "not an archive").unwrap();
    for (file, reason) in [
        ("half.tar.gz", "truncated"),
        ("text.tar.gz", "not a tar.gz"),
        ("none.tar.gz", "cannot read none.tar.gz"),
        (".", "no capture.json"),
    ] {
        let output = dray(dir.path(), &format!("doctor --from {file}"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{file}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(reason), "{text}");
        assert!(text.contains("hint: --from takes"), "{text}");
    }
}

/// In a session in which programs work, findings of the machine outside are no errors.
#[test]
fn a_virtual_device_is_reported_as_virtual_and_working() {
    let dir = directory();
    let program = assert_cmd::cargo::cargo_bin("dray");
    let session = std::process::Command::new(&program)
        .args(["run", "--profile", "4e1w-s", "--"])
        .arg(&program)
        .arg("doctor")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&session.stdout);
    assert!(session.status.success(), "{said}");
    assert!(said.contains("the device is virtual"), "{said}");
    output(dir.path(), "config new-tree sys");
    let mut tree = dray(dir.path(), "doctor");
    tree.env("DRAY_SYSFS_PATH", dir.path().join("sys"));
    let tree = tree.output().unwrap();
    let said = String::from_utf8_lossy(&tree.stdout);
    assert!(said.contains("DRAY_SYSFS_PATH names a directory"), "{said}");
    // Nothing is configured there yet, which is the finding.
    assert!(!said.contains("this processor has no DSA"), "{said}");
}
