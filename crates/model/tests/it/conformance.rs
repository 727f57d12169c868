//! What every mover promises, written once: each operation gives the right bytes and the right
//! result, under the right name, exactly once.

use crate::common::ground::{Ground, Modelled, Own, PAGE};
use crate::common::line::{AREA, lines};
use crate::common::machine::{current, device, one_queue, queue, world};
use crate::common::script::Script;
use dray::virt::{Engines, Idle, Options, VirtualDevice};
use dray::{CpuMover, Executor, NotAnOperation, Operation, drive};
use dray_device::{DeviceConfig, Payload, WorkQueueMode};
use dray_model::ChannelOptions;
use dray_spec::{Descriptor, Status};

use WorkQueueMode::{Dedicated, Shared};

/// Prepares the ground, has `run` carry all lines out, and compares.
fn conforms<G: Ground>(
    ground: impl FnOnce(usize) -> G,
    executor: Executor,
    run: impl FnOnce(&mut G, Script) -> Script,
) -> Script {
    let lines = lines();
    let mut bytes: Vec<u8> = (0..lines.len() as u64 * AREA)
        .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect();
    for (n, line) in lines.iter().enumerate() {
        line.prepare(n, &mut bytes);
    }
    let mut ground = ground(bytes.len());
    ground.put(&bytes);
    let base = ground.base();
    let operations = lines.iter().enumerate();
    let operations = operations.map(|(n, line)| line.operation(n, base));
    let script = run(&mut ground, Script::new(operations.collect()));
    for (n, line) in lines.iter().enumerate() {
        let expected = line.carry_out(n, &mut bytes);
        assert_eq!(script.records[n], Some(expected), "{line:?}");
    }
    assert!(ground.get() == bytes, "other bytes than the oracle's");
    assert_eq!(script.executors.len(), lines.len());
    assert!(script.executors.iter().all(|e| *e == executor));
    script
}

fn cpu(slots: usize) -> Script {
    conforms(Own::new, Executor::Cpu, |_, mut script| {
        drive(&mut script, &mut CpuMover::new(slots));
        script
    })
}

fn model(config: DeviceConfig, options: ChannelOptions) -> Script {
    let executor = match options.queue {
        Some(_) => Executor::Model,
        None => Executor::ModelCpu,
    };
    conforms(
        |len| Modelled::new(world(current(), vec![config], Payload::Moved), len),
        executor,
        |ground, script| {
            let channel = ground.world.open(options).expect("a queue");
            let mut applications = [script];
            ground.world.run(&mut applications).expect("all end");
            let counters = ground.world.channel(channel).counters();
            assert_eq!(counters.lost, 0);
            let [script] = applications;
            script
        },
    )
}

/// The virtual device in real time, on its only queue.
fn virtually(config: DeviceConfig, options: Options, slots: usize) -> Script {
    conforms(Own::new, Executor::Virtual, |_, mut script| {
        let device = VirtualDevice::start(config, options).expect("a device that can be enabled");
        let mut mover = device.open(0, slots).expect("a queue");
        drive(&mut script, &mut mover);
        assert_eq!(device.device().lost(0), Some(0));
        script
    })
}

fn options(batch: u32, depth: u32) -> ChannelOptions {
    ChannelOptions {
        batch,
        depth,
        ..ChannelOptions::default()
    }
}

#[test]
fn this_core() {
    assert!(cpu(16).full > 0);
    assert_eq!(cpu(1000).full, 0);
}

#[test]
fn the_model_on_a_dedicated_queue() {
    model(one_queue(1, Dedicated), options(1, 1));
    assert!(model(one_queue(1, Dedicated), options(1, 16)).full > 0);
}

#[test]
fn the_model_on_a_shared_queue() {
    model(one_queue(1, Shared), options(1, 1));
    assert!(model(one_queue(1, Shared), options(1, 64)).full > 0);
}

#[test]
fn the_model_with_batches() {
    for mode in [Dedicated, Shared] {
        for batch in [2, 7, 64] {
            model(one_queue(1, mode), options(batch, 2));
        }
    }
}

#[test]
fn the_model_with_four_engines() {
    for mode in [Dedicated, Shared] {
        model(one_queue(4, mode), options(1, 64));
        model(one_queue(4, mode), options(5, 8));
    }
}

#[test]
fn the_virtual_device_on_either_queue() {
    for mode in [Dedicated, Shared] {
        virtually(one_queue(1, mode), Options::default(), 1);
        assert!(virtually(one_queue(1, mode), Options::default(), 16).full > 0);
        virtually(device(1, vec![queue(0, mode, 3)]), Options::default(), 200);
    }
}

#[test]
fn the_virtual_device_with_four_engines() {
    for mode in [Dedicated, Shared] {
        for engines in [Engines::Threads, Engines::Dispatcher] {
            let options = Options {
                engines,
                ..Options::default()
            };
            virtually(one_queue(4, mode), options, 64);
        }
    }
}

#[test]
fn the_virtual_device_that_sleeps_whenever_it_can() {
    let after = std::time::Duration::ZERO;
    let options = Options {
        idle: Idle::Park { after },
        ..Options::default()
    };
    for engines in [1, 2] {
        virtually(one_queue(engines, Shared), options, 2);
    }
}

#[test]
fn the_modelled_core() {
    for slots in [1, 16] {
        let software = ChannelOptions {
            queue: None,
            ..options(1, slots)
        };
        model(one_queue(1, Dedicated), software);
    }
}

#[test]
fn a_small_shared_queue_answers_retry_and_all_the_same_everything_ends_once() {
    let config = device(1, vec![queue(0, Shared, 2)]);
    let mut ground = Modelled::new(world(current(), vec![config], Payload::Moved), 1 << 22);
    let channel = ground.world.open(options(1, 64)).expect("a queue");
    let base = ground.base();
    // Large enough for the engine to be slower than ENQCMD.
    let copies = (0..100).map(|_| Operation::memmove(base, base + (2 << 20), 1 << 20));
    let mut applications = [Script::new(copies.collect())];
    ground.world.run(&mut applications).expect("all end");
    let counters = ground.world.channel(channel).counters();
    assert!(counters.retries > 0);
    assert_eq!((counters.submitted, counters.completed), (100, 100));
    assert!((0..100).all(|n| applications[0].status(n) == Some(Status::SUCCESS)));
}

#[test]
fn one_completion_a_look_is_enough_to_see_all() {
    for mode in [Dedicated, Shared] {
        for batch in [1, 5] {
            let config = one_queue(2, mode);
            let mut ground = Modelled::new(world(current(), vec![config], Payload::Moved), 8192);
            ground.world.open(options(batch, 4)).expect("a queue");
            let fills = (0..53).map(|n| Operation::fill(n, ground.base() + 64 * n, 64));
            let mut applications = [Script::new(fills.collect()).looking_at(1)];
            ground.world.run(&mut applications).expect("all end");
        }
    }
    let fills = |base: u64| {
        (0..53)
            .map(move |n| Operation::fill(n, base + 64 * n, 64))
            .collect()
    };
    let own = Own::new(8192);
    let mut script = Script::new(fills(own.base())).looking_at(1);
    drive(&mut script, &mut CpuMover::new(8));
    assert!((0..53).all(|n| script.status(n) == Some(Status::SUCCESS)));
}

/// What no mover carries out, with the status that it must have.
fn refused(base: u64) -> Vec<(Operation, Status)> {
    vec![
        (
            Operation::memmove(base, base + 8192, 0),
            Status::TRANSFER_SIZE,
        ),
        (Operation::fill(1, base, 0), Status::TRANSFER_SIZE),
        (Operation::crc(base, 0, 0), Status::TRANSFER_SIZE),
        (Operation::copy_crc(base, base + 63, 64, 0), Status::OVERLAP),
        (Operation::copy_crc(base + 63, base, 64, 0), Status::OVERLAP),
        (
            Operation::dualcast(base, base + PAGE, base + 2 * PAGE, 4097),
            Status::OVERLAP,
        ),
        (
            Operation::dualcast(base, base + 2 * PAGE, base + 3 * PAGE, 4097),
            Status::OVERLAP,
        ),
        (
            Operation::dualcast(base, base + PAGE, base + 2 * PAGE + 64, 64),
            Status::DUALCAST_ALIGNMENT,
        ),
        (
            Operation::try_from(Descriptor::translation_fetch(base, PAGE as u32))
                .expect("an operation"),
            Status::BAD_OPCODE,
        ),
    ]
}

/// The script of all refused operations has ended, and nothing was written.
fn all_refused(ground: &impl Ground, script: &Script, mover: &str) {
    for (n, (_, status)) in refused(ground.base()).into_iter().enumerate() {
        assert_eq!(script.status(n), Some(status), "operation {n}, {mover}");
    }
    assert!(ground.get().iter().all(|byte| *byte == 0), "bytes written");
}

fn attempt(ground: &impl Ground) -> Script {
    Script::new(refused(ground.base()).into_iter().map(|r| r.0).collect())
}

#[test]
fn what_cannot_be_done_is_refused_by_all_for_the_same_reason() {
    let own = Own::new(1 << 16);
    let mut script = attempt(&own);
    drive(&mut script, &mut CpuMover::new(4));
    all_refused(&own, &script, "this core");
    let own = Own::new(1 << 16);
    let mut script = attempt(&own);
    let virtual_device = VirtualDevice::start(one_queue(2, Dedicated), Options::default());
    let virtual_device = virtual_device.expect("a device that can be enabled");
    drive(
        &mut script,
        &mut virtual_device.open(0, 4).expect("a queue"),
    );
    all_refused(&own, &script, "the virtual device");
    for queue in [Some((0, 0)), None] {
        for batch in [1, 3] {
            let config = one_queue(1, Dedicated);
            let mut machine = world(current(), vec![config], Payload::Moved);
            let options = ChannelOptions {
                queue,
                ..options(batch, 4)
            };
            machine.open(options).expect("a queue");
            let mut ground = Modelled::new(machine, 1 << 16);
            let mut applications = [attempt(&ground)];
            ground.world.run(&mut applications).expect("all end");
            let mover = format!("{queue:?}, batches of {batch}");
            all_refused(&ground, &applications[0], &mover);
        }
    }
}

#[test]
fn a_raw_batch_is_no_operation() {
    let batch = Descriptor::batch(0x1000, 2);
    assert_eq!(Operation::try_from(batch), Err(NotAnOperation::Batch));
    let mut unknown = Descriptor::noop();
    unknown.flags_opcode |= 0x7f << 24;
    let refused = NotAnOperation::Opcode { opcode: 0x7f };
    assert_eq!(Operation::try_from(unknown), Err(refused));
}
