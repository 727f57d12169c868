//! From where to where a rate or a time may be.

use std::collections::{HashMap, HashSet};

use dray_flow::{Estimator, Flow, FlowError, Flows, MaxMin, Network, Policy, schedule};
use dray_pcie::Topology;

use crate::carriage::{Operation, Values};
use crate::flows::NamedFlow;
use crate::jobs::NamedJob;

/// The least part of its link that a GPU has been measured to write to several others at once, through switches and root
/// complexes alike: 0.55 to 0.72 (local-inference-lab/rtx6kpro: 4 to 16 RTX PRO 6000 on Gen5 x16).
const SEVERAL: f64 = 0.55;

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
/// complexes forward, what GPUs write to several others.
pub fn intervals(
    topology: &Topology,
    network: &Network,
    flows: &[NamedFlow],
) -> Result<Vec<Interval>, FlowError> {
    let senders = senders_to_several(topology, flows);
    let mut intervals: Vec<Interval> = Vec::new();
    for values in [Values::Usual, Values::Least, Values::Greatest] {
        let mut set = Flows::new(network);
        for named in flows {
            let mut flow = match values {
                Values::Usual => named.flow.clone(),
                other => named.with(topology, network, other),
            };
            if values == Values::Least && senders.contains(named.from.as_str()) {
                slow_down(&mut flow);
            }
            set.push(&flow)?;
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

/// GPUs that write to several others.
fn senders_to_several<'f>(topology: &Topology, flows: &'f [NamedFlow]) -> HashSet<&'f str> {
    let is_gpu = |name: &str| {
        let node = topology.find(name);
        node.is_ok_and(|node| topology.node(node).kind.is_gpu())
    };
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut several = HashSet::new();
    let written = flows
        .iter()
        .filter(|named| named.operation == Operation::Write);
    for named in written.filter(|named| is_gpu(&named.from) && is_gpu(&named.to)) {
        if *first.entry(&named.from).or_insert(&named.to) != named.to {
            several.insert(named.from.as_str());
        }
    }
    several
}

/// Has a flow take more of the link of its sender, so that all of its flows together get [`SEVERAL`] of it.
fn slow_down(flow: &mut Flow) {
    if flow.costs.is_empty() {
        flow.costs = vec![1.0; flow.path.len()];
    }
    if let Some(own) = flow.costs.first_mut() {
        *own /= SEVERAL;
    }
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
