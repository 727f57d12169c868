//! What was measured of a case, and the numbers that follow from it.

use crate::case::Case;

/// One measurement of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Iterations of all threads together.
    pub iterations: u64,
    /// Time of one iteration: the mean time of the threads, divided by all iterations.
    pub real_ns: f64,
    /// Time that cores were busy with one iteration.
    pub cpu_ns: f64,
}

/// A number that a case reports beside its times.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Name.
    pub name: String,
    /// Value: seconds, or bytes a second.
    pub value: f64,
    /// What follows the value on the console.
    pub unit: &'static str,
}

impl Timing {
    /// Latency of an iteration, of one of its operations (batches counted once), and throughput.
    pub fn counters(&self, case: &Case) -> Vec<Counter> {
        let counter = |name: &str, value, unit| Counter {
            name: name.to_owned(),
            value,
            unit,
        };
        let seconds = self.real_ns / 1e9;
        let operations = f64::from(case.queue_per_thread());
        let bytes = case.bytes_per_iteration() as f64;
        let rate = match seconds > 0.0 {
            true => bytes / seconds,
            false => 0.0,
        };
        vec![
            counter("Latency", seconds, "s"),
            counter("Latency/Op", seconds / operations, "s"),
            counter("Throughput", rate, "/s"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exec;
    use crate::case::tests::SEED;

    /// The six lines of the guide to DML's benchmarks: threads (0: synchronous), time in ns,
    /// latency and latency per operation in us, throughput in GB/s.
    const GUIDE: [(u32, f64, f64, f64, f64); 6] = [
        (0, 833_022.0, 833.022, 52.0639, 20.1402),
        (1, 763_158.0, 763.158, 47.6974, 21.9839),
        (2, 361_855.0, 361.855, 45.2319, 23.1822),
        (4, 182_710.0, 182.71, 45.6775, 22.9561),
        (8, 144_228.0, 144.228, 72.114, 14.5405),
        (16, 81_296.5, 81.2965, 81.2965, 12.8982),
    ];

    #[test]
    fn counters_are_computed_as_in_the_guide() {
        for (threads, real_ns, latency, per_operation, throughput) in GUIDE {
            let case = Case {
                exec: if threads == 0 {
                    Exec::Sync
                } else {
                    Exec::Async
                },
                threads: threads.max(1),
                ..SEED
            };
            let timing = Timing {
                iterations: 1,
                real_ns,
                cpu_ns: real_ns,
            };
            let c = timing.counters(&case);
            let near = |found: f64, stated: f64| (found / stated - 1.0).abs() < 1e-5;
            assert!(near(c[0].value * 1e6, latency), "{threads}");
            assert!(near(c[1].value * 1e6, per_operation), "{threads}");
            assert!(near(c[2].value / 1e9, throughput), "{threads}");
        }
    }
}
