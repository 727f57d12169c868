//! How fast this machine hands descriptors over: the instructions alone (`-x`).

use std::io;
use std::sync::Barrier;
use std::time::Duration;

use dray::hw::Portal;
use dray_workload::{Gauge, MeasuredBursts, Percentiles, PortalBursts, pin};

use super::counters;
use super::device;
use super::micros::ticks_per_second;
use super::micros_device::OnDevice;
use super::micros_queues::{User, opened};
use crate::BenchError;
use crate::micros::{Micros, Outcome, Submission};

/// Runs the test on every CPU: NOOPs in bursts of half a queue, so that a dedicated queue loses none
/// and a shared one refuses none. Between bursts, unmeasured, a NOOP with a record shows that the
/// queue is empty.
pub(super) fn run(
    micros: &Micros,
    kind: Submission,
    users: &[User],
    gauge: &Gauge,
) -> Result<OnDevice, BenchError> {
    let shared = kind == Submission::Enqcmd;
    if micros.shared.is_some_and(|asked| asked != shared) {
        return Err(BenchError::Value {
            flag: "-x".to_owned(),
            reason: "the test needs the other kind of work queue".to_owned(),
            hint: format!("-w{}", u8::from(shared)),
        });
    }
    let portals = opened(users, Some(shared), |queues| {
        let mut last = None;
        for queue in queues {
            match Portal::open(queue, micros.portal_rotates) {
                Ok(portal) => return Ok(((portal, queue.clone()), queue.clone())),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or(BenchError::NoWorkQueue { node: None }, device::device_error))
    })?;
    let names = portals.iter().map(|(_, queue)| device::describe(queue));
    let names: Vec<String> = names.collect();
    // Entries of a shared queue are for all CPUs that use it.
    let users_of = |name: &str| portals.iter().filter(|(_, q)| q.name() == name).count();
    let burst = |(_, queue): &(Portal, dray::hw::QueueInfo)| {
        u64::from(queue.entries) / 2 / users_of(&queue.name()) as u64
    };
    let bursts: Vec<u64> = portals.iter().map(|portal| burst(portal).max(1)).collect();
    let barrier = Barrier::new(users.len());
    gauge.start(0);
    let shares: Vec<io::Result<Share>> = std::thread::scope(|scope| {
        let work = users.iter().zip(portals).zip(bursts);
        let one = |((user, (portal, _)), burst): ((&User, _), u64)| {
            let (cpu, barrier) = (user.cpu, &barrier);
            scope.spawn(move || share(micros, kind, cpu, portal, burst, barrier))
        };
        let handles: Vec<_> = work.map(one).collect();
        let lost = |_| Err(io::Error::other("a measuring thread ended early"));
        let join =
            |handle: std::thread::ScopedJoinHandle<'_, _>| handle.join().unwrap_or_else(lost);
        handles.into_iter().map(join).collect()
    });
    let shares: Vec<Share> = shares.into_iter().collect::<io::Result<_>>()?;
    Ok(together(kind, names, shares))
}

struct Share {
    measured: MeasuredBursts,
    /// Descriptors of a burst.
    burst: u64,
    pinned: bool,
}

fn share(
    micros: &Micros,
    kind: Submission,
    cpu: u16,
    mut portal: Portal,
    burst: u64,
    barrier: &Barrier,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    // Descriptors that count: as many as are asked for, in whole bursts.
    let (most, limit) = match micros.iterations {
        Some(count) => (count.div_ceil(burst), Duration::MAX),
        None => (
            u64::MAX,
            Duration::from_secs_f64(micros.seconds.clamp(0.001, 1e6)),
        ),
    };
    let bursts = PortalBursts {
        enqcmd: kind == Submission::Enqcmd,
        burst,
        most,
        limit,
    };
    barrier.wait();
    let measured = bursts.run(&mut portal);
    match measured.stalled {
        true => Err(device::stalled(burst + 1)),
        false => Ok(Share {
            measured,
            burst,
            pinned,
        }),
    }
}

fn together(kind: Submission, queues: Vec<String>, shares: Vec<Share>) -> OnDevice {
    let cpus = shares.len().max(1) as u64;
    let (mut rate, mut submitted) = (0.0, 0);
    let mut percentiles = Percentiles::default();
    let mut warnings = Vec::new();
    let mut samples = Vec::new();
    for share in shares {
        let MeasuredBursts {
            samples: bursts,
            retries,
            ..
        } = share.measured;
        let took: u64 = bursts.iter().sum();
        let count = bursts.len() as u64 * share.burst;
        rate += count as f64 / (took as f64).max(1.0);
        submitted += count;
        for sample in &bursts {
            percentiles.record(Duration::from_nanos(*sample), share.burst);
        }
        if retries > 0 {
            warnings.push(format!(
                "{retries} ENQCMDs of {count} were answered with retry and repeated: others use the queue"
            ));
        }
        if !share.pinned {
            warnings.push("a thread could not be kept on its CPU".to_owned());
        }
        samples.push(bursts);
    }
    warnings.extend(device::doubt());
    OnDevice {
        outcome: Outcome {
            gb_per_sec: 0.0,
            latency_ns: None,
            cycles_per_sec: ticks_per_second(),
            cpu_percent: 100.0,
            kops: (rate * 1e6) as u64,
            submission: Some(kind),
            iterations: submitted / cpus,
            verified: false,
        },
        percentiles: counters(&percentiles),
        queues,
        samples,
        warnings,
    }
}
