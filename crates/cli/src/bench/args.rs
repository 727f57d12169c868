//! What `dray bench` takes.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, ValueEnum};
use dray_bench::real::DeviceChoice;
use dray_bench::{Axes, Location, MinTime, Output, Timer, parse_block_size};

use crate::complain::Usage;

const EXAMPLES: &str = "\
Examples:
  dray bench --benchmark_min_time=0.3 --benchmark_filter=move/api:c/path:.*/exec:.*/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/.*
  dray bench --benchmark_filter=\"copy/api:c/path:cpu/exec:sync/.*\"
  dray bench --block_size=4k --queue_size=1 --benchmark_filter=path:dsa/exec:sync
  dray bench --real --block_size=4k --benchmark_repetitions=9 --benchmark_filter=^copy/
  dray bench --device hw --block_size=4k --queue_size=16 --benchmark_filter=^copy/
  dray bench --benchmark_filter=size:65536/ --benchmark_out=result.json --benchmark_out_format=json

Without --real, cases run in modelled time: Time is virtual, CPU is the time
that the core was busy with an iteration. A case ends after
--benchmark_min_time, or sooner once it has repeated itself often enough. An
iteration is qsize operations (async: qsize/threads of each thread); a batch
counts as one operation of Latency/Op, all its bytes count in Throughput.
Exit codes: 0 ok, 1 a case failed, 2 usage or bad input, 3 there is no DSA
(--device hw).";

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
    pub(super) filter: String,

    /// Seconds that a case runs at least, or iterations as in 100x.
    #[arg(long = "benchmark_min_time", value_name = "S|Nx", default_value = "0.5", value_parser = min_time)]
    pub(super) min_time: MinTime,

    /// Accepted: warm-up is by rounds of the queue.
    #[arg(long = "benchmark_min_warmup_time", value_name = "S", hide = true)]
    pub(super) min_warmup_time: Option<f64>,

    /// Measurements of each case.
    #[arg(long = "benchmark_repetitions", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) repetitions: u32,

    /// Accepted: repetitions of modelled cases are equal, those of measured ones interleaved always.
    #[arg(long = "benchmark_enable_random_interleaving", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide = true)]
    pub(super) interleave: bool,

    /// Of repeated measurements, report only mean, median, stddev and cv.
    #[arg(long = "benchmark_report_aggregates_only", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    pub(super) report_aggregates_only: bool,

    /// The same on the console only; files keep every measurement.
    #[arg(long = "benchmark_display_aggregates_only", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    pub(super) display_aggregates_only: bool,

    /// Format of the output.
    #[arg(long = "benchmark_format", visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = Form::Console)]
    pub(super) format: Form,

    /// Also write the result to a file.
    #[arg(long = "benchmark_out", value_name = "FILE")]
    pub(super) out: Option<PathBuf>,

    /// Format of the file.
    #[arg(long = "benchmark_out_format", value_name = "FORMAT", value_enum, default_value_t = Form::Json)]
    pub(super) out_format: Form,

    /// List the names of the cases and stop.
    #[arg(long = "benchmark_list_tests", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    pub(super) list: bool,

    /// Counters in columns.
    #[arg(long = "benchmark_counters_tabular", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    pub(super) tabular: bool,

    /// Unit of the times.
    #[arg(long = "benchmark_time_unit", value_name = "UNIT", value_enum, default_value_t = Unit::Ns)]
    pub(super) time_unit: Unit,

    /// Add to the head of the result.
    #[arg(
        long = "benchmark_context",
        value_name = "KEY=VALUE",
        value_delimiter = ','
    )]
    pub(super) context: Vec<String>,

    /// Run every case once, for one iteration.
    #[arg(long = "benchmark_dry_run", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    pub(super) dry_run: bool,

    #[arg(long = "benchmark_perf_counters", value_name = "LIST", hide = true)]
    pub(super) perf_counters: Option<String>,

    #[arg(long = "dataset", value_name = "PATH", hide = true)]
    pub(super) dataset: Option<String>,

    /// Accepted: the table has no colours.
    #[arg(long = "benchmark_color", value_name = "BOOL", hide = true)]
    pub(super) color: Option<String>,

    /// Accepted: nothing more is logged.
    #[arg(long = "v", value_name = "N", hide = true)]
    pub(super) verbosity: Option<u32>,

    /// Bytes of an operation, instead of 1 KiB to 16 MiB.
    #[arg(long = "block_size", value_name = "SIZE", value_delimiter = ',', value_parser = parse_block_size)]
    pub(super) block_size: Vec<u32>,

    /// Operations in flight, instead of 16, 32, 64 and 128.
    #[arg(long = "queue_size", value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) queue_size: Vec<u32>,

    /// Operations in a batch, 0 for none, instead of 0, 4, 8 and 16; -1 for those.
    #[arg(
        long = "batch_size",
        value_name = "N",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(super) batch_size: Vec<i32>,

    /// Threads of asynchronous cases, instead of 1, 2, 4, 8 and 16; 0 for those.
    #[arg(long = "threads", value_name = "N", value_delimiter = ',')]
    pub(super) threads: Vec<u32>,

    /// Use only devices of this memory node, with --real only its CPUs; -1 for all.
    #[arg(long = "node", value_name = "N", default_value_t = -1, allow_hyphen_values = true)]
    pub(super) node: i32,

    /// Where the input is: none, l1, l2, llc or ram.
    #[arg(long = "in_mem", value_name = "WHERE", default_value = "llc")]
    pub(super) in_mem: String,

    /// Where the output is, with cc_ before it if the device writes to the cache.
    #[arg(long = "out_mem", value_name = "WHERE", default_value = "cc_llc")]
    pub(super) out_mem: String,

    /// Only cases that measure preparation too.
    #[arg(long = "full_time", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    pub(super) full_time: bool,

    /// No cases on a device.
    #[arg(long = "no_hw", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set, default_value = "false", hide_possible_values = true)]
    pub(super) no_hw: bool,

    /// Measure software on this machine instead: path:cpu of api:rust and api:glibc.
    #[arg(long, conflicts_with_all = ["platform", "config", "wait"])]
    pub(super) real: bool,

    /// Measure a device of this machine instead: hw, the first free work queues, or hw:wqX.Y.
    #[arg(long, value_name = "hw[:wqX.Y]", value_parser = DeviceChoice::parse, conflicts_with_all = ["platform", "config", "real", "no_hw"])]
    pub(super) device: Option<DeviceChoice>,

    /// Machine to model: a built-in platform (spr-2s, emr-2s, dsa2-2s) or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    pub(super) platform: String,

    /// Device configuration: an accel-config file, or a name such as 1e1w-d or 4e1w-s-wqsz16.
    /// Without it, 1e1w-s with the device's own limit of a transfer.
    #[arg(long, value_name = "FILE|NAME")]
    pub(super) config: Option<String>,

    /// How cores wait.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Wait::Poll)]
    pub(super) wait: Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    Console,
    Json,
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Wait {
    Poll,
    Pause,
    Umwait,
}

impl Args {
    /// How long a case runs.
    pub(super) fn lasting(&self) -> MinTime {
        match self.dry_run {
            true => MinTime::Iterations(1),
            false => self.min_time,
        }
    }

    /// Measurements of each case.
    pub(super) fn repeated(&self) -> u32 {
        match self.dry_run {
            true => 1,
            false => self.repetitions,
        }
    }
}

/// Flags of both tools that are understood and not provided.
pub(super) fn refuse(args: &Args) -> anyhow::Result<()> {
    if let Some(list) = args.perf_counters.as_ref().filter(|list| !list.is_empty()) {
        return Err(Usage::error(
            format!("--benchmark_perf_counters={list}: performance counters are not read"),
            "perf stat -e LIST dray bench --real ... counts them for the whole run",
        ));
    }
    if let Some(path) = args.dataset.as_ref().filter(|path| !path.is_empty()) {
        return Err(Usage::error(
            format!("--dataset={path}: buffers hold a pattern: no operation depends on the data"),
            "leave --dataset out; --block_size=4k,1M chooses sizes",
        ));
    }
    Ok(())
}

/// What varies, as typed.
pub(super) fn axes(args: &Args) -> anyhow::Result<Axes> {
    let defaults = Axes::default();
    let location = |flag: &str, text: &str| {
        Usage::error(
            format!(
                "--{flag}={text} is not a location; {}",
                dray_suggest::suggest(text, ["none", "l1", "l2", "llc", "ram"])
            ),
            "--out_mem takes the same words, also with cc_ before them: cc_llc",
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
        device: args.device.is_some(),
        threads: match (threads.is_empty(), args.real || args.device.is_some()) {
            (false, _) => threads,
            (true, false) => defaults.threads,
            (true, true) => {
                let cpus = dray_bench::real::available_cpus().len() as u32;
                defaults
                    .threads
                    .into_iter()
                    .filter(|t| *t <= cpus)
                    .collect()
            }
        },
        in_mem: Location::parse(&args.in_mem).ok_or_else(|| location("in_mem", &args.in_mem))?,
        out_mem: Output::parse(&args.out_mem).ok_or_else(|| location("out_mem", &args.out_mem))?,
        timers: match args.full_time {
            true => vec![Timer::Full],
            false => defaults.timers,
        },
        no_hw: args.no_hw,
        lacking: Vec::new(),
        real: args.real,
        cpp: false,
    })
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
