//! `dray fabric schedule`: when each job starts, and how fast.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use dray_fabric::{
    GIB, Interval, NamedJob, Replays, Send, caveats, makespan, network, read_jobs, window,
};
use dray_flow::{FlowError, Metrics, Network, Policy, Schedule, schedule};
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
  dray fabric schedule --topology validation --jobs jobs.toml
  dray fabric schedule --topology validation --jobs jobs.csv --policy guided --estimator ingress,ecr --format json
  dray fabric schedule --jobs jobs.toml --topology gpu8 --no-replay

A file of jobs, TOML or CSV:
  [[job]]
  from = \"host\"             the node where it starts
  to = \"C\"                  the node where it ends
  bytes = \"1M\"              a multiple of 64
  arrival_us = 12.5         when it is known
Further keys: name, after (names of jobs that must end first), demand_gib_s,
outstanding_bytes.
`ordered` sends jobs one after the other, in the order in which they would end if
all ran at once: it promises nothing, and has the least mean.
Policies know a job from its arrival on. `foreseen` is what the estimator says,
`replayed` what the simulator measures if the jobs are sent as decided. `guided`
keeps promises as far as its estimator knows the fabric: `maxmin` and `ecr` know
no credits. Schedules that send the same are simulated once. Where the simulator
needs seconds, what is foreseen is printed first, and stderr says how much there
is to simulate and how long it takes; --no-replay leaves it away.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Arguments of `dray fabric schedule`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The fabric: a topology file, or a built-in one.
    #[arg(long, value_name = "FILE|NAME")]
    topology: String,
    /// The jobs: a TOML or CSV file.
    #[arg(long, value_name = "FILE")]
    jobs: PathBuf,
    /// Policies.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "start-all,first-come,ordered,guided"
    )]
    policy: Vec<PolicyName>,
    /// What decisions rest on.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "ingress,maxmin,ecr"
    )]
    estimator: Vec<Which>,
    /// `guided` starts a job that gets this share of what it reaches alone.
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    share: f64,
    /// Leave the simulator away.
    #[arg(long)]
    no_replay: bool,
    /// How the schedules are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// Every job starts as it arrives.
    StartAll,
    /// In order of arrival, one at a time on each edge.
    FirstCome,
    /// In the order in which they would end if all ran at once; paced, those behind wait.
    Ordered,
    /// By response ratio, if the estimator keeps all promises; paced.
    Guided,
}

impl PolicyName {
    fn policy(self, share: f64) -> Policy {
        match self {
            Self::StartAll => Policy::StartAll,
            Self::FirstCome => Policy::FirstCome,
            Self::Ordered => Policy::Ordered,
            Self::Guided => Policy::Guided { share },
        }
    }
}

/// A late end is one that is later than promised by more than this part of the job's time, and by more than
/// [`GRACE_S`]: the simulator counts whole packets.
const LATE: f64 = 0.02;
const GRACE_S: f64 = 2e-6;

/// One policy with one estimator.
struct Row {
    policy: Policy,
    estimator: &'static str,
    schedule: Schedule,
    /// When the last job may end, by max-min, seconds.
    range: Option<Interval>,
    /// When the jobs end in the simulator, seconds.
    replayed: Option<Vec<f64>>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let topology = Topology::resolve(&args.topology)?;
    let network = network(&topology)?;
    if !(args.share > 0.0 && args.share <= 1.0) {
        return Err(Usage::error(
            format!("--share: {} is not above 0 and at most 1", args.share),
            "--share 0.5",
        ));
    }
    let jobs = read_jobs(&args.jobs, &topology, &network)?;
    let policies: Vec<Policy> = args
        .policy
        .iter()
        .map(|policy| policy.policy(args.share))
        .collect();
    let ways = jobs.iter().map(|job| job.job.flow.path.as_slice());
    let notes = caveats(&topology, "jobs", ways);
    let mut rows =
        plan(&topology, &network, &jobs, &policies, &args.estimator).map_err(|error| {
            match error.downcast::<FlowError>() {
                Ok(rule) => Usage::error(
                    format!("{}: {rule}", args.jobs.display()),
                    "jobs are counted from 0 here",
                ),
                Err(other) => other,
            }
        })?;
    set_ranges(&topology, &network, &jobs, &mut rows)?;
    let mut first = print::notes(&notes);
    if !args.no_replay {
        let replays = replays(&topology, &jobs, &rows)?;
        if replays.are_large() && matches!(args.format, Format::Table) {
            let text = format!("{first}{}", table(args, &topology, &jobs, &rows));
            print::all(&mut Stdout, &print::wrapped(&text))?;
            first.clear();
        }
        measure(&replays, &jobs, &mut rows)?;
    }
    let text = match args.format {
        Format::Table => {
            let text = format!("{first}{}", table(args, &topology, &jobs, &rows));
            print::wrapped(&text)
        }
        Format::Csv => {
            eprint!("{first}");
            csv(&rows)?
        }
        Format::Json => {
            let rows: Vec<_> = rows.iter().map(|row| row.json(&jobs)).collect();
            print::document(
                &json!({"topology": topology.name, "share": args.share, "schedules": rows, "notes": notes}),
            )?
        }
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Sets when the last job may end, which is the same for all estimators.
fn set_ranges(
    topology: &Topology,
    network: &Network,
    jobs: &[NamedJob],
    rows: &mut [Row],
) -> anyhow::Result<()> {
    let mut known: Vec<(Policy, Interval)> = Vec::new();
    for row in rows {
        let range = known.iter().find(|(policy, _)| *policy == row.policy);
        let range = match range {
            Some((_, range)) => *range,
            None => {
                let range = makespan(topology, network, jobs, row.policy)?;
                known.push((row.policy, range));
                range
            }
        };
        row.range = Some(range);
    }
    Ok(())
}

/// Each policy with each estimator.
fn plan(
    topology: &Topology,
    network: &Network,
    jobs: &[NamedJob],
    policies: &[Policy],
    estimators: &[Which],
) -> anyhow::Result<Vec<Row>> {
    let plain: Vec<_> = jobs.iter().map(|job| job.job.clone()).collect();
    let mut rows = Vec::new();
    for which in estimators {
        let estimator = which.build(topology);
        for &policy in policies {
            let schedule = schedule(network, &plain, policy, estimator.as_ref())?;
            rows.push(Row {
                policy,
                estimator: estimator.name(),
                schedule,
                range: None,
                replayed: None,
            });
        }
    }
    Ok(rows)
}

/// The report's table: policies and estimators on `jobs`, as foreseen and as replayed in the simulator.
pub(super) fn report_table(
    topology: &Topology,
    network: &Network,
    jobs: &[NamedJob],
    title: &str,
) -> anyhow::Result<Table> {
    let policies = [
        Policy::StartAll,
        Policy::FirstCome,
        Policy::Guided { share: 0.5 },
    ];
    let estimators = [Which::Ingress, Which::Maxmin, Which::Ecr];
    let mut table = Table::new(
        title,
        vec![
            Column::text("policy"),
            Column::text("estimator"),
            Column::number("makespan foreseen", "µs"),
            Column::number("makespan", "µs"),
            Column::number("mean completion", "µs"),
            Column::number("P99 completion", "µs"),
            Column::number("Jain's index", ""),
            Column::number("promises", ""),
            Column::number("kept", "%"),
            Column::number("latest", "µs"),
        ],
    );
    let mut rows = plan(topology, network, jobs, &policies, &estimators)?;
    measure(&replays(topology, jobs, &rows)?, jobs, &mut rows)?;
    for row in rows {
        let (made, broken) = row.promises();
        let seen = row.replayed_metrics();
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |v| Cell::number(v * 1e6, 1));
        table.push(
            vec![
                Cell::text(row.policy.name()),
                Cell::text(row.estimator),
                Cell::number(row.schedule.metrics().makespan * 1e6, 1),
                number(seen.map(|m| m.makespan)),
                number(seen.map(|m| m.mean)),
                number(seen.map(|m| m.p99)),
                seen.map_or(Cell::Empty, |m| Cell::number(m.jain, 3)),
                Cell::number(made as f64, 0),
                match broken {
                    Some(count) if made > 0 => {
                        Cell::number(100.0 * (made - count) as f64 / made as f64, 1)
                    }
                    _ => Cell::Empty,
                },
                number(row.latest()),
            ],
            None,
        );
    }
    table.notes.push(
        "Times are of the replay in the simulator but for the one foreseen. A promise is kept if the job ends no later than promised \
         by 2 % of its time and 2 µs; latest is by how much the latest job misses its promise (below 0: all are early)."
            .to_owned(),
    );
    Ok(table)
}

/// What the simulator is to send for each row.
fn replays<'t>(
    topology: &'t Topology,
    jobs: &[NamedJob],
    rows: &[Row],
) -> anyhow::Result<Replays<'t>> {
    let mut replays = Replays::new(topology);
    for row in rows {
        replays.push(sends(topology, jobs, &row.schedule)?)?;
    }
    Ok(replays)
}

/// Replays each row.
fn measure(replays: &Replays<'_>, jobs: &[NamedJob], rows: &mut [Row]) -> anyhow::Result<()> {
    for (row, ends) in rows.iter_mut().zip(simulating::run(replays, jobs.len())?) {
        let seconds = ends.into_iter().zip(jobs).map(|(end, job)| {
            let end = end.with_context(|| format!("job `{}` sends nothing", job.name))?;
            Ok(end as f64 * 1e-9)
        });
        row.replayed = Some(seconds.collect::<anyhow::Result<_>>()?);
    }
    Ok(())
}

/// The slowest pace of a sender, GiB/s: the simulator's sources have no slower one.
const LEAST_PACE: f64 = 1e-3;

/// The jobs as the schedule says: each at its pace, and never faster than it is alone.
fn sends(topology: &Topology, jobs: &[NamedJob], schedule: &Schedule) -> anyhow::Result<Vec<Send>> {
    let mut sends = Vec::new();
    for (index, (job, planned)) in jobs.iter().zip(&schedule.jobs).enumerate() {
        let (from, to) = (topology.find(&job.from)?, topology.find(&job.to)?);
        let (mut sent, mut exact) = (0, 0.0);
        let count = planned.segments.len();
        for (at, segment) in planned.segments.iter().enumerate() {
            exact += segment.size * GIB;
            // Whole packets, and all that is left at the end.
            let until = if at + 1 == count {
                job.bytes
            } else {
                (exact as u64).min(job.bytes) / 256 * 256
            };
            if until <= sent {
                continue;
            }
            let pace = segment.pace.map(|pace| pace.max(LEAST_PACE));
            if let Some(demand) = job.demand_gib_s.filter(|demand| *demand < LEAST_PACE) {
                return Err(Usage::error(
                    format!(
                        "job `{}`: demand_gib_s = {demand} is below {LEAST_PACE}, the simulator's slowest sender",
                        job.name.escape_debug()
                    ),
                    "--no-replay leaves the simulator away",
                ));
            }
            let rates = pace.into_iter().chain(dray_fabric::pace(&job.flow));
            sends.push(Send {
                job: index,
                from,
                to,
                bytes: until - sent,
                start_ns: (segment.start * 1e9).round() as u64,
                rate_gib_s: rates.reduce(f64::min),
                window_bytes: window(job.job.flow.outstanding_bytes),
                packets: job.job.flow.packets,
            });
            sent = until;
        }
    }
    Ok(sends)
}

impl Row {
    fn replayed_metrics(&self) -> Option<Metrics> {
        self.replayed
            .as_ref()
            .map(|ends| self.schedule.metrics_of(ends))
    }

    /// How many promises were made, and how many were broken in the simulator.
    fn promises(&self) -> (usize, Option<usize>) {
        let made = self
            .schedule
            .jobs
            .iter()
            .filter(|job| job.promise.is_some())
            .count();
        let broken = self.replayed.as_ref().map(|ends| {
            let late = |(job, end): (&dray_flow::Planned, &f64)| {
                job.promise
                    .is_some_and(|promise| *end > promise + GRACE_S + LATE * (promise - job.start))
            };
            self.schedule
                .jobs
                .iter()
                .zip(ends)
                .filter(|pair| late(*pair))
                .count()
        });
        (made, broken)
    }

    /// By how much the latest job misses its promise, seconds.
    fn latest(&self) -> Option<f64> {
        let ends = self.replayed.as_ref()?;
        let late = |(job, end): (&dray_flow::Planned, &f64)| Some(end - job.promise?);
        let late = self.schedule.jobs.iter().zip(ends).filter_map(late);
        late.reduce(f64::max)
    }

    fn json(&self, jobs: &[NamedJob]) -> serde_json::Value {
        let metrics = |m: Metrics| json!({"makespan_us": m.makespan * 1e6, "mean_us": m.mean * 1e6, "p99_us": m.p99 * 1e6, "jain": m.jain});
        let (made, broken) = self.promises();
        let list: Vec<_> = jobs
            .iter()
            .zip(&self.schedule.jobs)
            .enumerate()
            .map(|(index, (job, planned))| {
                let segments: Vec<_> = planned
                    .segments
                    .iter()
                    .map(|s| json!({"start_us": s.start * 1e6, "bytes": s.size * GIB, "pace_gib_s": s.pace}))
                    .collect();
                json!({
                    "name": job.name, "from": job.from, "to": job.to, "bytes": job.bytes, "known_us": planned.known * 1e6,
                    "start_us": planned.start * 1e6, "promise_us": planned.promise.map(|at| at * 1e6), "foreseen_us": planned.end * 1e6,
                    "replayed_us": self.replayed.as_ref().map(|ends| ends[index] * 1e6), "segments": segments,
                })
            })
            .collect();
        json!({
            "policy": self.policy.name(), "estimator": self.estimator, "foreseen": metrics(self.schedule.metrics()),
            "replayed": self.replayed_metrics().map(metrics), "promises": made, "promises_broken": broken, "latest_us": self.latest().map(|late| late * 1e6),
            "low_us": self.range.map(|range| range.low * 1e6), "high_us": self.range.map(|range| range.high * 1e6),
            "jobs": list,
        })
    }
}

fn table(args: &Args, topology: &Topology, jobs: &[NamedJob], rows: &[Row]) -> String {
    let head = [
        "policy",
        "estimator",
        "",
        "makespan us",
        "mean us",
        "P99 us",
        "Jain",
        "promises",
        "broken",
        "range us",
    ];
    let mut table = print::plain(head);
    for row in rows {
        let (made, broken) = row.promises();
        let times = |m: &Metrics| {
            [m.makespan, m.mean, m.p99].map(|seconds| format!("{:.1}", seconds * 1e6))
        };
        let foreseen = row.schedule.metrics();
        let mut cells = vec![
            row.policy.name().to_owned(),
            row.estimator.to_owned(),
            "foreseen".to_owned(),
        ];
        cells.extend(times(&foreseen));
        cells.push(format!("{:.3}", foreseen.jain));
        cells.extend([made.to_string(), String::new()]);
        let range = row
            .range
            .map(|range| print::range(range.low * 1e6, range.high * 1e6, 1));
        cells.push(range.unwrap_or_default());
        table.add_row(cells);
        if let Some(replayed) = row.replayed_metrics() {
            let mut cells = vec![String::new(), String::new(), "replayed".to_owned()];
            cells.extend(times(&replayed));
            cells.extend([
                format!("{:.3}", replayed.jain),
                String::new(),
                broken.map_or(String::new(), |n| n.to_string()),
                String::new(),
            ]);
            table.add_row(cells);
        }
    }
    print::right(&mut table, 3);
    format!(
        "{}: {} of {}\n{table}\n",
        topology.name,
        dray_output::counted(jobs.len(), "job"),
        args.jobs.display()
    )
}

fn csv(rows: &[Row]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "policy",
        "estimator",
        "source",
        "makespan_us",
        "mean_us",
        "p99_us",
        "jain",
        "promises",
        "promises_broken",
    ])?;
    for row in rows {
        let (made, broken) = row.promises();
        for (source, metrics) in [
            ("foreseen", Some(row.schedule.metrics())),
            ("replayed", row.replayed_metrics()),
        ] {
            let Some(m) = metrics else { continue };
            let mut cells = vec![
                row.policy.name().to_owned(),
                row.estimator.to_owned(),
                source.to_owned(),
            ];
            cells.extend(
                [m.makespan * 1e6, m.mean * 1e6, m.p99 * 1e6, m.jain]
                    .map(|value| value.to_string()),
            );
            cells.extend([
                made.to_string(),
                broken.map_or(String::new(), |n| n.to_string()),
            ]);
            writer.write_record(cells)?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}
