//! Times from submission to the completion that was seen, by size.

use std::collections::BTreeMap;

use dray_clock::Duration;

/// Buckets of a doubling.
const STEPS: u32 = 64;

/// Times of requests, by powers of two of their sizes.
#[derive(Debug, Clone, Default)]
pub struct Latency(BTreeMap<u64, BTreeMap<u32, u64>>);

/// Requests of sizes from one power of two to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeClass {
    /// Bytes, from which on.
    pub from_bytes: u64,
    /// Requests.
    pub count: u64,
    /// 50th, 90th, 99th percentile and most, in nanoseconds, to about 1 %.
    pub ns: [f64; 4],
}

/// The bucket of a time: 64 to a doubling of picoseconds.
fn bucket(time: Duration) -> u32 {
    let ps = time.0.max(1);
    let doublings = ps.ilog2();
    let below = 1_u64 << doublings;
    let part = u128::from(ps - below) * u128::from(STEPS) / u128::from(below);
    doublings * STEPS + part as u32
}

/// The middle of a bucket, in nanoseconds.
fn ns(bucket: u32) -> f64 {
    let below = 2_f64.powi((bucket / STEPS) as i32);
    below * (1.0 + (f64::from(bucket % STEPS) + 0.5) / f64::from(STEPS)) / 1000.0
}

impl Latency {
    pub(crate) fn enter(&mut self, bytes: u64, time: Duration) {
        let class = match bytes {
            0 => 0,
            bytes => 1 << bytes.ilog2(),
        };
        let times = self.0.entry(class).or_default();
        *times.entry(bucket(time)).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Latency) {
        for (class, times) in &other.0 {
            let of = self.0.entry(*class).or_default();
            for (bucket, count) in times {
                *of.entry(*bucket).or_default() += count;
            }
        }
    }

    /// The classes, the smallest first.
    pub fn classes(&self) -> Vec<SizeClass> {
        let each = self.0.iter().map(|(from, times)| {
            let count: u64 = times.values().sum();
            let at = |part: f64| {
                let wanted = (count as f64 * part).ceil().max(1.0) as u64;
                let mut sum = 0;
                let found = times.iter().find(|(_, some)| {
                    sum += **some;
                    sum >= wanted
                });
                found.map_or(0.0, |(bucket, _)| ns(*bucket))
            };
            SizeClass {
                from_bytes: *from,
                count,
                ns: [at(0.5), at(0.9), at(0.99), at(1.0)],
            }
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_percent() {
        let mut latency = Latency::default();
        for ns in 1..=1000 {
            latency.enter(5000, Duration::from_ns(ns));
        }
        let [class] = latency.classes()[..] else {
            panic!("one class");
        };
        assert_eq!((class.from_bytes, class.count), (4096, 1000));
        for (found, exact) in class.ns.iter().zip([500.0, 900.0, 990.0, 1000.0]) {
            assert!((found / exact - 1.0).abs() < 0.01, "{found} {exact}");
        }
    }
}
