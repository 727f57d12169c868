//! `dray advise`: whether one case is worth offloading.

use std::io;
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::CellAlignment;
use dray_experiment::{Point, Value, csv_table, format_bytes};
use dray_figures::{
    Advice, BreakEven, Comparison, FiguresError, Metric, Model, RangeEffect, Used, VOCABULARY,
    Verdict, Workload,
};
use dray_platform::{Parameter, PlatformFile, Unit};

use crate::complain::Usage;
use crate::configured::{self, Configured};
use crate::print::{self, Format};

const EXAMPLES: &str = "\
Examples:
  dray advise --op memmove --size 16k --depth 4
  dray advise --op crc --size 4k --depth 32 --placement llc
  dray advise --op memmove --size 1k --batch 16 --config 4e1w-s --format json

The whole chart: dray figures --only break-even.
Exit codes: 0 ok, whatever the advice; 1 failed; 2 usage or bad input.";

/// Operations that software can do as well.
const OPERATIONS: &[&str] = &[
    "memmove", "fill", "nt_fill", "compare", "compval", "dualcast", "crc", "copy_crc",
];

/// How the core walks its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Access {
    /// From one end to the other.
    Streaming,
    /// In random order, where no prefetcher helps.
    Random,
}

impl Access {
    /// Its value of the parameter `access`.
    fn word(self) -> &'static str {
        match self {
            Access::Streaming => "sequential",
            Access::Random => "random",
        }
    }
}

/// Whose code the core runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Core {
    /// A program's, with vector registers.
    User,
    /// The kernel's, which copies without vector registers.
    Kernel,
}

impl Core {
    /// Its value of the parameter `core`.
    fn word(self) -> &'static str {
        match self {
            Core::User => "user",
            Core::Kernel => "kernel",
        }
    }
}

/// Arguments of `dray advise`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Operation: memmove, fill, nt_fill, compare, compval, dualcast, crc or copy_crc.
    #[arg(long, value_name = "OP", default_value = "memmove")]
    op: String,

    /// Bytes of one operation.
    #[arg(long, value_name = "BYTES")]
    size: String,

    /// Descriptors that the program keeps outstanding, a batch counted once.
    #[arg(long, value_name = "N", default_value = "1")]
    depth: String,

    /// Operations in a batch descriptor; 1: no batches.
    #[arg(long, value_name = "N", default_value = "1")]
    batch: String,

    /// Where the operands are: dram, llc, or l1 (of the core; the device finds them in the LLC).
    #[arg(long, value_name = "PLACE", default_value = "dram")]
    placement: String,

    /// How the core walks its buffers.
    #[arg(long, value_enum, value_name = "ACCESS", default_value_t = Access::Streaming)]
    access: Access,

    /// Whose code the core runs.
    #[arg(long, value_enum, value_name = "CORE", default_value_t = Core::User)]
    core: Core,

    /// Measure the operation on a core of this machine, and take that instead of the modelled
    /// core's time per line.
    #[arg(long)]
    measure_cpu: bool,

    /// Memory of the source: local, remote or cxl.
    #[arg(long, value_name = "NODE", default_value = "local")]
    src_node: String,

    /// Memory of the destination.
    #[arg(long, value_name = "NODE", default_value = "local")]
    dst_node: String,

    /// Machine to model: a built-in platform or a platform file.
    #[arg(long, value_name = "FILE|NAME", default_value = "spr-2s")]
    platform: String,

    /// Device configuration: an accel-config file or a name. Without it the device that is
    /// configured here, or 1e1w-d.
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<String>,

    /// How to print it.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// What is printed.
struct Printed<'a> {
    args: &'a Args,
    /// What to call the device's configuration.
    config: String,
    point: Point,
    model: Model,
    used: Used,
    advice: Advice,
}

/// One quantity of both sides.
struct Row<'a> {
    what: &'static str,
    key: &'static str,
    unit: &'static str,
    device: f64,
    core: f64,
    guessed: (&'a [Parameter], &'a [Parameter]),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let point = point(args)?;
    let platform = PlatformFile::resolve(&args.platform).map_err(FiguresError::from)?;
    let chosen = configured::profile(args.config.as_deref(), "1e1w-d");
    let Configured { profile, name } = chosen.map_err(FiguresError::from)?;
    for finding in profile.unmodelled() {
        eprintln!("warning: {finding}");
    }
    let used = Used::of(&profile)?;
    let workload = Workload::from_point(&point)?;
    let mut model = Model::new(platform, profile);
    if args.measure_cpu {
        let measured = dray_figures::measured_core(&model, &workload)?;
        eprintln!("{}", measured.describe());
        model = measured.model;
    }
    let printed = Printed {
        args,
        config: name,
        used,
        advice: Advice::of(&model, &workload)?,
        point,
        model,
    };
    let text = match args.format {
        Format::Table => printed.table(),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&printed.json())?),
        Format::Csv => printed.csv(),
    };
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(ExitCode::SUCCESS)
}

fn point(args: &Args) -> anyhow::Result<Point> {
    if args.op == "noop" {
        return Err(Usage::error(
            "--op noop: there is no software that does nothing as a NOOP does",
            "--op memmove",
        ));
    }
    if !OPERATIONS.contains(&args.op.as_str()) {
        let hint = dray_suggest::suggest(&args.op, OPERATIONS.iter().copied());
        return Err(Usage::error(
            format!("--op {} is not an operation of the core; {hint}", args.op),
            "--op memmove is a copy",
        ));
    }
    let named = [
        ("op", &args.op),
        ("size", &args.size),
        ("depth", &args.depth),
        ("batch", &args.batch),
        ("placement", &args.placement),
        ("src_node", &args.src_node),
        ("dst_node", &args.dst_node),
    ];
    let mut point = Point::default()
        .with("access", args.access.word())
        .with("core", args.core.word());
    for (name, text) in named {
        let value = VOCABULARY
            .check(name, &Value::Text(text.clone()))
            .map_err(FiguresError::from)?;
        point = point.with(name, value);
    }
    Ok(point)
}

impl Printed<'_> {
    fn rows(&self) -> Vec<Row<'_>> {
        let compared = &self.advice.compared;
        let guesses = &self.advice.guesses;
        let row = |what, key, unit, metric: Metric| Row {
            what,
            key,
            unit,
            device: compared.device.get(metric).unwrap_or_default(),
            core: compared.core.get(metric).unwrap_or_default(),
            guessed: (&guesses.device, &guesses.core),
        };
        let (busy, working) = compared.core_time();
        let sleeping = Row {
            device: busy,
            core: working,
            guessed: (&guesses.core_time, &guesses.core),
            ..row(
                "core time, UMWAIT",
                "core_time_umwait_ns",
                "ns",
                Metric::Period,
            )
        };
        vec![
            row("throughput", "throughput_gbps", "GB/s", Metric::Throughput),
            row(
                "time per operation",
                "time_per_operation_ns",
                "ns",
                Metric::Period,
            ),
            row("latency", "latency_ns", "ns", Metric::Latency),
            row(
                "core time, polling",
                "core_time_polling_ns",
                "ns",
                Metric::Period,
            ),
            sleeping,
        ]
    }

    fn table(&self) -> String {
        let mut table = print::plain(["", "unit", "DSA", "one core", "guess"]);
        for row in self.rows() {
            let guess = match (row.guessed.0.is_empty(), row.guessed.1.is_empty()) {
                (true, true) => "",
                (false, true) => "DSA",
                (true, false) => "core",
                (false, false) => "both",
            };
            table.add_row([
                row.what.to_owned(),
                row.unit.to_owned(),
                format!("{:.1}", row.device),
                format!("{:.1}", row.core),
                guess.to_owned(),
            ]);
        }
        let columns = table.column_iter_mut().skip(2).take(2);
        columns.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        let args = self.args;
        let batch = match args.batch.as_str() {
            "1" => String::new(),
            batch => format!(" in batches of {batch}"),
        };
        format!(
            "{} of {}{batch}, {} outstanding; {} with {}, {}; all modelled\n\n{table}\n\n{}\n",
            args.op,
            args.size,
            args.depth,
            self.model.platform.name,
            self.config,
            self.used.describe(),
            self.words().join("\n"),
        )
    }

    fn words(&self) -> Vec<String> {
        let advice = &self.advice;
        let verdict_guessed = advice.guesses.are_behind(advice.compared.verdict());
        let guessed = if verdict_guessed { " (guess)" } else { "" };
        let from = |what: &str, of: fn(&BreakEven) -> Option<u32>| {
            let (least, most) = (of(&advice.within.0), of(&advice.within.1));
            let range = match least == most {
                true => String::new(),
                false => format!(
                    "; {} to {} within the parameters' ranges",
                    size_or_none(least),
                    size_or_none(most)
                ),
            };
            let size = match of(&advice.from) {
                Some(size) => format!("from {} on", size_text(size.into())),
                None => "at no size that the work queue takes".to_owned(),
            };
            format!("{what} {size}{range}.")
        };
        let mut words = vec![format!("{}{guessed}", verdict(&advice.compared))];
        words.push(from(
            "With so many outstanding, the device has more throughput",
            |even| even.throughput,
        ));
        words.push(from(
            "A core that sleeps in UMWAIT spends less time than by doing the work itself",
            |even| even.core_time,
        ));
        words.push("A core that polls is busy all the time.".to_owned());
        if let Some(dominant) = advice.dominant() {
            let p = &dominant.parameter;
            words.push(format!(
                "The range of {} matters most: {} to {} by itself. {}",
                p.name,
                size_or_none(dominant.within.0.throughput),
                size_or_none(dominant.within.1.throughput),
                narrow(p)
            ));
        }
        words.push(String::new());
        for effect in &advice.ranges {
            words.push(range_words(effect));
        }
        if advice.ranges.iter().all(|effect| effect.turns.is_none()) {
            words.push("None of them turns the verdict within its range by itself.".to_owned());
        }
        words
    }

    fn json(&self) -> serde_json::Value {
        let advice = &self.advice;
        let case: serde_json::Map<String, serde_json::Value> = self
            .point
            .iter()
            .map(|(name, value)| {
                let value = match value.integer() {
                    Some(number) => number.into(),
                    None => value.to_string().into(),
                };
                (name.to_owned(), value)
            })
            .collect();
        let side = |of: fn(&Row<'_>) -> (f64, Vec<String>)| {
            let rows = self.rows();
            let values = rows.iter().map(|r| (r.key.to_owned(), of(r).0.into()));
            let guesses = rows.iter().map(|r| (r.key.to_owned(), of(r).1.into()));
            let values: serde_json::Map<String, serde_json::Value> = values.collect();
            let guesses: serde_json::Map<String, serde_json::Value> = guesses.collect();
            (values, guesses)
        };
        let (dsa, dsa_guesses) = side(|row| (row.device, names(row.guessed.0)));
        let (core, core_guesses) = side(|row| (row.core, names(row.guessed.1)));
        let even = |even: BreakEven| {
            serde_json::json!({
                "break_even_bytes": even.throughput,
                "core_break_even_bytes": even.core_time,
            })
        };
        let parameters = advice.ranges.iter().map(|effect| {
            let p = &effect.parameter;
            serde_json::json!({
                "parameter": p.name, "value": p.value, "unit": p.unit.name(), "guess": p.guess,
                "low": p.range[0], "high": p.range[1], "source": &*p.source,
                "least": even(effect.within.0), "most": even(effect.within.1),
            })
        });
        let turns = advice.ranges.iter().filter_map(|effect| {
            let turn = effect.turns.as_ref()?;
            Some(serde_json::json!({
                "parameter": effect.parameter.name, "turns_at": turn.at,
                "towards": turn.towards, "verdict": word(turn.end.verdict()),
            }))
        });
        let dominant = advice.dominant().map(|effect| effect.parameter.name);
        serde_json::json!({
            "case": case,
            "work_queue": {
                "id": self.used.wq, "mode": if self.used.shared { "shared" } else { "dedicated" },
                "entries": self.used.entries, "engines": self.used.engines, "others_idle": self.used.idle,
            },
            "dsa": { "executor": "model", "metrics": dsa, "rests_on_guesses": dsa_guesses },
            "core": { "executor": "model-cpu", "metrics": core, "rests_on_guesses": core_guesses },
            "verdict": word(advice.compared.verdict()),
            "break_even_bytes": advice.from.throughput,
            "core_break_even_bytes": advice.from.core_time,
            "parameters": parameters.collect::<Vec<_>>(),
            "verdict_turns": turns.collect::<Vec<_>>(),
            "dominant_parameter": dominant,
            "within_ranges": {
                "least": even(advice.within.0), "most": even(advice.within.1),
            },
        })
    }

    fn csv(&self) -> String {
        let head = [
            "metric",
            "unit",
            "dsa",
            "core",
            "dsa_guesses",
            "core_guesses",
        ];
        let row = |row: Row<'_>| {
            vec![
                row.key.to_owned(),
                row.unit.to_owned(),
                row.device.to_string(),
                row.core.to_string(),
                names(row.guessed.0).join(" "),
                names(row.guessed.1).join(" "),
            ]
        };
        csv_table(&head, self.rows().into_iter().map(row))
    }
}

/// One parameter that matters: what it is, what it does, and where it turns the verdict.
fn range_words(effect: &RangeEffect) -> String {
    let p = &effect.parameter;
    let unit = match p.unit {
        Unit::Count | Unit::Ratio => String::new(),
        unit => format!(" {}", unit.name()),
    };
    let kind = if p.guess { "guess" } else { "range" };
    let (least, most) = (effect.within.0.throughput, effect.within.1.throughput);
    let sizes = match least == most {
        true => String::new(),
        false => format!(": {} to {}", size_or_none(least), size_or_none(most)),
    };
    let turn = effect.turns.as_ref().map_or(String::new(), |turn| {
        let side = match turn.towards > p.value {
            true => format!("from {:.3} on", turn.at),
            false => format!("down from {:.3}", turn.at),
        };
        format!(
            "; {side} the verdict is another, at {}: {}",
            turn.towards,
            verdict(&turn.end)
        )
    });
    format!(
        "{kind}: {} = {}{unit}, possible are {} to {}{sizes}{turn} ({})",
        p.name, p.value, p.range[0], p.range[1], p.source
    )
}

/// What to do to know a parameter better.
fn narrow(p: &Parameter) -> String {
    match dray_figures::measurement(p.name) {
        Some(what) => format!("What would narrow it: {what}."),
        None => format!(
            "What would narrow it: {} Measure that, and state it in a platform file (--platform).",
            PlatformFile::help(p.name)
        ),
    }
}

fn names(of: &[Parameter]) -> Vec<String> {
    of.iter().map(|p| p.name.to_owned()).collect()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Offload => "offload",
        Verdict::SparesTheCore => "offload-if-the-core-has-other-work",
        Verdict::Stay => "stay-on-the-core",
    }
}

/// What to do, and by how much.
fn verdict(compared: &Comparison) -> String {
    let (device, core) = compared.period();
    let (busy, working) = compared.core_time();
    match compared.verdict() {
        Verdict::Offload => format!("Offload: {}.", more(core / device, "one core")),
        Verdict::SparesTheCore => format!(
            "One core has {}, but one that sleeps in UMWAIT is busy for {:.0} % of the time that the work takes it: offload if it has other work to do meanwhile.",
            more(device / core, "the device"),
            100.0 * busy / working
        ),
        Verdict::Stay => format!(
            "Do not offload: one core has {}, and handing the work over keeps it busy for no less time than doing it.",
            more(device / core, "the device")
        ),
    }
}

/// A ratio of one or more; as percent where one decimal would say nothing.
fn more(ratio: f64, than: &str) -> String {
    match ratio < 1.05 {
        true => format!("{:.1} % more throughput than {than}", 100.0 * (ratio - 1.0)),
        false => format!("{ratio:.1} times the throughput of {than}"),
    }
}

fn size_or_none(bytes: Option<u32>) -> String {
    bytes.map_or("no size".to_owned(), |bytes| size_text(bytes.into()))
}

fn size_text(bytes: u64) -> String {
    let text = format_bytes(bytes);
    match text.strip_suffix(|unit: char| unit.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}iB", &text[number.len()..]),
        None => format!("{text} B"),
    }
}
