//! dsa_perf_micros's -m: the CPU of this machine does the work.

use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use dray_workload::{Gauge, Percentiles, available_cpus, cpu_list, memory_nodes};

use super::counters;
use super::micros_thread::{Share, arena_bytes, share};
use crate::BenchError;
use crate::micros::{Micros, Outcome};
use crate::timing::Counter;

/// A measurement on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Software {
    /// What was found.
    pub outcome: Outcome,
    /// Percentiles of an operation, each iteration giving one value.
    pub percentiles: Vec<Counter>,
    /// What makes it doubtful.
    pub warnings: Vec<String>,
}

/// Runs a measurement on the CPUs of this machine; without a list, on the first that may be used.
///
/// # Errors
/// A CPU or memory node that is not there, no memory, operations that fail or move the wrong bytes.
pub fn run(micros: &Micros, cpus: Option<&[u16]>, gauge: &Gauge) -> Result<Software, BenchError> {
    let cpus = chosen(cpus)?;
    check(micros, cpus.len())?;
    let barrier = Barrier::new(cpus.len());
    gauge.start(match micros.iterations {
        Some(iterations) => iterations,
        None => (micros.seconds * 1e9) as u64,
    });
    let shares: Vec<io::Result<Share>> = std::thread::scope(|scope| {
        let one = |(index, cpu): (usize, &u16)| {
            let (cpu, barrier) = (*cpu, &barrier);
            let watched = (index == 0).then_some(gauge);
            scope.spawn(move || share(micros, index, cpu, barrier, watched))
        };
        let handles: Vec<_> = cpus.iter().enumerate().map(one).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            let lost = |_| Err(io::Error::other("a measuring thread ended early"));
            handle.join().unwrap_or_else(lost)
        };
        handles.into_iter().map(join).collect()
    });
    let shares: Vec<Share> = shares.into_iter().collect::<io::Result<_>>()?;
    together(micros, shares)
}

pub(super) fn chosen(cpus: Option<&[u16]>) -> Result<Vec<u16>, BenchError> {
    let there = available_cpus();
    let cpus: Vec<u16> = match cpus {
        Some(cpus) => cpus.to_vec(),
        None => there.iter().take(1).copied().collect(),
    };
    match cpus.iter().find(|cpu| !there.contains(cpu)) {
        None => Ok(cpus),
        Some(cpu) => {
            let there: Vec<String> = there.iter().map(u16::to_string).collect();
            Err(BenchError::Value {
                flag: format!("-k {cpu}"),
                reason: "this process may not use that CPU, or it is not there".to_owned(),
                hint: format!("-m runs on this machine, on CPUs {}", there.join(", ")),
            })
        }
    }
}

/// Whether the machine has the memory nodes and the large pages.
pub(super) fn check(micros: &Micros, cpus: usize) -> Result<(), BenchError> {
    let there = memory_nodes();
    let known = cpu_list(&there).unwrap_or_default();
    for node in micros.nodes.iter().flatten().filter(|node| **node != -1) {
        if !u16::try_from(*node).is_ok_and(|node| known.contains(&node)) {
            return Err(BenchError::Value {
                flag: format!("-S {node}"),
                reason: format!("this machine has memory nodes {there}"),
                hint: "-S -1 is the CPU's own node".to_owned(),
            });
        }
    }
    let needed: usize = arena_bytes(micros)
        .map(|bytes| micros.pages.needed(bytes))
        .sum::<usize>()
        * cpus;
    let free = micros.pages.free();
    if needed > free {
        let pool = micros.pages.pool();
        return Err(BenchError::Value {
            flag: "-l".to_owned(),
            reason: format!("{needed} large pages are needed and {free} are free"),
            hint: format!("echo {needed} > {pool}/nr_hugepages"),
        });
    }
    Ok(())
}

fn together(micros: &Micros, shares: Vec<Share>) -> Result<Software, BenchError> {
    let failed: u64 = shares.iter().map(|s| s.failed).sum();
    if failed > 0 {
        return Err(BenchError::Software { operations: failed });
    }
    if let Some(buffer) = shares.iter().find_map(|s| s.wrong) {
        return Err(BenchError::WrongBytes { buffer });
    }
    let threads = shares.len().max(1) as f64;
    let mean_ns = shares
        .iter()
        .map(|s| s.elapsed.as_nanos() as f64)
        .sum::<f64>()
        / threads;
    let rounds: u64 = shares.iter().map(|s| s.rounds).sum();
    let operations = rounds as f64 * f64::from(micros.buffers);
    let bytes = operations * micros.counted_bytes();
    let alone = micros.queue_depth == Some(1) || micros.buffers == 1;
    let each = operations / threads;
    let mut percentiles = Percentiles::default();
    let mut warnings = Vec::new();
    let cpus = shares.len() as u64;
    for share in shares {
        percentiles.add(&share.percentiles);
        warnings.extend(share.doubts);
    }
    Ok(Software {
        outcome: Outcome {
            gb_per_sec: bytes / mean_ns.max(1.0),
            latency_ns: alone.then(|| mean_ns / each.max(1.0)),
            cycles_per_sec: ticks_per_second(),
            cpu_percent: 100.0,
            kops: (operations / mean_ns.max(1.0) * 1e6) as u64,
            submission: None,
            iterations: rounds / cpus.max(1),
            verified: micros.verify,
        },
        percentiles: counters(&percentiles),
        warnings,
    })
}

/// Ticks of the time stamp counter in a second, measured against the clock.
#[cfg(target_arch = "x86_64")]
pub(super) fn ticks_per_second() -> u64 {
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

/// Latencies are given in nanoseconds where there is no such counter.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn ticks_per_second() -> u64 {
    1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micros::{Access, OPCODES};
    use crate::real::Pages;

    fn measure(micros: &Micros, cpus: Option<&[u16]>) -> Result<Software, BenchError> {
        run(micros, cpus, &Gauge::default())
    }

    #[test]
    fn operations_are_correct_with_every_cache_preparation() {
        for (_, op, name) in OPCODES {
            for access in [
                Access::None,
                Access::Touched,
                Access::Demoted,
                Access::Flushed,
            ] {
                let micros = Micros {
                    op: *op,
                    buffers: 4,
                    iterations: Some(3),
                    access: vec![access; 2],
                    nodes: vec![vec![-1, 0]],
                    ..Micros::default()
                };
                let found = measure(&micros, None).unwrap();
                assert_eq!(found.outcome.iterations, 3, "{name}");
                let spread = found.percentiles.iter();
                assert_eq!(spread.filter(|p| p.value > 0.0).count(), 3, "{name}");
            }
        }
    }

    #[test]
    fn the_gauge_counts_to_the_last_iteration() {
        let gauge = Gauge::default();
        let micros = Micros {
            iterations: Some(7),
            ..Micros::default()
        };
        run(&micros, None, &gauge).unwrap();
        assert_eq!(gauge.read(), (7, 7));
    }

    #[test]
    fn missing_cpus_nodes_and_huge_pages_are_named() {
        let message = |micros: &Micros, cpus| measure(micros, cpus).unwrap_err().to_string();
        assert!(message(&Micros::default(), Some(&[u16::MAX])).contains("-k 65535"));
        let far = Micros {
            nodes: vec![vec![0, 999]],
            ..Micros::default()
        };
        assert!(message(&far, None).contains("-S 999"));
        let large = Micros {
            pages: Pages::Huge1G,
            buffers: 1 << 16,
            size: 1 << 30,
            ..Micros::default()
        };
        assert!(message(&large, None).contains("large pages are needed"));
    }
}
