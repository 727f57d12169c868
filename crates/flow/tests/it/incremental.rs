//! Updates against full solves.

use dray_flow::{
    Change, Estimate, Flow, FlowId, Flows, IncrementalMaxMin, MaxMin, Method, Network, Precision,
};

use crate::fixture::{Draw, Tree, estimate};

/// Lets flows come and go, and compares with a full solve after each: no rate is wrong by more than the update states. Returns
/// the worst relative difference, and how many updates were local, and how many inexact.
fn churn(
    seed: u64,
    fanout: usize,
    levels: u32,
    count: usize,
    updates: usize,
    precision: Precision,
) -> (f64, usize, usize) {
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
    let (mut worst, mut local, mut inexact) = (0.0f64, 0, 0);
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
            let error = (solver.rate(*id).unwrap() / rate - 1.0).abs();
            assert!(
                error <= change.error,
                "seed {seed}: off by {error:e}, stated as {:e}",
                change.error
            );
            worst = worst.max(error);
            inexact += usize::from(error > 1e-9);
        }
    }
    (worst, local, inexact)
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
    let (mut all, mut local) = (0, 0);
    for seed in 0..60u64 {
        let bound = if seed.is_multiple_of(2) { 1e-3 } else { 1e-2 };
        let precision = Precision::Within(bound);
        let (worst, here, inexact) = churn(seed, 3, 3, 20 << (seed % 6), 80, precision);
        assert!(worst <= bound, "seed {seed}: off by {worst:e}");
        all += inexact;
        local += here;
    }
    assert!(all > 100, "some rates are not exact: {all}");
    assert!(local > 2000, "most updates are local: {local} of 4800");
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

    /// A full solve, after rates are compared with it: relative errors must not exceed `bound`.
    fn errors(&self, bound: f64) -> Estimate {
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
        assert!(full.rates().iter().enumerate().map(error).count() > 0);
        full
    }
}

/// Seeds, and demands: nearly all edges are full, some, few.
const LOADS: [(u64, f64); 3] = [(1, 30.0), (2, 3.0), (3, 1.5)];

#[test]
fn approximate_rates_of_many_flows_are_near_a_full_solve() {
    for (seed, demand) in LOADS {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 6, 4, 30.0, 0.7);
        let mut many = Many::new(&tree, draw, demand, Precision::Within(1e-3));
        let mut moved = 0;
        for update in 0..45 {
            let changes = many.replace(update);
            moved += changes.iter().map(|change| change.affected).sum::<usize>();
            if update % 15 < 14 {
                continue;
            }
            let stated = changes[1].error;
            assert!(stated <= 1e-3);
            many.errors(stated);
        }
        assert!(moved > 0, "seed {seed}: nothing changes");
    }
}

/// Of so many flows, most change with each update; the change is still followed from edge to edge.
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
            let full = many.errors(1e-9);
            for (at, limit) in full.limits().iter().enumerate() {
                // No two edges have the same level here.
                assert_eq!(many.solver.limit(FlowId(at as u32)).unwrap(), *limit);
            }
        }
    }
    assert!(refills < 10, "{refills} of 72");
}

/// Edges of one capacity, between one switch and many hosts: what many edges give to their flows is equal, so that many flows may
/// be stopped by either end. Each update changes what stops them, or goes too far and fills all again.
#[test]
fn updates_between_equal_levels_equal_a_full_solve() {
    let mut draw = Draw::new(1);
    let mut network = Network::new();
    let hosts: Vec<_> = (0..60)
        .map(|host| {
            let host = host.to_string();
            let mut edge =
                |name: &str, from: &str, to: &str| network.add_edge(name, from, to, 1.0).unwrap();
            let up = edge(&format!("{host}>"), &host, "switch");
            (up, edge(&format!(">{host}"), "switch", &host))
        })
        .collect();
    let mut refills = 0;
    for (count, updates, precision) in [
        (0, 400, Precision::Exact),
        (0, 400, Precision::Within(1e-3)),
        (6000, 24, Precision::Exact),
        (6000, 24, Precision::Within(1e-3)),
    ] {
        let mut flow = |update: usize| {
            let from = draw.below(hosts.len());
            let to = (from + 1 + draw.below(hosts.len() - 1)) % hosts.len();
            // Every third flow starts at the next host, so that many start at as many.
            let from = if update.is_multiple_of(3) {
                update % 60
            } else {
                from
            };
            let to = if from == to { (to + 1) % 60 } else { to };
            Flow::new(vec![hosts[from].0, hosts[to].1], f64::INFINITY)
        };
        let mut list: Vec<Option<Flow>> = (0..count).map(|at| Some(flow(at))).collect();
        let mut flows = Flows::new(&network);
        for flow in list.iter().flatten() {
            flows.push(flow).unwrap();
        }
        let mut solver = IncrementalMaxMin::new(&flows, precision).unwrap();
        for update in 0..updates {
            let flow = flow(update);
            let (id, change) = solver.arrive(&flow).unwrap();
            refills += usize::from(change.method == Method::Refill);
            list.resize(list.len().max(id.index() + 1), None);
            list[id.index()] = Some(flow);
            let mut error = change.error;
            let gone = (update * 7919) % list.len();
            if update % 4 == 3 && list[gone].take().is_some() {
                error = solver.depart(FlowId(gone as u32)).unwrap().error;
            }
            let mut flows = Flows::new(&network);
            for flow in list.iter().flatten() {
                flows.push(flow).unwrap();
            }
            let full = estimate(&MaxMin, &flows);
            for ((flow, rate), exact) in solver.rates().zip(full.rates()) {
                assert!(
                    (rate / exact - 1.0).abs() <= error,
                    "update {update}, flow {flow:?}: {rate} instead of {exact}"
                );
            }
        }
    }
    assert!(refills > 0, "all updates were local");
}
