//! One thread of a case of api:cpp on a device of this machine.

use std::io;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use dray::hw::QueueInfo;
use dray_device::WorkQueueMode;
use dray_spec::Status;
use dray_workload::{Percentiles, Placement, pin, prepare, thread_time};

use super::cpp::{CppLoop, Library, LoopResult, Rounds};
use super::device::{self, DeviceChoice};
use super::thread::{Share, operands};
use crate::BenchError;
use crate::case::{Case, op_name};
use crate::modelled::MinTime;

/// The work queue of each thread of a case: a dedicated one has one client.
pub(super) fn queues(case: &Case, choice: &DeviceChoice) -> Result<Vec<String>, BenchError> {
    let queues = choice.queues()?;
    let opcode = case.shape().operation(&device::NOWHERE, 0, false).opcode();
    let threads = case.threads.max(1) as usize;
    let check = |queue: &QueueInfo| {
        let (size, batch) = (u64::from(case.size), case.bsize.max(1));
        device::check(queue, op_name(case.op), opcode, size, batch)
    };
    let mut names = Vec::new();
    for queue in &queues {
        check(queue)?;
        names.push(queue.name());
    }
    let shared = queues
        .iter()
        .rfind(|queue| queue.mode == WorkQueueMode::Shared);
    while let Some(queue) = shared
        && names.len() < threads
    {
        names.push(queue.name());
    }
    if names.len() < threads {
        return Err(BenchError::Value {
            flag: format!("--threads={threads}"),
            reason: format!("there are {} work queues", names.len()),
            hint: "fewer threads, or a shared queue: dray config list shows them".to_owned(),
        });
    }
    names.truncate(threads);
    Ok(names)
}

/// Samples of rounds, and when there are enough of them.
struct Samples<'a> {
    placement: &'a Placement,
    rounds: Vec<Duration>,
    sum: Duration,
    limit: Duration,
}

impl Rounds for Samples<'_> {
    fn before(&mut self) {
        self.placement.place();
    }

    fn after(&mut self, took: Duration) -> bool {
        self.rounds.push(took);
        self.sum += took;
        self.sum >= self.limit
    }
}

/// Runs a case's share of one thread on a CPU and a queue; all threads start to count together.
pub(super) fn share(
    case: &Case,
    library: &Arc<Library>,
    (cpu, queue): (u16, &str),
    min_time: MinTime,
    barrier: &Barrier,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    let made = operands(case, cpu).and_then(|made| {
        // SAFETY: the operands are in the arena, which this thread alone has.
        unsafe { prepare(&case.shape(), &made.buffers) };
        let opened = CppLoop::open(library, case, &made.buffers, Some(queue));
        Ok((made, opened.map_err(io::Error::other)?))
    });
    barrier.wait();
    // The loop is closed before the operands are freed.
    let (made, mut work) = made?;
    let mut doubts = Vec::new();
    if !pinned {
        doubts.push("a thread could not be kept on one CPU".to_owned());
    }
    doubts.extend(made.placement.doubt());
    doubts.extend(device::doubt());
    // SAFETY: the operands are in the arena; operations that use the same write the same.
    let warm = unsafe { work.rounds(2) }.map_err(io::Error::other)?;
    if let Err(error) = check(&warm) {
        return leave(error, &warm, made, work);
    }
    let (count, limit) = match min_time {
        MinTime::Iterations(count) => (count, Duration::MAX),
        MinTime::Seconds(seconds) => {
            let limit = Duration::from_secs_f64(seconds.clamp(0.0, 1e6));
            (u64::from(u32::MAX), limit)
        }
    };
    let mut samples = Samples {
        placement: &made.placement,
        rounds: Vec::new(),
        sum: Duration::ZERO,
        limit,
    };
    let (wall, cpu_before) = (Instant::now(), thread_time());
    // SAFETY: as above.
    let found = unsafe { work.timed(count, &mut samples) }.map_err(io::Error::other)?;
    let cpu_time = thread_time().saturating_sub(cpu_before).as_secs_f64();
    let cpu_share = (cpu_time / wall.elapsed().as_secs_f64().max(1e-9)).min(1.0);
    let (rounds, sum) = (samples.rounds, samples.sum);
    if let Err(error) = check(&found) {
        return leave(error, &found, made, work);
    }
    let mut percentiles = Percentiles::default();
    for sample in &rounds {
        percentiles.record(*sample, 1);
    }
    Ok(Share {
        iterations: rounds.len() as u64,
        elapsed: sum,
        cpu_share,
        percentiles,
        failed: 0,
        doubts,
    })
}

/// Whether all operations have ended, and succeeded.
fn check(found: &LoopResult) -> io::Result<()> {
    if found.stalled > 0 {
        return Err(device::stalled(found.stalled));
    }
    if found.failed > 0 {
        let status = Status(found.status as u8);
        return Err(io::Error::other(format!(
            "{} operations failed; the first ended with {status}",
            found.failed
        )));
    }
    Ok(())
}

/// Ends with an error. Operands that a device may still write to stay where they are.
fn leave<T, O>(error: io::Error, found: &LoopResult, made: O, work: CppLoop) -> io::Result<T> {
    if found.stalled > 0 {
        std::mem::forget((made, work));
    }
    Err(error)
}
