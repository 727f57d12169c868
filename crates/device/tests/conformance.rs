//! The rules of the specification that a descriptor can break or keep, one by one.
//!
//! Each rule has descriptors that break it and their nearest neighbours that do not.

#[allow(dead_code, reason = "every test binary uses its part of it")]
mod common;
#[path = "conformance/contexts.rs"]
mod contexts;
#[path = "conformance/faults.rs"]
mod faults;
#[path = "conformance/fields.rs"]
mod fields;
#[path = "conformance/flags.rs"]
mod flags;
#[path = "conformance/operands.rs"]
mod operands;
#[path = "conformance/results.rs"]
mod results;
#[path = "conformance/rule.rs"]
mod rule;

use std::collections::BTreeSet;

use rule::Rule;

fn rules() -> Vec<Rule> {
    [
        contexts::rules(),
        flags::rules(),
        fields::rules(),
        operands::rules(),
        faults::rules(),
        results::rules(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_rule_is_kept_by_its_neighbours_and_broken_by_its_breakers() {
    let rules = rules();
    let mut names = BTreeSet::new();
    for rule in &rules {
        assert!(names.insert(&rule.name), "{} twice", rule.name);
        rule.check();
    }
    let cases: usize = rules.iter().map(|r| r.broken.len() + r.legal.len()).sum();
    println!("rules covered: {} in {cases} cases", rules.len());
}

#[test]
fn every_status_of_the_executed_operations_is_in_the_table() {
    let seen: BTreeSet<u8> = rules()
        .iter()
        .flat_map(|rule| rule.broken.iter().chain(&rule.legal))
        .filter_map(|case| case.told.status())
        .map(|status| status.0)
        .collect();
    let expected = [
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x18, 0x1b,
        0x1c, 0x83, 0x84,
    ];
    assert_eq!(seen, BTreeSet::from(expected));
}
