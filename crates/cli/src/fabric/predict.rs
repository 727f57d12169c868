//! `dray fabric predict`: what each flow gets.

use std::path::PathBuf;
use std::process::ExitCode;

use dray_fabric::{Interval, NamedFlow, caveats, intervals, network_with, read_flows};
use dray_flow::{Estimate, Flows, Limit, Network};
use dray_output::Output;
use dray_pcie::{LinkKind, Topology};
use serde_json::json;

use super::estimators::Which;
use super::picture;
use super::ports::PortArgs;
use crate::print::{self, Format};
use crate::said::Stdout;

const EXAMPLES: &str = "\
Examples:
  dray fabric predict --topology validation --flows flows.toml
  dray fabric predict --topology fabric.toml --flows flows.csv --estimator ecr,maxmin,ingress,des --format csv
  dray fabric predict --topology validation --flows flows.toml --svg loaded.svg

A file of flows, TOML or CSV:
  [[flow]]
  from = \"host\"             the node where it starts; `host` is `host.0`
  to = \"C\"                  the node where it ends
  demand_gib_s = 8.51       its rate when alone; without it no limit
  outstanding_bytes = 16384 in flight, for `ingress` and `des`; else no limit
Where estimators differ by more than 10 %, the first line says so: `des`, which
simulates every TLP, is then nearest to a real fabric. It runs for up to 64
flows, and for more with --verify. Notes say what the topology does not: links
whose speed an import could not read, and root complexes between devices without
peer_write_gib_s. With it, every estimator keeps to it.
`range` is from where to where max-min rates go with the least and the greatest
values of what the topology does not say: the payload of TLPs, what a request
asks for, links between sockets, what a root complex forwards.
operation = \"read\", \"write\" or \"mmio\" says who moves the data; without it
devices read from memory, and write to memory and to each other.
Further keys: name, weight (for `maxmin` and `ecr` alone), source (flows of one
source share a queue), path (edges instead of the route).
All rates are GiB/s of payload. Exit codes: 0 ok, 1 failed, 2 usage or bad
input.";

/// Arguments of `dray fabric predict`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The fabric: a topology file, or a built-in one.
    #[arg(long, value_name = "FILE|NAME")]
    topology: String,
    /// The flows: a TOML or CSV file.
    #[arg(long, value_name = "FILE")]
    flows: PathBuf,
    /// Estimators, the first for the picture; without it those that the fabric needs: `maxmin`, which is exact where edges alone
    /// limit flows, after `ingress` where a file gives buffers or windows, and `des` beside them for few flows.
    #[arg(long, value_enum, value_delimiter = ',')]
    estimator: Vec<Which>,
    /// Run `des`, too, however many flows there are.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    ports: PortArgs,
    /// Draw the loaded topology.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How the rates are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Estimates of a flow's rate that differ by no more than this part of the smaller one count as alike.
const ALIKE: f64 = 0.1;

/// Flows for which the simulator runs unasked: it takes a second for them.
const FEW: usize = 64;

/// The estimators that are asked for, or those that the fabric needs.
fn estimators(args: &Args, topology: &Topology, flows: &[NamedFlow]) -> Vec<Which> {
    let mut estimators = args.estimator.clone();
    if estimators.is_empty() {
        let has_buffers = topology
            .links()
            .iter()
            .any(|link| link.credits_given && link.kind != LinkKind::Socket);
        let has_windows = flows.iter().any(|flow| flow.window_given);
        if has_buffers || has_windows || args.ports.are_given() {
            estimators.push(Which::Ingress);
        }
        estimators.push(Which::Maxmin);
        if flows.len() <= FEW {
            estimators.push(Which::Des);
        }
    }
    if args.verify && !estimators.contains(&Which::Des) {
        estimators.push(Which::Des);
    }
    estimators
}

/// All that is printed.
struct Prediction<'a> {
    topology: &'a Topology,
    network: &'a Network,
    flows: &'a [NamedFlow],
    estimates: Vec<(&'static str, Estimate)>,
    /// By estimator and edge, GiB/s.
    loads: Vec<Vec<f64>>,
    /// By flow.
    intervals: Vec<Interval>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let svg = args.svg.as_deref().map(Output::prepare).transpose()?;
    let topology = Topology::resolve(&args.topology)?;
    let options = args.ports.options();
    let network = network_with(&topology, &options)?;
    let named = read_flows(&args.flows, &topology, &network)?;
    let mut flows = Flows::new(&network);
    for flow in &named {
        flows.push(&flow.flow)?;
    }
    let mut prediction = Prediction {
        topology: &topology,
        network: &network,
        flows: &named,
        estimates: Vec::new(),
        loads: Vec::new(),
        intervals: intervals(&topology, &network, &named)?,
    };
    for which in estimators(args, &topology, &named) {
        let estimator = which.build_with(&topology, options.clone());
        let is_asked = args.verify || args.estimator.contains(&which);
        let estimate = match estimator.estimate(&flows) {
            Ok(estimate) => estimate,
            // Nobody has asked for it.
            Err(error) if which == Which::Des && !is_asked => {
                eprintln!("note: the simulator was left out: {error}");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        prediction.loads.push(estimate.loads(&flows));
        prediction.estimates.push((estimator.name(), estimate));
    }
    let difference = prediction.difference();
    let ways = named.iter().map(|flow| flow.flow.path.as_slice());
    let mut notes = caveats(&topology, "flows", ways);
    notes.extend(prediction.without_weights());
    let said: Vec<String> = difference.iter().chain(&notes).cloned().collect();
    let first = print::notes(&said);
    let text = match args.format {
        Format::Table => print::wrapped(&format!("{first}{}", prediction.table())),
        Format::Csv => {
            eprint!("{first}");
            prediction.csv()?
        }
        Format::Json => prediction.json(difference.as_deref(), &notes)?,
    };
    print::all(&mut Stdout, &text)?;
    for (name, estimate) in &prediction.estimates {
        if !estimate.is_settled() {
            eprintln!(
                "note: {name} did not settle: full buffers hold each other; its rates are means over its last rounds"
            );
        }
    }
    if let (Some(file), Some(loads)) = (svg, prediction.loads.first()) {
        let name = prediction.estimates[0].0;
        let picture = picture::loaded(&topology, loads, name)?;
        file.write(picture.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Prediction<'_> {
    fn bottleneck(&self, limit: Limit) -> Option<&str> {
        match limit {
            Limit::Demand | Limit::Window => None,
            Limit::Edge(edge) => Some(self.network.edge(edge).name()),
        }
    }

    /// The kind of a flow's limit.
    fn kind(&self, flow: usize, limit: Limit) -> &'static str {
        match limit {
            Limit::Demand => self.flows[flow].held_by.unwrap_or("demand"),
            Limit::Window => "window",
            Limit::Edge(_) => "edge",
        }
    }

    /// A flow's limit in words.
    fn limit(&self, flow: usize, limit: Limit) -> String {
        match limit {
            Limit::Edge(edge) => self.network.edge(edge).name().to_owned(),
            Limit::Window => format!(
                "its {} B in flight",
                self.flows[flow].flow.outstanding_bytes
            ),
            Limit::Demand => match self.kind(flow, limit) {
                "credits" => "credits of its path".to_owned(),
                "tags" => "reads that its reader has in flight".to_owned(),
                "socket link" => "one link between sockets".to_owned(),
                _ => "its demand".to_owned(),
            },
        }
    }

    /// How many flows the estimators say different things of, and of which they differ most.
    fn difference(&self) -> Option<String> {
        let ranges = self.flows.iter().enumerate().filter_map(|(index, flow)| {
            let rates = self
                .estimates
                .iter()
                .map(|(name, e)| (e.rates()[index], *name));
            let least = rates.clone().min_by(|a, b| a.0.total_cmp(&b.0))?;
            let most = rates.max_by(|a, b| a.0.total_cmp(&b.0))?;
            (most.0 > least.0 * (1.0 + ALIKE)).then_some((most.0 / least.0, flow, least, most))
        });
        let ranges: Vec<_> = ranges.collect();
        let worst = ranges.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (_, flow, least, most) = worst;
        Some(format!(
            "estimators differ by more than {:.0} % on {} of {} flows, most on {}: {} {:.3}, {} {:.3} GiB/s",
            ALIKE * 100.0,
            ranges.len(),
            self.flows.len(),
            flow.name,
            least.1,
            least.0,
            most.1,
            most.0,
        ))
    }

    /// Which of the estimators give equal shares although a flow has a weight.
    fn without_weights(&self) -> Option<String> {
        let is_weighted = self.flows.iter().any(|flow| flow.flow.weight != 1.0);
        let equal: Vec<&str> = self
            .estimates
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !matches!(*name, "maxmin" | "ecr"))
            .collect();
        (is_weighted && !equal.is_empty()).then(|| {
            format!(
                "`weight` counts for maxmin and ecr alone: {} gives every flow the share of a port",
                equal.join(", ")
            )
        })
    }

    fn table(&self) -> String {
        let mut head = vec!["flow".to_owned(), "demand".to_owned()];
        for (name, _) in &self.estimates {
            head.extend([format!("{name} GiB/s"), "limited by".to_owned()]);
        }
        head.push("range".to_owned());
        let mut table = print::plain(head.iter().map(String::as_str));
        for (index, flow) in self.flows.iter().enumerate() {
            let demand = flow.flow.demand;
            let mut row = vec![
                flow.name.clone(),
                if demand.is_finite() {
                    format!("{demand:.3}")
                } else {
                    "none".into()
                },
            ];
            for (_, estimate) in &self.estimates {
                row.push(format!("{:.3}", estimate.rates()[index]));
                row.push(self.limit(index, estimate.limits()[index]));
            }
            let interval = self.intervals[index];
            row.push(print::range(interval.low, interval.high, 2));
            table.add_row(row);
        }
        for column in std::iter::once(1).chain((0..self.estimates.len()).map(|index| 2 + 2 * index))
        {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        format!("{table}\n{} {}\n", self.topology.name, self.topology.title)
    }

    fn csv(&self) -> anyhow::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record([
            "flow",
            "from",
            "to",
            "demand_gib_s",
            "estimator",
            "gib_s",
            "bottleneck",
            "limit",
            "low_gib_s",
            "high_gib_s",
        ])?;
        for (name, estimate) in &self.estimates {
            for (index, flow) in self.flows.iter().enumerate() {
                let demand = flow.flow.demand;
                let demand = if demand.is_finite() {
                    demand.to_string()
                } else {
                    String::new()
                };
                let rate = estimate.rates()[index].to_string();
                let limit = estimate.limits()[index];
                let bottleneck = self.bottleneck(limit).unwrap_or("");
                let kind = self.kind(index, limit);
                let Interval { low, high } = self.intervals[index];
                let (low, high) = (low.to_string(), high.to_string());
                writer.write_record([
                    &flow.name, &flow.from, &flow.to, &demand, *name, &rate, bottleneck, kind,
                    &low, &high,
                ])?;
            }
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }

    fn json(&self, difference: Option<&str>, notes: &[String]) -> anyhow::Result<String> {
        let flows: Vec<_> = self
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| {
                let estimates: serde_json::Map<_, _> = self
                    .estimates
                    .iter()
                    .map(|(name, estimate)| {
                        let limit = estimate.limits()[index];
                        let (bottleneck, kind) = (self.bottleneck(limit), self.kind(index, limit));
                        ((*name).to_owned(), json!({"gib_s": estimate.rates()[index], "bottleneck": bottleneck, "limit": kind}))
                    })
                    .collect();
                let path: Vec<&str> = flow.flow.path.iter().map(|&edge| self.network.edge(edge).name()).collect();
                let demand = Some(flow.flow.demand).filter(|demand| demand.is_finite());
                json!({
                    "name": flow.name, "from": flow.from, "to": flow.to, "path": path,
                    "demand_gib_s": demand, "outstanding_bytes": flow.flow.outstanding_bytes, "estimates": estimates,
                    "operation": flow.operation, "payload_bytes": flow.flow.packets.payload,
                    "low_gib_s": self.intervals[index].low, "high_gib_s": self.intervals[index].high,
                })
            })
            .collect();
        let edges: Vec<_> = self
            .network
            .edges()
            .iter()
            .enumerate()
            .map(|(index, edge)| {
                let loads: serde_json::Map<_, _> = self
                    .estimates
                    .iter()
                    .zip(&self.loads)
                    .map(|((name, _), loads)| ((*name).to_owned(), loads[index].into()))
                    .collect();
                json!({"name": edge.name(), "capacity_gib_s": edge.capacity(), "load_gib_s": loads})
            })
            .collect();
        let unsettled = self
            .estimates
            .iter()
            .filter(|(_, estimate)| !estimate.is_settled());
        let unsettled: Vec<&str> = unsettled.map(|(name, _)| *name).collect();
        let document = json!({
            "topology": self.topology.name, "unit": "GiB/s", "flows": flows, "edges": edges, "unsettled": unsettled,
            "difference": difference, "notes": notes,
        });
        Ok(print::document(&document)?)
    }
}
