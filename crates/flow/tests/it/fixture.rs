//! Networks that several tests use.

use dray_flow::{Estimate, Estimator, Flow, Flows, Network};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Table 2-a of the paper: host adapter H, switch S, endpoint adapters M and N, devices A to D.
pub(crate) fn paper() -> Network {
    let mut network = Network::new();
    for (name, capacity) in [
        ("HS", 11.55),
        ("SH", 12.25),
        ("SM", 15.56),
        ("SN", 15.56),
        ("MS", 15.46),
        ("NS", 15.46),
        ("MA", 8.74),
        ("MB", 8.74),
        ("NC", 8.74),
        ("ND", 8.74),
        ("AM", 11.70),
        ("BM", 11.70),
        ("CN", 11.70),
        ("DN", 11.70),
    ] {
        network
            .add_edge(name, &name[..1], &name[1..], capacity)
            .unwrap();
    }
    network
}

/// A flow over the edges whose names `path` lists.
pub(crate) fn flow(network: &Network, path: &str, demand: f64) -> Flow {
    let path = path
        .split(' ')
        .map(|name| network.find(name).expect("the edge is there"))
        .collect();
    Flow::new(path, demand)
}

pub(crate) fn flows<'n>(network: &'n Network, list: &[(&str, f64)]) -> Flows<'n> {
    let mut flows = Flows::new(network);
    for &(path, demand) in list {
        flows.push(&flow(network, path, demand)).unwrap();
    }
    flows
}

pub(crate) fn estimate(estimator: &dyn Estimator, flows: &Flows<'_>) -> Estimate {
    estimator.estimate(flows).expect("an estimate")
}

/// Random numbers from a seed that the caller prints.
pub(crate) struct Draw(ChaCha8Rng);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A tree with `fanout` children a node and `levels` levels of links; capacities between half of and one and a half of `width`
/// times the leaves below the link, to the power of `taper`.
pub(crate) struct Tree {
    pub(crate) network: Network,
    fanout: usize,
    levels: u32,
}

impl Tree {
    pub(crate) fn new(draw: &mut Draw, fanout: usize, levels: u32, width: f64, taper: f64) -> Self {
        let mut network = Network::new();
        let leaves = fanout.pow(levels);
        for level in 1..=levels {
            let below = fanout.pow(levels - level) as f64;
            for node in 0..fanout.pow(level) {
                let (child, parent) = (
                    format!("{level}.{node}"),
                    format!("{}.{}", level - 1, node / fanout),
                );
                for (from, to) in [(&child, &parent), (&parent, &child)] {
                    let capacity = width * below.powf(taper) * draw.between(0.5, 1.5);
                    network
                        .add_edge(&format!("{from}>{to}"), from, to, capacity)
                        .unwrap();
                }
            }
        }
        assert_eq!(network.edges().len() as u32 % 2, 0);
        assert!(leaves > 1);
        Self {
            network,
            fanout,
            levels,
        }
    }

    /// A flow between two leaves.
    pub(crate) fn flow(&self, draw: &mut Draw, demand: f64) -> Flow {
        let leaves = self.fanout.pow(self.levels);
        let from = draw.below(leaves);
        let to = (from + 1 + draw.below(leaves - 1)) % leaves;
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut a, mut b, mut level) = (from, to, self.levels);
        while a != b {
            let (pa, pb) = (a / self.fanout, b / self.fanout);
            up.push(format!("{level}.{a}>{}.{pa}", level - 1));
            down.push(format!("{}.{pb}>{level}.{b}", level - 1));
            (a, b, level) = (pa, pb, level - 1);
        }
        down.reverse();
        let path = up
            .iter()
            .chain(&down)
            .map(|name| self.network.find(name).unwrap())
            .collect();
        Flow::new(path, demand)
    }
}
