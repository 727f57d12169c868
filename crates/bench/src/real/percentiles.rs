//! How the times of single iterations spread.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::timing::Counter;

/// Histograms count tenths of a nanosecond: a hot iteration may take a few of them only.
const TENTHS: u64 = 10;

/// A histogram that grows as it has to.
pub(super) fn histogram() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "three digits are in the allowed 0 to 5")]
    Histogram::new(3).expect("three significant digits are allowed")
}

/// Records `count` iterations that took so long together.
pub(super) fn record(histogram: &mut Histogram<u64>, took: Duration, count: u64) {
    let tenths = took.as_nanos() as u64 * TENTHS / count.max(1);
    // It grows as far as u64 does, so that no value is refused.
    let _ = histogram.record(tenths.max(1));
}

/// Median, 90 % and 99 %, in seconds.
pub(super) fn counters(histogram: &Histogram<u64>) -> Vec<Counter> {
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)]
        .into_iter()
        .map(|(name, at)| Counter {
            name: name.to_owned(),
            value: histogram.value_at_quantile(at) as f64 / 1e9 / TENTHS as f64,
            unit: "s",
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut histogram = histogram();
        for micros in 1..=100 {
            record(&mut histogram, Duration::from_micros(micros * 10), 10);
        }
        let found: Vec<f64> = counters(&histogram).iter().map(|c| c.value * 1e6).collect();
        for (found, wanted) in found.iter().zip([50.0, 90.0, 99.0]) {
            assert!((found / wanted - 1.0).abs() < 2e-3, "{found} for {wanted}");
        }
    }

    /// From a fraction of a nanosecond to an hour.
    #[test]
    fn the_range_has_no_end() {
        for (took, count, seconds) in [
            (Duration::from_nanos(1), 5, 2e-10),
            (Duration::from_secs(3600), 1, 3600.0),
        ] {
            let mut histogram = histogram();
            record(&mut histogram, took, count);
            let p50 = counters(&histogram)[0].value;
            assert!((p50 / seconds - 1.0).abs() < 2e-3, "{p50}");
        }
    }
}
