//! dsa_perf_micros's lines on a device of this machine.

use std::io;
use std::sync::Barrier;
use std::time::Duration;

use dray::WaitPolicy;
use dray::hw::HwMover;
use dray_platform::WaitMode;
use dray_workload::{DeviceLoop, Exec, Gauge, Percentiles, Rounds, pin, prepare};

use super::counters;
use super::device::{self, DeviceChoice};
use super::micros::{check, ticks_per_second};
use super::micros_queues::{movers, users};
use super::micros_rate;
use super::micros_thread::{arenas, operand_rings, placed, wrong};
use crate::BenchError;
use crate::micros::{Micros, Outcome, operations};
use crate::timing::Counter;

/// Rounds before the first that counts.
const WARM_UP: u64 = 8;

/// A measurement on devices of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct OnDevice {
    /// What was found.
    pub outcome: Outcome,
    /// Percentiles of an operation, each iteration giving one value.
    pub percentiles: Vec<Counter>,
    /// The queue of each CPU.
    pub queues: Vec<String>,
    /// Nanoseconds of each iteration of each CPU, as they were measured; of each burst, where
    /// descriptors are only handed over.
    pub samples: Vec<Vec<u64>>,
    /// What makes it doubtful.
    pub warnings: Vec<String>,
}

/// Runs a measurement on work queues of this machine, one for each CPU; without a list of CPUs, on the
/// first that may be used.
///
/// # Errors
/// No queue for a CPU, or one that cannot do it; no memory; operations that fail or move the wrong bytes.
pub fn run(
    micros: &Micros,
    cpus: Option<&[u16]>,
    choice: &DeviceChoice,
    gauge: &Gauge,
) -> Result<OnDevice, BenchError> {
    let users = users(micros, cpus, choice)?;
    if let Some(kind) = micros.submission {
        return micros_rate::run(micros, kind, &users, gauge);
    }
    let wait = wait_policy(micros.wait)?;
    let cpus: Vec<u16> = users.iter().map(|user| user.cpu).collect();
    check(micros, cpus.len())?;
    let movers = movers(micros, &users)?;
    let names: Vec<String> = movers.iter().map(|m| device::describe(m.info())).collect();
    let barrier = Barrier::new(cpus.len());
    gauge.start(micros.iterations.unwrap_or((micros.seconds * 1e9) as u64));
    let shares: Vec<io::Result<Share>> = std::thread::scope(|scope| {
        let one = |((index, cpu), mover): ((usize, &u16), HwMover)| {
            let (cpu, barrier) = (*cpu, &barrier);
            scope.spawn(move || share(micros, index, cpu, mover, wait, barrier))
        };
        let handles: Vec<_> = cpus.iter().enumerate().zip(movers).map(one).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            let lost = |_| Err(io::Error::other("a measuring thread ended early"));
            handle.join().unwrap_or_else(lost)
        };
        handles.into_iter().map(join).collect()
    });
    let shares: Vec<Share> = shares.into_iter().collect::<io::Result<_>>()?;
    together(micros, names, shares)
}

/// How the core waits.
fn wait_policy(mode: WaitMode) -> Result<WaitPolicy, BenchError> {
    let policy = match mode {
        WaitMode::Poll => WaitPolicy::Spin,
        WaitMode::Pause => WaitPolicy::Pause,
        WaitMode::Umwait => WaitPolicy::Umwait,
    };
    match policy.is_supported() {
        true => Ok(policy),
        false => Err(BenchError::Value {
            flag: "-x 100".to_owned(),
            reason: "this processor has no UMWAIT (CPUID says that WAITPKG is missing)".to_owned(),
            hint: "-x 80 waits with PAUSE".to_owned(),
        }),
    }
}

struct Share {
    rounds: Rounds,
    wrong: Option<u64>,
    doubts: Vec<String>,
}

/// Runs the part of one CPU; all start together.
fn share(
    micros: &Micros,
    index: usize,
    cpu: u16,
    mut mover: HwMover,
    wait: WaitPolicy,
    barrier: &Barrier,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    let made = arenas(micros, index);
    barrier.wait();
    let made = made?;
    let buffers = operand_rings(micros, &made);
    let placement = placed(micros, &made, cpu);
    let shape = micros.shape();
    // SAFETY: the buffers are in this thread's arenas, which nothing else uses.
    unsafe { prepare(&shape, &buffers) };
    let mut doubts = Vec::new();
    if !pinned {
        doubts.push(format!("a thread could not be kept on CPU {cpu}"));
    }
    doubts.extend(placement.doubt());
    doubts.extend(device::doubt());
    let round = u64::from(micros.descriptors() * micros.batch);
    let work = DeviceLoop {
        operations: operations(micros, buffers),
        exec: Exec::Async,
        round,
        queue: micros.queue_depth.unwrap_or(micros.descriptors()),
        batch: micros.batch,
        wait,
    };
    // SAFETY: the buffers are in this thread's arenas; operations that use the same write the same.
    let warm = unsafe { work.run(&mut mover, WARM_UP, &mut || {}, &mut |_| false) };
    if warm.stalled > 0 {
        // The device may still write to it.
        std::mem::forget(made);
        return Err(device::stalled(warm.stalled));
    }
    if warm.failed > 0 {
        return Ok(Share {
            rounds: warm,
            wrong: None,
            doubts,
        });
    }
    let limit = match micros.iterations {
        Some(_) => Duration::MAX,
        None => Duration::from_secs_f64(micros.seconds.clamp(0.001, 1e6)),
    };
    let count = micros.iterations.unwrap_or(u64::MAX / round.max(1));
    let mut place = || placement.place();
    let mut enough = |elapsed| elapsed >= limit;
    // SAFETY: as above.
    let rounds = unsafe { work.run(&mut mover, count, &mut place, &mut enough) };
    if rounds.stalled > 0 {
        std::mem::forget(made);
        return Err(device::stalled(rounds.stalled));
    }
    let wrong = match micros.verify {
        true => wrong(&shape, &buffers),
        false => None,
    };
    Ok(Share {
        rounds,
        wrong,
        doubts,
    })
}

fn together(
    micros: &Micros,
    queues: Vec<String>,
    shares: Vec<Share>,
) -> Result<OnDevice, BenchError> {
    let failed: u64 = shares.iter().map(|share| share.rounds.failed).sum();
    if let Some(share) = shares.iter().find(|share| share.rounds.failed > 0) {
        return Err(BenchError::Failed {
            operations: failed,
            status: share.rounds.first_failure.0,
        });
    }
    if let Some(buffer) = shares.iter().find_map(|share| share.wrong) {
        return Err(BenchError::WrongBytes { buffer });
    }
    let descriptors = f64::from(micros.descriptors());
    let per_round = descriptors * f64::from(micros.batch);
    let (mut rate, mut busy, mut latency, mut iterations) = (0.0, 0.0, 0.0, 0);
    let mut percentiles = Percentiles::default();
    let mut warnings = Vec::new();
    let mut samples = Vec::new();
    let cpus = shares.len().max(1) as f64;
    for share in shares {
        let rounds = &share.rounds;
        let elapsed = (rounds.elapsed().as_nanos() as f64).max(1.0);
        rate += rounds.samples.len() as f64 * per_round / elapsed;
        let counted = match micros.count_preparation {
            true => rounds.busy,
            false => rounds.busy.saturating_sub(rounds.preparing),
        };
        busy += counted.as_nanos() as f64 / elapsed / cpus;
        latency += elapsed / (rounds.samples.len() as f64 * descriptors).max(1.0) / cpus;
        iterations += rounds.samples.len() as u64;
        let mut own = Percentiles::default();
        for sample in &rounds.samples {
            own.record(*sample, per_round as u64);
        }
        percentiles.add(&own);
        let nanoseconds = rounds.samples.iter().map(|sample| sample.as_nanos() as u64);
        samples.push(nanoseconds.collect());
        warnings.extend(share.doubts);
    }
    warnings.dedup();
    let alone = micros.queue_depth == Some(1) || micros.buffers == 1;
    Ok(OnDevice {
        outcome: Outcome {
            gb_per_sec: rate * micros.counted_bytes(),
            latency_ns: alone.then_some(latency),
            cycles_per_sec: ticks_per_second(),
            cpu_percent: (busy * 100.0).min(100.0),
            kops: (rate * 1e6) as u64,
            submission: None,
            iterations: iterations / cpus as u64,
            verified: micros.verify,
        },
        percentiles: counters(&percentiles),
        queues,
        samples,
        warnings,
    })
}
