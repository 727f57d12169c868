//! One link of the chain.

use crate::finding::{Finding, Severity};
use crate::survey::Survey;

/// One link of the chain from the device to the program.
pub struct Check {
    /// Short name, as typed.
    pub id: &'static str,
    /// What is looked at.
    pub title: &'static str,
    /// Links that must hold before this one can be judged.
    pub needs: &'static [&'static str],
    /// Why the link matters, and how it is judged.
    pub why: &'static str,
    /// Where the symptoms and rules are documented.
    pub sources: &'static [&'static str],
    pub(crate) judge: fn(&Context<'_>) -> Verdict,
}

/// What a check can look at.
pub(crate) struct Context<'a> {
    pub(crate) survey: &'a Survey,
    /// Checks before this one that found an error or a warning.
    pub(crate) reported: &'a [&'static str],
}

/// What a check says.
pub(crate) enum Verdict {
    /// All is well; what was seen.
    Holds(String),
    /// What is wrong.
    Broken(Vec<Finding>),
    /// It does not apply here; why.
    DoesNotApply(String),
    /// The evidence is missing; why.
    Unknown(String),
}

impl Verdict {
    /// The findings, or what was seen if there is none.
    pub(crate) fn of(mut findings: Vec<Finding>, seen: impl FnOnce() -> String) -> Self {
        if findings.is_empty() {
            return Self::Holds(seen());
        }
        findings.sort_by_key(|finding| finding.severity);
        Self::Broken(findings)
    }
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Self {
        Self::Broken(vec![finding])
    }
}

/// Whether there is an error among findings.
pub(crate) fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|f| f.severity == Severity::Error)
}
