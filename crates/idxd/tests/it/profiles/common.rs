//! The published configuration, with some of its text replaced.

use dray_idxd::driver::Personality;
use dray_idxd::{Finding, Profile};

pub(crate) const TEXT: &str = include_str!("../../data/1e1w-d-batch64.json");

/// The text with the first occurrence of each `from` replaced.
pub(crate) fn changed(changes: &[(&str, &str)]) -> String {
    let mut text = TEXT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the text");
        text = text.replacen(from, to, 1);
    }
    text
}

/// What validation says of the changed text.
pub(crate) fn findings(changes: &[(&str, &str)]) -> Vec<Finding> {
    let profile = Profile::parse(&changed(changes), "test").unwrap();
    let findings = profile.validate(Personality::NEWEST);
    assert_eq!(profile.devices().is_ok(), findings.is_empty());
    findings
}

/// Asserts that the changed text has one finding, and returns it.
pub(crate) fn only(changes: &[(&str, &str)]) -> Finding {
    let mut findings = findings(changes);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

/// Asserts that the changed text has none.
pub(crate) fn clean(changes: &[(&str, &str)]) {
    assert_eq!(findings(changes), []);
}
