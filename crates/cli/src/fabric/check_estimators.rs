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
    checks.push(published(&Ecr, &MaxMin, seed)?);
    if let Some(check) = checks.iter_mut().find(|check| check.number == 14) {
        check.rows.extend(counter_example(&Ecr, &MaxMin)?);
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
fn published(ecr: &dyn Estimator, exact: &dyn Estimator, seed: u64) -> anyhow::Result<Check> {
    let topology = Topology::resolve("validation")?;
    let network = network(&topology)?;
    let mut rows = Vec::new();
    for (experiment, list) in TABLE_2 {
        let mut flows = Flows::new(&network);
        for (from, to, alone, _) in list {
            flows.push(&Flow::new(route(&topology, &network, from, to)?, alone))?;
        }
        let estimate = ecr.estimate(&flows)?;
        for ((from, to, _, target), &rate) in list.into_iter().zip(estimate.rates()) {
            // Half of the last digit that is printed, and what rounding takes.
            let tolerance = Tolerance::Absolute(0.005 + 1e-12);
            let name = format!("ecr, table 2-{experiment}, {from}>{to}");
            rows.push(row(name, "GiB/s", target, rate, tolerance));
        }
    }
    for (name, target, rate) in figure_16(ecr)? {
        rows.push(row(
            format!("ecr, figure 16, {name}"),
            "GB/s",
            target,
            rate,
            Tolerance::Absolute(0.0),
        ));
    }
    let (count, above) = above_max_min(ecr, exact, seed)?;
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
fn figure_16(ecr: &dyn Estimator) -> anyhow::Result<Vec<(&'static str, f64, f64)>> {
    let mut network = Network::new();
    for (name, capacity) in FIGURE_16 {
        network.add_edge(name, &name[..1], &name[1..], capacity)?;
    }
    let mut flows = Flows::new(&network);
    for (_, path, demand, _) in FIGURE_16_FLOWS {
        let path = path.split(' ').filter_map(|edge| network.find(edge));
        flows.push(&Flow::new(path.collect(), demand))?;
    }
    let estimate = ecr.estimate(&flows)?;
    let rows = FIGURE_16_FLOWS.into_iter().zip(estimate.rates());
    Ok(rows
        .map(|((name, _, _, target), rate)| (name, target, *rate))
        .collect())
}

/// How many flows there are in random sets, and how many of them get more from ecr than from max-min.
fn above_max_min(
    ecr: &dyn Estimator,
    exact: &dyn Estimator,
    seed: u64,
) -> anyhow::Result<(usize, usize)> {
    let (network, instances) = compare_estimators::instances(INSTANCES, seed)?;
    let (mut count, mut above) = (0, 0);
    for list in instances {
        let mut flows = Flows::new(&network);
        for flow in &list {
            flows.push(flow)?;
        }
        let (less, exact) = (ecr.estimate(&flows)?, exact.estimate(&flows)?);
        count += list.len();
        let pairs = less.rates().iter().zip(exact.rates());
        above += pairs
            .filter(|(less, exact)| **less > **exact * (1.0 + 1e-9))
            .count();
    }
    Ok((count, above))
}

/// What the estimators give the flow that could have more.
fn counter_example(ecr: &dyn Estimator, exact: &dyn Estimator) -> anyhow::Result<[CheckRow; 2]> {
    let topology = Topology::resolve("validation")?;
    let network = network(&topology)?;
    let mut flows = Flows::new(&network);
    for (from, to, demand) in EXAMPLE {
        flows.push(&Flow::new(route(&topology, &network, from, to)?, demand))?;
    }
    let first = |estimator: &dyn Estimator, target: f64| -> anyhow::Result<CheckRow> {
        let rate = estimator.estimate(&flows)?.rates()[0];
        let name = format!("H>A, {}", estimator.name());
        Ok(row(name, "GiB/s", target, rate, Tolerance::Absolute(1e-6)))
    };
    Ok([first(ecr, 5.775)?, first(exact, 8.5)?])
}

#[cfg(test)]
mod tests {
    use dray_flow::{Estimate, FlowError};
    use dray_pcie::bench::Verdict;

    use super::*;

    /// An estimator all of whose rates are wrong by the same factor.
    struct Wrong(&'static dyn Estimator, f64);

    impl Estimator for Wrong {
        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn solve(&self, flows: &Flows<'_>) -> Result<Estimate, FlowError> {
            let right = self.0.estimate(flows)?;
            let rates = right.rates().iter().map(|rate| rate * self.1).collect();
            Ok(Estimate::new(rates, right.limits().to_vec()))
        }
    }

    /// The rows outside their tolerance.
    fn red(ecr: &dyn Estimator, exact: &dyn Estimator) -> Vec<String> {
        let mut rows = published(ecr, exact, 1).expect("a check").rows;
        rows.extend(counter_example(ecr, exact).expect("rows"));
        let red = rows.iter().filter(|row| row.verdict() != Verdict::Met);
        red.map(|row| row.name.clone()).collect()
    }

    #[test]
    fn an_estimator_that_is_wrong_turns_its_rows_red_and_no_others() {
        assert_eq!(red(&Ecr, &MaxMin), Vec::<String>::new());
        let slow = red(&Wrong(&Ecr, 0.98), &MaxMin);
        assert!(slow.iter().all(|name| name.contains("ecr")), "{slow:?}");
        assert!(slow.len() > 10, "{slow:?}");
        for wrong in [0.99, 1.01] {
            let exact = red(&Ecr, &Wrong(&MaxMin, wrong));
            assert!(exact.iter().all(|name| name.contains("max")), "{exact:?}");
            assert!(!exact.is_empty(), "max-min times {wrong}");
        }
    }
}
