//! Doors to which the table is put, and its report.

use std::collections::BTreeMap;
use std::fmt;

use super::{Case, Mismatch, Observed, Rule, rules};

/// A way to a device: it sets one up as a case wants it, writes the descriptor to the portal of its
/// work queue 0, and reports what became visible.
pub trait RuleDoor {
    /// What the report calls it.
    fn name(&self) -> String;

    /// What the case needs and this door cannot give it, in the words of the report: the case is left out.
    fn lacks(&self, case: &Case) -> Option<&'static str> {
        let _ = case;
        None
    }

    /// How often a case is tried before it counts as failed. On a machine whose kernel moves pages, a fault may be
    /// no deviation.
    fn tries(&self) -> usize {
        1
    }

    /// Sets up [`Case::device`] with [`Case::memory`], submits [`Case::submission`], and waits until
    /// nothing is left to do.
    fn run(&mut self, case: &Case) -> Observed;
}

/// Puts the whole table to a door.
pub fn check(door: &mut dyn RuleDoor) -> Report {
    let checked = rules().into_iter().map(|rule| check_rule(rule, door));
    Report {
        rules: checked.collect(),
        door: door.name(),
    }
}

/// Puts one rule to a door.
pub fn check_rule(rule: Rule, door: &mut dyn RuleDoor) -> RuleReport {
    let mut report = RuleReport {
        name: rule.name.clone(),
        section: rule.section,
        held: 0,
        unsteady: 0,
        left_out: BTreeMap::new(),
        failures: Vec::new(),
    };
    for case in rule.cases() {
        if let Some(why) = door.lacks(case) {
            *report.left_out.entry(why).or_default() += 1;
            continue;
        }
        let mut outcome = case.judge(&door.run(case));
        for _ in 1..door.tries() {
            if outcome.is_ok() {
                break;
            }
            outcome = case.judge(&door.run(case));
            report.unsteady += usize::from(outcome.is_ok());
        }
        match outcome {
            Ok(()) => report.held += 1,
            Err(mismatch) => report.failures.push(Failure {
                case: format!("{case:?}"),
                mismatch,
            }),
        }
    }
    report
}

/// A case that did not come out as it must.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The descriptor, and where it stands.
    pub case: String,
    /// What was wrong.
    pub mismatch: Mismatch,
}

/// The result of one rule.
#[derive(Debug, Clone)]
pub struct RuleReport {
    /// What it says.
    pub name: String,
    /// Section or table of the specification.
    pub section: &'static str,
    /// Cases that came out as they must.
    pub held: usize,
    /// Of these, cases that did not at first.
    pub unsteady: usize,
    /// Cases that the door cannot be put to, by what it lacks.
    pub left_out: BTreeMap<&'static str, usize>,
    /// Cases that did not.
    pub failures: Vec<Failure>,
}

impl RuleReport {
    /// Cases that the door was put to.
    pub fn tried(&self) -> usize {
        self.held + self.failures.len()
    }

    /// Cases of the rule.
    pub fn cases(&self) -> usize {
        self.tried() + self.left_out.values().sum::<usize>()
    }
}

/// The result of the table. Its display names each rule of which something was left out or failed.
#[derive(Debug, Clone)]
pub struct Report {
    /// The door.
    pub door: String,
    /// All rules of the table, in its order.
    pub rules: Vec<RuleReport>,
}

impl Report {
    /// Cases that came out as they must.
    pub fn held(&self) -> usize {
        self.rules.iter().map(|rule| rule.held).sum()
    }

    /// Cases that did not.
    pub fn failed(&self) -> usize {
        self.rules.iter().map(|rule| rule.failures.len()).sum()
    }

    /// Cases that were left out: by what the door lacks, then by the name of the rule.
    pub fn left_out(&self) -> BTreeMap<&'static str, BTreeMap<&str, usize>> {
        let mut all: BTreeMap<_, BTreeMap<&str, usize>> = BTreeMap::new();
        for rule in &self.rules {
            for (why, cases) in &rule.left_out {
                *all.entry(*why).or_default().entry(&rule.name).or_default() += cases;
            }
        }
        all
    }

    /// Rules of which no case was tried.
    pub fn untried(&self) -> Vec<&str> {
        let untried = self.rules.iter().filter(|rule| rule.tried() == 0);
        untried.map(|rule| rule.name.as_str()).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried = self.rules.iter().filter(|rule| rule.tried() > 0).count();
        let all: usize = self.rules.iter().map(RuleReport::cases).sum();
        writeln!(
            f,
            "{}: {tried} of {} rules tried; of {all} cases, {} held, {} failed, {} left out",
            self.door,
            self.rules.len(),
            self.held(),
            self.failed(),
            all - self.held() - self.failed(),
        )?;
        for rule in &self.rules {
            for (why, cases) in &rule.left_out {
                let of = rule.cases();
                writeln!(f, "  left out, no {why}: {cases} of {of}: {}", rule.name)?;
            }
        }
        for rule in &self.rules {
            for Failure { case, mismatch } in &rule.failures {
                let (name, section) = (&rule.name, rule.section);
                writeln!(f, "  failed: {name} (spec {section}): {mismatch}: {case}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dray_device::WorkQueueMode;

    use super::*;
    use crate::rules::Reported;

    /// A device that does nothing, and a door that cannot have shared queues.
    struct Dead;

    impl RuleDoor for Dead {
        fn name(&self) -> String {
            "dead".to_owned()
        }

        fn lacks(&self, case: &Case) -> Option<&'static str> {
            let shared = case.device().work_queues[0].mode == WorkQueueMode::Shared;
            shared.then_some("shared queues")
        }

        fn run(&mut self, case: &Case) -> Observed {
            Observed {
                records: Vec::new(),
                errors: Vec::new(),
                memory: case.memory(),
            }
        }
    }

    #[test]
    fn failed_rules_are_counted_and_left_out_cases_named() {
        let report = check(&mut Dead);
        let rules = rules();
        let is_shared = |case: &&Case| case.device().work_queues[0].mode == WorkQueueMode::Shared;
        for (rule, report) in rules.iter().zip(&report.rules) {
            let shared = rule.cases().filter(is_shared).count();
            let reported = |case: &&Case| case.reported != Reported::Nothing;
            let failed = rule
                .cases()
                .filter(|case| !is_shared(case))
                .filter(reported);
            assert_eq!(report.left_out.values().sum::<usize>(), shared);
            // The expected report is missing. Other checks may fail for the missing writes.
            assert!(report.failures.len() >= failed.count(), "{}", rule.name);
            assert_eq!(report.cases(), rule.cases().count(), "{}", rule.name);
        }
        let cases: usize = rules.iter().map(|rule| rule.cases().count()).sum();
        let left_out: usize = report.left_out()["shared queues"].values().sum();
        assert_eq!(report.held() + report.failed() + left_out, cases);
        assert!(report.failed() > 2000 && left_out > 0);
        assert_eq!(report.untried(), Vec::<&str>::new());
        let text = report.to_string();
        for (name, cases) in &report.left_out()["shared queues"] {
            let start = format!("  left out, no shared queues: {cases} of ");
            let line = |line: &&str| line.starts_with(&start) && line.ends_with(name);
            assert!(text.lines().any(|l| line(&l)), "{name}\n{text}");
        }
        let failures = text.lines().filter(|line| line.starts_with("  failed: "));
        assert_eq!(failures.count(), report.failed());
    }

    /// A door to nothing.
    struct Closed;

    impl RuleDoor for Closed {
        fn name(&self) -> String {
            "closed".to_owned()
        }

        fn lacks(&self, _: &Case) -> Option<&'static str> {
            Some("a device")
        }

        fn run(&mut self, case: &Case) -> Observed {
            panic!("{case:?} was to be left out")
        }
    }

    #[test]
    fn a_rule_without_any_case_is_untried() {
        let report = check(&mut Closed);
        assert_eq!((report.held(), report.failed()), (0, 0));
        assert_eq!(report.untried().len(), report.rules.len());
        let first = report.to_string();
        let first = first.lines().next().unwrap_or_default();
        assert!(first.starts_with("closed: 0 of "), "{first}");
    }
}
