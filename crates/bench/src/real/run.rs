//! Cases on this machine: which CPUs, and what all threads found together.

use std::io;
use std::sync::{Arc, Barrier};

use dray_workload::{Percentiles, available_cpus};

use super::counters;
use super::cpp::{CppError, Library};
use super::device::DeviceChoice;
use super::host::on_node;
use super::thread::{Share, share};
use super::{case_cpp, case_device};
use crate::BenchError;
use crate::case::{Api, Case, Path};
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
    cpp: Option<Arc<Library>>,
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
            cpp: None,
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

    /// The same with the interface for C++, for cases of api:cpp.
    #[must_use]
    pub fn with_cpp(self, library: Arc<Library>) -> Real {
        Real {
            cpp: Some(library),
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
    /// More threads than CPUs, no memory, operations that fail; a case of api:cpp without its interface.
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
        let cpp = match (case.api, &self.cpp) {
            (Api::Cpp, None) => return Err(CppError::NotBuilt.into()),
            (Api::Cpp, Some(library)) => Some(library),
            _ => None,
        };
        let (mut movers, mut queues) = (Vec::new(), Vec::new());
        if let (Some(choice), Path::Dsa) = (&self.device, case.path) {
            match cpp {
                Some(_) => queues = case_cpp::queues(case, choice)?,
                None => movers = case_device::movers(case, choice)?,
            }
        }
        let shares: Vec<io::Result<Share>> = std::thread::scope(|scope| {
            let handles: Vec<_> = self.cpus[..threads]
                .iter()
                .map(|cpu| {
                    let (mover, queue) = (movers.pop(), queues.pop());
                    let (barrier, min_time) = (&barrier, self.min_time);
                    scope.spawn(move || match (mover, queue, cpp) {
                        (Some(mover), ..) => {
                            case_device::share(case, *cpu, mover, min_time, barrier)
                        }
                        (None, Some(queue), Some(library)) => {
                            let at = (*cpu, queue.as_str());
                            case_cpp::share(case, library, at, min_time, barrier)
                        }
                        _ => share(case, *cpu, cpp, min_time, barrier),
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
    use crate::catalog::Axes;

    #[test]
    fn every_listed_case_runs_with_a_correct_result() {
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
    fn a_cpp_case_without_its_interface_is_an_error() {
        let axes = Axes {
            real: true,
            cpp: true,
            sizes: vec![64],
            ..Axes::default()
        };
        let cases = axes.cases();
        let case = cases.iter().find(|case| case.api == Api::Cpp).unwrap();
        let real = Real::new(MinTime::Iterations(1), None).unwrap();
        let error = real.run(case).unwrap_err();
        assert!(
            matches!(error, BenchError::Cpp(CppError::NotBuilt)),
            "{error}"
        );
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
    fn a_missing_node_is_named() {
        let error = Real::new(MinTime::Iterations(1), Some(9999)).unwrap_err();
        assert!(error.to_string().contains("--node=9999"), "{error}");
    }
}
