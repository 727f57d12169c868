//! Flows that take more of an edge than their rate, and something beside their paths.

use dray_flow::{DivideByN, Ecr, EdgeId, Estimator, Flow, Flows, Ingress, Limit, MaxMin, Network};

use crate::fixture::{Draw, Tree, estimate};

/// Two directions of one link of 10 and an edge of 6 behind one of them.
fn link() -> (Network, [EdgeId; 3]) {
    let mut network = Network::new();
    let edges = [
        ("a>b", "a", "b", 10.0),
        ("b>a", "b", "a", 10.0),
        ("b>c", "b", "c", 6.0),
    ];
    let edges =
        edges.map(|(name, from, to, capacity)| network.add_edge(name, from, to, capacity).unwrap());
    (network, edges)
}

#[test]
fn a_flow_alone_gets_what_its_cost_leaves_by_each_estimator() {
    let (network, [first, _, last]) = link();
    let mut flows = Flows::new(&network);
    let flow = Flow {
        costs: vec![1.25, 1.0],
        ..Flow::new(vec![first, last], f64::INFINITY)
    };
    let id = flows.push(&flow).unwrap();
    assert_eq!(flows.get(id), flow);
    for estimator in [&Ecr as &dyn Estimator, &MaxMin, &DivideByN] {
        let estimate = estimate(estimator, &flows);
        assert_eq!(estimate.rates(), [6.0], "{}", estimator.name());
        assert_eq!(estimate.limits(), [Limit::Edge(last)]);
        assert_eq!(estimate.loads(&flows), [7.5, 0.0, 6.0]);
    }
    let mut alone = Flows::new(&network);
    let one = Flow {
        costs: vec![1.25],
        outstanding_bytes: 1e6,
        ..Flow::new(vec![first], f64::INFINITY)
    };
    alone.push(&one).unwrap();
    for estimator in [&Ecr as &dyn Estimator, &MaxMin, &DivideByN, &Ingress] {
        let rate = estimate(estimator, &alone).rates()[0];
        assert!(
            (rate - 8.0).abs() < 1e-6,
            "{} gives {rate}",
            estimator.name()
        );
    }
}

#[test]
fn requests_of_a_read_leave_less_to_what_goes_against_it() {
    let (network, [down, up, _]) = link();
    let mut flows = Flows::new(&network);
    let read = Flow {
        sides: vec![(up, 0.1)],
        outstanding_bytes: 1e6,
        ..Flow::new(vec![down], f64::INFINITY)
    };
    let write = Flow {
        outstanding_bytes: 1e6,
        ..Flow::new(vec![up], f64::INFINITY)
    };
    flows.push(&read).unwrap();
    flows.push(&write).unwrap();
    for estimator in [&Ecr as &dyn Estimator, &MaxMin, &Ingress] {
        let estimate = estimate(estimator, &flows);
        let rates = estimate.rates();
        assert!((rates[0] - 10.0).abs() < 1e-6, "{rates:?}");
        assert!((rates[1] - 9.0).abs() < 1e-6, "{rates:?}");
        assert!((estimate.loads(&flows)[1] - 10.0).abs() < 1e-6);
    }
}

#[test]
fn with_random_costs_no_edge_is_overloaded_and_every_flow_is_stopped_by_a_full_one() {
    for seed in 0..100 {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 2, 3, 6.0, 0.3);
        let mut flows = Flows::new(&tree.network);
        for _ in 0..2 + draw.below(12) {
            let demand = draw.between(0.5, 12.0);
            let flow = tree.flow(&mut draw, demand);
            let costs = flow.path.iter().map(|_| draw.between(0.8, 1.4)).collect();
            flows.push(&Flow { costs, ..flow }).unwrap();
        }
        let exact = estimate(&MaxMin, &flows);
        let ecr = estimate(&Ecr, &flows);
        let loads = exact.loads(&flows);
        for (edge, load) in tree.network.edges().iter().zip(&loads) {
            assert!(
                *load <= edge.capacity() * (1.0 + 1e-9),
                "seed {seed}: {load}"
            );
        }
        for (index, limit) in exact.limits().iter().enumerate() {
            let rate = exact.rates()[index];
            assert!(ecr.rates()[index] <= rate * (1.0 + 1e-9), "seed {seed}");
            let Limit::Edge(edge) = limit else { continue };
            let full = loads[edge.index()] / tree.network.edge(*edge).capacity();
            assert!((full - 1.0).abs() < 1e-9, "seed {seed}: {full}");
            // Nobody has more there.
            let flow = |other: u32| flows.get(dray_flow::FlowId(other));
            let there = (0..flows.len() as u32).filter(|&other| flow(other).path.contains(edge));
            let most = there.map(|other| exact.rates()[other as usize]);
            assert!(
                most.fold(0.0, f64::max) <= rate * (1.0 + 1e-9),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn costs_that_are_none_are_refused() {
    let (network, [down, up, _]) = link();
    let mut flows = Flows::new(&network);
    for (costs, sides) in [
        (vec![1.0, 1.0], vec![]),
        (vec![f64::NAN], vec![]),
        (vec![-1.0], vec![]),
        (vec![], vec![(up, 0.0)]),
        (vec![], vec![(EdgeId(9), 0.1)]),
    ] {
        let flow = Flow {
            costs,
            sides,
            ..Flow::new(vec![down], 1.0)
        };
        assert!(flows.push(&flow).is_err(), "{flow:?}");
    }
}
