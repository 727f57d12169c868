//! dsa_perf_micros's -m: the CPU of this machine does the work.

use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::arena::Arena;
use super::cache::{place, push_out};
use super::host::{available, cache_bytes, pin};
use super::work::Work;
use crate::BenchError;
use crate::buffers::{Buffers, Ring};
use crate::case::{Api, Location, Op};
use crate::micros::{Access, Micros, Outcome};

/// What a thread did.
struct Share {
    elapsed: Duration,
    failed: u64,
    wrong: bool,
    pinned: bool,
}

/// A measurement on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Software {
    /// What was found.
    pub outcome: Outcome,
    /// What makes it doubtful.
    pub warnings: Vec<String>,
}

/// Runs a measurement on the CPUs of this machine; without a list, on the first that may be used.
///
/// # Errors
/// A CPU that is not there, no memory, operations that fail or move the wrong bytes.
pub fn run(micros: &Micros, cpus: Option<&[u16]>) -> Result<Software, BenchError> {
    let there = available();
    let cpus: Vec<u16> = match cpus {
        Some(cpus) => cpus.to_vec(),
        None => there.iter().take(1).copied().collect(),
    };
    if let Some(cpu) = cpus.iter().find(|cpu| !there.contains(cpu)) {
        let there: Vec<String> = there.iter().map(u16::to_string).collect();
        return Err(BenchError::Value {
            flag: format!("-k {cpu}"),
            reason: "this process may not use that CPU, or it is not there".to_owned(),
            hint: format!("-m runs on this machine, on CPUs {}", there.join(", ")),
        });
    }
    let iterations = micros.iterations.unwrap_or(u64::MAX);
    let limit = match micros.iterations {
        Some(_) => Duration::MAX,
        None => Duration::from_secs_f64(micros.seconds.clamp(0.001, 1e6)),
    };
    let barrier = Barrier::new(cpus.len());
    let done = std::sync::atomic::AtomicU64::new(0);
    let shares: Vec<io::Result<Share>> = std::thread::scope(|scope| {
        let one = |cpu: &u16| {
            let (cpu, barrier, done) = (*cpu, &barrier, &done);
            scope.spawn(move || share(micros, cpu, iterations, limit, barrier, done))
        };
        let handles: Vec<_> = cpus.iter().map(one).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            let lost = |_| Err(io::Error::other("a measuring thread ended early"));
            handle.join().unwrap_or_else(lost)
        };
        handles.into_iter().map(join).collect()
    });
    let shares: Vec<Share> = shares.into_iter().collect::<io::Result<_>>()?;
    let failed: u64 = shares.iter().map(|s| s.failed).sum();
    if failed > 0 {
        return Err(BenchError::Software { operations: failed });
    }
    if shares.iter().any(|s| s.wrong) {
        return Err(BenchError::WrongBytes { buffer: 0 });
    }
    let mean_ns = shares
        .iter()
        .map(|s| s.elapsed.as_nanos() as f64)
        .sum::<f64>()
        / shares.len().max(1) as f64;
    let rounds = done.load(std::sync::atomic::Ordering::Relaxed);
    let operations = rounds as f64 * f64::from(micros.buffers);
    let bytes = match micros.op {
        Op::Nop => 0.0,
        _ => operations * f64::from(micros.size),
    };
    let alone = micros.queue_depth == Some(1) || micros.buffers == 1;
    let each = operations / shares.len().max(1) as f64;
    let mut warnings = Vec::new();
    if shares.iter().any(|s| !s.pinned) {
        warnings.push("a thread could not be kept on its CPU".to_owned());
    }
    Ok(Software {
        outcome: Outcome {
            gb_per_sec: bytes / mean_ns.max(1.0),
            latency_ns: alone.then(|| mean_ns / each.max(1.0)),
            cycles_per_sec: ticks_per_second(),
            cpu_percent: 100.0,
            kops: (operations / mean_ns.max(1.0) * 1e6) as u64,
            submission: None,
            iterations: rounds / shares.len().max(1) as u64,
            verified: micros.verify,
        },
        warnings,
    })
}

fn share(
    micros: &Micros,
    cpu: u16,
    iterations: u64,
    limit: Duration,
    barrier: &Barrier,
    done: &std::sync::atomic::AtomicU64,
) -> io::Result<Share> {
    let pinned = pin(cpu);
    let stride = micros.stride.unwrap_or(match micros.op {
        Op::Dualcast => u64::from(micros.size).next_multiple_of(4096),
        _ => u64::from(micros.size).next_multiple_of(64),
    });
    let count = u64::from(micros.buffers);
    let len = (count - 1) * stride + u64::from(micros.size.max(64));
    let offset = |operand: usize| micros.offsets.get(operand).copied().unwrap_or(0) * 4096;
    let part = len.next_multiple_of(4096) + (0..3).map(offset).max().unwrap_or(0);
    let arena = Arena::new((part * 3) as usize);
    barrier.wait();
    let arena = arena?;
    let ring = |index: u64| Ring {
        base: arena.start() + index * part + offset(index as usize),
        stride,
        count,
    };
    let buffers = Buffers {
        src: ring(0),
        dst: ring(1),
        dst2: ring(2),
    };
    let places: Vec<(u64, Location)> = [buffers.src, buffers.dst, buffers.dst2]
        .iter()
        .enumerate()
        .filter_map(|(operand, ring)| {
            let location = match micros.access.get(operand)? {
                Access::None => return None,
                Access::Touched => Location::L1,
                Access::Demoted => Location::Llc,
                Access::Flushed => Location::Ram,
            };
            Some((ring.base, location))
        })
        .collect();
    let space = match places
        .iter()
        .any(|(_, location)| *location == Location::Llc)
    {
        true => vec![1; 2 * cache_bytes(cpu, 2).unwrap_or(2 << 20) as usize],
        false => Vec::new(),
    };
    let mut work = Work::new(micros.op, Api::Rust, micros.size, buffers, micros.buffers);
    // Code and translations are warm before the first iteration that counts.
    // SAFETY: the buffers are in this thread's arena.
    unsafe { work.round(micros.buffers) };
    let mut elapsed = Duration::ZERO;
    let mut rounds = 0;
    while rounds < iterations && elapsed < limit {
        for &(address, location) in &places {
            // SAFETY: the range is in this thread's arena.
            unsafe { place(address, len, location) };
        }
        push_out(&space);
        let start = Instant::now();
        // SAFETY: as above.
        unsafe { work.round(micros.buffers) };
        elapsed += start.elapsed();
        rounds += 1;
    }
    done.fetch_add(rounds, std::sync::atomic::Ordering::Relaxed);
    let overlapping = stride < u64::from(micros.size);
    let wrong = micros.verify && !overlapping && wrong(micros, &buffers);
    drop(arena);
    Ok(Share {
        elapsed,
        failed: work.failed,
        wrong,
        pinned,
    })
}

/// Whether a destination does not hold what it should: all memory holds the pattern at first, so
/// that every operation leaves it there.
fn wrong(micros: &Micros, buffers: &Buffers) -> bool {
    let written: &[Ring] = match micros.op {
        Op::Move | Op::Copy | Op::Fill | Op::CopyCrc => &[buffers.dst],
        Op::Dualcast => &[buffers.dst, buffers.dst2],
        _ => return false,
    };
    let bytes = |address: u64| {
        // SAFETY: the buffer is in the arena of the calling thread, which nobody else uses.
        unsafe { std::slice::from_raw_parts(address as *const u8, micros.size as usize) }
    };
    let pattern = crate::buffers::PATTERN.to_le_bytes();
    written.iter().any(|ring| {
        (0..ring.count).any(|index| match micros.op {
            Op::Fill => {
                let found = bytes(ring.at(index)).iter().enumerate();
                found.into_iter().any(|(at, byte)| *byte != pattern[at % 8])
            }
            _ => bytes(ring.at(index)) != bytes(buffers.src.at(index)),
        })
    })
}

/// Ticks of the time stamp counter in a second, measured against the clock.
#[cfg(target_arch = "x86_64")]
fn ticks_per_second() -> u64 {
    // SAFETY: no condition but the instruction set's baseline.
    let before = unsafe { std::arch::x86_64::_rdtsc() };
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(5) {
        std::hint::spin_loop();
    }
    let took = start.elapsed().as_nanos() as u64;
    // SAFETY: as above.
    let after = unsafe { std::arch::x86_64::_rdtsc() };
    let ticks = u128::from(after.saturating_sub(before)) * 1_000_000_000;
    (ticks / u128::from(took.max(1))) as u64
}

/// Latencies are told in nanoseconds where there is no such counter.
#[cfg(not(target_arch = "x86_64"))]
fn ticks_per_second() -> u64 {
    1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_right_wherever_their_bytes_are() {
        for op in [Op::Move, Op::Fill, Op::Compare, Op::Dualcast, Op::Crc] {
            for access in [
                Access::None,
                Access::Touched,
                Access::Demoted,
                Access::Flushed,
            ] {
                let micros = Micros {
                    op,
                    buffers: 4,
                    iterations: Some(3),
                    access: vec![access; 2],
                    ..Micros::default()
                };
                let found = run(&micros, None).unwrap();
                assert_eq!(found.outcome.iterations, 3);
                assert!(found.outcome.gb_per_sec > 0.0);
            }
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let error = run(&Micros::default(), Some(&[u16::MAX])).unwrap_err();
        assert!(error.to_string().contains("-k 65535"), "{error}");
    }
}
