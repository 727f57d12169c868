//! Updates against full solves.

use dray_flow::{Flow, FlowId, Flows, IncrementalMaxMin, MaxMin, Method, Precision};

use crate::fixture::{Draw, Tree, estimate};

/// Lets flows come and go, and compares with a full solve after each. Returns the worst relative difference and how many
/// updates were local.
fn churn(
    seed: u64,
    fanout: usize,
    levels: u32,
    count: usize,
    updates: usize,
    precision: Precision,
) -> (f64, usize, f64) {
    let mut draw = Draw::new(seed);
    let tree = Tree::new(&mut draw, fanout, levels, 6.0, 0.6);
    let draw_flow = |draw: &mut Draw| {
        let demand = match seed % 3 {
            0 => draw.between(0.2, 9.0),
            1 => draw.between(0.2, 9.0).ceil(),
            _ => f64::INFINITY,
        };
        let weight = if seed.is_multiple_of(2) {
            1.0
        } else {
            draw.between(0.5, 3.0)
        };
        Flow {
            weight,
            ..tree.flow(draw, demand)
        }
    };
    let mut here: Vec<(FlowId, Flow)> = Vec::new();
    let mut flows = Flows::new(&tree.network);
    for _ in 0..count {
        let flow = draw_flow(&mut draw);
        here.push((flows.push(&flow).unwrap(), flow));
    }
    let mut solver = IncrementalMaxMin::new(&flows, precision).unwrap();
    let (mut worst, mut local, mut residual) = (0.0f64, 0, 0.0f64);
    for _ in 0..updates {
        let before: Vec<f64> = here
            .iter()
            .map(|(id, _)| solver.rate(*id).unwrap())
            .collect();
        let change = if draw.below(2) == 0 || here.len() < 2 {
            let flow = draw_flow(&mut draw);
            let (id, change) = solver.arrive(&flow).unwrap();
            here.push((id, flow));
            change
        } else {
            let gone = draw.below(here.len());
            let (id, _) = here.remove(gone);
            let change = solver.depart(id).unwrap();
            assert!(solver.rate(id).is_err());
            assert!(solver.depart(id).is_err());
            let moved = before
                .iter()
                .enumerate()
                .filter(|&(at, _)| at != gone)
                .map(|(_, rate)| *rate);
            let differ = here
                .iter()
                .zip(moved)
                .filter(|((id, _), old)| differs(*old, solver.rate(*id).unwrap()))
                .count();
            assert_eq!(differ, change.affected, "seed {seed}");
            change
        };
        local += usize::from(change.method == Method::Local);
        let mut full = Flows::new(&tree.network);
        for (_, flow) in &here {
            full.push(flow).unwrap();
        }
        let exact = estimate(&MaxMin, &full);
        assert_eq!(solver.len(), here.len());
        for ((id, _), &rate) in here.iter().zip(exact.rates()) {
            worst = worst.max((solver.rate(*id).unwrap() / rate - 1.0).abs());
        }
        residual = residual.max(solver.residual());
    }
    (worst, local, residual)
}

fn differs(a: f64, b: f64) -> bool {
    (a - b).abs() > 1e-9 * a.max(b)
}

#[test]
fn exact_updates_equal_a_full_solve() {
    let mut local = 0;
    for seed in 0..60u64 {
        let (worst, here, _) = churn(
            seed,
            2 + seed as usize % 3,
            2 + seed as u32 % 3,
            3 << (seed % 6),
            60,
            Precision::Exact,
        );
        assert!(worst < 1e-9, "seed {seed}: off by {worst:e}");
        local += here;
    }
    assert!(
        local > 1800,
        "most updates follow the change: {local} of 3600"
    );
}

#[test]
fn approximate_updates_keep_their_bound() {
    for seed in 0..40u64 {
        let bound = if seed.is_multiple_of(2) { 1e-3 } else { 1e-2 };
        let (worst, _, residual) =
            churn(seed, 3, 3, 20 << (seed % 5), 80, Precision::Within(bound));
        assert!(
            residual <= bound,
            "seed {seed}: residual {residual:e} above {bound:e}"
        );
        assert!(worst <= bound, "seed {seed}: off by {worst:e}");
    }
    assert!(
        IncrementalMaxMin::new(
            &Flows::new(&dray_flow::Network::new()),
            Precision::Within(f64::NAN)
        )
        .is_err()
    );
}

/// So many flows that an approximate update stops before all is exact.
#[test]
fn approximate_rates_of_many_flows_are_near_a_full_solve() {
    for (seed, demand) in [(1, 30.0), (2, 3.0), (3, 1.5)] {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 6, 4, 30.0, 0.7);
        let mut flow = || {
            let demand = demand * draw.between(0.1, 1.9);
            tree.flow(&mut draw, demand)
        };
        let mut flows = Flows::new(&tree.network);
        let mut list: Vec<Flow> = (0..20_000).map(|_| flow()).collect();
        for flow in &list {
            flows.push(flow).unwrap();
        }
        let mut solver = IncrementalMaxMin::new(&flows, Precision::Within(1e-3)).unwrap();
        let (mut moved, mut inexact) = (0, 0);
        for update in 0..45 {
            // The last slot that came free is the first that is taken again.
            let at = (update * 7919) % list.len();
            moved += solver.depart(FlowId(at as u32)).unwrap().affected;
            list[at] = flow();
            let (id, change) = solver.arrive(&list[at]).unwrap();
            moved += change.affected;
            assert_eq!(id.index(), at);
            if update % 15 < 14 {
                continue;
            }
            assert!(solver.residual() <= 1e-3 / 8.0 + 1e-12);
            let mut full = Flows::new(&tree.network);
            for flow in &list {
                full.push(flow).unwrap();
            }
            for (at, rate) in estimate(&MaxMin, &full).rates().iter().enumerate() {
                let error = (solver.rate(FlowId(at as u32)).unwrap() / rate - 1.0).abs();
                assert!(error <= 1e-3, "seed {seed}: flow {at} is off by {error:e}");
                inexact += usize::from(error > 1e-9);
            }
        }
        assert!(moved > 0 && inexact > 0, "seed {seed}: {moved} {inexact}");
    }
}

/// So many flows that an update goes too far to be followed.
#[test]
fn exact_rates_of_many_flows_equal_a_full_solve() {
    let mut refills = 0;
    for (seed, demand) in [(1, 30.0), (2, 3.0), (3, 1.5)] {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 6, 4, 30.0, 0.7);
        let mut flow = || {
            let demand = demand * draw.between(0.1, 1.9);
            tree.flow(&mut draw, demand)
        };
        let mut flows = Flows::new(&tree.network);
        let mut list: Vec<Flow> = (0..20_000).map(|_| flow()).collect();
        for flow in &list {
            flows.push(flow).unwrap();
        }
        let mut solver = IncrementalMaxMin::new(&flows, Precision::Exact).unwrap();
        for update in 0..12 {
            let at = (update * 7919) % list.len();
            let left = solver.depart(FlowId(at as u32)).unwrap();
            list[at] = flow();
            let (id, came) = solver.arrive(&list[at]).unwrap();
            assert_eq!(id.index(), at);
            for change in [left, came] {
                refills += usize::from(change.method == Method::Refill);
            }
            if update % 4 < 3 {
                continue;
            }
            let mut full = Flows::new(&tree.network);
            for flow in &list {
                full.push(flow).unwrap();
            }
            let exact = estimate(&MaxMin, &full);
            for (at, rate) in exact.rates().iter().enumerate() {
                let id = FlowId(at as u32);
                let error = (solver.rate(id).unwrap() / rate - 1.0).abs();
                assert!(error <= 1e-9, "seed {seed}: flow {at} is off by {error:e}");
                // No two edges have the same level here.
                assert_eq!(solver.limit(id).unwrap(), exact.limits()[at]);
            }
        }
    }
    assert!(refills > 10, "{refills} of 72");
}
