//! How fast this machine hands descriptors over: the instructions alone (`-x`).

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use dray::hw::Portal;
use dray_spec::Descriptor;
use dray_workload::{Gauge, Percentiles, pin};

use super::counters;
use super::device;
use super::micros::ticks_per_second;
use super::micros_device::OnDevice;
use super::micros_queues::{User, opened};
use crate::BenchError;
use crate::micros::{Micros, Outcome, Submission};

/// Bursts before the first that counts.
const WARM_UP: u64 = 4;
/// Without the completion that ends a burst for so long, the queue is given up.
const STALLED: Duration = Duration::from_secs(10);

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
    /// Nanoseconds of each burst.
    samples: Vec<u64>,
    /// Descriptors of a burst.
    burst: u64,
    /// ENQCMDs that were answered with retry.
    retries: u64,
    pinned: bool,
}

/// A record that the device writes to, in a line of its own.
#[repr(align(64))]
struct Record([AtomicU8; 64]);

fn share(
    micros: &Micros,
    kind: Submission,
    cpu: u16,
    mut portal: Portal,
    burst: u64,
    barrier: &Barrier,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    let record = Box::new(Record([const { AtomicU8::new(0) }; 64]));
    let address = record.0.as_ptr().expose_provenance() as u64;
    let (noop, last) = (
        Descriptor::noop(),
        Descriptor::noop().with_completion(address),
    );
    let mut share = Share {
        samples: Vec::new(),
        burst,
        retries: 0,
        pinned,
    };
    // Descriptors that count: as many as are asked for, in whole bursts.
    let (most, limit) = match micros.iterations {
        Some(count) => (count.div_ceil(burst), Duration::MAX),
        None => (
            u64::MAX - WARM_UP,
            Duration::from_secs_f64(micros.seconds.clamp(0.001, 1e6)),
        ),
    };
    barrier.wait();
    let mut elapsed = Duration::ZERO;
    for number in 0..WARM_UP + most {
        let mut retries = 0;
        let start = Instant::now();
        for _ in 0..burst {
            // SAFETY: a NOOP without a record names no memory.
            retries += unsafe { submit(&mut portal, kind, &noop) };
        }
        let took = start.elapsed();
        record.0[0].store(0, Ordering::Relaxed);
        // SAFETY: the record is kept until the device has written it.
        unsafe { submit(&mut portal, kind, &last) };
        let waiting = Instant::now();
        while record.0[0].load(Ordering::Acquire) == 0 {
            if waiting.elapsed() >= STALLED {
                // The device may still write to it.
                std::mem::forget(record);
                return Err(device::stalled(burst + 1));
            }
            std::hint::spin_loop();
        }
        if number >= WARM_UP {
            share.samples.push(took.as_nanos() as u64);
            share.retries += retries;
            elapsed += took;
            if elapsed >= limit {
                break;
            }
        }
    }
    Ok(share)
}

/// Submits until the queue accepts: how often it did not.
///
/// # Safety
/// What the descriptor names must stay valid until the device has done with it.
unsafe fn submit(portal: &mut Portal, kind: Submission, descriptor: &Descriptor) -> u64 {
    match kind {
        Submission::Movdir64b => {
            // SAFETY: the caller's promise is the same.
            unsafe { portal.movdir64b(descriptor) };
            0
        }
        Submission::Enqcmd => {
            let mut retries = 0;
            // SAFETY: as above.
            while !unsafe { portal.enqcmd(descriptor) } {
                retries += 1;
            }
            retries
        }
    }
}

fn together(kind: Submission, queues: Vec<String>, shares: Vec<Share>) -> OnDevice {
    let cpus = shares.len().max(1) as u64;
    let (mut rate, mut submitted) = (0.0, 0);
    let mut percentiles = Percentiles::default();
    let mut warnings = Vec::new();
    let mut samples = Vec::new();
    for share in shares {
        let took: u64 = share.samples.iter().sum();
        let count = share.samples.len() as u64 * share.burst;
        rate += count as f64 / (took as f64).max(1.0);
        submitted += count;
        for sample in &share.samples {
            percentiles.record(Duration::from_nanos(*sample), share.burst);
        }
        if share.retries > 0 {
            let retries = share.retries;
            warnings.push(format!(
                "{retries} ENQCMDs of {count} were answered with retry and repeated: others use the queue"
            ));
        }
        if !share.pinned {
            warnings.push("a thread could not be kept on its CPU".to_owned());
        }
        samples.push(share.samples);
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
