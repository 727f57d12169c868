//! Devices that do otherwise than the specification says, one deviation each: each is found by what is about it, and
//! a device as it is deviates in nothing.

use std::sync::{Mutex, PoisonError};

use dray_attest::{Attest, Deviation, Plan, attest_virtual};
use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};

fn config(capabilities: Capabilities, mode: WorkQueueMode, engines: u16) -> DeviceConfig {
    let queue = WorkQueueConfig::new(0, mode, 32);
    DeviceConfig {
        capabilities,
        ..DeviceConfig::sapphire_rapids(engines, vec![queue])
    }
}

/// The table's memory is at its addresses once in a process.
static GROUND: Mutex<()> = Mutex::new(());

fn attested(config: DeviceConfig, deviation: Option<Deviation>) -> Attest {
    let _one = GROUND.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = Plan {
        litmus_times: 10,
        ..Plan::default()
    };
    let attested = attest_virtual(config, deviation, plan, &|_| true);
    attested.expect("a device that completes what it takes")
}

/// Names of rows and cases that deviate.
fn named(attest: &Attest) -> Vec<String> {
    let rows = attest.failed_rows().map(|row| row.rule.clone());
    let cases = attest.forbidden().map(|case| case.case.clone());
    rows.chain(cases).collect()
}

#[test]
fn a_device_as_it_is_deviates_in_nothing() {
    use WorkQueueMode::{Dedicated, Shared};
    for (capabilities, mode, engines) in [
        (Capabilities::sapphire_rapids(), Dedicated, 1),
        (Capabilities::sapphire_rapids(), Shared, 2),
        (Capabilities::version_2(), Dedicated, 4),
    ] {
        let attest = attested(config(capabilities, mode, engines), None);
        assert_eq!(named(&attest), Vec::<String>::new(), "{attest:?}");
        let held: usize = attest.rows.iter().map(|row| row.held).sum();
        assert!(held > 1500, "{held} cases");
        let untried = attest.litmus.iter().filter(|case| case.needs.is_some());
        assert_eq!(untried.count(), 0);
    }
}

/// What a queue is not configured for is left out by name, and is no deviation.
#[test]
fn a_queue_with_few_operations_deviates_in_nothing() {
    let mut config = config(Capabilities::version_2(), WorkQueueMode::Dedicated, 1);
    let queue = &mut config.work_queues[0];
    // NOOP, copy and fill; transfers of 16 KiB; no translation.
    queue.op_config = [1 << 0 | 1 << 3 | 1 << 4, 0, 0, 0];
    queue.max_transfer_size = 16 << 10;
    queue.ats_disable = true;
    let attest = attested(config, None);
    assert_eq!(named(&attest), Vec::<String>::new(), "{attest:?}");
    let needs = |what: &str| {
        let mut needs = attest
            .litmus
            .iter()
            .filter_map(|case| case.needs.as_deref());
        needs.any(|needs| needs == what)
    };
    for what in [
        "transfers of 262144 bytes",
        "batches of 8",
        "the operation drain",
        "drains",
    ] {
        assert!(needs(what), "{what}: {:?}", attest.litmus);
    }
}

/// What must be among the names that are given for a deviation; and what the names have in common, of which there
/// must be no other.
fn about(deviation: Deviation) -> (&'static str, &'static [&'static str]) {
    match deviation {
        Deviation::OverlapStatus => (
            "copy with CRC: buffers do not overlap",
            &["overlap", "buffers"],
        ),
        Deviation::OpcodeStatus => (
            "OPCAP has the operation",
            &[
                "OPCAP",
                "architecture",
                "OPCFG",
                "in a batch",
                "in the batch",
                "translation fetch",
            ],
        ),
        Deviation::ReservedBytes => ("reserved bytes of memmove", &["reserved bytes of memmove"]),
        Deviation::CompareResult => ("compare: predicate", &["compar", "difference", "predicate"]),
        Deviation::CompareStatus => ("compare: predicate", &["compare", "predicate"]),
        Deviation::FaultBytes => (
            "memmove reads up to a hole",
            &["memmove", "overlapping move"],
        ),
        Deviation::FaultAddress | Deviation::FaultAccess => ("fill", FAULTS),
        Deviation::NoFence => ("fence behind a size of 0", &["fence", "failure"]),
        Deviation::RecordFirst => (
            "data before record: copy of 4096",
            &["data before record", "overlap: ", "no record was requested"],
        ),
        Deviation::LastByte => (
            "data before record: copy of 64",
            &[
                "delta",
                "part of an entry",
                "dif_",
                "parts of fields",
                "data before record",
                "fence",
                "drain behind",
                "overlap: ",
                "no record was requested",
            ],
        ),
        Deviation::StatusFirst => (
            "whole record: CRC of 64",
            &["record", "counted", "CRC behind"],
        ),
        Deviation::CrcSeed => ("crc: a seed or its address", &["crc", "CRC"]),
        Deviation::CrcInverted => ("whole record: CRC of 4096", &["crc", "CRC", "seed"]),
        Deviation::BatchCount => (
            "batch: members that ended are counted",
            &["batch", "member", "list", "fence", "failure"],
        ),
        Deviation::BatchStatus => ("all members succeed", &["member", "fence", "batch"]),
        Deviation::DeltaSize => ("a delta describes at most 512 KiB", &["delta"]),
        Deviation::DeltaOverflow => (
            "a full delta record ends with a whole entry",
            &["delta", "record to create"],
        ),
        // Which of them sees it is a matter of time. A copy without a record is awaited by a drain.
        Deviation::NoDrain => ("drain behind", &["drain", "no record was requested"]),
        Deviation::DualcastAlignment => ("dualcast: destinations agree", &["dualcast"]),
    }
}

/// Rules in which an operand has a page fault.
const FAULTS: &[&str] = &[
    "hole",
    "ends",
    "source",
    "destination",
    "fill",
    "compare pattern",
    "cache flush",
    "CRC, seed",
    "may not write",
    "an overlapping move goes from",
    "memmove to right behind",
    "more than a fault",
    "no more room",
];

#[test]
fn twenty_deviations_are_named_each_by_what_is_about_it() {
    assert_eq!(Deviation::ALL.len(), 20);
    let mut wrong = Vec::new();
    for &deviation in Deviation::ALL {
        let (expected, common) = about(deviation);
        let mut seen = Vec::new();
        // A thread that is off its processor at the wrong time sees no wrong order: the next one may.
        for _ in 0..5 {
            let config = config(Capabilities::sapphire_rapids(), WorkQueueMode::Dedicated, 4);
            seen = named(&attested(config, Some(deviation)));
            println!("{deviation}: {seen:?}");
            let is_stranger = |name: &&String| !common.iter().any(|word| name.contains(word));
            let strangers: Vec<&String> = seen.iter().filter(is_stranger).collect();
            if !strangers.is_empty() {
                wrong.push(format!("{deviation}: {strangers:?}"));
            }
            if seen.iter().any(|name| name.contains(expected)) {
                break;
            }
        }
        if !seen.iter().any(|name| name.contains(expected)) {
            wrong.push(format!("{deviation}: {expected:?} is not in {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
