//! Random gaps, the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A generator for one stream.
#[derive(Debug)]
pub(super) struct Gaps(ChaCha8Rng);

impl Gaps {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// An exponential variate of this mean by comparisons alone (von Neumann 1951): no logarithm,
    /// whose last digit may differ between machines.
    pub(super) fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0u64;
        loop {
            let first = self.0.next_u32();
            let (mut last, mut run) = (first, 1u32);
            loop {
                let next = self.0.next_u32();
                if next >= last {
                    break;
                }
                last = next;
                run += 1;
            }
            if run % 2 == 1 {
                let part = (u128::from(first) * u128::from(mean)) >> 32;
                return whole.saturating_mul(mean).saturating_add(part as u64);
            }
            whole += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_their_mean_and_are_reproducible() {
        let draw = |seed| {
            let mut gaps = Gaps::new(seed, 0);
            (0..100_000)
                .map(|_| gaps.exponential(1000))
                .collect::<Vec<u64>>()
        };
        let values = draw(7);
        let mean = values.iter().sum::<u64>() as f64 / 1e5;
        assert!((mean - 1000.0).abs() < 15.0, "{mean}");
        // Of an exponential 36.8% are above the mean.
        let above = values.iter().filter(|value| **value > 1000).count();
        assert!((36_000..37_600).contains(&above), "{above}");
        assert_eq!(values, draw(7));
        assert_ne!(values, draw(8));
    }
}
