//! The water level of one edge.

use crate::compensated::Sum;

/// One participant: it takes `weight` times the level, and stops rising at level `cap`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) cap: f64,
    pub(crate) weight: f64,
}

/// Passes after which the shares are sorted, so that no input makes this quadratic.
const PASSES: usize = 24;

/// The level at which `shares` together take `capacity`: the solution of `sum of weight * min(cap, level) =
/// capacity`. Infinite if all of them fit at their caps. Reorders and shortens `shares`.
///
/// This is Algorithm 1 of the paper (rPCIeBench, section 6): grant every flow that asks for less than an equal share, share
/// the rest again, until no flow is granted.
pub(crate) fn water_level(shares: &mut Vec<Share>, capacity: f64) -> f64 {
    let mut rest = Sum::new(capacity);
    for _ in 0..PASSES {
        let mut weights = Sum::default();
        for share in shares.iter() {
            weights.add(share.weight);
        }
        if shares.is_empty() {
            return f64::INFINITY;
        }
        let level = rest.value().max(0.0) / weights.value();
        let before = shares.len();
        shares.retain(|share| {
            let granted = share.cap <= level;
            if granted {
                rest.add(-share.weight * share.cap);
            }
            !granted
        });
        if shares.len() == before {
            return level;
        }
    }
    sorted_level(shares, rest)
}

fn sorted_level(shares: &mut [Share], mut rest: Sum) -> f64 {
    shares.sort_unstable_by(|a, b| a.cap.total_cmp(&b.cap));
    let mut weights = Sum::default();
    for share in shares.iter() {
        weights.add(share.weight);
    }
    for share in shares.iter() {
        let level = rest.value().max(0.0) / weights.value();
        if share.cap > level {
            return level;
        }
        rest.add(-share.weight * share.cap);
        weights.add(-share.weight);
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(caps: &[f64]) -> Vec<Share> {
        caps.iter().map(|&cap| Share { cap, weight: 1.0 }).collect()
    }

    #[test]
    fn water_levels_of_the_edges_of_the_paper() {
        assert_eq!(water_level(&mut shares(&[8.0, 9.0]), 12.0), 6.0);
        assert_eq!(water_level(&mut shares(&[6.0, 4.0]), 9.0), 5.0);
        assert_eq!(water_level(&mut shares(&[3.0, 4.0]), 9.0), f64::INFINITY);
        assert_eq!(water_level(&mut shares(&[]), 9.0), f64::INFINITY);
    }

    #[test]
    fn infinite_caps_share_by_weight() {
        let mut two = vec![
            Share {
                cap: f64::INFINITY,
                weight: 1.0,
            },
            Share {
                cap: f64::INFINITY,
                weight: 3.0,
            },
        ];
        assert_eq!(water_level(&mut two, 8.0), 2.0);
    }

    #[test]
    fn a_level_that_needs_many_passes_is_found_by_a_sorted_scan() {
        // Each pass grants one share only.
        let caps: Vec<f64> = (0..60).map(|k| f64::powi(4.0, k)).collect();
        let capacity = caps.iter().sum::<f64>() - 1.0;
        let level = water_level(&mut shares(&caps), capacity);
        let taken: f64 = caps.iter().map(|cap| cap.min(level)).sum();
        assert!((taken / capacity - 1.0).abs() < 1e-12, "{taken} {capacity}");
    }
}
