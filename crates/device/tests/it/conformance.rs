//! The table of rules, on a device that is run by hand.

use std::collections::BTreeSet;

use dray_conformance::Runner;
use dray_conformance::rules::{Case, Observed, RuleDoor, check, coverage, rules};

struct ByHand;

impl RuleDoor for ByHand {
    fn name(&self) -> String {
        "by hand".to_owned()
    }

    fn run(&mut self, case: &Case) -> Observed {
        let mut runner = Runner::new(case.device(), case.memory());
        runner.submit(0, &case.submission());
        runner.run();
        Observed {
            records: runner.records,
            errors: runner.errors,
            memory: runner.memory,
        }
    }
}

#[test]
fn the_table_of_rules_by_hand() {
    let report = check(&mut ByHand);
    println!("{report}");
    assert_eq!(report.failed(), 0, "{report}");
    assert!(report.left_out().is_empty());
}

#[test]
fn every_rule_has_a_name_of_its_own_and_cases_of_both_kinds() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        let name = rule.name;
        assert!(!rule.broken.is_empty() && !rule.legal.is_empty(), "{name}");
        assert!(names.insert(name.clone()), "{name} twice");
    }
}

#[test]
fn the_table_covers_what_the_specification_asks_of_a_descriptor() {
    let coverage = coverage(&rules());
    println!("{coverage}");
    assert_eq!(coverage.missing, Vec::<&str>::new());
    assert_eq!(coverage.strangers, Vec::<String>::new());
}

#[test]
fn every_status_of_a_record_is_in_the_table() {
    let seen: BTreeSet<u8> = rules()
        .iter()
        .flat_map(|rule| rule.cases().cloned().collect::<Vec<_>>())
        .filter_map(|case| case.reported.status())
        .map(|status| status.code())
        .collect();
    let mut expected: BTreeSet<u8> = (0x01..=0x09).collect();
    expected.extend(0x10..=0x18);
    expected.extend(0x1a..=0x1f);
    expected.extend(0x28..=0x2d);
    assert_eq!(seen, expected);
}
