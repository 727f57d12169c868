//! The three-phase profile of transfers.

use hdrhistogram::Histogram;

/// A part of a transfer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Software before the doorbell, waiting for a queue, and polling.
    HostQueueing,
    /// The doorbell, the data and the completion word on the fabric.
    FabricTransit,
    /// From the command's arrival at the device to its first TLP.
    RemoteExecution,
    /// All of it.
    Total,
}

impl Phase {
    /// All of them in order.
    pub const ALL: [Phase; 4] = [
        Phase::HostQueueing,
        Phase::FabricTransit,
        Phase::RemoteExecution,
        Phase::Total,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostQueueing => "host queueing",
            Self::FabricTransit => "fabric transit",
            Self::RemoteExecution => "remote execution",
            Self::Total => "total",
        }
    }
}

/// Mean and percentiles, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    /// Transfers.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Smallest.
    pub min_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 90th percentile.
    pub p90_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// 99.9th percentile.
    pub p999_ns: f64,
    /// Largest.
    pub max_ns: f64,
}

/// Durations of one stream's transfers by phase, to three digits.
#[derive(Debug, Clone)]
pub struct Profile {
    histograms: [Histogram<u64>; 4],
    sums: [u128; 4],
}

impl Default for Profile {
    fn default() -> Self {
        let empty = || Histogram::new(3).expect("three digits are a valid precision");
        Self {
            histograms: [empty(), empty(), empty(), empty()],
            sums: [0; 4],
        }
    }
}

impl Profile {
    /// Adds a transfer by its six stamps, ps; see [`TransferSpan`](super::TransferSpan).
    pub(super) fn add(&mut self, stamps: &[u64; 6]) {
        let [asked, sent, arrived, first, stored, known] = *stamps;
        let phases = [
            (sent - asked) + (known - stored),
            (arrived - sent) + (stored - first),
            first - arrived,
            known - asked,
        ];
        for (index, span) in phases.into_iter().enumerate() {
            self.sums[index] += u128::from(span);
            // The histogram grows with its values; one that it could not grow to would be counted
            // as its largest.
            let histogram = &mut self.histograms[index];
            if histogram.record(span).is_err() {
                histogram.saturating_record(span);
            }
        }
    }

    /// Mean and percentiles of a phase.
    pub fn summary(&self, phase: Phase) -> Summary {
        let histogram = self.histogram(phase);
        let count = histogram.len();
        if count == 0 {
            return Summary::default();
        }
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1000.0;
        Summary {
            count,
            mean_ns: self.sums[index(phase)] as f64 / count as f64 / 1000.0,
            min_ns: histogram.min() as f64 / 1000.0,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: histogram.max() as f64 / 1000.0,
        }
    }

    /// The distribution of a phase: upper edges of its buckets, ns, and the share of transfers up
    /// to there.
    pub fn cdf(&self, phase: Phase) -> Vec<(f64, f64)> {
        let histogram = self.histogram(phase);
        let total = histogram.len() as f64;
        let mut seen = 0;
        let recorded = histogram.iter_recorded();
        recorded
            .map(|value| {
                seen += value.count_since_last_iteration();
                (
                    value.value_iterated_to() as f64 / 1000.0,
                    seen as f64 / total,
                )
            })
            .collect()
    }

    /// Counts of a phase by powers of two: upper edge in ns, and how many.
    pub fn buckets(&self, phase: Phase) -> Vec<(f64, u64)> {
        let logarithmic = self.histogram(phase).iter_log(1000, 2.0);
        logarithmic
            .map(|value| {
                let edge = value.value_iterated_to() as f64 / 1000.0;
                (edge, value.count_since_last_iteration())
            })
            .collect()
    }

    fn histogram(&self, phase: Phase) -> &Histogram<u64> {
        &self.histograms[index(phase)]
    }
}

fn index(phase: Phase) -> usize {
    match phase {
        Phase::HostQueueing => 0,
        Phase::FabricTransit => 1,
        Phase::RemoteExecution => 2,
        Phase::Total => 3,
    }
}
