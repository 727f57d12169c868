//! All checks, in order.

use serde::Serialize;

use crate::check::{Check, Context, Verdict, has_error};
use crate::checks::{CHECKS, confirmed};
use crate::finding::{Evidence, Finding, Severity, printable};
use crate::machine::Machine;
use crate::survey::{Survey, Virtual};

/// What became of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckResult {
    /// All is well; what was seen.
    Holds(String),
    /// What is wrong.
    Broken(Vec<Finding>),
    /// It does not apply here; why.
    DoesNotApply(String),
    /// It could not be judged; why.
    NotJudged(String),
}

/// A check and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The check's short name.
    pub check: &'static str,
    /// What it looks at.
    pub title: &'static str,
    /// What became of it.
    pub outcome: CheckResult,
}

/// What is wrong with a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// What the machine is, in a line.
    pub machine: String,
    /// Whether there is no DSA function at all.
    pub device_missing: bool,
    /// Every check, in the order of the chain.
    pub checks: Vec<Judged>,
}

/// Judges every link of the chain.
#[must_use]
pub fn diagnose(machine: &dyn Machine) -> Diagnosis {
    let survey = Survey::of(machine);
    let mut checks = Vec::with_capacity(CHECKS.len());
    let mut broken: Vec<&'static str> = Vec::new();
    // A check that was not judged, and the broken one that is to be fixed first.
    let confirmed = confirmed(&survey);
    let mut reported: Vec<&'static str> = Vec::new();
    let mut blocked: Vec<(&'static str, &'static str)> = Vec::new();
    for check in CHECKS {
        let root = |need: &&'static str| {
            let through = blocked.iter().find(|(check, _)| check == need);
            let itself = broken.iter().find(|check| *check == need);
            itself.copied().or(through.map(|&(_, root)| root))
        };
        let outcome = match check.needs.iter().find_map(root) {
            Some(root) => {
                blocked.push((check.id, root));
                CheckResult::NotJudged(format!("{root} comes first"))
            }
            None => match set_aside(check.id, survey.virtual_device) {
                Some(why) => CheckResult::DoesNotApply(why.to_owned()),
                None => judge(check, &survey, &reported),
            },
        };
        let outcome = match outcome {
            CheckResult::Broken(mut findings) => {
                // Before a warning is raised: what it warns of does not hinder what follows.
                if has_error(&findings) {
                    broken.push(check.id);
                }
                if findings
                    .iter()
                    .any(|finding| finding.severity != Severity::Note)
                {
                    reported.push(check.id);
                }
                raise(&mut findings, &confirmed);
                CheckResult::Broken(findings)
            }
            outcome => outcome,
        };
        checks.push(Judged {
            check: check.id,
            title: check.title,
            outcome,
        });
    }
    Diagnosis {
        machine: describe(&survey),
        device_missing: survey.virtual_device.is_none() && survey.pci.functions().is_empty(),
        checks,
    }
}

/// Links of the chain to a device of the machine's own, which a virtual one does without.
const OF_HARDWARE: [&str; 14] = [
    "cpu",
    "kernel",
    "options",
    "dmar",
    "command-line",
    "iommu",
    "module",
    "driver",
    "sva",
    "nodes",
    "raw-io",
    "container",
    "perfmon",
    "power",
];
/// Links that a directory in the place of `/sys` has not.
const OF_PROGRAMS: [&str; 3] = ["pci", "library", "hugepages"];

/// Why a link does not apply to a virtual device.
fn set_aside(check: &str, device: Option<Virtual>) -> Option<&'static str> {
    match device? {
        Virtual::Session if OF_HARDWARE.contains(&check) => {
            Some("the device is virtual: dray run carries its descriptors out")
        }
        Virtual::Tree if OF_HARDWARE.contains(&check) || OF_PROGRAMS.contains(&check) => {
            Some("DRAY_SYSFS_PATH names a directory, and no machine")
        }
        _ => None,
    }
}

/// Makes an error of a warning that came true: a program failed in that very way.
fn raise(findings: &mut [Finding], confirmed: &[(&'static str, Evidence)]) {
    let warning = |finding: &&mut Finding| finding.severity == Severity::Warning;
    let Some(finding) = findings.iter_mut().find(warning) else {
        return;
    };
    let said = confirmed
        .iter()
        .filter(|(check, _)| *check == finding.check);
    for (_, evidence) in said {
        finding.severity = Severity::Error;
        finding.evidence.push(evidence.clone());
    }
}

fn judge(check: &Check, survey: &Survey, reported: &[&'static str]) -> CheckResult {
    match (check.judge)(&Context { survey, reported }) {
        Verdict::Holds(seen) => CheckResult::Holds(printable(&seen)),
        Verdict::DoesNotApply(why) => CheckResult::DoesNotApply(printable(&why)),
        Verdict::Unknown(why) => CheckResult::NotJudged(printable(&why)),
        Verdict::Broken(findings) => {
            let entered = findings.into_iter().map(|finding| {
                let mut finding = finding.printable();
                finding.check = check.id;
                // What was seen need not be looked for.
                let seen = &finding.evidence;
                let is_seen = |text: &str| seen.iter().any(|seen| seen.text.contains(text));
                finding
                    .confirmed_by
                    .retain(|message| !is_seen(&message.text));
                finding
            });
            CheckResult::Broken(entered.collect())
        }
    }
}

fn describe(survey: &Survey) -> String {
    let mut parts = vec![survey.cpu.name()];
    if let Ok(release) = &survey.kernel.release {
        parts.push(format!("Linux {release}"));
    }
    if !survey.host.product.is_empty() {
        parts.push(survey.host.product.clone());
    }
    if survey.is_guest() {
        parts.push("a virtual machine".to_owned());
    }
    if survey.process.container.is_some() {
        parts.push("in a container".to_owned());
    }
    printable(&parts.join(", "))
}

impl Diagnosis {
    /// All findings, what to fix first first: errors in the order of the chain, then warnings,
    /// then notes.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of = |severity: Severity| {
            let findings = self
                .checks
                .iter()
                .filter_map(|judged| match &judged.outcome {
                    CheckResult::Broken(findings) => Some(findings),
                    _ => None,
                });
            findings.flatten().filter(move |f| f.severity == severity)
        };
        of(Severity::Error)
            .chain(of(Severity::Warning))
            .chain(of(Severity::Note))
    }

    /// The severity of the worst finding.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings().map(|finding| finding.severity).min()
    }
}
