//! Estimators against oracles on random instances.

use dray_flow::{Arbiter, Ecr, Flow, Flows, Ingress, MaxMin, Network, Queues};
use proptest::prelude::*;

use crate::fixture::{Draw, Tree, estimate};
use crate::oracle::{ecr_rounds, lp_maxmin};

#[test]
fn one_pass_of_ecr_equals_its_rounds_and_is_below_max_min() {
    let mut most_rounds = 0;
    for seed in 0..300u64 {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 2, 2 + seed as u32 % 4, 6.0, 0.3);
        let mut flows = Flows::new(&tree.network);
        for _ in 0..4 << (seed % 5) {
            let mut demand = draw.between(0.2, 12.2);
            if seed.is_multiple_of(2) {
                // Ties.
                demand = demand.ceil();
            }
            flows.push(&tree.flow(&mut draw, demand)).unwrap();
        }
        let ecr = estimate(&Ecr, &flows);
        let exact = estimate(&MaxMin, &flows);
        let (rounds, count) = ecr_rounds(&flows);
        most_rounds = most_rounds.max(count);
        for (flow, &b) in rounds.iter().enumerate() {
            let (a, c) = (ecr.rates()[flow], exact.rates()[flow]);
            assert!(
                (a - b).abs() <= 1e-8 * b,
                "seed {seed}, flow {flow}: one pass {a}, rounds {b}"
            );
            assert!(
                a <= c * (1.0 + 1e-9),
                "seed {seed}, flow {flow}: ecr {a}, max-min {c}"
            );
        }
    }
    assert!(
        most_rounds > 8,
        "the instances are hard enough: {most_rounds} rounds"
    );
}

#[test]
fn max_min_equals_linear_programs() {
    for seed in 0..60u64 {
        let mut draw = Draw::new(seed);
        let tree = Tree::new(&mut draw, 2, 2, 6.0, 0.3);
        let mut flows = Flows::new(&tree.network);
        for _ in 0..2 + draw.below(7) {
            let demand = if draw.below(4) == 0 {
                f64::INFINITY
            } else {
                draw.between(0.2, 9.0)
            };
            let weight = if seed.is_multiple_of(2) {
                1.0
            } else {
                draw.between(0.5, 4.0)
            };
            let flow = tree.flow(&mut draw, demand);
            flows.push(&Flow { weight, ..flow }).unwrap();
        }
        let exact = estimate(&MaxMin, &flows);
        for (flow, lp) in lp_maxmin(&flows).into_iter().enumerate() {
            let rate = exact.rates()[flow];
            assert!(
                (rate - lp).abs() <= 1e-6 * lp,
                "seed {seed}, flow {flow}: {rate}, linear program {lp}"
            );
        }
    }
}

/// Values at the borders of what is allowed, and beyond.
fn hostile() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(0.0),
        Just(-0.0),
        Just(-1.0),
        Just(1e308),
        Just(f64::MIN_POSITIVE),
        Just(1e-15),
        Just(1e18),
        Just(1.0),
        Just(8.74),
        1e-3..1e3f64,
    ]
}

proptest! {
    #[test]
    fn random_extreme_values_are_refused_or_solved(
        edges in prop::collection::vec((hostile(), hostile(), hostile(), any::<bool>(), any::<bool>()), 1..6),
        list in prop::collection::vec((hostile(), hostile(), hostile(), hostile(), prop::collection::vec(0u32..7, 0..4)), 0..8),
    ) {
        let mut network = Network::new();
        for (edge, &(capacity, buffer, round, oldest, fifo)) in edges.iter().enumerate() {
            let added = network.add_edge(&edge.to_string(), &format!("n{edge}"), &format!("n{}", edge + 1), capacity);
            let Ok(id) = added else { continue };
            let _ = network.set_buffer(id, buffer, round);
            network.set_arbiter(id, if oldest { Arbiter::OldestFirst } else { Arbiter::InTurn });
            network.set_queues(id, if fifo { Queues::Fifo } else { Queues::PerOutput });
        }
        let mut flows = Flows::new(&network);
        for (demand, weight, outstanding_bytes, latency, path) in list {
            let path = path.into_iter().map(dray_flow::EdgeId).collect();
            let _ = flows.push(&Flow { path, demand, outstanding_bytes, latency, weight, ..Flow::new(Vec::new(), 1.0) });
        }
        for estimator in [&Ecr as &dyn dray_flow::Estimator, &MaxMin, &Ingress] {
            let Ok(result) = estimator.estimate(&flows) else { continue };
            for rate in result.rates() {
                prop_assert!(*rate >= 0.0 && rate.is_finite(), "{} gives {rate}", estimator.name());
            }
            for (load, edge) in result.loads(&flows).iter().zip(network.edges()) {
                prop_assert!(*load <= edge.capacity() * (1.0 + 1e-6), "{} loads {load} of {}", estimator.name(), edge.capacity());
            }
        }
    }
}

#[test]
fn a_million_flows_on_one_edge_are_solved() {
    let mut network = Network::new();
    let edge = network.add_edge("e", "a", "b", 1e3).unwrap();
    let mut flows = Flows::new(&network);
    let mut draw = Draw::new(1);
    for _ in 0..1_000_000 {
        let demand = draw.between(1e-4, 1e-2);
        flows.push(&Flow::new(vec![edge], demand)).unwrap();
    }
    let (ecr, exact) = (estimate(&Ecr, &flows), estimate(&MaxMin, &flows));
    let worst = ecr
        .rates()
        .iter()
        .zip(exact.rates())
        .map(|(a, b)| (a - b).abs() / b)
        .fold(0.0, f64::max);
    assert!(
        worst < 1e-9,
        "one edge: the two are the same, but differ by {worst:e}"
    );
    assert!((exact.loads(&flows)[0] - 1e3).abs() < 1e-6);
}
