//! How fast descriptors can be handed over.

use std::sync::Arc;

use dray_device::Payload;
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::PlatformFile;
use dray_workload::{Buffers, Burst, Op, Operations, Ring, Shape};

use super::machine::Machine;
use super::model::CYCLES_PER_SEC;
use super::options::{Micros, Submission};
use super::outcome::Outcome;
use crate::BenchError;

/// Descriptors handed over at most.
const MOST: u64 = 1 << 16;

/// Runs the test on every CPU.
pub(super) fn run(
    micros: &Micros,
    kind: Submission,
    platform: &PlatformFile,
    machine: &Machine,
) -> Result<Outcome, BenchError> {
    let shared = kind == Submission::Enqcmd;
    if machine.users.iter().any(|user| user.shared != shared) {
        let (test, queue) = match kind {
            Submission::Enqcmd => ("ENQCMD", "-w1"),
            Submission::Movdir64b => ("MOVDIR64B", "-w0"),
        };
        return Err(BenchError::Value {
            flag: "-x".to_owned(),
            reason: format!("the {test} test needs the other kind of work queue"),
            hint: format!("{queue}, or a profile with such a queue"),
        });
    }
    let count = micros.iterations.unwrap_or(MOST).clamp(1, MOST);
    let mut world = World::new(
        Arc::new(platform.clone()),
        machine.devices.clone(),
        WorldOptions {
            payload: Payload::Skipped,
            ..WorldOptions::default()
        },
    )?;
    let mut bursts = Vec::new();
    for user in &machine.users {
        let channel = world.open(ChannelOptions {
            socket: user.socket,
            queue: Some((user.device, user.queue)),
            depth: count as u32,
            portal_rotates: micros.portal_rotates,
            prepared: true,
            ..ChannelOptions::default()
        });
        channel.ok_or(BenchError::NoWorkQueue { node: None })?;
        // A NOOP has no operands.
        let none = Ring {
            base: 0,
            stride: 0,
            count: 1,
        };
        let buffers = Buffers {
            src: none,
            dst: none,
            dst2: none,
        };
        let noops = Operations::new(Shape::new(Op::Nop, 0), buffers);
        bursts.push(Burst::new(noops, count));
    }
    world.run(&mut bursts)?;
    let total_ns: f64 = bursts.iter().map(|b| b.took().as_ns()).sum();
    let mean_ns = (total_ns / bursts.len().max(1) as f64).max(f64::MIN_POSITIVE);
    let operations = (count * bursts.len() as u64) as f64;
    Ok(Outcome {
        gb_per_sec: 0.0,
        latency_ns: None,
        cycles_per_sec: CYCLES_PER_SEC,
        cpu_percent: 100.0,
        kops: (operations / mean_ns * 1e6) as u64,
        submission: Some(kind),
        iterations: count,
        verified: false,
    })
}
