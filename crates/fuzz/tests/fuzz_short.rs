//! Every target with fixed seeds, for a second each.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dray_fuzz::{Inputs, TARGETS, Tally, descriptors};
use dray_spec::{Opcode, Status};

fn short(name: &str, inputs: usize) {
    let target = TARGETS.iter().find(|t| t.name == name).expect("a target");
    for (n, input) in Inputs::new(1, target.max_bytes).take(inputs).enumerate() {
        let run = catch_unwind(|| (target.run)(&input));
        assert!(run.is_ok(), "{name}, seed 1: input {n} is a finding");
    }
}

/// What a device without registers has no way to end with, and why.
const UNREACHABLE: &[(Status, &str)] = &[
    (Status::NONE, "no record says so"),
    (
        Status::INTERRUPT_HANDLE,
        "it has no interrupt tables: every handle is good",
    ),
    (Status::TRANSLATION_FAIL, "no memory of ours has errors"),
    (Status::DRAIN_EVENT_LOG, "it has no event log"),
    (Status::BATCH_EVENT_LOG, "it has no event log"),
    (Status::INTER_DOMAIN_ABORTED, "no command aborts"),
    (
        Status::PCI_CONFIGURATION,
        "PCI configuration is what it was enabled with",
    ),
    (Status::COMMAND_ACTIVE, "it takes no commands"),
    (Status::EVENT_LOG_APPEND, "it has no event log"),
];

#[test]
fn descriptors_reach_every_operation_and_every_status() {
    let mut tally = Tally::default();
    for (n, input) in Inputs::new(1, 2048).take(4000).enumerate() {
        let run = catch_unwind(AssertUnwindSafe(|| descriptors(&input, &mut tally)));
        assert!(run.is_ok(), "seed 1: input {n} is a finding");
    }
    let operations = Opcode::ALL.iter().map(|o| (o.name(), tally.successes(*o)));
    let operations: Vec<_> = operations.collect();
    println!("{operations:?}");
    let statuses = Status::ALL.iter().map(|s| (s.name(), tally.ends(*s)));
    println!("{:?}", statuses.collect::<Vec<_>>());
    for (name, successes) in operations {
        assert!(successes > 0, "{name} was never carried out");
    }
    for status in Status::ALL {
        let why = UNREACHABLE.iter().find(|(other, _)| other == status);
        let ends = tally.ends(*status);
        assert_eq!(
            ends == 0,
            why.is_some(),
            "{ends} ends with {status}: {why:?}"
        );
    }
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
fn recordings() {
    short("recordings", 4000);
}

#[test]
fn fabrics() {
    short("fabrics", 600);
}

#[test]
fn flows() {
    short("flows", 600);
}

#[test]
fn messages() {
    short("messages", 300);
}

#[test]
fn operations() {
    short("operations", 1000);
}

#[test]
fn vhost_messages() {
    short("vhost_messages", 300);
}

#[test]
fn vhost_split() {
    short("vhost_split", 400);
}

#[test]
fn vhost_packed() {
    short("vhost_packed", 400);
}
