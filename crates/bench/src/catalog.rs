//! Which cases there are.

use dray_workload::{Exec, Location, Op, Shape};

use crate::case::{Api, Case, OPS, Output, Path, Timer};

/// What varies. The defaults are the axes of DML's own benchmarks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    /// Bytes of one operation.
    pub sizes: Vec<u32>,
    /// Operations in flight.
    pub queue_sizes: Vec<u32>,
    /// Operations in a batch; 0: none.
    pub batch_sizes: Vec<u32>,
    /// Threads of asynchronous cases.
    pub threads: Vec<u32>,
    /// Location of the input.
    pub in_mem: Location,
    /// Location of the output.
    pub out_mem: Output,
    /// What the clock covers.
    pub timers: Vec<Timer>,
    /// No cases on the device.
    pub no_hw: bool,
    /// Operations that the device does not have.
    pub lacking: Vec<Op>,
    /// Cases of a device of this machine, and nothing else.
    pub device: bool,
    /// Cases that can be measured on this machine, instead of those that can be modelled.
    pub real: bool,
    /// Cases of api:cpp among those that are measured.
    pub cpp: bool,
}

impl Default for Axes {
    fn default() -> Self {
        Axes {
            sizes: (10..=24).map(|shift| 1 << shift).collect(),
            queue_sizes: vec![16, 32, 64, 128],
            batch_sizes: vec![0, 4, 8, 16],
            threads: vec![1, 2, 4, 8, 16],
            in_mem: Location::Llc,
            out_mem: Output {
                location: Location::Llc,
                cache_control: true,
            },
            timers: vec![Timer::Proc, Timer::Full],
            no_hw: false,
            lacking: Vec::new(),
            device: false,
            real: false,
            cpp: false,
        }
    }
}

impl Axes {
    /// All cases, in the order in which they run.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &(op, _) in OPS {
            for (api, path) in self.ways(op) {
                self.add(op, api, path, &mut cases);
            }
        }
        cases
    }

    /// Interfaces and paths that an operation has.
    fn ways(&self, op: Op) -> Vec<(Api, Path)> {
        let mut ways = Vec::new();
        // DML's C++ interface has these.
        let in_cpp = !matches!(
            op,
            Op::DifCheck | Op::DifInsert | Op::DifStrip | Op::DifUpdate | Op::DixGenerate
        );
        if self.device {
            if self.cpp && in_cpp {
                ways.push((Api::Cpp, Path::Dsa));
            }
            ways.push((Api::Rust, Path::Dsa));
            return ways;
        }
        if !self.no_hw && !self.real && !self.lacking.contains(&op) {
            ways.push((Api::C, Path::Dsa));
            if in_cpp {
                ways.push((Api::Cpp, Path::Dsa));
            }
            ways.push((Api::Rust, Path::Dsa));
        }
        // Doing nothing has no software.
        if op != Op::Nop {
            if !self.real {
                ways.push((Api::C, Path::Cpu));
                if in_cpp {
                    ways.push((Api::Cpp, Path::Cpu));
                }
            } else if self.cpp && in_cpp {
                ways.push((Api::Cpp, Path::Cpu));
            }
            ways.push((Api::Rust, Path::Cpu));
        }
        if matches!(op, Op::Move | Op::Copy | Op::Fill | Op::Compare) {
            ways.push((Api::Glibc, Path::Cpu));
        }
        ways
    }

    fn add(&self, op: Op, api: Api, path: Path, cases: &mut Vec<Case>) {
        let sizes: &[u32] = match op {
            // The size of an operation that moves nothing is no axis.
            Op::Nop => &[0],
            _ => &self.sizes,
        };
        let out_mem = Output {
            // A core's stores go through its caches: there is nothing to choose.
            cache_control: self.out_mem.cache_control && path == Path::Dsa,
            ..self.out_mem
        };
        let taken = |size: &&u32| op == Op::Nop || Shape::new(op, **size).refusal().is_none();
        for &size in sizes.iter().filter(taken) {
            for &qsize in &self.queue_sizes {
                for &bsize in self.batches(path) {
                    for &timer in self.timers(path) {
                        for exec in [Exec::Sync, Exec::Async] {
                            for &threads in self.threads(path, exec) {
                                if threads <= qsize {
                                    cases.push(Case {
                                        op,
                                        api,
                                        path,
                                        exec,
                                        qsize,
                                        bsize,
                                        in_mem: self.in_mem,
                                        out_mem,
                                        timer,
                                        size,
                                        threads,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// A core takes one operation after the other: batches are the device's.
    fn batches(&self, path: Path) -> &[u32] {
        match path {
            Path::Dsa => &self.batch_sizes,
            Path::Cpu => &[0],
        }
    }

    /// A core has no descriptors to prepare: only the full time can be given.
    fn timers(&self, path: Path) -> &[Timer] {
        match path {
            Path::Dsa => &self.timers,
            Path::Cpu => &[Timer::Full],
        }
    }

    /// Modelled cores do not share memory bandwidth, so several of them would say too much.
    fn threads(&self, path: Path, exec: Exec) -> &[u32] {
        match (exec, path) {
            (Exec::Sync, _) => &[1],
            (Exec::Async, Path::Cpu) if !self.real && !self.device => &[1],
            (Exec::Async, _) => &self.threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_cover_every_operation() {
        let cases = Axes::default().cases();
        let names: HashSet<String> = cases.iter().map(Case::to_string).collect();
        assert_eq!(names.len(), cases.len());
        for (op, name) in OPS {
            assert!(cases.iter().any(|c| c.op == *op), "{name}");
        }
    }

    #[test]
    fn operations_that_the_device_lacks_are_no_cases() {
        let axes = Axes {
            lacking: vec![Op::DixGenerate],
            ..Axes::default()
        };
        let cases = axes.cases();
        let dix = |c: &&Case| c.op == Op::DixGenerate;
        assert!(cases.iter().filter(dix).all(|c| c.path == Path::Cpu));
        let delta = |c: &&Case| c.op == Op::CreateDelta;
        assert_eq!(
            cases.iter().filter(delta).map(|c| c.size).max(),
            Some(512 << 10)
        );
    }

    #[test]
    fn the_cpp_interface_is_measured_where_it_is_installed() {
        for (device, path) in [(false, Path::Cpu), (true, Path::Dsa)] {
            for cpp in [false, true] {
                let axes = Axes {
                    real: !device,
                    device,
                    cpp,
                    ..Axes::default()
                };
                let cases = axes.cases();
                let mut of_cpp = cases.iter().filter(|case| case.api == Api::Cpp);
                assert_eq!(of_cpp.clone().count() > 0, cpp);
                assert!(of_cpp.all(|case| case.path == path && !case.op.has_fields()));
            }
        }
    }

    #[test]
    fn without_a_device_all_cases_are_of_the_core() {
        let axes = Axes {
            no_hw: true,
            ..Axes::default()
        };
        assert!(axes.cases().iter().all(|c| c.path == Path::Cpu));
    }
}
