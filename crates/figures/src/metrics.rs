//! What was measured of a point, by name.

use dray_clock::Duration;

use dray_workload::Measured;

/// Names and values, in a fixed order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics(Vec<(String, f64)>);

impl Metrics {
    /// One metric alone.
    pub fn single(name: &str, value: f64) -> Metrics {
        Metrics(vec![(name.to_owned(), value)])
    }

    /// The metrics of streams of operations of `bytes` payload bytes that ran at the same time.
    pub(crate) fn of(streams: &[Measured], bytes: u64) -> Metrics {
        let operations = streams.iter().map(|m| m.operations).sum::<u64>().max(1) as f64;
        let mean = |time: fn(&Measured) -> Duration| {
            streams.iter().map(|m| time(m).as_ns()).sum::<f64>() / operations
        };
        let period = match streams {
            [one] => one.elapsed.as_ns() / operations,
            all => {
                let rate =
                    |m: &Measured| m.operations as f64 / m.elapsed.as_ns().max(f64::MIN_POSITIVE);
                1.0 / all.iter().map(rate).sum::<f64>().max(f64::MIN_POSITIVE)
            }
        };
        let (prepare, submit) = (mean(|m| m.prepare), mean(|m| m.submit));
        // What a core waits of its own period; the period of all is shorter.
        let own = period * streams.len() as f64;
        Metrics::default()
            .with(
                "throughput_gbps",
                bytes as f64 / period.max(f64::MIN_POSITIVE),
            )
            .with("latency_ns", mean(|m| m.latency))
            .with("period_ns", period)
            .with("prepare_ns", prepare)
            .with("submit_ns", submit)
            .with("wait_ns", (own - prepare - submit).max(0.0))
            .with("rate_mops", 1e3 / period.max(f64::MIN_POSITIVE))
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
