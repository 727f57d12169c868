//! Every target with fixed seeds: what a fuzzer does for hours, for a second.

use dray_fuzz::{Inputs, TARGETS};

fn short(name: &str, inputs: usize) {
    let target = TARGETS.iter().find(|t| t.name == name).expect("a target");
    for (n, input) in Inputs::new(1, target.max_bytes).take(inputs).enumerate() {
        let run = std::panic::catch_unwind(|| (target.run)(&input));
        assert!(run.is_ok(), "{name}, seed 1: input {n} is a finding");
    }
}

#[test]
fn descriptors() {
    short("descriptors", 4000);
}

#[test]
fn registers() {
    short("registers", 600);
}

#[test]
fn profiles() {
    short("profiles", 2000);
}

#[test]
fn files() {
    short("files", 1000);
}

#[test]
fn operations() {
    short("operations", 1000);
}
