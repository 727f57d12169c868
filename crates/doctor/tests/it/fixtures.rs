//! Captured machines, made by hand from documented symptoms, and what is found on each.

use std::fs;
use std::path::{Path, PathBuf};

use dray_doctor::{Captured, Diagnosis, Machine, Recorder, Severity, diagnose, markdown, table};

fn fixtures() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let entries = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    all.sort();
    all
}

fn open(name: &str) -> Captured {
    let all = fixtures();
    let (_, path) = all.iter().find(|(known, _)| known == name).unwrap();
    Captured::open(path).unwrap()
}

/// The checks that found an error or a warning, in order.
fn found(diagnosis: &Diagnosis) -> Vec<(&str, Severity)> {
    let findings = diagnosis.findings();
    findings
        .map(|finding| (finding.check, finding.severity))
        .collect()
}

#[test]
fn every_captured_machine_has_its_findings() {
    let all = fixtures();
    assert!(all.len() >= 30, "{}", all.len());
    for (name, path) in all {
        let diagnosis = diagnose(&Captured::open(&path).unwrap());
        insta::assert_snapshot!(name.clone(), table(&diagnosis, 96));
        let healthy = diagnosis.findings().next().is_none();
        assert_eq!(healthy, name.starts_with("healthy-"), "{name}");
    }
}

#[test]
fn every_captured_machine_has_a_note() {
    for (name, path) in fixtures() {
        let note = fs::read_to_string(path.join("note.md")).unwrap();
        assert!(note.starts_with("# "), "{name}");
        assert!(note.lines().count() >= 3, "{name}");
    }
}

#[test]
fn findings_are_listed_in_the_order_to_fix() {
    let two = diagnose(&open("two-faults-sm_on-missing-and-idxd-blacklisted"));
    let expected = [
        ("command-line", Severity::Error),
        ("module", Severity::Error),
    ];
    assert_eq!(found(&two), expected);
    let two = diagnose(&open("two-faults-queue-size-0-and-no-library"));
    let found = found(&two);
    assert_eq!(found.first(), Some(&("configuration", Severity::Error)));
    assert_eq!(found.last(), Some(&("library", Severity::Warning)));
}

/// An archive of the files read during a diagnosis gives the same diagnosis.
#[test]
fn the_diagnosis_of_an_archive_equals_that_of_its_machine() {
    for (name, path) in fixtures() {
        let machine = Captured::open(&path).unwrap();
        let recorder = Recorder::new(&machine);
        let findings = diagnose(&recorder);
        let archive = recorder.finish("a test").pack().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("machine.tar.gz");
        fs::write(&file, &archive).unwrap();
        let unpacked = Captured::open(&file).unwrap();
        assert_eq!(diagnose(&unpacked), findings, "{name}");
        assert_eq!(unpacked.pack().unwrap(), archive, "{name}");
    }
}

#[test]
fn files_outside_a_capture_are_not_reported_as_missing() {
    let nothing = Captured::default();
    let recorder = Recorder::new(&nothing);
    let _ = recorder.read("/proc/cmdline");
    let captured = recorder.finish("a test");
    let missing = captured.read("/proc/cmdline").unwrap_err();
    assert_eq!(missing.to_string(), "does not exist");
    let unknown = captured.read("/proc/cpuinfo").unwrap_err();
    assert_eq!(unknown.to_string(), "is not part of the capture");
}

#[test]
fn the_markdown_report_matches_its_snapshot() {
    let name = "unable-to-turn-on-user-sva-feature-pasid-off-in-firmware";
    insta::assert_snapshot!("markdown", markdown(&diagnose(&open(name))));
}

#[test]
fn a_proven_cause_hides_guesses_and_is_ranked_first() {
    let name = "unable-to-turn-on-user-sva-feature-pasid-off-in-firmware";
    let diagnosis = diagnose(&open(name));
    let causes = &diagnosis.findings().next().unwrap().causes;
    assert_eq!(causes.len(), 1);
    assert!(
        causes[0].what.contains("PASID (bit 40"),
        "{}",
        causes[0].what
    );
    let diagnosis = diagnose(&open("iommu-feature-pasid-inconsistent"));
    let causes = &diagnosis.findings().next().unwrap().causes;
    assert!(causes.is_sorted_by_key(|cause| cause.likelihood));
}
