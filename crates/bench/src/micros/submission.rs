//! How fast descriptors can be handed over.

use std::sync::Arc;

use dray::{Application, Completion, Mover, Next, Operation, Progress};
use dray_clock::{Duration, Time};
use dray_device::Payload;
use dray_model::{ChannelOptions, CoreTime, World, WorldOptions};
use dray_platform::PlatformFile;

use super::machine::Machine;
use super::model::CYCLES_PER_SEC;
use super::options::{Micros, Submission};
use super::outcome::Outcome;
use crate::BenchError;

/// Descriptors handed over at most.
const MOST: u64 = 1 << 16;

/// NOOPs back to back; nobody waits for them.
struct Burst {
    left: u64,
    started: Option<Time>,
    pending: bool,
    took: Duration,
    completions: [Completion; 64],
}

impl Application for Burst {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        let started = *self.started.get_or_insert(mover.core_time());
        loop {
            if self.pending && mover.submit() == Progress::Pending {
                return Next::Again;
            }
            self.pending = false;
            if self.left == 0 {
                self.took = mover.core_time().since(started);
                return Next::Done;
            }
            // SAFETY: a NOOP has no operands.
            if unsafe { mover.enqueue(&Operation::noop()) }.is_err() {
                match mover.poll(&mut self.completions) {
                    0 => return Next::Wait,
                    _ => continue,
                }
            }
            self.left -= 1;
            self.pending = true;
        }
    }
}

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
        bursts.push(Burst {
            left: count,
            started: None,
            pending: false,
            took: Duration::ZERO,
            completions: [Completion::default(); 64],
        });
    }
    world.run(&mut bursts)?;
    let total_ns: f64 = bursts.iter().map(|b| b.took.as_ns()).sum();
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
