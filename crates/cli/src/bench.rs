//! `dray bench`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, ValueEnum};
use dray_bench::{
    Api, Axes, BenchError, Case, Context, Kind, Layout, Location, MinTime, Modelled, Output, Row,
    TimeUnit, Timer, failed, parse_block_size, positions, rows, select, write_csv, write_json,
};
use dray_idxd::Profile;
use dray_platform::{PlatformFile, WaitMode};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::complain::Usage;
use crate::print;

const EXAMPLES: &str = "\
Examples:
  dray bench --benchmark_min_time=0.3 --benchmark_filter=move/api:c/path:.*/exec:.*/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/.*
  dray bench --benchmark_filter=\"copy/api:c/path:cpu/exec:sync/.*\"
  dray bench --block_size=4k --queue_size=1 --benchmark_filter=path:dsa/exec:sync
  dray bench --benchmark_filter=size:65536/ --benchmark_out=result.json --benchmark_out_format=json

Cases run in modelled time: Time is virtual, CPU is the time that the core was busy with an
iteration. A case ends after --benchmark_min_time, or sooner once it has repeated itself often
enough. An iteration is qsize operations (async: qsize/threads of each thread); a batch counts as
one operation of Latency/Op, all its bytes count in Throughput.
Exit codes: 0 ok, 1 a case failed, 2 usage or bad input.";

/// Flags are Google Benchmark's and DML's, spelled as those tools spell them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Cases to run: a regular expression on their names; after a minus, cases to leave out.
    #[arg(
        long = "benchmark_filter",
        value_name = "REGEX",
        default_value = "all",
        allow_hyphen_values = true
    )]
    filter: String,

    /// Seconds that a case runs at least, or iterations as in 100x.
    #[arg(long = "benchmark_min_time", value_name = "S|Nx", default_value = "0.5", value_parser = min_time)]
    min_time: MinTime,

    /// Accepted: warm-up is by rounds of the queue.
    #[arg(long = "benchmark_min_warmup_time", value_name = "S", hide = true)]
    min_warmup_time: Option<f64>,

    /// Measurements of each case.
    #[arg(long = "benchmark_repetitions", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,

    /// Accepted: repetitions of modelled cases are equal.
    #[arg(long = "benchmark_enable_random_interleaving", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide = true)]
    interleave: bool,

    /// Of repeated measurements, report only mean, median, stddev and cv.
    #[arg(long = "benchmark_report_aggregates_only", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    report_aggregates_only: bool,

    /// The same on the console only; files keep every measurement.
    #[arg(long = "benchmark_display_aggregates_only", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    display_aggregates_only: bool,

    /// What is printed.
    #[arg(long = "benchmark_format", visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = Form::Console)]
    format: Form,

    /// Also write the result to a file.
    #[arg(long = "benchmark_out", value_name = "FILE")]
    out: Option<PathBuf>,

    /// What the file holds.
    #[arg(long = "benchmark_out_format", value_name = "FORMAT", value_enum, default_value_t = Form::Json)]
    out_format: Form,

    /// List the names of the cases and stop.
    #[arg(long = "benchmark_list_tests", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    list: bool,

    /// Counters in columns.
    #[arg(long = "benchmark_counters_tabular", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    tabular: bool,

    /// Unit of the times.
    #[arg(long = "benchmark_time_unit", value_name = "UNIT", value_enum, default_value_t = Unit::Ns)]
    time_unit: Unit,

    /// Add to the head of the result.
    #[arg(
        long = "benchmark_context",
        value_name = "KEY=VALUE",
        value_delimiter = ','
    )]
    context: Vec<String>,

    /// Accepted: the table has no colours.
    #[arg(long = "benchmark_color", value_name = "BOOL", hide = true)]
    color: Option<String>,

    /// Accepted: nothing more is logged.
    #[arg(long = "v", value_name = "N", hide = true)]
    verbosity: Option<u32>,

    /// Bytes of an operation, instead of 1 KiB to 16 MiB.
    #[arg(long = "block_size", value_name = "SIZE", value_delimiter = ',', value_parser = parse_block_size)]
    block_size: Vec<u32>,

    /// Operations in flight, instead of 16, 32, 64 and 128.
    #[arg(long = "queue_size", value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    queue_size: Vec<u32>,

    /// Operations in a batch, 0 for none, instead of 0, 4, 8 and 16; -1 for those.
    #[arg(
        long = "batch_size",
        value_name = "N",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    batch_size: Vec<i32>,

    /// Threads of asynchronous cases, instead of 1, 2, 4, 8 and 16; 0 for those.
    #[arg(long = "threads", value_name = "N", value_delimiter = ',')]
    threads: Vec<u32>,

    /// Use only devices of this memory node; -1 for all.
    #[arg(long = "node", value_name = "N", default_value_t = -1, allow_hyphen_values = true)]
    node: i32,

    /// Where the input is: none, l1, l2, llc or ram.
    #[arg(long = "in_mem", value_name = "WHERE", default_value = "llc")]
    in_mem: String,

    /// Where the output is, with cc_ before it if the device writes to the cache.
    #[arg(long = "out_mem", value_name = "WHERE", default_value = "cc_llc")]
    out_mem: String,

    /// Only cases that measure preparation too.
    #[arg(long = "full_time", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    full_time: bool,

    /// No cases on a device.
    #[arg(long = "no_hw", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    no_hw: bool,

    /// Machine to model: a built-in platform (spr-2s, emr-2s, dsa2-2s) or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    platform: String,

    /// Device configuration: an accel-config file, or a name such as 1e1w-d or 4e1w-s-wqsz16.
    /// Without it, 1e1w-s with the device's own limit of a transfer.
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<String>,

    /// How cores wait.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Wait::Poll)]
    wait: Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Console,
    Json,
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wait {
    Poll,
    Pause,
    Umwait,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let unit = match args.time_unit {
        Unit::Ns => TimeUnit::Ns,
        Unit::Us => TimeUnit::Us,
        Unit::Ms => TimeUnit::Ms,
        Unit::S => TimeUnit::S,
    };
    let cases = select(axes(args)?.cases(), &args.filter).map_err(complaint)?;
    if args.list {
        let names: String = cases.iter().map(|case| format!("{case}\n")).collect();
        print::all(&mut io::stdout().lock(), &names)?;
        return Ok(ExitCode::SUCCESS);
    }
    let platform = PlatformFile::resolve(&args.platform).map_err(|e| complaint(e.into()))?;
    let name = args.config.as_deref().unwrap_or("1e1w-s");
    let profile = Profile::resolve(name).map_err(|e| complaint(e.into()))?;
    for finding in profile.unmodelled() {
        eprintln!("warning: {finding}");
    }
    let node = u16::try_from(args.node).ok();
    let mut machine = Modelled::new(platform, &profile, args.config.is_none())
        .map_err(complaint)?
        .on_node(node)
        .waiting(match args.wait {
            Wait::Poll => WaitMode::Poll,
            Wait::Pause => WaitMode::Pause,
            Wait::Umwait => WaitMode::Umwait,
        })
        .lasting(args.min_time);
    let topology = machine.platform().topology;
    let cores = u32::from(topology.sockets) * u32::from(topology.cores_per_socket);
    let mut context = Context::modelled(&machine.platform().name, name, cores);
    for pair in &args.context {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Usage::error(
                format!("--benchmark_context={pair}: a key, '=' and a value are needed"),
                "--benchmark_context=machine=mine",
            )
        })?;
        context.extra.insert(key.to_owned(), value.into());
    }
    eprintln!(
        "Modelled time on platform {}, device {}: Time is virtual, CPU is the time that the core was busy.",
        context.dray_platform, name
    );
    if cases.iter().any(|case| case.api == Api::C) {
        eprintln!(
            "note: api:c runs the same path as api:rust: interfaces cost nothing in modelled time."
        );
    }
    let (rows, failures) = measure(args, unit, &cases, |case| machine.run(case))?;
    finish(args, unit, &context, &rows)?;
    Ok(match failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Runs the cases; on the console, rows appear as they come. How many cases failed.
fn measure(
    args: &Args,
    unit: TimeUnit,
    cases: &[Case],
    mut run: impl FnMut(&Case) -> Result<dray_bench::Timing, BenchError>,
) -> anyhow::Result<(Vec<Row>, usize)> {
    let names: Vec<String> = cases.iter().map(Case::to_string).collect();
    let names = names.iter().map(String::as_str);
    let layout = Layout::new(names, args.repetitions, args.tabular, unit);
    let console = args.format == Form::Console;
    let bar = bar(cases.len());
    let out = &mut io::stdout();
    let show = |text: &str, out: &mut io::Stdout| bar.suspend(|| print::all(out, text));
    if console {
        show(&layout.head(&["Latency", "Latency/Op", "Throughput"]), out)?;
    }
    let (mut all, mut failures) = (Vec::new(), 0);
    for (case, at) in cases.iter().zip(positions(cases)) {
        bar.set_message(case.to_string());
        let found = match run(case) {
            Ok(timing) => {
                let one = (timing, timing.counters(case));
                rows(case, at, &vec![one; args.repetitions as usize])
            }
            Err(error) => {
                failures += 1;
                vec![failed(case, at, error.to_string())]
            }
        };
        for row in found {
            if console
                && shown(
                    &row,
                    args.report_aggregates_only || args.display_aggregates_only,
                )
            {
                show(&layout.row(&row), out)?;
            }
            all.push(row);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((all, failures))
}

/// Whether a row is reported where only aggregates are wanted: what has none is, all the same.
fn shown(row: &Row, aggregates_only: bool) -> bool {
    !aggregates_only || row.is_aggregate() || row.repetitions < 2
}

/// Prints what is no console table, and writes the file.
fn finish(args: &Args, unit: TimeUnit, context: &Context, rows: &[Row]) -> anyhow::Result<()> {
    let keep = |only: bool| -> Vec<Row> {
        let kept = rows.iter().filter(|row| shown(row, only));
        kept.cloned().collect()
    };
    let text = |form: Form, rows: &[Row]| -> anyhow::Result<String> {
        Ok(match form {
            Form::Json => write_json(context, rows, unit)?,
            Form::Csv => write_csv(rows, unit),
            Form::Console => console(args, unit, rows),
        })
    };
    if args.format != Form::Console {
        let only = args.report_aggregates_only || args.display_aggregates_only;
        print::all(&mut io::stdout().lock(), &text(args.format, &keep(only))?)?;
    }
    if let Some(path) = &args.out {
        let text = text(args.out_format, &keep(args.report_aggregates_only))?;
        dray_experiment::write_atomic(path, text.as_bytes())?;
    }
    Ok(())
}

fn console(args: &Args, unit: TimeUnit, rows: &[Row]) -> String {
    let names: Vec<String> = rows.iter().map(|row| row.case.to_string()).collect();
    let names = names.iter().map(String::as_str);
    let layout = Layout::new(names, args.repetitions, args.tabular, unit);
    let counters = match rows.iter().all(|row| matches!(row.kind, Kind::Failed(_))) {
        true => &[][..],
        false => &["Latency", "Latency/Op", "Throughput"][..],
    };
    let lines: String = rows.iter().map(|row| layout.row(row)).collect();
    format!("{}{lines}", layout.head(counters))
}

fn bar(cases: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(cases as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} cases, {eta} left: {wide_msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

fn axes(args: &Args) -> anyhow::Result<Axes> {
    let defaults = Axes::default();
    let location = |flag: &str, text: &str| {
        Usage::error(
            format!("--{flag}={text}: no such place"),
            format!("--{flag} takes none, l1, l2, llc or ram; --out_mem also with cc_ before it"),
        )
    };
    let or = |given: &Vec<u32>, defaults: Vec<u32>| match given.is_empty() {
        true => defaults,
        false => given.clone(),
    };
    let mut batch_sizes = Vec::new();
    for &batch in &args.batch_size {
        batch_sizes.push(match batch {
            -1 => continue,
            0 | 2..=1024 => batch as u32,
            _ => {
                return Err(Usage::error(
                    format!("--batch_size={batch}: a batch has 2 to 1024 operations"),
                    "--batch_size=0 leaves batches out",
                ));
            }
        });
    }
    let threads: Vec<u32> = args.threads.iter().copied().filter(|t| *t > 0).collect();
    Ok(Axes {
        sizes: or(&args.block_size, defaults.sizes),
        queue_sizes: or(&args.queue_size, defaults.queue_sizes),
        batch_sizes: or(&batch_sizes, defaults.batch_sizes),
        threads: or(&threads, defaults.threads),
        in_mem: Location::parse(&args.in_mem).ok_or_else(|| location("in_mem", &args.in_mem))?,
        out_mem: Output::parse(&args.out_mem).ok_or_else(|| location("out_mem", &args.out_mem))?,
        timers: match args.full_time {
            true => vec![Timer::Full],
            false => defaults.timers,
        },
        no_hw: args.no_hw,
        real: false,
    })
}

/// What was typed wrong comes with a hint and exit code 2.
pub(crate) fn complaint(error: BenchError) -> anyhow::Error {
    match error.is_bad_input() {
        true => {
            let hint = error.hint();
            Usage::error(
                error.to_string(),
                hint.unwrap_or_else(|| "--help shows what there is".to_owned()),
            )
        }
        false => error.into(),
    }
}

/// Seconds, with or without the s, or iterations with an x.
fn min_time(text: &str) -> Result<MinTime, String> {
    if let Some(count) = text.strip_suffix('x') {
        return match count.parse() {
            Ok(0) | Err(_) => Err("iterations are a number above 0 and an x".to_owned()),
            Ok(count) => Ok(MinTime::Iterations(count)),
        };
    }
    let number = text.strip_suffix('s').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && (0.0..=1e6).contains(&seconds) => {
            Ok(MinTime::Seconds(seconds))
        }
        _ => Err("seconds, such as 0.5 or 0.5s, or iterations, such as 100x".to_owned()),
    }
}
