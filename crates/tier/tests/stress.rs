//! No write is ever lost: threads check what they wrote while the pages under them move, and while
//! they drop, remap and unmap memory and fork.
//!
//! `DRAY_TIER_MOVES` is how many pages each case moves; 200 000 without it. The whole is
//! `DRAY_TIER_MOVES=10000000 cargo test --release -p dray-tier --test stress -- --nocapture`.

mod common;

use common::{Case, run};
use dray_tier::copier::{Cores, VirtualCopier};
use dray_tier::{Config, Order, Release};

fn check(name: &str, case: Case) {
    let outcome = run(&case);
    println!("{name}: {outcome:?}");
    assert_eq!(outcome.lost, 0, "{name}");
    assert!(outcome.moved >= case.moves, "{name}");
    assert!(outcome.checked > 0, "{name}");
}

fn config(order: Order, release: Release) -> Config {
    Config {
        order,
        release,
        ..Config::default()
    }
}

#[test]
fn strict_order_loses_nothing() {
    for release in [Release::Kernel, Release::Reuse] {
        let config = config(Order::Strict, release);
        check("strict", Case::new(config, || Box::new(Cores::new(1))));
    }
}

#[test]
fn shared_read_loses_nothing() {
    let config = config(Order::SharedRead, Release::Kernel);
    check("shared-read", Case::new(config, || Box::new(Cores::new(1))));
}

#[test]
fn several_cores_lose_nothing() {
    let config = config(Order::Strict, Release::Reuse);
    check("two cores", Case::new(config, || Box::new(Cores::new(2))));
}

#[test]
fn a_virtual_device_loses_nothing() {
    let config = config(Order::Strict, Release::Kernel);
    check(
        "virtual",
        Case::new(config, || {
            Box::new(VirtualCopier::start(2).expect("threads"))
        }),
    );
}

#[test]
fn huge_pages_lose_nothing() {
    let config = config(Order::Strict, Release::Kernel);
    let case = Case {
        huge: true,
        ..Case::new(config, || Box::new(Cores::new(1)))
    };
    check("huge", case);
}

#[test]
fn hints_lose_nothing() {
    let config = config(Order::Strict, Release::Kernel);
    let case = Case {
        hints: true,
        ..Case::new(config, || Box::new(Cores::new(1)))
    };
    check("hints", case);
}

#[test]
fn a_copier_that_fails_loses_nothing() {
    let config = config(Order::Strict, Release::Kernel);
    let case = Case::new(config, || Box::new(common::Failing::default()));
    let moves = case.moves;
    let outcome = run(&case);
    println!("failing: {outcome:?}");
    assert_eq!(outcome.lost, 0);
    assert!(outcome.moved >= moves && outcome.copy_failed > 0);
}

#[test]
fn without_protection_writes_are_lost() {
    let config = Config {
        unprotected: true,
        ..config(Order::Strict, Release::Kernel)
    };
    let case = Case {
        churn: false,
        ..Case::new(config, || Box::new(Cores::new(1)))
    };
    let outcome = run(&case);
    println!("negative control: {outcome:?}");
    assert!(outcome.lost > 0, "the test would not see a lost write");
}
