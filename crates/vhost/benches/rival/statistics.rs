//! Medians, and how far chance moves their ratio.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::{Cell, Samples};

const RESAMPLES: usize = 4000;

pub fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Ratio of the medians, and the 95 % interval of the bootstrap.
pub fn ratio(own: &[f64], rival: &[f64]) -> Option<(f64, f64, f64)> {
    if own.is_empty() || rival.is_empty() {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut resample = |of: &[f64]| -> f64 {
        let drawn: Vec<f64> = (0..of.len())
            .map(|_| of[rng.next_u32() as usize % of.len()])
            .collect();
        median(&drawn)
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| resample(own) / resample(rival))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[(share * (RESAMPLES - 1) as f64) as usize];
    Some((median(own) / median(rival), at(0.025), at(0.975)))
}

pub fn json(found: &BTreeMap<Cell, Samples>) -> String {
    let cells: Vec<serde_json::Value> = found
        .iter()
        .map(|((ring, mode, size), of)| {
            serde_json::json!({
                "ring": ring,
                "mode": format!("{mode:?}").to_lowercase(),
                "bytes": size,
                "dray_mpps": of.own,
                "net_vhost_mpps": of.rival,
                "cycles_per_packet": of.cycles,
                "empty_polls": of.empty,
            })
        })
        .collect();
    serde_json::Value::from(cells).to_string()
}
