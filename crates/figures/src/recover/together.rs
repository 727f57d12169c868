//! Parameters that are always seen together.

use dray_platform::Unit;

use super::{DETERMINED, Free, Known, NARROWED, NINETY, PRIOR, is_determined};

/// Parameters that are tried in sums at most; all sums of them are.
const MOST: usize = 16;
/// Deviation of a sum, in that of a sum of parameters that have nothing to do with each other, up to which they are seen
/// together.
const TOGETHER: f64 = 0.35;

/// A sum that the points determine, of parameters that they do not.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveredSum {
    /// Names of the parameters, two at least.
    pub names: Vec<&'static str>,
    /// Unit of value and interval.
    pub unit: Unit,
    /// The most probable value.
    pub value: f64,
    /// It lies between these with a probability of 90 %. It is within 5 % of the value.
    pub interval: [f64; 2],
}

/// Sums that are determined though no part of them is, those first that say most more than their parts; no parameter is in
/// two.
pub(super) fn sums(free: &[Free], known: &Known) -> Vec<RecoveredSum> {
    let mut open: Vec<usize> = (0..free.len())
        .filter(|n| {
            let deviation = known.covariance.at(*n, *n).sqrt();
            let half = NINETY * deviation * free[*n].deviation;
            let is_time = free[*n].parameter.unit == Unit::Ns;
            is_time && !is_determined(deviation, half, free[*n].value(known.mean[*n]))
        })
        .collect();
    // Those of which least is known gain most.
    open.sort_by(|a, b| {
        let deviation = |n: usize| known.covariance.at(n, n);
        deviation(*b).total_cmp(&deviation(*a))
    });
    open.truncate(MOST);
    open.sort_unstable();
    let mut all: Vec<(f64, Vec<usize>)> = (1_u32..1 << open.len())
        .filter(|set| set.count_ones() > 1)
        .filter_map(|set| {
            let members = (0..open.len()).filter(|bit| set >> bit & 1 == 1);
            let members: Vec<usize> = members.map(|bit| open[bit]).collect();
            Some((share(free, known, &members)?, members))
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut found: Vec<Vec<usize>> = Vec::new();
    for (_, members) in all {
        if !found.iter().flatten().any(|taken| members.contains(taken)) {
            found.push(members);
        }
    }
    found
        .iter()
        .map(|members| sum(free, known, members))
        .collect()
}

fn deviation(free: &[Free], known: &Known, members: &[usize]) -> f64 {
    let mut variance = 0.0;
    for a in members {
        for b in members {
            variance += known.covariance.at(*a, *b) * free[*a].deviation * free[*b].deviation;
        }
    }
    variance.max(0.0).sqrt()
}

fn value(free: &[Free], known: &Known, members: &[usize]) -> f64 {
    members.iter().map(|n| free[*n].value(known.mean[*n])).sum()
}

/// The deviation of a sum, in that of a sum of parameters that have nothing to do with each other, if it is determined and
/// its parts are seen together.
fn share(free: &[Free], known: &Known, members: &[usize]) -> Option<f64> {
    let deviation = deviation(free, known, members);
    let squares =
        |of: &dyn Fn(usize) -> f64| members.iter().map(|n| of(*n).powi(2)).sum::<f64>().sqrt();
    let apart = squares(&|n| known.covariance.at(n, n).sqrt() * free[n].deviation);
    let before = squares(&|n| PRIOR * free[n].deviation);
    let share = NINETY * deviation / value(free, known, members);
    let is_known = deviation < TOGETHER * apart && deviation < NARROWED * before;
    (is_known && share <= DETERMINED).then_some(deviation / apart)
}

fn sum(free: &[Free], known: &Known, members: &[usize]) -> RecoveredSum {
    let value = value(free, known, members);
    let half = NINETY * deviation(free, known, members);
    let [low, high] = [0, 1].map(|end: usize| {
        let ends = members.iter().map(|n| free[*n].parameter.range[end]);
        ends.sum::<f64>()
    });
    RecoveredSum {
        names: members.iter().map(|n| free[*n].parameter.name).collect(),
        unit: Unit::Ns,
        value,
        interval: [(value - half).max(low), (value + half).min(high)],
    }
}
