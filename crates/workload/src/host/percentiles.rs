//! How the times of single iterations spread.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Histograms count tenths of a nanosecond: a hot iteration may take a few of them only.
const TENTHS: u64 = 10;

/// A histogram of times that grows as it has to.
#[derive(Debug, Clone)]
pub struct Percentiles(Histogram<u64>);

impl Default for Percentiles {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "three digits are in the allowed 0 to 5")]
        Percentiles(Histogram::new(3).expect("three significant digits are allowed"))
    }
}

impl Percentiles {
    /// Records `count` iterations that took so long together.
    pub fn record(&mut self, took: Duration, count: u64) {
        let tenths = took.as_nanos() as u64 * TENTHS / count.max(1);
        // It grows as far as u64 does, so that no value is refused.
        let _ = self.0.record(tenths.max(1));
    }

    /// Adds what another one has recorded.
    pub fn add(&mut self, other: &Percentiles) {
        // It grows as far as the other did.
        let _ = self.0.add(&other.0);
    }

    /// The time in seconds that a share of the iterations does not exceed.
    pub fn at(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e9 / TENTHS as f64
    }

    /// Median, 90 % and 99 %, in seconds.
    pub fn named(&self) -> [(&'static str, f64); 3] {
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)].map(|(name, share)| (name, self.at(share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_recorded_times() {
        let mut percentiles = Percentiles::default();
        for micros in 1..=100 {
            percentiles.record(Duration::from_micros(micros * 10), 10);
        }
        let found = percentiles.named().map(|(_, seconds)| seconds * 1e6);
        for (found, wanted) in found.iter().zip([50.0, 90.0, 99.0]) {
            assert!((found / wanted - 1.0).abs() < 2e-3, "{found} for {wanted}");
        }
    }

    /// From a fraction of a nanosecond to an hour.
    #[test]
    fn times_from_below_a_nanosecond_to_an_hour_are_recorded() {
        for (took, count, seconds) in [
            (Duration::from_nanos(1), 5, 2e-10),
            (Duration::from_secs(3600), 1, 3600.0),
        ] {
            let mut percentiles = Percentiles::default();
            percentiles.record(took, count);
            let p50 = percentiles.at(0.5);
            assert!((p50 / seconds - 1.0).abs() < 2e-3, "{p50}");
        }
    }
}
