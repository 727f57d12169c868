//! The table of rules, on a device that is run by hand.

use std::collections::BTreeSet;

use crate::common::runner::Runner;
use dray_conformance::rules::{Case, Observed, coverage, rules};

fn run(case: &Case) -> Observed {
    let mut runner = Runner::new(case.device(), case.memory());
    runner.submit(0, &case.submission());
    runner.run();
    Observed {
        records: runner.records,
        errors: runner.errors,
        memory: runner.memory,
    }
}

#[test]
fn every_rule_is_kept_by_its_neighbours_and_broken_by_its_breakers() {
    let rules = rules();
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for rule in &rules {
        let name = &rule.name;
        assert!(names.insert(name), "{name} twice");
        assert!(!rule.broken.is_empty() && !rule.legal.is_empty(), "{name}");
        for case in rule.cases() {
            if let Err(mismatch) = case.judge(&run(case)) {
                let place = rule.section;
                wrong.push(format!("{name} (spec {place}): {mismatch}: {case:?}"));
            }
        }
    }
    let cases: usize = rules.iter().map(|rule| rule.cases().count()).sum();
    println!("{} rules in {cases} cases", rules.len());
    assert!(
        wrong.is_empty(),
        "{} wrong, first {}",
        wrong.len(),
        wrong[..wrong.len().min(8)].join("\n")
    );
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
