//! `dray fabric collective`: communication patterns of machine learning as jobs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use dray_experiment::{csv_table, format_bytes, parse_bytes};
use dray_fabric::{
    NamedJob, Pattern, Size, by_steps, caveats, collective, jobs_to_toml, makespan, network,
    resolve_jobs,
};
use dray_flow::{Network, Policy, schedule};
use dray_output::Output;
use dray_pcie::Topology;
use dray_report::{Cell, Column, Table};
use serde_json::json;

use super::estimators::Which;
use super::simulating;
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
    pattern: PatternName,
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
enum PatternName {
    /// A ring: 2 (N - 1) steps, in each of which everyone sends one Nth to the next.
    AllReduce,
    /// Everyone sends one Nth to everyone else at once.
    AllToAll,
    /// Everyone writes all of it to the first host; then everyone gets all of it.
    ParameterServer,
}

impl PatternName {
    fn pattern(self) -> Pattern {
        match self {
            Self::AllReduce => Pattern::AllReduce,
            Self::AllToAll => Pattern::AllToAll,
            Self::ParameterServer => Pattern::ParameterServer,
        }
    }

    fn word(self) -> String {
        self.to_possible_value()
            .map_or(String::new(), |value| value.get_name().to_owned())
    }
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
    let pattern = args.pattern.pattern();
    let (members, entries) = collective(&topology, pattern, &args.kind, bytes)?;
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
            csv(pattern, size, simulated, &times)
        }
        Format::Json => {
            let list: Vec<_> = times
                .iter()
                .map(|(name, time)| {
                    let (algorithm, bus) = (size.algorithm_gb_s(*time), size.bus_gb_s(pattern, *time));
                    json!({
                        "estimator": name, "us": time * 1e6, "algbw_gb_s": algorithm, "busbw_gb_s": bus,
                        "error": time / simulated - 1.0,
                    })
                })
                .collect();
            let document = json!({
                "topology": topology.name, "pattern": args.pattern.word(),
                "endpoints": members, "bytes": bytes, "jobs": jobs.len(), "des_us": simulated * 1e6, "des_algbw_gb_s": size.algorithm_gb_s(simulated),
                "des_busbw_gb_s": size.bus_gb_s(pattern, simulated), "low_us": range.low * 1e6, "high_us": range.high * 1e6, "estimates": list, "notes": notes,
            });
            print::document(&document)?
        }
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
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
    let simulated = by_steps(topology, jobs, |replays| {
        simulating::run(replays, jobs.len())
    })?;
    Ok((simulated, times))
}

/// The jobs of an all-to-all of `bytes` on the 8-GPU server, one every `gap_us`.
pub(super) fn staggered(
    topology: &Topology,
    network: &Network,
    bytes: u64,
    gap_us: f64,
) -> anyhow::Result<Vec<NamedJob>> {
    let (_, mut entries) = collective(topology, Pattern::AllToAll, "gpu", bytes)?;
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
    for pattern in PatternName::value_variants() {
        let (_, entries) = collective(topology, pattern.pattern(), "gpu", bytes)?;
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

fn table(
    args: &Args,
    topology: &Topology,
    size: Size,
    jobs: usize,
    simulated: f64,
    times: &[(&str, f64)],
) -> String {
    let pattern = args.pattern.pattern();
    let mut table = print::plain(["estimator", "us", "algbw GB/s", "busbw GB/s", "error"]);
    let row = |name: &str, time: f64, error: String| {
        let bus = size.bus_gb_s(pattern, time);
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
        "{}: {} of {} each, {jobs} jobs\n{table}\n",
        topology.name,
        args.pattern.word(),
        format_bytes(bytes)
    )
}
