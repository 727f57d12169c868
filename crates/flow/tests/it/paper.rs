//! Table 2, Figure 16 and the counter-example.

use dray_flow::{Ecr, Estimator, Flow, Ingress, Limit, MaxMin, Network};

use crate::fixture::{estimate, flows, paper};
use crate::oracle::ecr_rounds;

const H_C: &str = "HS SN NC";
const H_A: &str = "HS SM MA";
const H_D: &str = "HS SN ND";
const C_B: &str = "CN NS SM MB";
const B_D: &str = "BM MS SN ND";
const A_H: &str = "AM MS SH";

/// Table 2-b, c, d: path, standalone bandwidth, estimate.
const TABLE_2: [[(&str, f64, f64); 5]; 3] = [
    [
        (H_C, 8.51, 5.78),
        (H_A, 7.21, 5.78),
        (C_B, 1.76, 1.76),
        (B_D, 7.19, 7.19),
        (A_H, 2.54, 2.54),
    ],
    [
        (H_C, 8.56, 8.37),
        (H_A, 0.53, 0.53),
        (C_B, 1.76, 1.76),
        (B_D, 7.19, 7.19),
        (A_H, 2.54, 2.54),
    ],
    [
        (H_C, 0.55, 0.55),
        (H_D, 8.58, 4.37),
        (C_B, 1.76, 1.76),
        (B_D, 7.19, 4.37),
        (A_H, 2.54, 2.54),
    ],
];

#[test]
fn rates_of_table_2_are_reproduced() {
    let network = paper();
    for experiment in TABLE_2 {
        let list: Vec<(&str, f64)> = experiment
            .iter()
            .map(|&(path, alone, _)| (path, alone))
            .collect();
        let flows = flows(&network, &list);
        let ecr = estimate(&Ecr, &flows);
        let exact = estimate(&MaxMin, &flows);
        for (flow, &(path, _, published)) in experiment.iter().enumerate() {
            // The published figures are rounded to a hundredth.
            assert!(
                (ecr.rates()[flow] - published).abs() <= 0.005 + 1e-12,
                "{path}: {} is not {published}",
                ecr.rates()[flow]
            );
            assert!(
                (exact.rates()[flow] - ecr.rates()[flow]).abs() < 1e-12,
                "{path}"
            );
        }
        assert!(ecr_rounds(&flows).1 <= 3);
    }
}

#[test]
fn rates_of_figure_16_are_reproduced() {
    let mut network = Network::new();
    for (name, capacity) in [
        ("HS", 12.0),
        ("SN", 12.0),
        ("SM", 20.0),
        ("NC", 20.0),
        ("ND", 9.0),
        ("BS", 20.0),
        ("MA", 20.0),
    ] {
        network
            .add_edge(name, &name[..1], &name[1..], capacity)
            .unwrap();
    }
    // f1 and f3 share HS, f1 and f2 SN, f2 and f4 ND. The second demand stands in the figure only; any from 6 on gives this.
    network.add_edge("XN", "X", "N", 20.0).unwrap();
    for second in [6.0, 7.0, 12.0] {
        let flows = flows(
            &network,
            &[
                ("HS SN NC", 8.0),
                ("BS SN ND", second),
                ("HS SM MA", 9.0),
                ("XN ND", 4.0),
            ],
        );
        assert_eq!(estimate(&Ecr, &flows).rates(), [6.0, 5.0, 6.0, 4.0]);
        let (rounds, _) = ecr_rounds(&flows);
        assert_eq!(rounds, [6.0, 5.0, 6.0, 4.0]);
    }
}

#[test]
fn ecr_leaves_capacity_that_max_min_assigns() {
    let network = paper();
    let flows = flows(
        &network,
        &[(H_A, 8.5), (H_D, 8.5), (B_D, 7.19), ("CN ND", 7.19)],
    );
    let ecr = estimate(&Ecr, &flows);
    assert!((ecr.rates()[0] - 5.775).abs() < 1e-12);
    assert_eq!(ecr.limits()[0], Limit::Edge(network.find("HS").unwrap()));
    let exact = estimate(&MaxMin, &flows);
    assert!((exact.rates()[0] - 8.5).abs() < 1e-12);
    assert_eq!(exact.limits()[0], Limit::Demand);
    assert!((exact.rates()[1] - 8.74 / 3.0).abs() < 1e-12);
    assert!((estimate(&Ingress, &flows).rates()[0] - 8.5).abs() < 1e-9);
}

#[test]
fn flows_of_one_ingress_have_one_share() {
    // H to D and B to D reach ND from the switch, C to D from its own device: 2.19, 2.19, 4.37 instead of 2.91 each.
    let network = paper();
    let mut list = dray_flow::Flows::new(&network);
    for (path, outstanding) in [(H_D, 1.0), (B_D, 1.0), ("CN ND", 1.0)] {
        let path = path
            .split(' ')
            .map(|name| network.find(name).unwrap())
            .collect();
        list.push(&Flow {
            outstanding_bytes: outstanding,
            ..Flow::new(path, 8.5)
        })
        .unwrap();
    }
    let rates = Ingress.estimate(&list).unwrap();
    for (rate, expected) in rates.rates().iter().zip([2.185, 2.185, 4.37]) {
        assert!((rate - expected).abs() < 1e-9, "{rate}");
    }
    assert_eq!(rates.limits()[2], Limit::Edge(network.find("ND").unwrap()));
}
