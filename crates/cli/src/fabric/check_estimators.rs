//! The estimators beside published estimates: their part of `dray fabric bench --check`.

use dray_fabric::{network, route};
use dray_flow::{Ecr, Estimator, Flow, Flows, MaxMin, Network};
use dray_pcie::Topology;
use dray_pcie::bench::{Check, CheckRow, TABLE_2, Tolerance};

use super::compare_estimators;
use super::comparison::EXAMPLE;

/// The edges of figure 16 that more than one flow takes, with capacities in GB/s, and those that lead there.
const FIGURE_16: [(&str, f64); 8] = [
    ("HS", 12.0),
    ("SN", 12.0),
    ("SM", 20.0),
    ("NC", 20.0),
    ("ND", 9.0),
    ("BS", 20.0),
    ("MA", 20.0),
    ("XN", 20.0),
];

/// Its flows: path, demand, result. The demand of f2 stands in the picture alone; any from 6 on gives the same.
const FIGURE_16_FLOWS: [(&str, &str, f64, f64); 4] = [
    ("f1", "HS SN NC", 8.0, 6.0),
    ("f2", "BS SN ND", 7.0, 5.0),
    ("f3", "HS SM MA", 9.0, 6.0),
    ("f4", "XN ND", 4.0, 4.0),
];

/// Random sets of flows on which ecr is compared with max-min.
const INSTANCES: usize = 1000;

/// Adds what is known of the estimators to the checks of the simulator.
pub(super) fn add_to(checks: &mut Vec<Check>, seed: u64) -> anyhow::Result<()> {
    checks.push(published(seed)?);
    if let Some(check) = checks.iter_mut().find(|check| check.number == 14) {
        check.rows.extend(counter_example()?);
    }
    checks.sort_by_key(|check| check.number);
    Ok(())
}

fn row(
    name: String,
    unit: &'static str,
    target: f64,
    result: f64,
    tolerance: Tolerance,
) -> CheckRow {
    CheckRow {
        name,
        unit,
        target: (target, target),
        result,
        tolerance,
    }
}

/// Table 2, figure 16, and that ecr is never above max-min.
fn published(seed: u64) -> anyhow::Result<Check> {
    let topology = Topology::resolve("validation")?;
    let network = network(&topology)?;
    let mut rows = Vec::new();
    for (experiment, list) in TABLE_2 {
        let mut flows = Flows::new(&network);
        for (from, to, alone, _) in list {
            flows.push(&Flow::new(route(&topology, from, to)?, alone))?;
        }
        let estimate = Ecr.estimate(&flows)?;
        for ((from, to, _, target), &rate) in list.into_iter().zip(estimate.rates()) {
            // Half of the last digit that is printed, and what rounding takes.
            let tolerance = Tolerance::Absolute(0.005 + 1e-12);
            let name = format!("ecr, table 2-{experiment}, {from}>{to}");
            rows.push(row(name, "GiB/s", target, rate, tolerance));
        }
    }
    for (name, target, rate) in figure_16()? {
        rows.push(row(
            format!("ecr, figure 16, {name}"),
            "GB/s",
            target,
            rate,
            Tolerance::Absolute(0.0),
        ));
    }
    let (count, above) = above_max_min(seed)?;
    rows.push(row(
        format!("flows of {count} to which ecr gives more than max-min"),
        "",
        0.0,
        above as f64,
        Tolerance::Absolute(0.0),
    ));
    Ok(Check {
        number: 13,
        title: "published estimates; the form in rounds beside the one-pass form is in the tests of dray-flow".to_owned(),
        source: "Hou et al., NSDI 2024, table 2 and figure 16".to_owned(),
        parameters: format!(
            "topology validation with the capacities of table 2-a; figure 16: HS and SN 12, ND 9, others 20; {INSTANCES} random sets \
             of flows of seed {seed}"
        ),
        rows,
    })
}

/// Flows by name, each with its published result and what ecr gives.
fn figure_16() -> anyhow::Result<Vec<(&'static str, f64, f64)>> {
    let mut network = Network::new();
    for (name, capacity) in FIGURE_16 {
        network.add_edge(name, &name[..1], &name[1..], capacity)?;
    }
    let mut flows = Flows::new(&network);
    for (_, path, demand, _) in FIGURE_16_FLOWS {
        let path = path.split(' ').filter_map(|edge| network.find(edge));
        flows.push(&Flow::new(path.collect(), demand))?;
    }
    let estimate = Ecr.estimate(&flows)?;
    let rows = FIGURE_16_FLOWS.into_iter().zip(estimate.rates());
    Ok(rows
        .map(|((name, _, _, target), rate)| (name, target, *rate))
        .collect())
}

/// How many flows there are in random sets, and how many of them get more from ecr than from max-min.
fn above_max_min(seed: u64) -> anyhow::Result<(usize, usize)> {
    let (network, instances) = compare_estimators::instances(INSTANCES, seed)?;
    let (mut count, mut above) = (0, 0);
    for list in instances {
        let mut flows = Flows::new(&network);
        for flow in &list {
            flows.push(flow)?;
        }
        let (ecr, exact) = (Ecr.estimate(&flows)?, MaxMin.estimate(&flows)?);
        count += list.len();
        let pairs = ecr.rates().iter().zip(exact.rates());
        above += pairs
            .filter(|(ecr, exact)| **ecr > **exact * (1.0 + 1e-9))
            .count();
    }
    Ok((count, above))
}

/// What the estimators give the flow that could have more.
fn counter_example() -> anyhow::Result<[CheckRow; 2]> {
    let topology = Topology::resolve("validation")?;
    let network = network(&topology)?;
    let mut flows = Flows::new(&network);
    for (from, to, demand) in EXAMPLE {
        flows.push(&Flow::new(route(&topology, from, to)?, demand))?;
    }
    let first = |estimator: &dyn Estimator, target: f64| -> anyhow::Result<CheckRow> {
        let rate = estimator.estimate(&flows)?.rates()[0];
        let name = format!("H>A, {}", estimator.name());
        Ok(row(name, "GiB/s", target, rate, Tolerance::Absolute(1e-6)))
    };
    Ok([first(&Ecr, 5.775)?, first(&MaxMin, 8.5)?])
}
