//! Files of flows and jobs over a topology: read, estimated and scheduled, or refused with words.

use std::sync::LazyLock;

use dray_fabric::{network, parse_flows, parse_jobs};
use dray_flow::{Ecr, Estimator, Flows, Ingress, Job, MaxMin, Network, Policy, schedule};
use dray_pcie::Topology;

use crate::draw::Draw;
use crate::text::text;

const TOPOLOGY: &str = include_str!("../../../fabrics/validation.toml");

const FLOWS: &[&str] = &[
    include_str!("../../../examples/flows.toml"),
    include_str!("../data/flows.toml"),
];

const FLOW_ROWS: &[&str] = &[include_str!("../data/flows.csv")];

const JOBS: &[&str] = &[include_str!("../data/jobs.toml")];

const JOB_ROWS: &[&str] = &[include_str!("../data/jobs.csv")];

/// A fabric that no input changes.
static FABRIC: LazyLock<(Topology, Network)> = LazyLock::new(|| {
    let topology = Topology::from_toml(TOPOLOGY, "validation").expect("a shipped topology");
    let network = network(&topology).expect("a network");
    (topology, network)
});

/// Reads a text as flows or jobs. What is accepted gets rates that are positive and overload no edge, from every estimator, and
/// jobs that do not wait for each other in a circle have an end.
///
/// # Panics
///
/// If the parser, an estimator or the scheduler violates an invariant.
pub fn flows(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let (topology, network) = &*FABRIC;
    let refused = match draw.below(4) {
        0 => parse_flows(&text(draw, FLOWS), false, "hostile.toml", topology, network)
            .map(|list| estimate(list.iter().map(|flow| &flow.flow), network)),
        1 => parse_flows(
            &text(draw, FLOW_ROWS),
            true,
            "hostile.csv",
            topology,
            network,
        )
        .map(|list| estimate(list.iter().map(|flow| &flow.flow), network)),
        2 => parse_jobs(&text(draw, JOBS), false, "hostile.toml", topology, network)
            .map(|list| plan(list.into_iter().map(|job| job.job).collect(), network)),
        _ => parse_jobs(
            &text(draw, JOB_ROWS),
            true,
            "hostile.csv",
            topology,
            network,
        )
        .map(|list| plan(list.into_iter().map(|job| job.job).collect(), network)),
    };
    if let Err(error) = refused {
        assert!(!error.to_string().is_empty(), "an error without words");
    }
}

fn estimate<'a>(list: impl Iterator<Item = &'a dray_flow::Flow>, network: &Network) {
    let mut flows = Flows::new(network);
    for flow in list {
        flows.push(flow).expect("a flow that was read");
    }
    let estimators: [&dyn Estimator; 3] = [&Ecr, &MaxMin, &Ingress];
    for estimator in estimators {
        let name = estimator.name();
        let estimate = match estimator.estimate(&flows) {
            Ok(estimate) => estimate,
            Err(error) => panic!("{name}: {error}"),
        };
        for rate in estimate.rates() {
            assert!(*rate > 0.0 && rate.is_finite(), "{name}: a rate of {rate}");
        }
        for (load, edge) in estimate.loads(&flows).iter().zip(network.edges()) {
            let most = edge.capacity() * (1.0 + 1e-9);
            assert!(*load <= most, "{name}: {} carries {load}", edge.name());
        }
    }
}

fn plan(jobs: Vec<Job>, network: &Network) {
    for policy in [
        Policy::StartAll,
        Policy::FirstCome,
        Policy::Guided { share: 0.5 },
    ] {
        match schedule(network, &jobs, policy, &MaxMin) {
            Ok(schedule) => {
                for (job, planned) in jobs.iter().zip(&schedule.jobs) {
                    assert!(planned.start >= planned.known && planned.known >= job.arrival);
                    assert!(planned.end.is_finite() && planned.end >= planned.start);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty(), "an error without words"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unedited_flow_files_are_valid() {
        let (topology, network) = &*FABRIC;
        for (texts, csv) in [(FLOWS, false), (FLOW_ROWS, true)] {
            for text in texts {
                parse_flows(text, csv, "good", topology, network).unwrap();
            }
        }
        for (texts, csv) in [(JOBS, false), (JOB_ROWS, true)] {
            for text in texts {
                parse_jobs(text, csv, "good", topology, network).unwrap();
            }
        }
    }
}
