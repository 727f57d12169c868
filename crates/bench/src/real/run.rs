//! Cases on this machine: which CPUs, and what all threads found together.

use std::io;
use std::sync::Barrier;

use dray_workload::{Percentiles, available_cpus};

use super::case_device;
use super::counters;
use super::device::DeviceChoice;
use super::host::on_node;
use super::thread::{Share, share};
use crate::BenchError;
use crate::case::{Case, Path};
use crate::modelled::MinTime;
use crate::timing::{Counter, Timing};

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Times.
    pub timing: Timing,
    /// Percentiles of an iteration.
    pub percentiles: Vec<Counter>,
    /// What makes it doubtful.
    pub warnings: Vec<String>,
}

/// The CPUs of this machine that cases run on.
#[derive(Debug)]
pub struct Real {
    cpus: Vec<u16>,
    min_time: MinTime,
    device: Option<DeviceChoice>,
}

impl Real {
    /// All CPUs that this process may use, or those of one memory node; cases last so long.
    /// Memory is on the node of the CPU that uses it.
    ///
    /// # Errors
    /// A node that has no such CPU.
    pub fn new(min_time: MinTime, node: Option<u16>) -> Result<Real, BenchError> {
        let cpus = match node {
            None => available_cpus(),
            Some(node) => on_node(node)?,
        };
        Ok(Real {
            cpus,
            min_time,
            device: None,
        })
    }

    /// The same with a device of this machine, for cases of path:dsa.
    #[must_use]
    pub fn with_device(self, device: DeviceChoice) -> Real {
        Real {
            device: Some(device),
            ..self
        }
    }

    /// CPUs that there are.
    pub fn cpus(&self) -> &[u16] {
        &self.cpus
    }

    /// Measures a case once.
    ///
    /// # Errors
    /// More threads than CPUs, no memory, operations that fail.
    pub fn run(&self, case: &Case) -> Result<Measured, BenchError> {
        let threads = case.threads as usize;
        if threads > self.cpus.len() {
            return Err(BenchError::Value {
                flag: format!("--threads={threads}"),
                reason: format!("this process may use {} CPUs", self.cpus.len()),
                hint: format!("--threads={}", self.cpus.len()),
            });
        }
        let barrier = Barrier::new(threads);
        let mut movers = match &self.device {
            Some(choice) if case.path == Path::Dsa => case_device::movers(case, choice)?,
            _ => Vec::new(),
        };
        let shares: Vec<io::Result<Share>> = std::thread::scope(|scope| {
            let handles: Vec<_> = self.cpus[..threads]
                .iter()
                .map(|cpu| {
                    let (mover, barrier) = (movers.pop(), &barrier);
                    scope.spawn(move || match mover {
                        Some(mover) => {
                            case_device::share(case, *cpu, mover, self.min_time, barrier)
                        }
                        None => share(case, *cpu, self.min_time, barrier),
                    })
                })
                .collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
                let lost = |_| Err(io::Error::other("a measuring thread ended early"));
                handle.join().unwrap_or_else(lost)
            };
            handles.into_iter().map(join).collect()
        });
        let shares: Vec<Share> = shares.into_iter().collect::<io::Result<_>>()?;
        together(case, shares)
    }
}

fn together(case: &Case, shares: Vec<Share>) -> Result<Measured, BenchError> {
    let failed = shares.iter().map(|s| s.failed).sum();
    if failed > 0 {
        return Err(BenchError::Software { operations: failed });
    }
    let iterations: u64 = shares.iter().map(|s| s.iterations).sum();
    let ns: Vec<f64> = shares.iter().map(|s| s.elapsed.as_nanos() as f64).collect();
    let cpu: f64 = shares.iter().zip(&ns).map(|(s, ns)| s.cpu_share * ns).sum();
    let total: f64 = ns.iter().sum();
    let mut percentiles = Percentiles::default();
    let mut warnings = Vec::new();
    for share in shares {
        percentiles.add(&share.percentiles);
        warnings.extend(share.doubts);
    }
    Ok(Measured {
        timing: Timing {
            iterations,
            real_ns: total / f64::from(case.threads) / iterations.max(1) as f64,
            cpu_ns: cpu / iterations.max(1) as f64,
        },
        percentiles: counters(&percentiles),
        warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Api;
    use crate::catalog::Axes;

    #[test]
    fn every_case_that_is_listed_runs_and_is_right() {
        let axes = Axes {
            real: true,
            sizes: vec![1000, 4096],
            queue_sizes: vec![2],
            threads: vec![1],
            ..Axes::default()
        };
        let real = Real::new(MinTime::Iterations(20), None).unwrap();
        for case in axes.cases() {
            assert_ne!(case.api, Api::C);
            let found = real.run(&case).unwrap();
            assert_eq!(found.timing.iterations, 20, "{case}");
            assert!(
                found.timing.real_ns > 0.0 && found.percentiles.len() == 3,
                "{case}"
            );
        }
    }

    #[test]
    fn more_threads_than_cpus_are_refused() {
        let axes = Axes {
            real: true,
            queue_sizes: vec![1 << 16],
            sizes: vec![64],
            threads: vec![1 << 15],
            ..Axes::default()
        };
        let case = axes.cases().into_iter().find(|c| c.threads > 1).unwrap();
        let real = Real::new(MinTime::Iterations(1), None).unwrap();
        let error = real.run(&case).unwrap_err();
        assert!(error.to_string().contains("may use"), "{error}");
    }

    #[test]
    fn a_node_that_is_not_there_is_named() {
        let error = Real::new(MinTime::Iterations(1), Some(9999)).unwrap_err();
        assert!(error.to_string().contains("--node=9999"), "{error}");
    }
}
