//! From where to where a rate or a time may be.

use dray_flow::{Estimator, FlowError, Flows, MaxMin, Network, Policy, schedule};
use dray_pcie::Topology;

use crate::carriage::Values;
use crate::flows::NamedFlow;
use crate::jobs::NamedJob;

/// The range of a rate in GiB/s, or of a time in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

/// The rate of each flow when all run, with max-min shares: from its least to its greatest with the usual, the least and the
/// greatest values of what the topology does not say: payload of TLPs, bytes of a request, links between sockets, what root
/// complexes forward.
pub fn intervals(
    topology: &Topology,
    network: &Network,
    flows: &[NamedFlow],
) -> Result<Vec<Interval>, FlowError> {
    let mut intervals: Vec<Interval> = Vec::new();
    for values in [Values::Usual, Values::Least, Values::Greatest] {
        let mut set = Flows::new(network);
        for named in flows {
            match values {
                Values::Usual => set.push(&named.flow)?,
                other => set.push(&named.with(topology, network, other))?,
            };
        }
        let estimate = MaxMin.estimate(&set)?;
        let rates = estimate.rates().iter();
        if intervals.is_empty() {
            intervals.extend(rates.map(|&rate| Interval {
                low: rate,
                high: rate,
            }));
            continue;
        }
        for (interval, &rate) in intervals.iter_mut().zip(rates) {
            interval.low = interval.low.min(rate);
            interval.high = interval.high.max(rate);
        }
    }
    Ok(intervals)
}

/// When the last of `jobs` ends under `policy`, with the same values as [`intervals`] and max-min shares.
pub fn makespan(
    topology: &Topology,
    network: &Network,
    jobs: &[NamedJob],
    policy: Policy,
) -> Result<Interval, FlowError> {
    let mut range = Interval {
        low: f64::INFINITY,
        high: 0.0,
    };
    for values in [Values::Usual, Values::Least, Values::Greatest] {
        let with = jobs.iter().map(|job| job.with(topology, network, values));
        let with: Vec<_> = with.collect();
        let end = schedule(network, &with, policy, &MaxMin)?
            .metrics()
            .makespan;
        range.low = range.low.min(end);
        range.high = range.high.max(end);
    }
    Ok(range)
}
