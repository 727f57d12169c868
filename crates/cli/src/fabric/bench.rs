//! `dray fabric bench`: the experiments on the simulated fabric, the checks, a trace.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use dray_experiment::{csv_table, write_csv};
use dray_figures::Progress;
use dray_output::{Output, counted};
use dray_pcie::bench::{
    Check, CheckRow, FabricExperiment, Tolerance, Verdict, built_in_experiments, built_in_text,
    check_all, report, run_experiment, trace_experiment,
};
use dray_print::PictureStyle;
use dray_suggest::suggest;
use serde_json::json;

use super::{check_estimators, comparison};
use crate::asked;
use crate::complain::Usage;
use crate::print::{self, Format};
use crate::progress::Bar;
use crate::said::Stdout;

const EXAMPLES: &str = "\
Examples:
  dray fabric bench                          all, as a report in dray-fabric/
  dray fabric bench --only tails,partition --format csv
  dray fabric bench --check                  beside every published number
  dray fabric bench --only arrival --trace tlps.json TLPs and transfers for ui.perfetto.dev
  dray fabric bench --toml switch > mine.toml        a built-in file, to change
  dray fabric bench --only tails --style paper       also PDF and PNG for a paper
  dray fabric bench --file mine.toml                 an experiment of your own

The same seed gives the same numbers on every machine.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Longest experiment file, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Arguments of `dray fabric bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only these experiments, or `estimators` and `schedulers`: those beside the simulator.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Run an experiment file instead of the built-in ones; may be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    file: Vec<PathBuf>,
    /// List the experiments and stop.
    #[arg(long)]
    list: bool,
    /// Print the file of a built-in experiment and stop.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["only", "file", "list", "check", "trace", "format"])]
    toml: Option<String>,
    /// Print the simulator and the estimators beside every published number, and write nothing.
    #[arg(long, conflicts_with_all = ["list", "trace"])]
    check: bool,
    /// With --check: exit with 1 if a number is outside its tolerance.
    #[arg(long, requires = "check")]
    strict: bool,
    /// Record the last point of one experiment as JSON for Perfetto, and write no report.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Seed of random arrivals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How the pictures beside the report are drawn: as on the page, or for a paper, one column wide or
    /// two, as SVG, PDF and PNG.
    #[arg(long, value_name = "page|paper|paper-wide", default_value = "page", value_parser = print::picture_style())]
    style: PictureStyle,
    /// Directory for the report.
    #[arg(long, value_name = "DIR", default_value = "dray-fabric")]
    out: PathBuf,
    /// Also print the results, or how --check prints.
    #[arg(long, value_enum)]
    format: Option<Format>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.check {
        return checks(args);
    }
    if let Some(name) = &args.toml {
        let text = built_in_text(name).ok_or_else(|| {
            let names = built_in_experiments().unwrap_or_default();
            let names = names.iter().map(|experiment| experiment.id.as_str());
            Usage::error(
                format!("--toml: `{name}` is not built in; {}", suggest(name, names)),
                "dray fabric bench --list",
            )
        })?;
        print::all(&mut Stdout, text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiments = chosen(args)?;
    if args.list {
        let mut table = print::plain(["experiment", "topology", "swept", "title"]);
        for e in &experiments {
            table.add_row([&e.id, &e.topology, e.swept().unwrap_or("nothing"), &e.title]);
        }
        print::all(&mut Stdout, &format!("{table}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &args.trace {
        let [experiment] = experiments.as_slice() else {
            return Err(Usage::error(
                "--trace records one experiment",
                "dray fabric bench --only arrival --trace tlps.json",
            ));
        };
        let out = Output::prepare(path)?;
        out.write(trace_experiment(experiment, args.seed)?.as_bytes())?;
        eprintln!("{}: open it with ui.perfetto.dev", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.out)
        .map_err(|error| anyhow::anyhow!("cannot make {}: {error}", args.out.display()))?;
    let page = Output::prepare(&args.out.join("index.html"))?;
    let whole = args.only.is_empty() && args.file.is_empty();
    let bar = Bar::new("experiment");
    let wanted = |name: &str| whole || args.only.iter().any(|only| only == name);
    let compared: Vec<&str> = comparison::NAMES
        .into_iter()
        .filter(|name| wanted(name))
        .collect();
    bar.start(experiments.len() + usize::from(whole) + compared.len(), 0);
    let mut runs = Vec::new();
    for (index, experiment) in experiments.into_iter().enumerate() {
        let outcomes = run_experiment(&experiment, args.seed);
        let outcomes = match args.file.get(index) {
            // A rule that fails only when the experiment runs is an error of its file as well.
            Some(file) => outcomes.map_err(|error| {
                Usage::error(
                    format!("{}: {error}", file.display()),
                    "compare with a built-in file: dray fabric bench --toml switch",
                )
            })?,
            None => outcomes?,
        };
        runs.push((experiment, outcomes));
        bar.done();
    }
    let mut checked = Vec::new();
    if whole {
        checked = checked_all(args.seed)?;
        bar.done();
    }
    let mut parts = Vec::new();
    for name in compared {
        parts.push(comparison::part(name, args.seed)?);
        bar.done();
    }
    bar.clear();
    let written = report(
        &runs,
        &checked,
        parts,
        args.seed,
        args.style,
        asked::facts(),
    )?;
    for (name, bytes) in &written.files {
        dray_output::write(&args.out.join(name), bytes)?;
    }
    page.write(written.html.as_bytes())?;
    if let Some(format) = args.format {
        print::all(&mut Stdout, &results(format, &runs)?)?;
    }
    let points: usize = runs.iter().map(|(_, outcomes)| outcomes.len()).sum();
    eprintln!(
        "{}, {}: {}",
        counted(runs.len(), "experiment"),
        counted(points, "point"),
        args.out.join("index.html").display()
    );
    Ok(ExitCode::SUCCESS)
}

fn chosen(args: &Args) -> anyhow::Result<Vec<FabricExperiment>> {
    if !args.file.is_empty() {
        let mut experiments = Vec::new();
        for path in &args.file {
            let text = dray_pcie::read_text(path, MAX_BYTES)
                .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?;
            experiments.push(FabricExperiment::parse(&text, &path.display().to_string())?);
        }
        return Ok(experiments);
    }
    let all = built_in_experiments()?;
    let mut known: Vec<String> = all.iter().map(|e| e.id.clone()).collect();
    known.extend(comparison::NAMES.map(str::to_owned));
    if let Some(unknown) = args.only.iter().find(|name| !known.contains(name)) {
        return Err(Usage::error(
            format!(
                "--only: no experiment is named `{unknown}`; {}",
                suggest(unknown, known.iter().map(String::as_str))
            ),
            "dray fabric bench --list",
        ));
    }
    let wanted = |e: &FabricExperiment| args.only.is_empty() || args.only.contains(&e.id);
    Ok(all.into_iter().filter(wanted).collect())
}

type Runs = [(FabricExperiment, Vec<dray_pcie::bench::FabricOutcome>)];

fn results(format: Format, runs: &Runs) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut list = Vec::new();
    for (experiment, outcomes) in runs {
        let rows: Vec<_> = outcomes
            .iter()
            .map(|o| o.outcome(experiment.swept()))
            .collect();
        match format {
            Format::Csv => {
                writeln!(text, "# {}", experiment.id)?;
                text += &write_csv(&rows);
            }
            Format::Json => list.push(json!({ "experiment": experiment.id, "outcomes": rows })),
            Format::Table => {
                let mut table = print::plain([
                    "variant", "x", "stream", "GiB/s", "mean ns", "P50", "P90", "P99", "P99.9",
                ]);
                for outcome in outcomes {
                    for stream in &outcome.streams {
                        let metric = |name: &str, digits: usize| {
                            let value = outcome.metric(&format!("{}.{name}", stream.name));
                            value.map_or(String::new(), |value| format!("{value:.digits$}"))
                        };
                        let x = outcome
                            .x
                            .as_ref()
                            .map_or(String::new(), ToString::to_string);
                        table.add_row([
                            outcome.variant.clone(),
                            x,
                            stream.name.clone(),
                            metric("gib_s", 3),
                            metric("mean_ns", 1),
                            metric("p50_ns", 1),
                            metric("p90_ns", 1),
                            metric("p99_ns", 1),
                            metric("p999_ns", 1),
                        ]);
                    }
                }
                print::right(&mut table, 3);
                writeln!(text, "{}: {}\n{table}\n", experiment.id, experiment.title)?;
            }
        }
    }
    if format == Format::Json {
        text = print::document(&json!({ "experiments": list }))?;
    }
    Ok(text)
}

/// The checks of the simulator and of the estimators.
fn checked_all(seed: u64) -> anyhow::Result<Vec<Check>> {
    let mut checks = check_all()?;
    check_estimators::add_to(&mut checks, seed)?;
    Ok(checks)
}

fn checks(args: &Args) -> anyhow::Result<ExitCode> {
    let checks = checked_all(args.seed)?;
    let text = match args.format.unwrap_or(Format::Table) {
        Format::Table => table(&checks)?,
        Format::Json => {
            let all: Vec<_> = checks.iter().map(as_json).collect();
            print::document(&json!({ "checks": all }))?
        }
        Format::Csv => csv(&checks),
    };
    print::all(&mut Stdout, &text)?;
    let missed: usize = checks.iter().map(Check::missed).sum();
    if args.strict && missed > 0 {
        eprintln!("error: {missed} numbers are outside their tolerance");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn target(row: &CheckRow) -> String {
    match row.target {
        (low, high) if low == high => format!("{low:.3}"),
        (low, high) => format!("{low} to {high}"),
    }
}

fn tolerance(row: &CheckRow) -> String {
    match row.tolerance {
        Tolerance::Percent(percent) => format!("{percent} %"),
        Tolerance::Absolute(allowed) => {
            // Without what is left to rounding.
            let allowed = (allowed * 1e9).round() / 1e9;
            format!("{allowed} {}", row.unit).trim_end().to_owned()
        }
    }
}

fn deviation(row: &CheckRow) -> String {
    match row.tolerance {
        Tolerance::Percent(_) => format!("{:+.2} %", row.deviation()),
        Tolerance::Absolute(_) => format!("{:+.2}", row.deviation()),
    }
}

fn verdict(row: &CheckRow) -> &'static str {
    match row.verdict() {
        Verdict::Met => "met",
        Verdict::Missed => "MISSED",
    }
}

fn table(checks: &[Check]) -> anyhow::Result<String> {
    let mut text = String::new();
    for check in checks {
        writeln!(text, "check {}: {}", check.number, check.title)?;
        writeln!(text, "  source: {}", check.source)?;
        writeln!(text, "  parameters: {}", check.parameters)?;
        let mut rows = print::plain([
            "what",
            "target",
            "result",
            "unit",
            "deviation",
            "tolerance",
            "verdict",
        ]);
        for row in &check.rows {
            rows.add_row([
                row.name.clone(),
                target(row),
                format!("{:.3}", row.result),
                row.unit.to_owned(),
                deviation(row),
                tolerance(row),
                verdict(row).to_owned(),
            ]);
        }
        writeln!(text, "{rows}\n")?;
    }
    let rows: usize = checks.iter().map(|check| check.rows.len()).sum();
    let missed: usize = checks.iter().map(Check::missed).sum();
    writeln!(
        text,
        "{} of {rows} numbers are within their tolerance, {missed} are not.",
        rows - missed
    )?;
    Ok(text)
}

fn as_json(check: &Check) -> serde_json::Value {
    let rows: Vec<_> = check
        .rows
        .iter()
        .map(|row| {
            let (kind, allowed) = match row.tolerance {
                Tolerance::Percent(value) => ("percent", value),
                Tolerance::Absolute(value) => ("absolute", value),
            };
            json!({
                "what": row.name, "unit": row.unit, "target": [row.target.0, row.target.1],
                "result": row.result, "deviation": row.deviation(),
                "tolerance": { kind: allowed }, "verdict": verdict(row).to_lowercase(),
            })
        })
        .collect();
    json!({
        "check": check.number, "title": check.title, "source": check.source,
        "parameters": check.parameters, "rows": rows,
    })
}

fn csv(checks: &[Check]) -> String {
    let rows = checks.iter().flat_map(|check| {
        check.rows.iter().map(|row| {
            vec![
                check.number.to_string(),
                row.name.clone(),
                row.target.0.to_string(),
                row.target.1.to_string(),
                row.result.to_string(),
                row.unit.to_string(),
                row.deviation().to_string(),
                tolerance(row),
                verdict(row).to_lowercase(),
            ]
        })
    });
    csv_table(
        &[
            "check",
            "what",
            "target_low",
            "target_high",
            "result",
            "unit",
            "deviation",
            "tolerance",
            "verdict",
        ],
        rows,
    )
}
