//! Devices that do otherwise than the specification says, one deviation each: each is found, and a device as it is
//! deviates in nothing.

use std::sync::Arc;

use dray_attest::{AsItIs, Attest, Deviation, Plan, attest_virtual};
use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};

fn config(capabilities: Capabilities, mode: WorkQueueMode, engines: u16) -> DeviceConfig {
    let queue = WorkQueueConfig::new(0, mode, 32);
    DeviceConfig {
        capabilities,
        ..DeviceConfig::sapphire_rapids(engines, vec![queue])
    }
}

fn attested(config: DeviceConfig, deviation: impl Deviation) -> Attest {
    let plan = Plan {
        litmus_times: 20,
        ..Plan::default()
    };
    let attested = attest_virtual(config, Arc::new(deviation), plan, &|_| true);
    attested.expect("a device that completes what it takes")
}

/// What deviates, as it is printed.
fn named(attest: &Attest) -> Vec<String> {
    let rows = attest.failed_rows();
    let rows = rows.map(|row| format!("{}: {:?}", row.rule, row.failures));
    let cases = attest.forbidden();
    let cases = cases.map(|case| format!("{}: {:?}", case.case, case.seen));
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
        let attest = attested(config(capabilities, mode, engines), AsItIs);
        assert_eq!(named(&attest), Vec::<String>::new());
        let held: usize = attest.rows.iter().map(|row| row.held).sum();
        let left: usize = attest.rows.iter().flat_map(|row| &row.left_out).map(|l| l.cases).sum();
        println!("{mode:?} {engines}: {held} held, {left} left out, {} s", attest.took_s);
        for row in &attest.rows {
            for left in &row.left_out { println!("  {}: {} {}", row.rule, left.cases, left.needs); }
        }
        for l in &attest.litmus { println!("  {} {:?} {:?}", l.case, l.seen, l.needs); }
    }
}
