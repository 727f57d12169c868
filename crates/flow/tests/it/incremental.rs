//! Updates against full solves.

use dray_flow::{
    Change, Estimate, Flow, FlowId, Flows, IncrementalMaxMin, MaxMin, Method, Precision,
};

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

/// 20000 flows of a tree, and a solver that keeps their rates.
struct Many<'t> {
    tree: &'t Tree,
    draw: Draw,
    demand: f64,
    list: Vec<Flow>,
    solver: IncrementalMaxMin,
}

impl<'t> Many<'t> {
    fn new(tree: &'t Tree, draw: Draw, demand: f64, precision: Precision) -> Many<'t> {
        let mut many = Many {
            solver: IncrementalMaxMin::new(&Flows::new(&tree.network), precision).unwrap(),
            tree,
            draw,
            demand,
            list: Vec::new(),
        };
        many.list = (0..20_000).map(|_| many.flow()).collect();
        many.solver = IncrementalMaxMin::new(&many.flows(), precision).unwrap();
        many
    }

    fn flow(&mut self) -> Flow {
        let demand = self.demand * self.draw.between(0.1, 1.9);
        self.tree.flow(&mut self.draw, demand)
    }

    fn flows(&self) -> Flows<'t> {
        let mut flows = Flows::new(&self.tree.network);
        for flow in &self.list {
            flows.push(flow).unwrap();
        }
        flows
    }

    /// One flow leaves, and another one takes its slot: the last that came free is the first that is taken again.
    fn replace(&mut self, update: usize) -> [Change; 2] {
        let at = (update * 7919) % self.list.len();
        let left = self.solver.depart(FlowId(at as u32)).unwrap();
        self.list[at] = self.flow();
        let (id, came) = self.solver.arrive(&self.list[at]).unwrap();
        assert_eq!(id.index(), at);
        [left, came]
    }

    /// Relative errors of the rates beside a full solve, which must not exceed `bound`; and the full solve.
    fn errors(&self, bound: f64) -> (Vec<f64>, Estimate) {
        let full = estimate(&MaxMin, &self.flows());
        let error = |(at, rate): (usize, &f64)| {
            let error = (self.solver.rate(FlowId(at as u32)).unwrap() / rate - 1.0).abs();
            assert!(
                error <= bound,
                "demand {}: flow {at} is off by {error:e}",
                self.demand
            );
            error
        };
        (full.rates().iter().enumerate().map(error).collect(), full)
    }
}

/// Seeds, and demands: nearly all edges are full, some, few.
const LOADS: [(u64, f64); 3] = [(1, 30.0), (2, 3.0), (3, 1.5)];

/// So many flows that an approximate update stops before all is exact.
#[test]
fn approximate_rates_of_many_flows_are_near_a_full_solve() {
    for (seed, demand) in LOADS {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 6, 4, 30.0, 0.7);
        let mut many = Many::new(&tree, draw, demand, Precision::Within(1e-3));
        let (mut moved, mut inexact) = (0, 0);
        for update in 0..45 {
            let changes = many.replace(update);
            moved += changes.iter().map(|change| change.affected).sum::<usize>();
            if update % 15 < 14 {
                continue;
            }
            assert!(many.solver.residual() <= 1e-3 / 8.0 + 1e-12);
            let (errors, _) = many.errors(1e-3);
            inexact += errors.iter().filter(|error| **error > 1e-9).count();
        }
        assert!(moved > 0 && inexact > 0, "seed {seed}: {moved} {inexact}");
    }
}

/// So many flows that an update goes too far to be followed.
#[test]
fn exact_rates_of_many_flows_equal_a_full_solve() {
    let mut refills = 0;
    for (seed, demand) in LOADS {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 6, 4, 30.0, 0.7);
        let mut many = Many::new(&tree, draw, demand, Precision::Exact);
        for update in 0..12 {
            let changes = many.replace(update);
            refills += changes
                .iter()
                .filter(|change| change.method == Method::Refill)
                .count();
            if update % 4 < 3 {
                continue;
            }
            let (_, full) = many.errors(1e-9);
            for (at, limit) in full.limits().iter().enumerate() {
                // No two edges have the same level here.
                assert_eq!(many.solver.limit(FlowId(at as u32)).unwrap(), *limit);
            }
        }
    }
    assert!(refills > 10, "{refills} of 72");
}
