//! What was measured of a point, by name.

use crate::stream::Measured;

/// Names and values, in a fixed order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics(Vec<(String, f64)>);

impl Metrics {
    /// One metric alone.
    pub fn single(name: &str, value: f64) -> Metrics {
        Metrics(vec![(name.to_owned(), value)])
    }

    /// The metrics of a stream of operations of `bytes` payload bytes.
    pub(crate) fn of(measured: &Measured, bytes: u64) -> Metrics {
        let operations = measured.operations.max(1) as f64;
        let period = measured.elapsed.as_ns() / operations;
        let latency = measured.latency.as_ns() / operations;
        let (prepare, submit) = (
            measured.prepare.as_ns() / operations,
            measured.submit.as_ns() / operations,
        );
        Metrics::default()
            .with(
                "throughput_gbps",
                bytes as f64 / period.max(f64::MIN_POSITIVE),
            )
            .with("latency_ns", latency)
            .with("period_ns", period)
            .with("prepare_ns", prepare)
            .with("submit_ns", submit)
            .with("wait_ns", (period - prepare - submit).max(0.0))
    }

    /// Adds a metric.
    pub fn with(mut self, name: &str, value: f64) -> Metrics {
        self.0.push((name.to_owned(), value));
        self
    }

    /// A metric by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|m| m.0 == name).map(|m| m.1)
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<(String, f64)> {
        self.0
    }
}
