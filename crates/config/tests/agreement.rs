//! The rules of profiles and the model of the driver say the same: what has no findings is loaded, what
//! has some is refused, on every kernel.

use dray_config::{Plan, findings, fit, hardware, load, survey};
use dray_idxd::driver::{Driver, Options, Part, Personality};
use dray_idxd::{DeviceProfile, EngineProfile, GroupProfile, WorkQueueProfile, known_capabilities};
use dray_spec::OpCap;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

/// One value in a few is of the kind that something refuses.
fn mostly<T: Clone + std::fmt::Debug + 'static>(
    good: &[T],
    odd: &[T],
) -> impl Strategy<Value = Option<T>> + use<T> {
    let (good, odd) = (good.to_vec(), odd.to_vec());
    prop_oneof![
        16 => select(good).prop_map(Some),
        1 => select(odd).prop_map(Some),
        1 => Just(None),
    ]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn queue() -> impl Strategy<Value = WorkQueueProfile> {
    let long = "n".repeat(1025);
    let first = (
        mostly(&words(&["shared", "dedicated"]), &words(&["exclusive"])),
        mostly(&[1, 8, 16], &[0, -1, 200]),
        mostly(&[1, 10, 15], &[0, 16, -1]),
        weighted(0.5, prop_oneof![12 => 0..=1_i64, 1 => Just(2)]),
        mostly(&[2, 32, 33, 1024], &[0, 1, 1025, -1]),
        mostly(&[1, 4096, 65537, 1 << 31], &[0, (1 << 31) + 1, -1]),
        mostly(&words(&["user", "kernel"]), &words(&["mdev", "none"])),
        mostly(
            &words(&["app0", "dpdk_app", "a b"]),
            &words(&["", " ", &long]),
        ),
    );
    let second = (
        weighted(
            0.4,
            select(words(&["", "user", "user", "dmaengine", "idxd"])),
        ),
        mostly(&[1, 8], &[0, 15, 200, -1]),
        weighted(0.3, prop_oneof![8 => -2..=1_i64, 1 => Just(2)]),
        weighted(0.3, prop_oneof![8 => -2..=1_i64, 1 => Just(2)]),
        weighted(
            0.1,
            select(vec![OpCap([0x3f_03ff, 0, 0, 0]), OpCap([0, 0, 0, 1])]),
        ),
    );
    (first, second).prop_map(|(first, second)| {
        let (mode, size, priority, block, batch, transfer, kind, name) = first;
        let (driver_name, threshold, prs_disable, ats_disable, op_config) = second;
        WorkQueueProfile {
            mode,
            size,
            priority,
            block_on_fault: block,
            max_batch_size: batch,
            max_transfer_size: transfer,
            kind,
            name,
            driver_name,
            threshold,
            prs_disable,
            ats_disable,
            op_config,
            ..WorkQueueProfile::default()
        }
    })
}

fn group() -> impl Strategy<Value = GroupProfile> {
    (
        prop::collection::vec(queue(), 1..3),
        prop_oneof![12 => 1..3_usize, 1 => Just(0)],
        weighted(0.3, select(vec![0, 4, 8, 40, 97, -1])),
        weighted(0.3, select(vec![0, 4, 8, 40, 96, 97, -1])),
        weighted(0.3, prop_oneof![8 => 0..=1_i64, 1 => Just(2)]),
        (
            weighted(0.2, prop_oneof![8 => 0..=7_i64, 1 => Just(8)]),
            weighted(0.2, prop_oneof![8 => 0..=3_i64, 1 => Just(4)]),
        ),
    )
        .prop_map(
            |(queues, engines, reserved, allowed, limited, (class, limit))| GroupProfile {
                grouped_workqueues: queues,
                grouped_engines: vec![EngineProfile::default(); engines],
                read_buffers_reserved: reserved,
                read_buffers_allowed: allowed,
                use_read_buffer_limit: limited,
                traffic_class_a: class,
                desc_progress_limit: limit,
                ..GroupProfile::default()
            },
        )
}

/// Numbers its groups, queues and engines.
fn named(mut device: DeviceProfile) -> DeviceProfile {
    let (mut queues, mut engines) = (0.., 0..);
    for (number, group) in device.groups.iter_mut().enumerate() {
        group.dev = format!("group0.{number}");
        for (queue, index) in group.grouped_workqueues.iter_mut().zip(&mut queues) {
            queue.dev = format!("wq0.{index}");
        }
        for (engine, index) in group.grouped_engines.iter_mut().zip(&mut engines) {
            engine.dev = format!("engine0.{index}");
        }
    }
    device
}

fn device() -> impl Strategy<Value = DeviceProfile> {
    (
        prop::collection::vec(group(), 1..3),
        weighted(0.3, select(vec![0, 4, 16, 96, 97, -1])),
        weighted(0.2, select(vec![0, 64, 65535, 63, -1])),
    )
        .prop_map(|(groups, read_buffer_limit, event_log_size)| {
            named(DeviceProfile {
                dev: "dsa0".to_owned(),
                groups,
                read_buffer_limit,
                event_log_size,
                ..DeviceProfile::default()
            })
        })
}

fn machine(kernel: Personality, version: u32, sva: bool) -> Driver {
    let mut part = Part::new(
        0,
        hardware(known_capabilities(version).expect("a known version")),
    );
    part.pasid_enabled = sva;
    part.event_log = Some(0x1000);
    Driver::new(Options::new(kernel), vec![part])
}

/// What the rules and the model say, if they differ.
fn difference(machine: Driver, wanted: &DeviceProfile) -> Option<String> {
    let kernel = machine.options().personality;
    let there = survey(&machine).expect("a model can be read");
    let (fitted, _) = fit(wanted, &there.device_profiles()[0]);
    let found = findings(std::slice::from_ref(&fitted), kernel);
    match (load(&mut Plan::new(machine), &fitted, true), found.first()) {
        (Ok(()), Some(finding)) => Some(format!("loaded, but {finding}")),
        (Err(refused), None) => Some(format!("no finding, but {refused}")),
        _ => None,
    }
}

proptest! {
    // Most of them are refused: so many leave some hundred that are not.
    #![proptest_config(ProptestConfig { cases: 10_000, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn findings_are_what_the_driver_refuses(
        kernel in select(Personality::ALL.to_vec()),
        version in select(vec![0x100, 0x200]),
        sva in prop::bool::weighted(0.8),
        wanted in device(),
    ) {
        prop_assert_eq!(difference(machine(kernel, version, sva), &wanted), None);
    }
}
