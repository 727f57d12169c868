//! `dray fabric collective`: communication patterns of machine learning as jobs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use dray_experiment::{csv_table, format_bytes, parse_bytes};
use dray_fabric::{
    Bytes, JobEntry, NamedJob, caveats, jobs_to_toml, makespan, network, resolve_jobs,
};
use dray_flow::{Network, Policy, schedule};
use dray_output::Output;
use dray_pcie::{NodeKind, Topology};
use dray_report::{Cell, Column, Table};
use serde_json::json;

use super::des;
use super::estimators::Which;
use super::replay::{Replays, Send};
use crate::complain::Usage;
use crate::print::{self, Format};
use crate::said::Stdout;

const EXAMPLES: &str = "\
Examples:
  dray fabric collective all-reduce
  dray fabric collective all-to-all --bytes 256M --format json
  dray fabric collective parameter-server --write-jobs jobs.toml
  dray fabric schedule --topology gpu8 --jobs jobs.toml

Every step waits for the step before it, as with a barrier. `des` is the
simulator: the time that the others should predict.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Arguments of `dray fabric collective`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The pattern.
    #[arg(value_enum)]
    pattern: Pattern,
    /// The fabric: a topology file, or a built-in one.
    #[arg(long, value_name = "FILE|NAME", default_value = "gpu8")]
    topology: String,
    /// Bytes that each endpoint holds.
    #[arg(long, value_name = "BYTES", default_value = "16M")]
    bytes: String,
    /// Which endpoints take part: those of this kind.
    #[arg(long, value_name = "KIND", default_value = "gpu")]
    kind: String,
    /// Estimators beside the simulator.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "ingress,maxmin,ecr,divide-by-n"
    )]
    estimator: Vec<Which>,
    /// Also write the jobs, for `dray fabric schedule --jobs`.
    #[arg(long, value_name = "FILE")]
    write_jobs: Option<PathBuf>,
    /// How the times are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pattern {
    /// A ring: 2 (N - 1) steps, in each of which everyone sends one Nth to the next.
    AllReduce,
    /// Everyone sends one Nth to everyone else at once.
    AllToAll,
    /// Everyone writes all of it to the first host; then everyone gets all of it.
    ParameterServer,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let output = args
        .write_jobs
        .as_deref()
        .map(Output::prepare)
        .transpose()?;
    let topology = Topology::resolve(&args.topology)?;
    let network = network(&topology)?;
    let bytes = parse_bytes(&args.bytes)
        .map_err(|error| Usage::error(format!("--bytes: {error}"), HINT))?;
    let (members, entries) = entries(&topology, args.pattern, &args.kind, bytes)?;
    let jobs = resolve_jobs(&entries, "the pattern", &topology, &network)?;
    let ways = jobs.iter().map(|job| job.job.flow.path.as_slice());
    let notes = caveats(&topology, "jobs", ways);
    let (simulated, times) = times(&topology, &network, &jobs, &args.estimator)?;
    let range = makespan(&topology, &network, &jobs, Policy::StartAll)?;
    if let Some(output) = output {
        output.write(jobs_to_toml(&entries)?.as_bytes())?;
    }
    let size = Size {
        bytes,
        members: members.len(),
    };
    let text = match args.format {
        Format::Table => {
            let table = table(args, &topology, size, jobs.len(), simulated, &times);
            let range = print::range(range.low * 1e6, range.high * 1e6, 1);
            let table = format!("{table}range of maxmin: {range} us\n");
            print::wrapped(&format!("{}{table}", print::notes(&notes)))
        }
        Format::Csv => {
            eprint!("{}", print::notes(&notes));
            csv(args.pattern, size, simulated, &times)
        }
        Format::Json => {
            let list: Vec<_> = times
                .iter()
                .map(|(name, time)| {
                    let (algorithm, bus) = (size.algorithm_gb_s(*time), size.bus_gb_s(args.pattern, *time));
                    json!({
                        "estimator": name, "us": time * 1e6, "algbw_gb_s": algorithm, "busbw_gb_s": bus,
                        "error": time / simulated - 1.0,
                    })
                })
                .collect();
            let document = json!({
                "topology": topology.name, "pattern": args.pattern.word(),
                "endpoints": members, "bytes": bytes, "jobs": jobs.len(), "des_us": simulated * 1e6, "des_algbw_gb_s": size.algorithm_gb_s(simulated),
                "des_busbw_gb_s": size.bus_gb_s(args.pattern, simulated), "low_us": range.low * 1e6, "high_us": range.high * 1e6, "estimates": list, "notes": notes,
            });
            print::document(&document)?
        }
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Bytes of each member, and how many they are.
#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: u64,
    members: usize,
}

impl Size {
    /// Bytes of a member over the time of all, GB/s.
    fn algorithm_gb_s(self, seconds: f64) -> f64 {
        self.bytes as f64 / seconds * 1e-9
    }

    /// What each link of a machine with one link a member would carry, as nccl-tests define it (PERFORMANCE.md): to be
    /// compared with the speed of links, whatever the number of members. There it is for collectives without a root.
    fn bus_gb_s(self, pattern: Pattern, seconds: f64) -> Option<f64> {
        let members = self.members as f64;
        let share = (members - 1.0) / members;
        let factor = match pattern {
            Pattern::AllReduce => Some(2.0 * share),
            Pattern::AllToAll => Some(share),
            Pattern::ParameterServer => None,
        };
        factor.map(|factor| self.algorithm_gb_s(seconds) * factor)
    }
}

/// The simulator first; the error of an estimate is relative to it.
fn csv(pattern: Pattern, size: Size, simulated: f64, times: &[(&'static str, f64)]) -> String {
    let row = |name: &str, time: f64, error: String| {
        let bus = size.bus_gb_s(pattern, time);
        vec![
            name.to_owned(),
            (time * 1e6).to_string(),
            size.algorithm_gb_s(time).to_string(),
            bus.map_or(String::new(), |bus| bus.to_string()),
            error,
        ]
    };
    let first = row("des", simulated, String::new());
    let others = times.iter().map(|(name, time)| {
        let error = time / simulated - 1.0;
        row(name, *time, error.to_string())
    });
    csv_table(
        &["estimator", "us", "algbw_gb_s", "busbw_gb_s", "error"],
        [first].into_iter().chain(others),
    )
}

const HINT: &str = "dray fabric collective --help shows examples";

/// The endpoints that take part, and the jobs of the pattern.
fn entries(
    topology: &Topology,
    pattern: Pattern,
    kind: &str,
    bytes: u64,
) -> anyhow::Result<(Vec<String>, Vec<JobEntry>)> {
    let members: Vec<String> = topology
        .nodes()
        .iter()
        .filter(|node| matches!(&node.kind, NodeKind::Endpoint { word, .. } if word == kind))
        .map(|node| node.name.clone())
        .collect();
    let count = members.len() as u64;
    if count < 2 {
        return Err(Usage::error(
            format!(
                "{} has {count} endpoints of kind `{kind}`; a pattern needs two",
                topology.name
            ),
            format!(
                "`dray fabric show {}` lists the endpoints; --kind chooses among them",
                topology.name
            ),
        ));
    }
    if bytes == 0 || !bytes.is_multiple_of(64 * count) || bytes > 1 << 40 {
        let rule = format!(
            "--bytes: {bytes} is not a multiple of 64 bytes for each of {count} endpoints, up to 1 TiB"
        );
        return Err(Usage::error(rule, HINT));
    }
    let host = topology
        .sockets()
        .next()
        .map(|node| topology.node(node).name.clone());
    let entries = match (pattern, host) {
        (Pattern::AllReduce, _) => ring(&members, bytes / count),
        (Pattern::AllToAll, _) => all_to_all(&members, bytes / count),
        (Pattern::ParameterServer, Some(host)) => parameter_server(&members, &host, bytes),
        (Pattern::ParameterServer, None) => {
            return Err(Usage::error(
                format!("{} has no host", topology.name),
                "parameters need a host's memory",
            ));
        }
    };
    Ok((members, entries))
}

/// The time of the jobs in the simulator and by each estimator, seconds.
fn times(
    topology: &Topology,
    network: &Network,
    jobs: &[NamedJob],
    estimators: &[Which],
) -> anyhow::Result<(f64, Vec<(&'static str, f64)>)> {
    let plain: Vec<_> = jobs.iter().map(|job| job.job.clone()).collect();
    let mut times = Vec::new();
    for which in estimators {
        let estimator = which.build(topology);
        let foreseen = schedule(network, &plain, Policy::StartAll, estimator.as_ref())?;
        times.push((estimator.name(), foreseen.metrics().makespan));
    }
    Ok((by_steps(topology, jobs)?, times))
}

/// The jobs of an all-to-all of `bytes` on the 8-GPU server, one every `gap_us`.
pub(super) fn staggered(
    topology: &Topology,
    network: &Network,
    bytes: u64,
    gap_us: f64,
) -> anyhow::Result<Vec<NamedJob>> {
    let (_, mut entries) = entries(topology, Pattern::AllToAll, "gpu", bytes)?;
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.arrival_us = gap_us * index as f64;
    }
    Ok(resolve_jobs(&entries, "all-to-all", topology, network)?)
}

/// The report's table: patterns by estimators beside the simulator.
pub(super) fn report_table(
    topology: &Topology,
    network: &Network,
    bytes: u64,
) -> anyhow::Result<Table> {
    let estimators = [Which::Ingress, Which::Maxmin, Which::Ecr, Which::DivideByN];
    let mut columns = vec![Column::text("pattern"), Column::number("des", "µs")];
    for which in estimators {
        columns.push(Column::number(which.build(topology).name(), "µs"));
        columns.push(Column::number("error", "%"));
    }
    let title = format!(
        "Patterns of {} each on {}, by estimator and in the simulator",
        format_bytes(bytes),
        topology.name
    );
    let mut table = Table::new(title, columns);
    for &pattern in Pattern::value_variants() {
        let (_, entries) = entries(topology, pattern, "gpu", bytes)?;
        let jobs = resolve_jobs(&entries, "the pattern", topology, network)?;
        let (simulated, times) = times(topology, network, &jobs, &estimators)?;
        let mut cells = vec![Cell::text(pattern.word()), Cell::number(simulated * 1e6, 1)];
        for (_, time) in times {
            cells.push(Cell::number(time * 1e6, 1));
            cells.push(Cell::number((time / simulated - 1.0) * 100.0, 1));
        }
        table.push(cells, None);
    }
    Ok(table)
}

impl Pattern {
    fn word(self) -> String {
        self.to_possible_value()
            .map_or(String::new(), |value| value.get_name().to_owned())
    }
}

fn entry(name: String, from: &str, to: &str, bytes: u64, after: Vec<String>) -> JobEntry {
    JobEntry {
        name: Some(name),
        from: from.to_owned(),
        to: to.to_owned(),
        bytes: Bytes::Number(bytes),
        arrival_us: 0.0,
        after: Some(after).filter(|after| !after.is_empty()),
        demand_gib_s: None,
        outstanding_bytes: None,
        operation: None,
    }
}

fn ring(members: &[String], part: u64) -> Vec<JobEntry> {
    let count = members.len();
    let name = |step: usize, from: usize| format!("step{step}.{}", members[from]);
    let steps = (0..2 * (count - 1)).flat_map(|step| (0..count).map(move |from| (step, from)));
    steps
        .map(|(step, from)| {
            let after = match step {
                0 => Vec::new(),
                _ => (0..count).map(|other| name(step - 1, other)).collect(),
            };
            entry(
                name(step, from),
                &members[from],
                &members[(from + 1) % count],
                part,
                after,
            )
        })
        .collect()
}

fn all_to_all(members: &[String], part: u64) -> Vec<JobEntry> {
    let pairs = members
        .iter()
        .flat_map(|from| members.iter().map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| entry(format!("{from}-{to}"), from, to, part, Vec::new()))
        .collect()
}

fn parameter_server(members: &[String], host: &str, bytes: u64) -> Vec<JobEntry> {
    let pushes: Vec<String> = members
        .iter()
        .map(|member| format!("push.{member}"))
        .collect();
    let push = members
        .iter()
        .zip(&pushes)
        .map(|(member, name)| entry(name.clone(), member, host, bytes, Vec::new()));
    let pull = members.iter().map(|member| {
        entry(
            format!("pull.{member}"),
            host,
            member,
            bytes,
            pushes.clone(),
        )
    });
    push.chain(pull).collect()
}

/// The time in the simulator, seconds: one step after the other, each until all of it has arrived.
fn by_steps(topology: &Topology, jobs: &[NamedJob]) -> anyhow::Result<f64> {
    let mut depth = vec![0; jobs.len()];
    for (index, job) in jobs.iter().enumerate() {
        // The patterns name what they wait for before them.
        depth[index] = job
            .job
            .after
            .iter()
            .map(|&after| depth[after] + 1)
            .max()
            .unwrap_or(0);
    }
    let steps = depth.iter().max().map_or(0, |deepest| deepest + 1);
    let mut replays = Replays::new(topology);
    for step in 0..steps {
        let members = jobs.iter().zip(&depth).filter(|(_, depth)| **depth == step);
        // A step is known by what it sends, so that one like another runs once.
        let sends: Vec<Send> = members
            .enumerate()
            .map(|(index, (job, _))| {
                Ok(Send {
                    job: index,
                    from: topology.find(&job.from)?,
                    to: topology.find(&job.to)?,
                    bytes: job.bytes,
                    start_ns: 0,
                    rate_gib_s: des::pace(&job.flow),
                    window_bytes: des::window(job.job.flow.outstanding_bytes),
                    packets: job.job.flow.packets,
                })
            })
            .collect::<anyhow::Result<_>>()?;
        replays.push(sends)?;
    }
    let mut total_ns = 0;
    for ends in replays.run(jobs.len())? {
        let last = ends.into_iter().flatten().max();
        total_ns += last.context("a step in which nothing is sent")?;
    }
    Ok(total_ns as f64 * 1e-9)
}

fn table(
    args: &Args,
    topology: &Topology,
    size: Size,
    jobs: usize,
    simulated: f64,
    times: &[(&str, f64)],
) -> String {
    let pattern = args.pattern.word();
    let mut table = print::plain(["estimator", "us", "algbw GB/s", "busbw GB/s", "error"]);
    let row = |name: &str, time: f64, error: String| {
        let bus = size.bus_gb_s(args.pattern, time);
        vec![
            name.to_owned(),
            format!("{:.1}", time * 1e6),
            format!("{:.2}", size.algorithm_gb_s(time)),
            bus.map_or("-".to_owned(), |bus| format!("{bus:.2}")),
            error,
        ]
    };
    table.add_row(row("des", simulated, String::new()));
    for (name, time) in times {
        let error = format!("{:+.1} %", (time / simulated - 1.0) * 100.0);
        table.add_row(row(name, *time, error));
    }
    for column in 1..4 {
        print::right(&mut table, column);
    }
    let bytes = size.bytes;
    format!(
        "{}: {pattern} of {} each, {jobs} jobs\n{table}\n",
        topology.name,
        format_bytes(bytes)
    )
}
