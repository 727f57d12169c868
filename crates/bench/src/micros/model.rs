//! The measurement in modelled time.

use std::sync::Arc;

use dray_clock::Time;
use dray_device::Payload;
use dray_idxd::Profile;
use dray_model::{ChannelOptions, World, WorldOptions};
use dray_platform::PlatformFile;
use dray_workload::{ClosedLoop, Exec, Gauge, Plan, common_window};

use super::machine::{Machine, User};
use super::memory::{check, operands};
use super::options::Micros;
use super::order::operations as operations_of;
use super::outcome::Outcome;
use super::submission;
use crate::BenchError;

/// Cycles a second of the time stamp counter: a Xeon Platinum 8480+ has 2 GHz. Only the unit of
/// one number in the result line follows from it.
pub(super) const CYCLES_PER_SEC: u64 = 2_000_000_000;
/// Descriptors that are simulated of one CPU at most: the model repeats itself long before.
const DESCRIPTORS: u64 = 1 << 19;
/// Bytes of buffers, and bytes moved, up to which they are moved and checked.
const CHECKED: [u64; 2] = [64 << 20, 4 << 30];

/// Runs a measurement on a modelled machine: the profile's devices, or without one those that the
/// command line speaks of.
///
/// # Errors
/// What the configuration does not allow, by flag; operations that fail or move the wrong bytes.
pub fn run(
    micros: &Micros,
    platform: &PlatformFile,
    profile: Option<&Profile>,
    gauge: &Gauge,
) -> Result<Outcome, BenchError> {
    micros.check()?;
    let machine = Machine::new(micros, profile, &platform.topology)?;
    if let Some(kind) = micros.submission {
        return submission::run(micros, kind, platform, &machine);
    }
    let per_round = micros.descriptors();
    let most = (DESCRIPTORS / u64::from(per_round)).max(1);
    let rounds = match micros.iterations {
        Some(iterations) => iterations.clamp(1, most),
        None => {
            let first = simulate(micros, platform, &machine, 16.min(most), gauge)?;
            let one_ns = first.elapsed_ns / 16.min(most) as f64;
            // Float to integer saturates; what is absurd is cut by the limit.
            ((micros.seconds * 1e9 / one_ns.max(1.0)) as u64).clamp(1, most)
        }
    };
    let found = simulate(micros, platform, &machine, rounds, gauge)?;
    let per_ns = found.rounds_per_ns * f64::from(per_round * micros.batch);
    let bytes = micros.counted_bytes();
    let elapsed = found.elapsed_ns.max(f64::MIN_POSITIVE);
    let alone = micros.queue_depth == Some(1) || micros.buffers == 1;
    Ok(Outcome {
        gb_per_sec: per_ns * bytes,
        latency_ns: alone.then(|| elapsed / rounds as f64 / f64::from(per_round)),
        cycles_per_sec: CYCLES_PER_SEC,
        cpu_percent: found.busy * 100.0,
        kops: (per_ns * 1e6) as u64,
        submission: None,
        iterations: rounds,
        verified: found.verified,
    })
}

struct Simulated {
    /// Of all CPUs together.
    rounds_per_ns: f64,
    /// Means of the CPUs.
    elapsed_ns: f64,
    /// Share of their time, warm-up included, that is neither a look in vain nor sleep: the peer counts so (`calc_cpu`).
    busy: f64,
    verified: bool,
}

fn simulate(
    micros: &Micros,
    platform: &PlatformFile,
    machine: &Machine,
    rounds: u64,
    gauge: &Gauge,
) -> Result<Simulated, BenchError> {
    let cpus = machine.users.len() as u64;
    let count = u64::from(micros.descriptors() * micros.batch);
    let held = count * u64::from(micros.size) * cpus * 3;
    let moved = count * u64::from(micros.size) * cpus * rounds;
    let backed = micros.verify && held <= CHECKED[0] && moved <= CHECKED[1];
    let mut world = World::new(
        Arc::new(platform.clone()),
        machine.devices.clone(),
        WorldOptions {
            payload: match backed {
                true => Payload::Moved,
                false => Payload::Skipped,
            },
            ..WorldOptions::default()
        },
    )?;
    let mut threads = Vec::new();
    let mut memory = Vec::new();
    let mut operations = 0;
    for (index, user) in machine.users.iter().enumerate() {
        let queue = depth(micros, user);
        let channel = world.open(ChannelOptions {
            socket: user.socket,
            queue: Some((user.device, user.queue)),
            batch: micros.batch,
            depth: queue,
            wait: micros.wait,
            portal_rotates: micros.portal_rotates,
            prepared: !micros.count_preparation,
            ..ChannelOptions::default()
        });
        channel.ok_or(BenchError::NoWorkQueue { node: None })?;
        let buffers = operands(&mut world, micros, platform, user, index, backed)?;
        let warm_up = match queue {
            1 => 2,
            _ => 8,
        };
        operations += (warm_up + rounds) * count;
        let plan = Plan {
            operations: operations_of(micros, buffers),
            exec: Exec::Async,
            round: count,
            queue,
            batch: micros.batch,
            warm_up: warm_up * count,
            count: rounds * count,
            bounded: true,
        };
        threads.push(ClosedLoop::new(plan).watched(gauge.clone()));
        memory.push(buffers);
    }
    gauge.start(operations);
    world.run(&mut threads)?;
    for thread in &threads {
        let measured = thread.measured();
        if measured.failed > 0 {
            return Err(BenchError::Failed {
                operations: measured.failed,
                status: measured.first_failure.0,
            });
        }
    }
    if backed {
        for buffers in &memory {
            check(&world, micros, buffers, count)?;
        }
    }
    let (waited, total) = world
        .channels()
        .fold((0.0, 0.0), |(waited, total), channel| {
            let now = channel.now().since(Time::ZERO);
            (waited + channel.waited().as_ns(), total + now.as_ns())
        });
    let mean = |ps: u64| ps as f64 / 1000.0 / cpus.max(1) as f64;
    let (ended, span) = common_window(&threads);
    Ok(Simulated {
        rounds_per_ns: ended as f64 / span.as_ns().max(f64::MIN_POSITIVE),
        elapsed_ns: mean(threads.iter().map(|t| t.elapsed().0).sum()),
        busy: 1.0 - waited / total.max(f64::MIN_POSITIVE),
        verified: backed,
    })
}

/// Descriptors in flight: what was asked for, within what the queue takes without loss.
fn depth(micros: &Micros, user: &User) -> u32 {
    let asked = micros.queue_depth.unwrap_or(micros.descriptors()).max(1);
    match user.shared {
        true => asked,
        false => asked.min(user.entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::OPS;
    use crate::{FlagChange, Op};

    fn measure(micros: &Micros, profile: Option<&str>) -> Result<Outcome, BenchError> {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let profile = profile.map(|name| Profile::named(name).unwrap());
        run(micros, &platform, profile.as_ref(), &Gauge::default())
    }

    const FULL: Micros = Micros {
        op: Op::Move,
        size: 4096,
        buffers: 128,
        batch: 1,
        queue_depth: None,
        iterations: Some(50),
        seconds: 1.0,
        stride: None,
        offsets: Vec::new(),
        cpus: Vec::new(),
        cpu_queues: Vec::new(),
        shared: Some(true),
        nodes: Vec::new(),
        access: Vec::new(),
        cache_control: true,
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

    #[test]
    fn a_shuffled_order_moves_the_same_bytes() {
        let micros = Micros {
            cpus: vec![0],
            shuffled: true,
            batch: 4,
            ..FULL
        };
        assert!(measure(&micros, None).unwrap().verified);
    }

    #[test]
    fn the_gauge_counts_every_operation() {
        let gauge = Gauge::default();
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let micros = Micros {
            cpus: vec![0],
            ..FULL
        };
        run(&micros, &platform, None, &gauge).unwrap();
        let (done, all) = gauge.read();
        assert_eq!((done, all), (128 * 58, 128 * 58));
    }

    /// CPUs that fight for one queue are served unevenly; their sum is what the device does.
    #[test]
    fn several_cpus_are_no_faster_than_their_device() {
        let rate = |cpus: Vec<u16>, batch| {
            let micros = Micros {
                cpus,
                batch,
                ..FULL
            };
            measure(&micros, None).unwrap().gb_per_sec
        };
        let limit = rate(vec![0], 4);
        let four = rate(vec![0, 1, 2, 3], 1);
        assert!(four < limit * 1.02, "{four} against {limit}");
        assert!(four > limit * 0.9, "{four} against {limit}");
    }

    #[test]
    fn results_of_every_operation_are_verified() {
        for &(op, name) in OPS {
            let profile = (op == Op::DixGenerate).then_some("1e1w-d-v2");
            let micros = Micros {
                op,
                cpus: vec![0],
                size: 4160,
                block: 1,
                delta_percent: 30,
                batch: 4,
                iterations: Some(2),
                shared: None,
                ..FULL
            };
            assert!(measure(&micros, profile).unwrap().verified, "{name}");
        }
    }

    #[test]
    fn operations_that_the_device_lacks_are_named() {
        let micros = Micros {
            op: Op::DixGenerate,
            cpus: vec![0],
            ..FULL
        };
        let error = measure(&micros, None).unwrap_err().to_string();
        assert!(
            error.contains("dix_generate") && error.contains("0x17"),
            "{error}"
        );
        let short = Micros {
            op: Op::DifInsert,
            size: 1000,
            ..FULL
        };
        let error = measure(&short, None).unwrap_err().to_string();
        assert!(
            error.contains("-s 1000") && error.contains("512"),
            "{error}"
        );
    }

    #[test]
    fn a_flag_that_the_operation_does_not_allow_fails() {
        let micros = Micros {
            cpus: vec![0],
            flags: Some(FlagChange {
                clear: 0,
                set: 1 << 22,
                every: 4,
            }),
            ..FULL
        };
        let error = measure(&micros, None).unwrap_err();
        assert!(matches!(error, BenchError::Failed { .. }), "{error}");
    }

    #[test]
    fn seconds_limit_the_modelled_time_of_a_run() {
        let micros = Micros {
            cpus: vec![0],
            iterations: None,
            seconds: 0.001,
            ..FULL
        };
        let found = measure(&micros, None).unwrap();
        let took_ms = found.iterations as f64 * 128.0 / found.kops as f64;
        assert!((0.8..1.2).contains(&took_ms), "{took_ms}");
    }
}
