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

/// What a text says, and the exit code.
fn explain(arguments: &[&str]) -> (String, i32) {
    let dir = directory();
    let output = dray(dir.path(), "doctor").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code().unwrap())
}

const SVA: &str = "[    7.9] idxd 0000:6a:01.0: Unable to turn on user SVA feature.\n";

#[test]
fn a_message_is_explained_without_judging_this_machine() {
    let message = "accfg_device_set_read_buffer_limit: dsa0: write failed: Operation not permitted";
    let (text, code) = explain(&["--message", message]);
    assert_eq!(code, 1);
    assert!(text.contains("sudo modprobe -r idxd"), "{text}");
    assert!(text.starts_with("1 error in --message"), "{text}");
    let (here, _) = explain(&["--here", "--message", message]);
    assert!(
        here.contains("sudo modprobe -r idxd") && here.contains("Linux "),
        "{here}"
    );
    let (unknown, code) = explain(&["--message", "no such message"]);
    assert_eq!(code, 0);
    assert!(
        unknown.contains("1 line about a DSA is not known"),
        "{unknown}"
    );
    assert_eq!(explain(&["--here"]).1, 2);
    assert_eq!(explain(&["--message", ""]).1, 2);
}

#[test]
fn texts_are_explained_from_files_and_standard_input() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("dmesg.txt"), SVA).unwrap();
    fs::write(
        path("well.txt"),
        "[ 7.9] idxd 0000:6a:01.0: Intel(R) Accelerator Device (v100)\n",
    )
    .unwrap();
    let (bad, code) = explain(&[&path("dmesg.txt"), &path("well.txt")]);
    assert_eq!(code, 1);
    assert!(bad.starts_with("1 error in "), "{bad}");
    assert!(bad.contains("dmesg.txt line 1"), "{bad}");
    let (well, code) = explain(&[&path("well.txt")]);
    assert_eq!(code, 0);
    assert!(well.starts_with("Nothing is wrong in "), "{well}");
    let (json, _) = explain(&["--format", "json", &path("dmesg.txt")]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["findings"][0]["severity"], "error");
    assert_eq!(json["findings"][0]["seen"][0]["line"], 1);
    assert_eq!(json["findings"][0]["checks"][0], "sva");
    let (markdown, _) = explain(&["--format", "markdown", &path("dmesg.txt")]);
    assert!(markdown.contains("#### 1. error"), "{markdown}");
    let piped = dray(dir.path(), "doctor -")
        .write_stdin(SVA)
        .output()
        .unwrap();
    assert_eq!(piped.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&piped.stdout).contains("standard input"));
}

#[test]
fn what_is_no_text_is_refused_with_the_way_to_read_it() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("packed"), b"\xfd7zXZ\0rest").unwrap();
    fs::write(path("dmesg.txt"), SVA).unwrap();
    let program = assert_cmd::cargo::cargo_bin("dray").display().to_string();
    for (file, reason, hint) in [
        (dir.path().display().to_string(), "is a directory", "/*"),
        (program, "is not text", "hint: "),
        (path("empty"), "is empty", "sudo dmesg"),
        (path("packed"), "compressed by xz", "xz -dc"),
        (path("none"), "No such file", "hint: "),
    ] {
        let (text, code) = explain(&[&file]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(reason) && text.contains(hint), "{text}");
    }
    let (text, code) = explain(&["--message", &path("dmesg.txt")]);
    assert_eq!(code, 2);
    assert!(
        text.contains("hint: to explain what is in it: dray doctor "),
        "{text}"
    );
}

#[test]
fn a_capture_is_diagnosed_when_it_is_named_as_a_file() {
    let name = fixture("intel-iommu-sm_on-missing").display().to_string();
    let (text, code) = explain(&[&name]);
    assert_eq!(
        (text.as_str(), code),
        (from("intel-iommu-sm_on-missing", "").0.as_str(), 1)
    );
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
