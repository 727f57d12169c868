//! `dray fabric compare-estimators`: estimators against the simulator on random instances.

mod printed;

use std::process::ExitCode;

use clap::ValueEnum;
use dray_fabric::{Des, latency, network, network_with, route};
use dray_figures::Progress;
use dray_flow::{Ecr, Estimate, Estimator, Flow, Flows, Ingress, Limit, MaxMin, Network};
use dray_pcie::sim::SimulationOptions;
use dray_pcie::{NodeId, Topology};
use dray_report::{Cell, Column, Table};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;
use serde_json::json;

use printed::{csv, table};

use super::ports::{ArbiterName, QueueName};
use crate::complain::Usage;
use crate::print::{self, Format};
use crate::progress::Bar;
use crate::said::Stdout;

const EXAMPLES: &str = "\
Examples:
  dray fabric compare-estimators --seed 1
  dray fabric compare-estimators --instances 200 --flows 8 --arbiter least-served --queues fifo
  dray fabric compare-estimators --topology gpu8 --outstanding 4096,65536 --format csv

Draws flows between random hosts and endpoints, each with a random demand up to
the narrowest edge of its path and one of the outstanding sizes. `ingress`
assumes the arbiter and the queues of the row, unless --assume-arbiter or
--assume-queues name others. Instances in which no edge is full are drawn again.
The error of an instance is the mean over its flows of |estimate - simulated| /
simulated. Differences are paired: both estimators have the same instances.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Arguments of `dray fabric compare-estimators`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The fabric: a topology file, or a built-in one.
    #[arg(long, value_name = "FILE|NAME", default_value = "validation")]
    topology: String,
    /// Instances for each arbiter and queue organisation.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    instances: usize,
    /// Flows of an instance; the sizes take turns.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "3,5,8,12"
    )]
    flows: Vec<usize>,
    /// Bytes in flight of a flow; drawn from these.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "16384"
    )]
    outstanding: Vec<u64>,
    /// Arbiters of the simulated ports.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "least-served,round-robin,oldest-first"
    )]
    arbiter: Vec<ArbiterName>,
    /// Queue organisations of the simulated nodes.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "per-output,fifo"
    )]
    queues: Vec<QueueName>,
    /// The arbiter that `ingress` assumes, if not the simulated one.
    #[arg(long, value_enum, value_name = "ARBITER")]
    assume_arbiter: Option<ArbiterName>,
    /// The queue organisation that `ingress` assumes, if not the simulated one.
    #[arg(long, value_enum, value_name = "QUEUES")]
    assume_queues: Option<QueueName>,
    /// Virtual time measured of each instance, after half as much of warm-up, us.
    #[arg(long, value_name = "US", default_value_t = 100)]
    measure_us: u64,
    /// Seed of the instances.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

const NAMES: [&str; 3] = ["ecr", "maxmin", "ingress"];
const INGRESS: usize = 2;
/// Instances are drawn before they are simulated.
const MAX_INSTANCES: usize = 100_000;
/// An estimate that is off by more counts as off.
const OFF: f64 = 0.1;

/// Errors of one instance, by estimator.
#[derive(Clone, Copy)]
struct Errors {
    mean: [f64; 3],
    /// Flows that are off by more than a tenth.
    off: [usize; 3],
    flows: usize,
    /// Whether `ingress` settled.
    settled: bool,
}

/// One arbiter and queue organisation.
struct Row {
    arbiter: String,
    queues: String,
    instances: usize,
    mean: [f64; 3],
    off: [f64; 3],
    /// Mean difference of the error to that of `ingress`, and half of its 95 % interval, for `ecr` and `maxmin`.
    gain: [(f64, f64); 2],
    /// Instances in which `ingress` did not settle.
    unsettled: usize,
    /// Its mean error in these.
    unsettled_error: Option<f64>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let refuse = |message: &str| {
        Err(Usage::error(
            message,
            "dray fabric compare-estimators --help shows examples",
        ))
    };
    if !(2..=MAX_INSTANCES).contains(&args.instances) {
        return refuse("--instances: from 2, which an interval needs, to 100000");
    }
    if args.flows.iter().any(|&flows| !(1..=1000).contains(&flows)) {
        return refuse("--flows: an instance has 1 to 1000 flows");
    }
    if args
        .outstanding
        .iter()
        .any(|&bytes| !(256..=1 << 30).contains(&bytes))
    {
        return refuse("--outstanding: a flow keeps 256 bytes to 1 GiB in flight");
    }
    if !(1..=1_000_000).contains(&args.measure_us) {
        return refuse("--measure-us: from 1 to 1000000");
    }
    let (topology, rows) = compare(args)?;
    let text = match args.format {
        Format::Table => table(args, &topology, &rows),
        Format::Csv => csv(&rows)?,
        Format::Json => print::document(&json!({
            "topology": topology.name, "seed": args.seed, "flows": args.flows, "outstanding_bytes": args.outstanding,
            "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
        }))?,
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// The errors of the estimators, by arbiter and queue organisation.
fn compare(args: &Args) -> anyhow::Result<(Topology, Vec<Row>)> {
    let topology = Topology::resolve(&args.topology)?;
    let network = network(&topology)?;
    let ends: Vec<NodeId> = topology.sockets().chain(topology.endpoints()).collect();
    if ends.len() < 2 {
        return Err(Usage::error(
            "the topology has fewer than two hosts and endpoints",
            "dray fabric show lists them",
        ));
    }
    let instances: Vec<Vec<Flow>> = (0..args.instances)
        .map(|index| draw(args, &topology, &network, &ends, index))
        .collect::<anyhow::Result<_>>()?;
    let bar = Bar::new("instance");
    bar.start(args.instances * args.arbiter.len() * args.queues.len(), 0);
    let mut rows = Vec::new();
    for &arbiter in &args.arbiter {
        for &queues in &args.queues {
            let options = SimulationOptions {
                arbiter: Some(arbiter.arbiter()),
                queues: Some(queues.organisation()),
                ..SimulationOptions::default()
            };
            let des = Des::new(&topology, options, args.measure_us * 1000);
            // Arbiter and queues are properties of the fabric, as its capacities are.
            let assumed = SimulationOptions {
                arbiter: Some(args.assume_arbiter.unwrap_or(arbiter).arbiter()),
                queues: Some(args.assume_queues.unwrap_or(queues).organisation()),
                ..SimulationOptions::default()
            };
            let network = network_with(&topology, &assumed)?;
            let errors: Vec<Errors> = instances
                .par_iter()
                .map(|flows| {
                    let errors = errors(&network, flows, &des);
                    bar.done();
                    errors
                })
                .collect::<anyhow::Result<_>>()?;
            let name = |value: Option<clap::builder::PossibleValue>| {
                value.map_or(String::new(), |v| v.get_name().to_owned())
            };
            rows.push(Row::new(
                name(arbiter.to_possible_value()),
                name(queues.to_possible_value()),
                &errors,
            ));
        }
    }
    bar.clear();
    Ok((topology, rows))
}

/// The arguments of `instances` random instances of the paper's validation layout.
fn on_validation(instances: usize, seed: u64) -> Args {
    Args {
        topology: "validation".into(),
        instances,
        flows: vec![3, 5, 8, 12],
        outstanding: vec![16384],
        arbiter: ArbiterName::value_variants().to_vec(),
        queues: vec![QueueName::PerOutput, QueueName::Fifo],
        assume_arbiter: None,
        assume_queues: None,
        measure_us: 100,
        seed,
        format: Format::Table,
    }
}

/// Random sets of flows on the paper's validation layout, each with a full edge.
pub(super) fn instances(count: usize, seed: u64) -> anyhow::Result<(Network, Vec<Vec<Flow>>)> {
    let args = on_validation(count, seed);
    let topology = Topology::resolve(&args.topology)?;
    let network = network(&topology)?;
    let ends: Vec<NodeId> = topology.sockets().chain(topology.endpoints()).collect();
    let instances = (0..count)
        .map(|index| draw(&args, &topology, &network, &ends, index))
        .collect::<anyhow::Result<_>>()?;
    Ok((network, instances))
}

/// The report's table: errors of the estimators on `instances` random instances of the paper's validation layout.
pub(super) fn report_table(instances: usize, seed: u64) -> anyhow::Result<Table> {
    let args = on_validation(instances, seed);
    let mut columns = vec![Column::text("arbiter"), Column::text("queues")];
    columns.extend(NAMES.map(|name| Column::number(name, "%")));
    for name in ["ecr - ingress", "maxmin - ingress"] {
        columns.push(Column::number(name, "points"));
        columns.push(Column::number("±", "points"));
    }
    let title = format!(
        "Mean relative error against the simulator, {instances} random instances a row, seed {seed}"
    );
    let mut table = Table::new(title, columns);
    for row in compare(&args)?.1 {
        let mut cells = vec![Cell::text(&row.arbiter), Cell::text(&row.queues)];
        cells.extend(row.mean.map(|mean| Cell::number(mean * 100.0, 2)));
        for (mean, half) in row.gain {
            cells.push(Cell::number(mean * 100.0, 2));
            cells.push(Cell::number(half * 100.0, 2));
        }
        table.push(cells, None);
    }
    table.notes.push(
        "Differences are paired, with half of their 95 % interval. `dray fabric compare-estimators` runs 1000 instances a row."
            .to_owned(),
    );
    Ok(table)
}

/// The instance of a number: the same for every arbiter.
fn draw(
    args: &Args,
    topology: &Topology,
    network: &Network,
    ends: &[NodeId],
    index: usize,
) -> anyhow::Result<Vec<Flow>> {
    let mut random = ChaCha8Rng::seed_from_u64(args.seed);
    random.set_stream(index as u64);
    let count = args.flows[index % args.flows.len()];
    for _ in 0..1000 {
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            let from = below(&mut random, ends.len());
            let to = (from + 1 + below(&mut random, ends.len() - 1)) % ends.len();
            let name = |end: usize| topology.node(ends[end]).name.as_str();
            let path = route(topology, network, name(from), name(to))?;
            let narrowest = path
                .iter()
                .map(|&edge| network.edge(edge).capacity())
                .fold(f64::INFINITY, f64::min);
            let part = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            list.push(Flow {
                outstanding_bytes: args.outstanding[below(&mut random, args.outstanding.len())]
                    as f64,
                latency: latency(topology, &path),
                ..Flow::new(path, narrowest * (0.02 + 0.98 * part))
            });
        }
        let limits = MaxMin.estimate(&set(network, &list)?)?;
        if limits.limits().iter().any(|limit| *limit != Limit::Demand) {
            return Ok(list);
        }
    }
    Err(Usage::error(
        "no instance of 1000 fills an edge",
        "more --flows",
    ))
}

fn below(random: &mut ChaCha8Rng, limit: usize) -> usize {
    (random.next_u64() % limit as u64) as usize
}

fn set<'n>(network: &'n Network, list: &[Flow]) -> anyhow::Result<Flows<'n>> {
    let mut flows = Flows::new(network);
    for flow in list {
        flows.push(flow)?;
    }
    Ok(flows)
}

fn errors(network: &Network, list: &[Flow], des: &Des<'_>) -> anyhow::Result<Errors> {
    let flows = set(network, list)?;
    let simulated = des.estimate(&flows)?;
    let estimators: [&dyn Estimator; 3] = [&Ecr, &MaxMin, &Ingress];
    let mut errors = Errors {
        mean: [0.0; 3],
        off: [0; 3],
        flows: list.len(),
        settled: true,
    };
    for (at, estimator) in estimators.into_iter().enumerate() {
        let estimate: Estimate = estimator.estimate(&flows)?;
        errors.settled &= estimate.is_settled();
        for (rate, truth) in estimate.rates().iter().zip(simulated.rates()) {
            // A flow of which nothing arrives is off by all of it, not by infinity.
            let error = if *truth > 0.0 {
                (rate - truth).abs() / truth
            } else {
                1.0
            };
            errors.mean[at] += error / list.len() as f64;
            errors.off[at] += usize::from(error > OFF);
        }
    }
    Ok(errors)
}

impl Row {
    fn new(arbiter: String, queues: String, errors: &[Errors]) -> Self {
        let count = errors.len() as f64;
        let flows: usize = errors.iter().map(|error| error.flows).sum();
        let over = |at: usize| {
            errors.iter().map(|error| error.off[at]).sum::<usize>() as f64 / flows as f64
        };
        let mean = |at: usize| errors.iter().map(|error| error.mean[at]).sum::<f64>() / count;
        let gain = |at: usize| {
            let differences = || {
                errors
                    .iter()
                    .map(|error| error.mean[at] - error.mean[INGRESS])
            };
            let mean = differences().sum::<f64>() / count;
            let variance = differences().map(|d| (d - mean).powi(2)).sum::<f64>() / (count - 1.0);
            (mean, 1.96 * (variance / count).sqrt())
        };
        let open: Vec<f64> = errors
            .iter()
            .filter(|error| !error.settled)
            .map(|error| error.mean[INGRESS])
            .collect();
        let unsettled_error = open.iter().sum::<f64>() / open.len() as f64;
        Self {
            unsettled: open.len(),
            unsettled_error: (!open.is_empty()).then_some(unsettled_error),
            arbiter,
            queues,
            instances: errors.len(),
            mean: [mean(0), mean(1), mean(2)],
            off: [over(0), over(1), over(2)],
            gain: [gain(0), gain(1)],
        }
    }

    fn json(&self) -> serde_json::Value {
        let by_name = |values: [f64; 3]| -> serde_json::Map<String, serde_json::Value> {
            NAMES
                .iter()
                .zip(values)
                .map(|(name, value)| ((*name).to_owned(), value.into()))
                .collect()
        };
        let gain = |(mean, half): (f64, f64)| json!({"mean": mean, "low": mean - half, "high": mean + half});
        json!({
            "arbiter": self.arbiter, "queues": self.queues, "instances": self.instances,
            "mean_error": by_name(self.mean), "share_of_flows_off_by_a_tenth": by_name(self.off),
            "ecr_minus_ingress": gain(self.gain[0]), "maxmin_minus_ingress": gain(self.gain[1]),
            "unsettled": self.unsettled, "unsettled_mean_error": self.unsettled_error,
        })
    }
}
