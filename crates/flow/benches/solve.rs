//! How long predictions and decisions take: `cargo bench -p dray-flow -- [FLOWS] [LEVELS] [SEED]`.
//!
//! Prints medians with quartiles of the time on the processor, of runs in turn, so that other work on the machine slows all of
//! them alike.

use dray_flow::{
    Ecr, EdgeId, Estimator, Flow, Flows, Ingress, Job, MaxMin, Network, Policy, schedule,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

struct Draw(ChaCha8Rng);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A tree of fan-out 8: a link has `width` times the number of leaves below it to the power of 0.7, give or take a half.
struct Tree {
    network: Network,
    levels: u32,
    /// By level and node: the edge up and the edge down.
    edges: Vec<Vec<(EdgeId, EdgeId)>>,
}

const FANOUT: usize = 8;

impl Tree {
    fn new(draw: &mut Draw, levels: u32, width: f64) -> Self {
        let mut network = Network::new();
        let mut edges = vec![Vec::new()];
        for level in 1..=levels {
            let below = FANOUT.pow(levels - level) as f64;
            let row = (0..FANOUT.pow(level))
                .map(|node| {
                    let (child, parent) = (
                        format!("{level}.{node}"),
                        format!("{}.{}", level - 1, node / FANOUT),
                    );
                    let mut edge = |from: &str, to: &str| {
                        let capacity = width * below.powf(0.7) * draw.between(0.5, 1.5);
                        network
                            .add_edge(&format!("{from}>{to}"), from, to, capacity)
                            .expect("a new edge")
                    };
                    (edge(&child, &parent), edge(&parent, &child))
                })
                .collect();
            edges.push(row);
        }
        Self {
            network,
            levels,
            edges,
        }
    }

    fn flow(&self, draw: &mut Draw, demand: f64) -> Flow {
        let leaves = FANOUT.pow(self.levels);
        let mut a = draw.below(leaves);
        let mut b = (a + 1 + draw.below(leaves - 1)) % leaves;
        let (mut path, mut down) = (Vec::new(), Vec::new());
        for level in (1..=self.levels as usize).rev() {
            if a == b {
                break;
            }
            path.push(self.edges[level][a].0);
            down.push(self.edges[level][b].1);
            (a, b) = (a / FANOUT, b / FANOUT);
        }
        path.extend(down.into_iter().rev());
        Flow::new(path, demand)
    }
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

fn print(what: &str, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let ms = |part| quantile(&seconds, part) * 1e3;
    println!(
        "{what:34} median {:10.3} ms, quartiles {:10.3} to {:10.3}, P99 {:10.3}",
        ms(0.5),
        ms(0.25),
        ms(0.75),
        ms(0.99)
    );
}

/// Seconds that this thread has been on a processor.
fn on_processor() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = on_processor();
    let result = work();
    (on_processor() - start, result)
}

fn predictions(tree: &Tree, flows: &Flows<'_>) {
    let estimators: [&dyn Estimator; 3] = [&Ecr, &MaxMin, &Ingress];
    let mut seconds = vec![Vec::new(); estimators.len()];
    for run in 0..if flows.len() > 300_000 { 3 } else { 7 } {
        for (at, estimator) in estimators.iter().enumerate() {
            // It goes over all flows many times: once is enough for many, and with a million it would take minutes.
            let runs =
                [7, 1, 0][usize::from(flows.len() > 2_000) + usize::from(flows.len() > 300_000)];
            if estimator.name() == Ingress.name() && run >= runs {
                continue;
            }
            let (took, result) = timed(|| estimator.estimate(flows));
            match result {
                Ok(_) => seconds[at].push(took),
                Err(error) => println!("{}: {error}", estimator.name()),
            }
        }
    }
    println!(
        "{} flows over {} edges",
        flows.len(),
        tree.network.edges().len()
    );
    for (estimator, seconds) in estimators.iter().zip(seconds) {
        if !seconds.is_empty() {
            print(estimator.name(), seconds);
        }
    }
}

/// Decisions of a schedule with a thousand jobs in the mean between eight leaves.
fn decisions(seed: u64) {
    for policy in [Policy::StartAll, Policy::Ordered] {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let tree = Tree::new(&mut draw, 1, 60.0);
        let jobs: Vec<Job> = (0..2000)
            .map(|_| {
                let flow = tree.flow(&mut draw, f64::INFINITY);
                Job::new(flow, draw.between(1.0, 100.0), 0.0)
            })
            .collect();
        let mut seconds: Vec<f64> = (0..5)
            .map(|_| {
                let begun = on_processor();
                schedule(&tree.network, &jobs, policy, &MaxMin).expect("a schedule");
                (on_processor() - begun) / (jobs.len() + 1) as f64
            })
            .collect();
        seconds.sort_by(f64::total_cmp);
        println!(
            "a decision of {} with 1000 jobs in the mean: median {:.1} us",
            policy.name(),
            quantile(&seconds, 0.5) * 1e6
        );
    }
}

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse::<usize>().ok());
    let count = numbers.next().unwrap_or(100_000);
    let levels = numbers.next().unwrap_or(4) as u32;
    let seed = numbers.next().unwrap_or(1) as u64;
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
    decisions(seed);
    let tree = Tree::new(&mut draw, levels, 60.0);
    for (kind, demand) in [
        ("saturated", 12.0),
        ("some edges full", 1.2),
        ("few edges full", 0.9),
    ] {
        // The demand for which the mean leaf is asked for so many times its width.
        let demand = demand * 60.0 * FANOUT.pow(levels) as f64 / count as f64 / 4.0;
        let mut flows = Flows::new(&tree.network);
        for _ in 0..count {
            let demand = demand * draw.between(0.1, 1.9);
            let flow = tree.flow(&mut draw, demand);
            flows.push(&flow).expect("a flow of the tree");
        }
        let full = MaxMin.estimate(&flows).expect("rates");
        let limited = full
            .limits()
            .iter()
            .filter(|limit| !matches!(limit, dray_flow::Limit::Demand))
            .count();
        println!("== {kind}: {limited} of {count} flows limited by an edge, seed {seed}");
        predictions(&tree, &flows);
    }
}
