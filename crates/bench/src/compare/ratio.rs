//! How much a case changed, and how sure that is.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::read::Measurement;
use crate::row::median;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2000;
/// Fixed, so that the same two files give the same interval.
const SEED: u64 = 0x0d2a_7000;

/// Time of the second result as a multiple of the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Case.
    pub name: String,
    /// Median of the first result in ns.
    pub old_ns: f64,
    /// Median of the second in ns.
    pub new_ns: f64,
    /// Second over first.
    pub ratio: f64,
    /// 95 % interval of the ratio of medians (percentile bootstrap), if both were repeated.
    pub interval: Option<(f64, f64)>,
    /// Measurements of both.
    pub repetitions: (usize, usize),
}

/// What a ratio amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Takes less time.
    Faster,
    /// Takes more.
    Slower,
    /// The interval holds 1, or the times are equal.
    Same,
}

impl Ratio {
    /// Of two measurements of a case.
    pub(super) fn of(old: &Measurement, new: &Measurement) -> Ratio {
        let (old_ns, new_ns) = (median(&old.ns), median(&new.ns));
        Ratio {
            name: old.name.clone(),
            old_ns,
            new_ns,
            ratio: new_ns / old_ns.max(f64::MIN_POSITIVE),
            interval: interval(&old.ns, &new.ns),
            repetitions: (old.ns.len(), new.ns.len()),
        }
    }

    /// How far from 1, whichever way.
    pub fn size(&self) -> f64 {
        self.ratio.max(1.0 / self.ratio.max(f64::MIN_POSITIVE))
    }

    /// Whether it changed, as far as repetitions show.
    pub fn change(&self) -> Change {
        let (low, high) = self.interval.unwrap_or((self.ratio, self.ratio));
        if low > 1.0 {
            Change::Slower
        } else if high < 1.0 {
            Change::Faster
        } else {
            Change::Same
        }
    }

    /// Whether it got slower by more than this share: 0.05 is 5 %.
    pub fn slower_than(&self, share: f64) -> bool {
        self.change() == Change::Slower && self.ratio > 1.0 + share
    }
}

fn interval(old: &[f64], new: &[f64]) -> Option<(f64, f64)> {
    if old.len() < 2 || new.len() < 2 {
        return None;
    }
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut resample = |values: &[f64]| -> f64 {
        let drawn: Vec<f64> = values
            .iter()
            // A bias of one in 2^32 over the number of values: nothing.
            .map(|_| values[((u64::from(random.next_u32()) * values.len() as u64) >> 32) as usize])
            .collect();
        median(&drawn)
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| resample(new) / resample(old).max(f64::MIN_POSITIVE))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    Some((ratios[tail], ratios[RESAMPLES - 1 - tail]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(old: &[f64], new: &[f64]) -> Ratio {
        let case = |ns: &[f64]| Measurement {
            name: "x".to_owned(),
            ns: ns.to_vec(),
        };
        Ratio::of(&case(old), &case(new))
    }

    #[test]
    fn a_difference_within_the_noise_is_no_change() {
        let noisy = [100.0, 90.0, 110.0, 95.0, 105.0];
        let same = ratio(&noisy, &[104.0, 96.0, 109.0, 92.0, 101.0]);
        assert_eq!(same.change(), Change::Same);
        assert!(!same.slower_than(0.0));
    }

    #[test]
    fn a_difference_above_the_noise_is_a_change() {
        let old = [100.0, 99.0, 101.0, 100.5, 99.5];
        let slow = ratio(&old, &[110.0, 111.0, 109.0, 110.5, 109.5]);
        assert_eq!(slow.change(), Change::Slower);
        assert!(slow.slower_than(0.05) && !slow.slower_than(0.2));
        let (low, high) = slow.interval.unwrap();
        assert!(low < slow.ratio && slow.ratio < high);
    }

    #[test]
    fn a_single_measurement_is_compared_without_an_interval() {
        let slow = ratio(&[100.0], &[106.0]);
        assert_eq!(slow.interval, None);
        assert!(slow.slower_than(0.05));
        assert_eq!(ratio(&[100.0], &[100.0]).change(), Change::Same);
    }

    #[test]
    fn equal_repetitions_have_an_interval_of_width_0() {
        assert_eq!(ratio(&[2.0, 2.0], &[3.0, 3.0]).interval, Some((1.5, 1.5)));
    }
}
