//! One replay.

use std::collections::BTreeMap;

use dray_clock::{Duration, Time};
use dray_figures::Model;
use dray_model::Reads;

use crate::latency::Latency;
use crate::machine::Machine;
use crate::program::Program;
use crate::thread::ReplayThread;
use crate::way::{Placement, Think, Way};
use crate::{ReplayError, SizeClass};

/// What a thread did, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadTimes {
    /// Its process, as recorded.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// From its beginning to its end.
    pub elapsed_ns: f64,
    /// Time that its core was used, waits that poll included.
    pub core_ns: f64,
    /// Time that it waited for the device, polling or asleep.
    pub waited_ns: f64,
    /// Time that it rested as recorded, for something else than the device.
    pub idle_ns: f64,
}

/// What a replay gave.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// From the beginning to the end of the last thread, in nanoseconds.
    pub run_ns: f64,
    /// Core time of all threads, in nanoseconds: not what they rest, nor what they are asleep in UMWAIT.
    pub core_ns: f64,
    /// Of that, what threads did between requests.
    pub think_ns: f64,
    /// Of that, what calls took beyond what a core explains: page faults and preemption, as recorded.
    pub excess_ns: f64,
    /// Of that, what they did of requests themselves.
    pub on_core_ns: f64,
    /// Time that threads waited for the device, of all together.
    pub waited_ns: f64,
    /// Requests that the device carried out.
    pub by_device: u64,
    /// Operations that did not succeed.
    pub failed: u64,
    /// By size.
    pub latency: Vec<SizeClass>,
    /// By device and work queue: how many requests were in flight, from submission until the thread saw the end, on average
    /// and at most (of one thread).
    pub occupancy: BTreeMap<(u16, u16), (f64, usize)>,
    /// The threads, those that waited longest first.
    pub threads: Vec<ThreadTimes>,
    /// What of the platform it depends on.
    pub reads: Reads,
}

/// Runs a program one way.
///
/// # Errors
/// What the platform or the configuration cannot run.
pub fn replay(
    model: &Model,
    program: &Program,
    way: Way,
    placement: Placement,
    think: Think,
) -> Result<Replayed, ReplayError> {
    let Machine {
        mut world,
        queues,
        bases,
        core_times,
    } = Machine::new(model, program, way, placement)?;
    let each = program.threads.iter().zip(queues.iter().zip(&bases));
    let mut threads: Vec<ReplayThread<'_>> = each
        .map(|(steps, (queue, bases))| {
            ReplayThread::new(
                steps,
                (way, placement, think),
                (*queue, *bases),
                &core_times,
            )
        })
        .collect();
    world.run(&mut threads)?;
    let end = threads.iter().map(|thread| thread.measured.end).max();
    let run_ns = end.unwrap_or(Time::ZERO).since(Time::ZERO).as_ns();
    let mut latency = Latency::default();
    let mut occupancy: BTreeMap<(u16, u16), (f64, usize)> = BTreeMap::new();
    let mut times = Vec::new();
    for (index, (thread, channel)) in threads.iter().zip(world.channels()).enumerate() {
        let measured = &thread.measured;
        latency.add(&measured.latency);
        let queue = queues[index];
        let (mean, most) = occupancy.entry((queue.device, queue.wq)).or_default();
        *mean += measured.in_flight.as_ns() / run_ns.max(f64::MIN_POSITIVE);
        *most = (*most).max(measured.most_in_flight);
        let steps = &program.threads[index];
        let late = match think {
            Think::Recorded => Duration::from_ns(steps.began_ns),
            Think::None => Duration::ZERO,
        };
        times.push(ThreadTimes {
            pid: steps.pid,
            tid: steps.tid,
            elapsed_ns: measured.end.since(Time::ZERO + late).as_ns(),
            core_ns: channel.busy().as_ns() - measured.idle.as_ns(),
            waited_ns: channel.waited().as_ns(),
            idle_ns: (measured.idle.as_ns() - late.as_ns()).max(0.0),
        });
    }
    let sum = |of: fn(&ReplayThread<'_>) -> f64| threads.iter().map(of).sum();
    let mut replayed = Replayed {
        run_ns,
        core_ns: times.iter().map(|thread| thread.core_ns).sum(),
        think_ns: sum(|thread| thread.measured.think.as_ns()),
        excess_ns: sum(|thread| thread.measured.excess.as_ns()),
        on_core_ns: sum(|thread| thread.measured.on_core.as_ns()),
        waited_ns: times.iter().map(|thread| thread.waited_ns).sum(),
        by_device: threads.iter().map(|thread| thread.measured.by_device).sum(),
        failed: threads.iter().map(|thread| thread.measured.failed).sum(),
        latency: latency.classes(),
        occupancy: match way {
            Way::Core => BTreeMap::new(),
            _ => occupancy,
        },
        threads: times,
        reads: world.reads(),
    };
    replayed
        .threads
        .sort_by(|a, b| b.waited_ns.total_cmp(&a.waited_ns));
    Ok(replayed)
}
