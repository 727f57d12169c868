//! One thread of a case on a device of this machine.

use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use dray::WaitPolicy;
use dray::hw::{HwMover, HwOptions, QueueInfo};
use dray_device::WorkQueueMode;
use dray_workload::{DeviceLoop, Operations, Percentiles, Rounds, pin, prepare, thread_time};

use super::device::{self, DeviceChoice};
use super::thread::{Share, operands};
use crate::BenchError;
use crate::case::{Case, op_name};
use crate::modelled::MinTime;

/// A queue for each thread of a case.
pub(super) fn movers(case: &Case, choice: &DeviceChoice) -> Result<Vec<HwMover>, BenchError> {
    let mut queues: Vec<QueueInfo> = choice.queues()?;
    let options = HwOptions {
        slots: (case.queue_per_thread() * case.bsize.max(1) * 2) as usize,
        ..HwOptions::default()
    };
    let opcode = case.shape().operation(&device::NOWHERE, 0, false).opcode();
    let mut movers = Vec::new();
    for _ in 0..case.threads.max(1) {
        if queues.is_empty() {
            return Err(BenchError::Value {
                flag: format!("--threads={}", case.threads),
                reason: format!("{} work queues are free", movers.len()),
                hint: "fewer threads, or a shared queue: dray config list shows them".to_owned(),
            });
        }
        let mover = device::open(&queues, options)?;
        let (size, batch) = (u64::from(case.size), case.bsize.max(1));
        device::check(mover.info(), op_name(case.op), opcode, size, batch)?;
        if queues.len() > 1 || mover.info().mode == WorkQueueMode::Dedicated {
            let taken = mover.info().name();
            queues.retain(|queue| queue.name() != taken);
        }
        movers.push(mover);
    }
    Ok(movers)
}

/// Runs a case's share of one thread on a queue; all threads start to count together.
pub(super) fn share(
    case: &Case,
    cpu: u16,
    mut mover: HwMover,
    min_time: MinTime,
    barrier: &Barrier,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    let made = operands(case, cpu);
    barrier.wait();
    let made = made?;
    let shape = case.shape();
    // SAFETY: the operands are in the arena, which this thread alone has.
    unsafe { prepare(&shape, &made.buffers) };
    let mut doubts = Vec::new();
    if !pinned {
        doubts.push("a thread could not be kept on one CPU".to_owned());
    }
    doubts.extend(made.placement.doubt());
    doubts.extend(device::doubt());
    let queue = case.queue_per_thread();
    let work = DeviceLoop {
        operations: Operations {
            cache_control: case.out_mem.cache_control,
            ..Operations::new(shape, made.buffers)
        },
        exec: case.exec,
        round: u64::from(queue * case.bsize.max(1)),
        queue,
        batch: case.bsize.max(1),
        wait: WaitPolicy::Pause,
    };
    let (count, limit) = match min_time {
        MinTime::Iterations(count) => (count, Duration::MAX),
        MinTime::Seconds(seconds) => {
            let limit = Duration::from_secs_f64(seconds.clamp(0.0, 1e6));
            (u64::from(u32::MAX), limit)
        }
    };
    // SAFETY: the operands are in the arena; operations that use the same write the same.
    let warm = unsafe { work.run(&mut mover, 2, &mut || {}, &mut |_| false) };
    let found = match warm.failed {
        0 => {
            let (wall, cpu_before) = (Instant::now(), thread_time());
            let mut place = || made.placement.place();
            let mut enough = |sum| sum >= limit;
            // SAFETY: as above.
            let found = unsafe { work.run(&mut mover, count, &mut place, &mut enough) };
            let cpu_time = thread_time().saturating_sub(cpu_before).as_secs_f64();
            (
                found,
                (cpu_time / wall.elapsed().as_secs_f64().max(1e-9)).min(1.0),
            )
        }
        _ => (warm, 1.0),
    };
    let (rounds, cpu_share): (Rounds, f64) = found;
    if rounds.stalled > 0 {
        // The device may still write to it.
        std::mem::forget(made);
        return Err(device::stalled(rounds.stalled));
    }
    if rounds.failed > 0 {
        let status = rounds.first_failure;
        return Err(io::Error::other(format!(
            "{} operations failed; the first ended with {status}",
            rounds.failed
        )));
    }
    let mut percentiles = Percentiles::default();
    for sample in &rounds.samples {
        percentiles.record(*sample, 1);
    }
    Ok(Share {
        iterations: rounds.samples.len() as u64,
        elapsed: rounds.elapsed(),
        cpu_share,
        percentiles,
        failed: 0,
        doubts,
    })
}
