//! `dray figures`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use dray_bench::real::DeviceChoice;
use dray_figures::{DeviceRequest, FiguresError, Protocol, Request};
use dray_idxd::Profile;
use dray_output::counted;
use dray_platform::PlatformFile;
use dray_print::PictureStyle;

use crate::asked;
use crate::check;
use crate::complain::Usage;
use crate::config;
use crate::print::{self, Format};
use crate::progress::{self, Bar};
use crate::said::Stdout;

/// Configuration that is modelled where none is named.
const CONFIG: &str = "1e1w-d";

const EXAMPLES: &str = "\
Examples:
  dray figures
  sudo dray figures --device hw --out measured
  dray figures --only fig4 --set wq_size=1..128*2 --format csv
  dray figures --platform emr-2s --config 4e1w-s --out emr
  dray figures --config my-profile.json --measure-cpu
  dray figures --protocol seed --out seed
  dray figures --only fig2,fig3 --style paper --out paper
  dray figures --only fig3 --intervals
  dray figures --check --format json

The publication is A Quantitative Analysis and Guidelines of Data Streaming
Accelerator in Modern Intel Xeon Scalable Processors (ASPLOS 2024).
Sizes: 256, 4k, 2M. Lists: 1,4,16 or 0-3. Sweeps: 256..1M*4, 8..64+8.
Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 there is no DSA (--device
hw), 130 interrupted (the same command resumes).";

/// Arguments of `dray figures`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Machine to model: a built-in platform (spr-2s, emr-2s, dsa2-2s) or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    platform: String,

    /// Device configuration: an accel-config file, or a name such as 4e1w-s-wqsz16; without it
    /// 1e1w-d.
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<String>,

    /// Only these figures.
    #[arg(long, value_name = "FIGURE", value_delimiter = ',')]
    only: Vec<String>,

    /// Give a parameter other values; may be repeated.
    #[arg(long, value_name = "NAME=VALUES")]
    set: Vec<String>,

    /// Meaning of sync and async: one operation outstanding against a full queue (paper), or what the
    /// script of a published reproduction does (seed).
    #[arg(long, value_name = "paper|seed", default_value = "paper", value_parser = protocol())]
    protocol: Protocol,

    /// Also measure software on one core of this machine, as a series of its own.
    #[arg(long)]
    measure_cpu: bool,

    /// Also measure a DSA of this machine, and the core beside it: the first that is not in use, configured
    /// as each point needs and put back as it was, or a work queue as it is configured.
    #[arg(long, value_name = "hw[:wqX.Y]", value_parser = DeviceChoice::parse, conflicts_with_all = ["list", "check"])]
    device: Option<DeviceChoice>,

    /// Move the payload bytes and check them: slower, with the same modelled times.
    #[arg(long)]
    move_bytes: bool,

    /// Draw the 90 % interval of each modelled value, all parameters anywhere in their ranges; takes
    /// minutes. The intervals are in intervals.csv, too.
    #[arg(long, conflicts_with_all = ["list", "check"])]
    intervals: bool,

    /// How the pictures beside the report are drawn: as on the page, or for a paper, one column wide or
    /// two, as SVG, PDF and PNG.
    #[arg(long, value_name = "page|paper|paper-wide", default_value = "page", value_parser = print::picture_style(), conflicts_with_all = ["list", "check"])]
    style: PictureStyle,

    /// Directory for the report.
    #[arg(long, value_name = "DIR", default_value = "dray-report")]
    out: PathBuf,

    /// Also print the results.
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Threads, up to 256; 0 is one per core. The results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=256))]
    jobs: u16,

    /// List the figures and stop.
    #[arg(long, conflicts_with = "check")]
    list: bool,

    /// Print the model beside every published number, and write nothing.
    #[arg(long)]
    check: bool,

    /// With --check: also the error of each table under parameters fitted to all others. Takes
    /// minutes.
    #[arg(long, requires = "check")]
    leave_out: bool,

    /// With --check: also the share of published values that lie within the 90 % interval of a model
    /// fitted to all other tables, by class of results and by table. Takes minutes.
    #[arg(long, requires = "check")]
    coverage: bool,

    /// With --check: exit with 1 if a table misses its target.
    #[arg(long, requires = "check")]
    strict: bool,
}

/// The names of [`Protocol`], for help and completions as well.
fn protocol() -> impl TypedValueParser<Value = Protocol> {
    PossibleValuesParser::new(Protocol::ALL.map(Protocol::name))
        .try_map(|name| name.parse::<Protocol>())
}

impl Args {
    /// Whether this machine is measured, too.
    pub(crate) fn measures(&self) -> bool {
        self.measure_cpu || self.device.is_some()
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let protocol = args.protocol;
    let format = args.format;
    if args.list {
        return list(protocol, format.unwrap_or(Format::Table));
    }
    let platform = PlatformFile::resolve(&args.platform).map_err(FiguresError::from)?;
    if args.check {
        return check::run(
            &platform,
            format.unwrap_or(Format::Table),
            check::Fits {
                leave_out: args.leave_out,
                coverage: args.coverage,
            },
            args.strict,
        );
    }
    let set: Result<Vec<_>, _> = args.set.iter().map(|text| pair(text)).collect();
    let queue = args.device.as_ref().and_then(DeviceChoice::queue);
    let (profile, profile_name) = match (queue, &args.config) {
        (Some(queue), Some(_)) => {
            return Err(Usage::error(
                format!(
                    "--device hw:{queue} measures the queue as it is configured, not as --config says"
                ),
                "--device hw configures a device; dray config load-config configures it for longer",
            ));
        }
        (Some(queue), None) => (
            dray_figures::configured_queue(queue)?,
            format!("of {queue} as it is configured"),
        ),
        (None, config) => {
            let name = config.as_deref().unwrap_or(CONFIG);
            let profile = Profile::resolve(name).map_err(FiguresError::from)?;
            (profile, name.to_owned())
        }
    };
    for finding in profile.unmodelled() {
        eprintln!("warning: {finding}");
    }
    let request = Request {
        platform,
        profile,
        profile_name,
        only: args.only.clone(),
        set: set?,
        protocol,
        measure_cpu: args.measure_cpu,
        device: args.device.as_ref().map(|choice| DeviceRequest {
            queue: choice.queue().map(str::to_owned),
            state: config::state(),
        }),
        move_bytes: args.move_bytes,
        intervals: args.intervals,
        pictures: args.style,
        asked: asked::facts(),
        out: args.out.clone(),
        jobs: args.jobs.into(),
    };
    let selection = dray_figures::select(protocol, &request.only, &request.set)?;
    for line in selection.lines() {
        eprintln!("note: {line}");
    }
    progress::listen();
    let bar = Bar::new("point");
    let summary = dray_figures::run(&request, &bar);
    bar.clear();
    let summary = summary?;
    if let Some(format) = format {
        print::all(&mut Stdout, &print::results(format, &request, &summary)?)?;
    }
    if let Some(device) = &summary.device {
        eprintln!("Device measured here: {}", device.describe());
        for line in device.not_measured.lines() {
            eprintln!("note: {line}");
        }
    }
    for line in summary.refused.lines() {
        eprintln!("note: {line}");
    }
    let points: usize = summary
        .figures
        .iter()
        .map(|figure| figure.outcomes.len())
        .sum();
    eprintln!(
        "{}, {}: {}",
        counted(summary.figures.len(), "figure"),
        counted(points, "point"),
        request.out.join("index.html").display()
    );
    if io::stderr().is_terminal() {
        eprintln!(
            "open it with: xdg-open {}",
            request.out.join("index.html").display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn list(protocol: Protocol, format: Format) -> anyhow::Result<ExitCode> {
    let experiments = dray_figures::experiments(protocol)?;
    let text = match format {
        Format::Table => {
            let mut table = print::plain(["figure", "points", "swept", "title"]);
            for e in &experiments {
                let swept: Vec<&str> = e.sweep.iter().map(|(name, _)| name.as_str()).collect();
                let points = e.points().len().to_string();
                table.add_row([e.id.as_str(), &points, &swept.join(","), &e.title]);
            }
            format!("{table}\n")
        }
        Format::Csv => {
            let rows = experiments
                .iter()
                .map(|e| vec![e.id.clone(), e.points().len().to_string(), e.title.clone()]);
            dray_experiment::csv_table(&["figure", "points", "title"], rows)
        }
        Format::Json => {
            let figures: Vec<serde_json::Value> = experiments
                .iter()
                .map(|e| serde_json::json!({ "figure": e.id, "points": e.points().len(), "title": e.title }))
                .collect();
            print::document(&serde_json::json!({ "figures": figures }))?
        }
    };
    print::all(&mut Stdout, &text)?;
    Ok(ExitCode::SUCCESS)
}

fn pair(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((name, values)) if !name.is_empty() => Ok((name.trim().to_owned(), values.to_owned())),
        _ => Err(Usage::error(
            format!("--set {text}: a name, '=' and values are needed"),
            "--set wq_size=1..128*2",
        )),
    }
}
