//! `-m` on a modelled core: for machines, and memory nodes, that are not at hand.

use std::sync::Arc;

use dray_device::Payload;
use dray_idxd::Profile;
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::PlatformFile;
use dray_workload::{ClosedLoop, Exec, Gauge, Operations, Plan, common_window};

use super::machine::User;
use super::memory::operands;
use super::model::CYCLES_PER_SEC;
use super::options::{Access, Micros};
use super::outcome::Outcome;
use crate::BenchError;

/// Rounds that are simulated at most: a core does the same in each.
const ROUNDS: u64 = 64;

/// Runs a measurement on the cores of a modelled machine.
///
/// # Errors
/// A CPU or memory node that the platform has not; operations that fail.
pub fn run_core(
    micros: &Micros,
    platform: &PlatformFile,
    gauge: &Gauge,
) -> Result<Outcome, BenchError> {
    micros.check()?;
    let topology = &platform.topology;
    let cores = topology.sockets * topology.cores_per_socket;
    if let Some(cpu) = micros.cpus.iter().find(|cpu| **cpu >= cores) {
        return Err(BenchError::Value {
            flag: format!("-k {cpu}"),
            reason: format!("the platform has CPUs 0 to {}", cores - 1),
            hint: "-k0-3, or a platform with more cores".to_owned(),
        });
    }
    // The device of this profile is there and has nothing to do.
    let devices = Profile::named(micros.stands_for())?.devices()?;
    let mut world = World::new(
        Arc::new(platform.clone()),
        devices,
        WorldOptions {
            payload: Payload::Skipped,
            ..WorldOptions::default()
        },
    )?;
    let count = u64::from(micros.buffers);
    let rounds = micros.iterations.unwrap_or(ROUNDS).clamp(1, ROUNDS);
    let hot = !micros.access.is_empty() && micros.access.iter().all(|a| *a == Access::Touched);
    let mut threads = Vec::new();
    for (index, cpu) in micros.cpus.iter().enumerate() {
        let user = User {
            socket: cpu / topology.cores_per_socket.max(1),
            device: 0,
            queue: 0,
            shared: false,
            entries: 1,
        };
        let channel = world.open(ChannelOptions {
            socket: user.socket,
            queue: None,
            hot,
            ..ChannelOptions::default()
        });
        channel.ok_or(BenchError::NoWorkQueue { node: None })?;
        let buffers = operands(&mut world, micros, platform, &user, index, false)?;
        threads.push(
            ClosedLoop::new(Plan {
                operations: Operations::new(micros.shape(), buffers),
                exec: Exec::Sync,
                round: count,
                queue: 1,
                batch: 1,
                warm_up: count,
                count: rounds * count,
                bounded: true,
            })
            .watched(gauge.clone()),
        );
    }
    gauge.start((rounds + 1) * count * threads.len() as u64);
    world.run(&mut threads)?;
    if let Some(failed) = threads
        .iter()
        .map(ClosedLoop::measured)
        .find(|m| m.failed > 0)
    {
        return Err(BenchError::Failed {
            operations: failed.failed,
            status: failed.first_failure.0,
        });
    }
    let (ended, span) = common_window(&threads);
    let per_ns = (ended * count) as f64 / span.as_ns().max(f64::MIN_POSITIVE);
    let alone = micros.queue_depth == Some(1) || micros.buffers == 1;
    Ok(Outcome {
        gb_per_sec: per_ns * micros.counted_bytes(),
        latency_ns: alone.then(|| threads.len() as f64 / per_ns),
        cycles_per_sec: CYCLES_PER_SEC,
        cpu_percent: 100.0,
        kops: (per_ns * 1e6) as u64,
        submission: None,
        iterations: rounds,
        verified: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    fn rate(nodes: &[i32], access: &[Access], cpus: &[u16]) -> f64 {
        let micros = Micros {
            op: Op::Move,
            size: 4096,
            buffers: 16,
            batch: 1,
            queue_depth: None,
            iterations: Some(8),
            seconds: 1.0,
            stride: None,
            offsets: Vec::new(),
            cpus: cpus.to_vec(),
            cpu_queues: Vec::new(),
            shared: None,
            nodes: vec![nodes.to_vec()],
            access: access.to_vec(),
            cache_control: false,
            flags: None,
            portal_rotates: false,
            wait: dray_platform::WaitMode::Poll,
            submission: None,
            count_preparation: false,
            pages: dray_workload::Pages::Transparent,
            shuffled: false,
            verify: true,
            delta_percent: 100,
            block: 0,
        };
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let found = run_core(&micros, &platform, &Gauge::default()).unwrap();
        found.gb_per_sec
    }

    #[test]
    fn a_core_copies_slower_from_and_to_remote_memory() {
        let flushed = [Access::Flushed; 2];
        let local = rate(&[0, 0], &flushed, &[0]);
        let one_remote = rate(&[0, 1], &flushed, &[0]);
        let remote = rate(&[1, 1], &flushed, &[0]);
        assert!(local > one_remote && one_remote > remote);
        // From the other socket it is the other way round.
        assert_eq!(rate(&[1, 1], &flushed, &[48]), local);
        assert!(rate(&[0, 0], &[Access::Touched; 2], &[0]) > 3.0 * local);
        let two = rate(&[0, 0], &flushed, &[0, 1]);
        assert!((two / local - 2.0).abs() < 0.01, "{two} {local}");
    }
}
